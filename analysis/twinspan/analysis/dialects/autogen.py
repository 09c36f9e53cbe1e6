"""AutoGen: agents of a team as its own runtime records them, each message in a trace of its own.

Every message is created in one trace and processed in another, and a link leads back. The
identity of the team stands in the names of its agents, and holds the traces together.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from twinspan.analysis.dialects.foreign import Attributes, ForeignSpan, Reading, text
from twinspan.analysis.dialects.genai import GenAI
from twinspan.instrumentation import conventions as c

RUNTIME: Final = "autogen "
"""Beginning of the scope of what the runtime records; its agents' own scope is the other one."""

_AGENTS: Final = "autogen-core"
_TEAM: Final = re.compile(r"_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_NAMING: Final = ("gen_ai.agent.id", "recipient_agent_type", "messaging.destination")
_STARTS: Final = "GroupChatStart"


class AutoGen:
    """Reads the spans of agents, and of the messages between them."""

    name = "AutoGen"

    def claims(self, span: ForeignSpan, attributes: Attributes) -> bool:
        """Whether AutoGen made a span."""
        return span.scope_name == _AGENTS or span.scope_name.startswith(RUNTIME)

    def read(self, span: ForeignSpan, attributes: Attributes) -> Reading:
        """What the span means."""
        team = next(
            (found[1] for name in _NAMING if (found := _TEAM.search(str(attributes.get(name))))),
            None,
        )
        if attributes.get(c.GEN_AI_OPERATION) == c.SPAN_AGENT:
            return replace(GenAI().read(span, attributes), dialect=self.name, team=team)
        starts = text(attributes.get("messaging.message.type")) == _STARTS and (
            span.parent_span_id is None or attributes.get("messaging.operation") == "create"
        )
        return Reading(
            dialect=self.name,
            team=team,
            starts=starts and str(attributes.get("messaging.destination")).find("Manager_") >= 0,
        )
