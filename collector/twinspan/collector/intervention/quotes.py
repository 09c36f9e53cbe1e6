"""Checks what a reviewer quotes against what it was shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

SHORTEST: Final = 8
"""Characters a quote must have: shorter ones are found in almost any text."""

_SPACE: Final = re.compile(r"\s+")
_EDGES: Final = " \t\n\"'\u201c\u201d\u201e\u00ab\u00bb.,;:\u2026`"


def found_in(quotes: Iterable[str], sources: Iterable[str]) -> tuple[str, ...]:
    """Those of the quotes that stand in one of the sources, case and spacing aside.

    A quote that is found shows that the reviewer looked; it does not show that the reviewer
    is right. A link, a claim or "none found" is not found and counts for nothing.

    >>> found_in(["never missed a payment", "none found"], ["She has never missed  a payment."])
    ('never missed a payment',)
    """
    texts = [_plain(source) for source in sources]
    return tuple(
        quote
        for quote in quotes
        if len(_plain(quote)) >= SHORTEST and any(_plain(quote) in text for text in texts)
    )


def _plain(text: str) -> str:
    return _SPACE.sub(" ", text).strip(_EDGES).casefold()
