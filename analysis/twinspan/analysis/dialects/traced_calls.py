"""The calls of models in one trace, each in its run and execution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from twinspan.analysis.dialects.foreign import Reading, rank_of
from twinspan.analysis.dialects.graph_runs import GraphRuns, run_id_of
from twinspan.analysis.dialects.matching import Interval, same
from twinspan.analysis.dialects.span_tree import SpanTree, Told
from twinspan.analysis.dialects.steps import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """One call of a model as one dialect tells it, in its run and execution where known.

    Attributes:
        probe: the probe that it is in, '' for a call that is in none, None where unknown.
    """

    told: Told
    reading: Reading
    run_id: str | None
    task_id: str | None
    probe: str | None

    @property
    def interval(self) -> Interval:
        """When and where it was."""
        span = self.told.span
        return Interval(
            span_id=span.span_id,
            rank=rank_of(self.reading),
            start=span.start,
            end=span.end,
            place=(self.run_id, self.task_id, self.probe),
        )


class TracedCalls:
    """All calls of a trace.

    Args:
        tree: the trace.
        runs: its runs.
        steps: its steps.

    Attributes:
        kept: each call once.
        ignored: calls that another dialect tells too, as (dialect, dialect that is believed).
    """

    def __init__(self, tree: SpanTree, runs: GraphRuns, steps: Steps) -> None:
        self._tree = tree
        self._runs = runs
        self._steps = steps
        told = {each.told.span.span_id: each for each in self._outermost()}
        believed = same([each.interval for each in told.values()])
        self.kept = [each for span_id, each in told.items() if believed[span_id] == span_id]
        self.ignored = Counter(
            (each.reading.dialect, told[believed[span_id]].reading.dialect)
            for span_id, each in told.items()
            if believed[span_id] != span_id
        )

    def _outermost(self) -> Iterator[TracedCall]:
        """Calls that are not part of another: a client's own span inside a framework's."""
        for told in self._tree.told:
            reading = told.reading
            if reading is None or reading.role != "llm":
                continue
            above = list(self._tree.above(told))
            if not any(each.reading and each.reading.role == "llm" for each in above):
                yield self._call(told, reading, [told, *above])

    def _call(self, told: Told, reading: Reading, around: list[Told]) -> TracedCall:
        """A call; what our own spans around it say comes before what the dialect says."""
        root = self._runs.root_of(told)
        run_id = next((each.span.run_id for each in around if each.span.run_id), None)
        task_id = next((each.span.task_id for each in around if each.span.task_id), None)
        probe = next((each.span.probe for each in around if each.span.probe), None)
        return TracedCall(
            told=told,
            reading=reading,
            run_id=run_id or (run_id_of(root.span) if root else None),
            task_id=task_id or self._steps.task_of(told),
            probe=probe if run_id is None or probe is not None else "",
        )
