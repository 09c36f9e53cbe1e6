"""What an exception on a span means: frameworks steer with exceptions too."""

from __future__ import annotations

import re
from typing import Final

from twinspan.analysis.dialects.foreign import ForeignSpan

_MEANINGS: Final = {
    "GraphInterrupt": "interrupted",
    "NodeInterrupt": "interrupted",
    "GraphDrained": "interrupted",
    "ParentCommand": "ok",
    "Command": "ok",
    "GeneratorExit": "cancelled",
    "CancelledError": "cancelled",
}
"""How a node ended that raised one of these. None of them is a failure."""

_OTHER: Final = "_OTHER"
"""The conventions' word for a failure without a name."""

_OFFICIAL: Final = "opentelemetry.instrumentation.genai"
"""Scope of the official instrumentations, which use that word for a stream nobody read to its
end."""

_FIRST_WORD: Final = re.compile(r"[\w.]+")


def outcome_of(span: ForeignSpan) -> tuple[str, str | None]:
    """How a span ended, and the class of its failure if it failed.

    >>> from dataclasses import replace
    >>> span = ForeignSpan(trace_id="t", span_id="s", parent_span_id=None, name="n",
    ...                    scope_name="x", start=0, end=1, status="ERROR")
    >>> outcome_of(replace(span, exception="langgraph.errors.GraphInterrupt"))
    ('interrupted', None)
    >>> outcome_of(replace(span, status_message="Command(goto='b')"))
    ('ok', None)
    >>> outcome_of(replace(span, error_type="ConnectionError"))
    ('error', 'ConnectionError')
    """
    raised = span.error_type or span.exception
    for told in (span.error_type, span.exception, _first_word(span.status_message)):
        meaning = _MEANINGS.get((told or "").rpartition(".")[2])
        if meaning is not None:
            return meaning, None
    if span.status != "ERROR":
        return "ok", None
    if raised == _OTHER and span.scope_name.startswith(_OFFICIAL):
        return "cancelled", None
    return "error", raised or _OTHER


def _first_word(message: str | None) -> str | None:
    """The class that a message begins with, as `repr` of an exception and of a command does."""
    match = _FIRST_WORD.match(message or "")
    # A sentence may begin with one of the words: only a call is a repr.
    return match.group() if match and (message or "")[match.end() :][:1] == "(" else None
