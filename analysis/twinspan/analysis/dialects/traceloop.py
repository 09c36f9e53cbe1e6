"""Traceloop (OpenLLMetry): LangChain and LangGraph as its instrumentation records them.

It alone records the graph as it was declared, and a span for each jump by command.
"""

from __future__ import annotations

from typing import Final

from twinspan.analysis.dialects.foreign import (
    LLM_OPERATIONS,
    Attributes,
    ForeignSpan,
    Json,
    Payload,
    Reading,
    Role,
    number,
    payload,
    targets,
    text,
    texts,
)
from twinspan.analysis.dialects.langgraph_steps import namespace_of
from twinspan.analysis.dialects.openinference import BRANCH_FUNCTION
from twinspan.instrumentation import conventions as c

_SCOPE: Final = "opentelemetry.instrumentation.langchain"
_PREFIX: Final = "traceloop."
_METADATA: Final = "traceloop.association.properties."
_UNKNOWN: Final = "unknown"
"""What it writes for a model whose name it did not find."""


class Traceloop:
    """Reads `traceloop.*` and the `gen_ai.*` beside it."""

    name = "Traceloop"

    def claims(self, span: ForeignSpan, attributes: Attributes) -> bool:
        """Whether a span comes from Traceloop."""
        return span.scope_name == _SCOPE or any(key.startswith(_PREFIX) for key in attributes)

    def read(self, span: ForeignSpan, attributes: Attributes) -> Reading:
        """What the span means."""
        reader = Json()
        metadata = {
            key.removeprefix(_METADATA): value
            for key, value in attributes.items()
            if key.startswith(_METADATA)
        }
        namespace = namespace_of(metadata, span.span_id)
        operation = text(attributes.get(c.GEN_AI_OPERATION))
        role = _role(attributes, operation, namespace)
        keeps = role in {"step", "graph"}
        output = _captured(reader, attributes, "output") if keeps else None
        name = text(attributes.get("traceloop.entity.name"))
        is_step = role == "step"
        return Reading(
            dialect=self.name,
            role=role,
            graph=text(attributes.get(c.GEN_AI_AGENT_NAME)) or name if role == "graph" else None,
            node=text(metadata.get("langgraph_node")) if is_step else None,
            namespace=namespace,
            step=number(metadata.get("langgraph_step")),
            triggers=texts(metadata.get("langgraph_triggers")) if is_step else (),
            targets=_jump(attributes)
            | targets(
                output,
                is_node=is_step and name == metadata.get("langgraph_node"),
                is_branch=is_step and name == BRANCH_FUNCTION,
            ),
            nodes=texts(attributes.get("gen_ai.workflow.nodes")),
            edges=_edges(texts(attributes.get("gen_ai.workflow.edges"))),
            input=_captured(reader, attributes, "input") if keeps else None,
            output=output,
            model=_model(attributes, metadata),
            provider=text(metadata.get("ls_provider")) or text(attributes.get(c.GEN_AI_PROVIDER)),
            input_tokens=number(attributes.get(c.GEN_AI_INPUT_TOKENS)),
            output_tokens=number(attributes.get(c.GEN_AI_OUTPUT_TOKENS)),
            conversation=text(attributes.get(c.GEN_AI_CONVERSATION_ID))
            or text(metadata.get("thread_id")),
            garbled=reader.garbled,
        )


def _role(attributes: Attributes, operation: str | None, namespace: str | None) -> Role:
    if operation in LLM_OPERATIONS or text(attributes.get("llm.request.type")) in LLM_OPERATIONS:
        return "llm"
    kind = text(attributes.get("traceloop.span.kind"))
    if kind in {"task", "agent"} and namespace is not None:
        return "step"
    if kind == "workflow" or (kind is None and operation == c.SPAN_AGENT):
        return "graph"
    return "other"


def _captured(reader: Json, attributes: Attributes, side: str) -> Payload | None:
    document = reader.mapping(attributes.get(f"traceloop.entity.{side}"))
    return payload(document.get(f"{side}s"))


def _jump(attributes: Attributes) -> frozenset[str]:
    target = text(attributes.get("langgraph.command.goto_node"))
    return frozenset() if target is None else frozenset({target})


def _edges(written: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    ends = (edge.partition(" -> ") for edge in written)
    return tuple((source, target) for source, arrow, target in ends if arrow)


def _model(attributes: Attributes, metadata: Attributes) -> str | None:
    asked = text(attributes.get(c.GEN_AI_REQUEST_MODEL))
    return asked if asked not in {None, _UNKNOWN} else text(metadata.get("ls_model_name"))
