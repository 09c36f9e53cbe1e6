"""OpenInference: LangChain and LangGraph as Arize's instrumentation records them.

Where a node runs stands in `metadata`, a JSON text, on the node's span and on all below it.
"""

from __future__ import annotations

from typing import Final

from twinspan.analysis.dialects.foreign import (
    Attributes,
    ForeignSpan,
    Json,
    Payload,
    Reading,
    Role,
    loose,
    number,
    payload,
    targets,
    text,
    texts,
)
from twinspan.analysis.dialects.langgraph_steps import namespace_of

KIND: Final = "openinference.span.kind"
BRANCH_FUNCTION: Final = "RunnableCallable"
"""Name of the span of a conditional edge; its output names the nodes to run next."""


class OpenInference:
    """Reads `openinference.span.kind` and what belongs to it."""

    name = "OpenInference"

    def claims(self, span: ForeignSpan, attributes: Attributes) -> bool:
        """Whether a span says its kind in OpenInference's way."""
        return KIND in attributes

    def read(self, span: ForeignSpan, attributes: Attributes) -> Reading:
        """What the span means."""
        reader = Json()
        metadata = reader.mapping(attributes.get("metadata"))
        namespace = namespace_of(metadata, span.span_id)
        kind = str(attributes[KIND]).upper()
        role = _role(kind, namespace, metadata.get("ls_integration") == "langgraph")
        output = captured(attributes, "output") if role in {"step", "graph", "chain"} else None
        is_step = role == "step"
        return Reading(
            dialect=self.name,
            role=role,
            graph=span.name if role in {"graph", "chain"} else None,
            node=text(metadata.get("langgraph_node")) if is_step else None,
            namespace=namespace,
            step=number(metadata.get("langgraph_step")),
            triggers=texts(metadata.get("langgraph_triggers")) if is_step else (),
            is_agent=kind == "AGENT",
            targets=targets(
                output,
                is_node=is_step and span.name == metadata.get("langgraph_node"),
                is_branch=is_step and span.name == BRANCH_FUNCTION,
            ),
            input=captured(attributes, "input") if role in {"step", "graph", "chain"} else None,
            output=output,
            model=text(attributes.get("llm.model_name")),
            provider=text(attributes.get("llm.provider")) or text(attributes.get("llm.system")),
            input_tokens=number(attributes.get("llm.token_count.prompt")),
            output_tokens=number(attributes.get("llm.token_count.completion")),
            conversation=text(attributes.get("session.id")),
            garbled=reader.garbled,
        )


def captured(attributes: Attributes, side: str) -> Payload | None:
    """What was captured of an input or output."""
    value = attributes.get(f"{side}.value")
    is_json = attributes.get(f"{side}.mime_type") == "application/json"
    return payload(loose(value) if is_json else value)


def _role(kind: str, namespace: str | None, is_langgraph: bool) -> Role:
    if kind == "LLM":
        return "llm"
    if kind not in {"CHAIN", "AGENT"}:
        return "other"
    if namespace is not None:
        return "step"
    return "graph" if is_langgraph else "chain"
