"""The calls of models in one trace, each in its run and execution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from twinspan.analysis.dialects.foreign import Reading
from twinspan.analysis.dialects.graph_runs import GraphRuns, run_id_of
from twinspan.analysis.dialects.model_calls import ModelCall, once
from twinspan.analysis.dialects.span_tree import SpanTree, Told
from twinspan.analysis.dialects.steps import Steps, rank_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """One call of a model as the dialect told it that is believed."""

    told: Told
    reading: Reading
    call: ModelCall


class TracedCalls:
    """All calls of a trace.

    Args:
        tree: the trace.
        runs: its runs.
        steps: its steps.

    Attributes:
        kept: each call once.
        ignored: calls that another dialect tells too, as (dialect, dialect believed first).
    """

    def __init__(self, tree: SpanTree, runs: GraphRuns, steps: Steps) -> None:
        self._tree = tree
        self._runs = runs
        self._steps = steps
        told = {each.call.span_id: each for each in self._outermost()}
        self.kept = [told[call.span_id] for call in once([each.call for each in told.values()])]
        self.ignored = _ignored(told, self.kept)

    def _outermost(self) -> Iterator[TracedCall]:
        """Calls that are not part of another: a client's own span inside a framework's."""
        for told in self._tree.told:
            reading = told.reading
            if reading is None or reading.role != "llm":
                continue
            above = list(self._tree.above(told))
            if not any(each.reading and each.reading.role == "llm" for each in above):
                yield TracedCall(told=told, reading=reading, call=self._call(told, reading, above))

    def _call(self, told: Told, reading: Reading, above: list[Told]) -> ModelCall:
        root = self._runs.root_of(told)
        ours = next((each.span.run_id for each in (told, *above) if each.span.run_id), None)
        return ModelCall(
            span_id=told.span.span_id,
            rank=rank_of(reading),
            start=told.span.start,
            end=told.span.end,
            run_id=ours or (run_id_of(root.span) if root else None),
            task_id=told.span.task_id or self._steps.task_of(told),
        )


def _ignored(told: dict[str, TracedCall], kept: list[TracedCall]) -> Counter[tuple[str, str]]:
    counted = {each.call.span_id for each in kept}
    first = min(kept, key=lambda each: each.call.rank, default=None)
    return Counter(
        (each.reading.dialect, first.reading.dialect)
        for span_id, each in told.items()
        if first is not None and span_id not in counted
    )
