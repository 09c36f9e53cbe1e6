"""The GenAI conventions as OpenTelemetry's own instrumentations write them.

They tell workflows, agents and model calls. Plain nodes of a graph have no span, and which agent
handed over to which is told by time alone.
"""

from __future__ import annotations

from twinspan.analysis.dialects.foreign import (
    LLM_OPERATIONS,
    Attributes,
    ForeignSpan,
    Reading,
    Role,
    loose,
    number,
    payload,
    text,
)
from twinspan.instrumentation import conventions as c


class GenAI:
    """Reads `gen_ai.operation.name` and what belongs to it."""

    name = "GenAI"

    def claims(self, span: ForeignSpan, attributes: Attributes) -> bool:
        """Whether a span names a GenAI operation."""
        return c.GEN_AI_OPERATION in attributes

    def read(self, span: ForeignSpan, attributes: Attributes) -> Reading:
        """What the span means."""
        role = _role(text(attributes.get(c.GEN_AI_OPERATION)))
        name = text(attributes.get(c.GEN_AI_WORKFLOW_NAME)) or text(
            attributes.get(c.GEN_AI_AGENT_NAME)
        )
        agent = text(attributes.get(c.GEN_AI_AGENT_NAME)) or span.name
        keeps = role in {"graph", "step"}
        return Reading(
            dialect=self.name,
            role=role,
            graph=name if role == "graph" else None,
            node=agent if role == "step" else None,
            is_agent=role == "step",
            sequential=role == "step",
            input=payload(loose(attributes.get(c.GEN_AI_INPUT_MESSAGES))) if keeps else None,
            output=payload(loose(attributes.get(c.GEN_AI_OUTPUT_MESSAGES))) if keeps else None,
            model=text(attributes.get(c.GEN_AI_REQUEST_MODEL)),
            provider=text(attributes.get(c.GEN_AI_PROVIDER)),
            input_tokens=number(attributes.get(c.GEN_AI_INPUT_TOKENS)),
            output_tokens=number(attributes.get(c.GEN_AI_OUTPUT_TOKENS)),
            conversation=text(attributes.get(c.GEN_AI_CONVERSATION_ID)),
        )


def _role(operation: str | None) -> Role:
    if operation == c.SPAN_RUN:
        return "graph"
    if operation == c.SPAN_AGENT:
        return "step"
    return "llm" if operation in LLM_OPERATIONS else "other"
