"""The spans of one trace by their parents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from twinspan.analysis.dialects.foreign import ForeignSpan, Reading

DEEPEST: Final = 256
"""Parents that are followed: no program nests deeper, and a ring of parents ends here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A span, and what its dialect makes of it; None for spans of no dialect."""

    span: ForeignSpan
    reading: Reading | None = None

    @property
    def is_step(self) -> bool:
        """Whether a node or agent ran."""
        return self.reading is not None and self.reading.role == "step"

    @property
    def may_be_graph(self) -> bool:
        """Whether it may stand for a graph."""
        return self.reading is not None and self.reading.role in {"graph", "chain"}

    @property
    def is_graph(self) -> bool:
        """Whether it stands for a graph."""
        return self.reading is not None and self.reading.role == "graph"


class SpanTree:
    """Finds what a span lies in.

    Args:
        told: the spans of one trace.
    """

    def __init__(self, told: Sequence[Told]) -> None:
        self.told = told
        self._by_id = {each.span.span_id: each for each in told}

    def above(self, told: Told) -> Iterator[Told]:
        """The spans that a span lies in, the nearest first."""
        parent = told.span.parent_span_id
        for _ in range(DEEPEST):
            found = self._by_id.get(parent or "")
            if found is None:
                return
            yield found
            parent = found.span.parent_span_id

    def around(self, told: Told) -> Iterator[Told]:
        """The same, as far as they were still open when the span began.

        An instrumentation that leaves a span current hangs below it what has nothing to do with
        it: the next run of a graph, after an abandoned stream or beside another instrumentation.
        """
        for each in self.above(told):
            if each.span.end < told.span.start:
                return
            yield each

    def step_above(self, told: Told) -> Told | None:
        """The nearest step that a span lies in."""
        return next((each for each in self.around(told) if each.is_step), None)

    def repeats(self, told: Told) -> bool:
        """Whether a span lies in one of its dialect that tells the same execution.

        Inner graphs, conditional edges and whatever else runs inside a node carry the node's
        own names: without this every number doubles.
        """
        reading = told.reading
        return (
            reading is not None
            and reading.namespace is not None
            and any(
                each.reading is not None
                and each.is_step
                and each.reading.dialect == reading.dialect
                and each.reading.namespace == reading.namespace
                for each in self.above(told)
            )
        )
