"""OpenAI Agents as OpenInference records them: agents are nodes, handoffs are edges.

Any framework whose spans carry `graph.node.id` reads the same way.
"""

from __future__ import annotations

from typing import Final

from twinspan.analysis.dialects.foreign import Attributes, ForeignSpan, Reading, text
from twinspan.analysis.dialects.openinference import KIND, OpenInference, captured

NODE: Final = "graph.node.id"
_PARENT: Final = "graph.node.parent_id"
_SCOPE: Final = "openinference.instrumentation.openai_agents"


class OpenAIAgents:
    """Reads `graph.node.id` and `graph.node.parent_id`."""

    name = "OpenInference agents"

    def claims(self, span: ForeignSpan, attributes: Attributes) -> bool:
        """Whether a span is an agent's, or belongs to a workflow of agents."""
        return KIND in attributes and (NODE in attributes or span.scope_name == _SCOPE)

    def read(self, span: ForeignSpan, attributes: Attributes) -> Reading:
        """What the span means."""
        kind = str(attributes[KIND]).upper()
        node = text(attributes.get(NODE))
        if node is not None:
            return Reading(
                dialect=self.name,
                role="step",
                node=node,
                is_agent=kind == "AGENT",
                sequential=True,
                source=text(attributes.get(_PARENT)),
                input=captured(attributes, "input"),
                output=captured(attributes, "output"),
                conversation=text(attributes.get("session.id")),
            )
        if kind == "AGENT":
            return Reading(
                dialect=self.name,
                role="graph",
                graph=span.name,
                input=captured(attributes, "input"),
                output=captured(attributes, "output"),
            )
        if kind == "LLM":
            return OpenInference().read(span, attributes)
        return Reading(dialect=self.name)
