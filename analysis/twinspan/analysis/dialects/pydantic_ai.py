"""pydantic-ai: the GenAI conventions, with an agent's result and messages beside them.

An agent that another one calls through a tool lies in that agent's span.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from twinspan.analysis.dialects.foreign import Attributes, ForeignSpan, Reading, loose, payload
from twinspan.analysis.dialects.genai import GenAI
from twinspan.instrumentation import conventions as c

SCOPE: Final = "pydantic-ai"


class PydanticAI:
    """Reads what pydantic-ai adds to the conventions."""

    name = "pydantic-ai"

    def claims(self, span: ForeignSpan, attributes: Attributes) -> bool:
        """Whether pydantic-ai made a span that names a GenAI operation."""
        return span.scope_name == SCOPE and c.GEN_AI_OPERATION in attributes

    def read(self, span: ForeignSpan, attributes: Attributes) -> Reading:
        """What the span means."""
        reading = replace(GenAI().read(span, attributes), dialect=self.name)
        if reading.role != "step":
            return reading
        return replace(
            reading,
            input=payload(_asked(loose(attributes.get("pydantic_ai.all_messages")))),
            output=payload(loose(attributes.get("final_result"))),
        )


def _asked(messages: object) -> object:
    """What the user said before the first answer; None where messages are not recorded.

    >>> _asked([{"role": "user", "parts": ["q"]}, {"role": "assistant", "parts": ["a"]}])
    [{'role': 'user', 'parts': ['q']}]
    """
    if not isinstance(messages, list):
        return None
    asked: list[object] = []
    for message in cast("Sequence[object]", messages):
        role = cast("Mapping[str, object]", message).get("role") if _is_object(message) else None
        if role == "assistant":
            break
        asked.append(message)
    return asked or None


def _is_object(value: object) -> bool:
    return isinstance(value, dict)
