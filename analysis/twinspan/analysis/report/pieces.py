"""Pieces that several sections share."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from twinspan.analysis.report.markup import Html, join, tag
from twinspan.analysis.report.wording import NOTHING, spoken

_LOOKS: Final = {
    "flagged": "bad",
    "mismatch": "bad",
    "above_floor": "bad",
    "halt": "bad",
    "reroute": "bad",
    "escalate": "bad",
    "failed": "bad",
    "within_controls": "warn",
    "incomplete": "warn",
    "inconclusive": "warn",
    "warn": "warn",
    "unchanged": "warn",
    "escalated": "warn",
    "clear": "good",
    "eligible": "good",
    "within_floor": "good",
    "verified": "good",
    "cleared": "good",
}


def chip(word: str | None) -> Html:
    """A word of the record in its colour; the word itself carries the meaning.

    >>> chip("above_floor")
    '<span class="chip bad">above floor</span>'
    """
    if word is None:
        return tag("span", NOTHING)
    look = _LOOKS.get(word, "")
    return tag("span", spoken(word), class_=f"chip {look}".strip())


def identifier(value: str | None) -> Html:
    """An id that one click selects whole."""
    return tag("span", NOTHING) if value is None else tag("code", value, class_="id")


def trace_link(trace_id: str | None, jaeger: str | None, span_id: str | None = None) -> Html:
    """A trace's id, with a link where there is a Jaeger.

    >>> trace_link("ab", "http://j", "cd")
    '<code class="id">ab</code> <a href="http://j/trace/ab?uiFind=cd" ...>open in Jaeger</a>'
    """
    if trace_id is None or jaeger is None:
        return identifier(trace_id)
    found = "" if span_id is None else f"?uiFind={quote(span_id, safe='')}"
    link = tag(
        "a",
        "open in Jaeger",
        href=f"{jaeger}/trace/{quote(trace_id, safe='')}{found}",
        rel="noreferrer noopener",
    )
    return join(identifier(trace_id), " ", link)
