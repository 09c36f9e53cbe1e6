"""What the record keeps of a model call that another instrumentation saw.

Who called, where, at what cost: never what was asked or answered. Those spans carry prompts and
answers by default; the record takes only the attributes that are listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Status
from opentelemetry.util.types import AttributeValue

from twinspan.instrumentation import conventions as c

OPERATIONS: Final = frozenset({"chat", "completion", "text_completion", "generate_content"})
"""Values of `gen_ai.operation.name` and `llm.request.type` that stand for one call of a model."""

KIND: Final = "openinference.span.kind"
REQUEST_TYPE: Final = "llm.request.type"

KEPT: Final = frozenset(
    {
        c.GEN_AI_OPERATION,
        c.GEN_AI_PROVIDER,
        c.GEN_AI_REQUEST_MODEL,
        c.GEN_AI_REQUEST_TEMPERATURE,
        c.GEN_AI_REQUEST_SEED,
        c.GEN_AI_INPUT_TOKENS,
        c.GEN_AI_OUTPUT_TOKENS,
        c.ERROR_TYPE,
        KIND,
        REQUEST_TYPE,
        "llm.model_name",
        "llm.provider",
        "llm.token_count.prompt",
        "llm.token_count.completion",
    }
)
"""Attributes of others that the record takes; the stamps come on top."""


def is_model_call(attributes: Mapping[str, object]) -> bool:
    """Whether a span's attributes say that it is one call of a model.

    >>> is_model_call({"openinference.span.kind": "LLM"})
    True
    >>> is_model_call({"gen_ai.operation.name": "execute_tool"})
    False
    """
    return (
        attributes.get(KIND) == "LLM"
        or attributes.get(c.GEN_AI_OPERATION) in OPERATIONS
        or attributes.get(REQUEST_TYPE) in OPERATIONS
    )


def without_content(span: ReadableSpan, stamp: Mapping[str, AttributeValue]) -> ReadableSpan:
    """The same span with nothing in it that was asked or answered.

    Args:
        span: an ended span of another instrumentation.
        stamp: what twinspan told it when it started.
    """
    told = span.attributes or {}
    kept = {key: value for key, value in told.items() if key in KEPT}
    if not span.status.is_ok and c.ERROR_TYPE not in kept:
        kept[c.ERROR_TYPE] = _raised(span)
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes={**kept, **stamp},
        kind=span.kind,
        instrumentation_scope=span.instrumentation_scope,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
    )


def _raised(span: ReadableSpan) -> str:
    """The class of the last exception; the conventions' word for one without a name if none."""
    for event in reversed(span.events):
        raised = (event.attributes or {}).get("exception.type")
        if raised:
            return str(raised)
    return "_OTHER"
