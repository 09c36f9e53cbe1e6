"""The decisions of a batch in the order in which they were taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinspan.analysis.columnar.columns import Array, Bools, Places, Words, words
from twinspan.analysis.columnar.segments import any_in, lengths_of, starts_of, within
from twinspan.analysis.columnar.spans import Spans
from twinspan.collector.decision import Reason
from twinspan.collector.recorded import STARTED
from twinspan.instrumentation import conventions as c


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decisions:
    """Decisions, those that were taken k-th in their runs before those taken k + 1-st.

    Attributes:
        spans: their spans in that order.
        turn: how many decisions of the run came before, ascending.
        is_repair: it judged a repair of the superstep before.
        odd: runs whose decisions have no certain order, or none that was taken in the ordinary
            way: a person's reset, or a superstep that was executed again after a halt.
    """

    spans: Spans
    turn: Places
    is_repair: Bools
    odd: Bools

    @property
    def run(self) -> Places:
        """Place of each decision's run in the batch."""
        return self.spans.run

    def __len__(self) -> int:
        return len(self.turn)


def decisions_of(spans: Spans, roots: Spans, runs: int) -> Decisions:
    """Put decisions in their order.

    A process that works on a run alone writes its decisions in a row; processes follow each other
    as their first spans do.

    Args:
        spans: the decisions, in the order of their numbers.
        roots: the root spans of the same runs.
        runs: how many runs there are.
    """
    parts = _parts(spans, roots)
    numbers = spans.numbers(c.AUDIT_SEQ).values
    unnumbered = np.isnan(numbers) | (spans.words(c.AUDIT_WRITER).codes < 0)
    order = np.lexsort((np.arange(len(spans)), numbers, parts, spans.run))
    turn = within(starts_of(spans.run[order]), len(spans))
    in_turns = order[np.lexsort((spans.run[order], turn))]
    taken = spans.take(in_turns)
    reason = taken.words(c.BREAKER_REASON)
    reset = reason.codes == reason.codes_of([Reason.RESET_BY_PERSON.value])[0]
    again = taken.numbers(c.SUPERSTEP_ATTEMPT).values
    placeless = ~taken.there(c.SUPERSTEP_INDEX)
    odd = reset | (np.nan_to_num(again) != 0) | placeless
    return Decisions(
        spans=taken,
        turn=np.sort(turn),
        is_repair=taken.there(c.INTERVENTION_ID),
        odd=any_in(odd, taken.run, runs) | any_in(unnumbered, spans.run, runs),
    )


def _parts(spans: Spans, roots: Spans) -> Places:
    """For each decision a number that is the greater the later its process began to work."""
    writers = _both(spans.column(c.AUDIT_WRITER), roots.column(c.AUDIT_WRITER)).ranked()
    run = np.concatenate([spans.run, roots.run])
    started = np.concatenate([_started(spans), _started(roots)])
    by_process = np.lexsort((started, writers.codes, run))
    starts = starts_of(run[by_process], writers.codes[by_process])
    first = by_process[starts]
    begun = np.empty(len(run), dtype=np.int64)
    begun[by_process] = started[first].repeat(lengths_of(starts, len(run)))
    order = np.lexsort((writers.codes, begun, run))
    place = np.empty(len(run), dtype=np.intp)
    new = starts_of(run[order], begun[order], writers.codes[order])
    place[order] = np.arange(len(new)).repeat(lengths_of(new, len(run)))
    return place[: len(spans)]


def _both(one: Array, other: Array) -> Words:
    return words(pa.concat_arrays([one, other]))


def _started(spans: Spans) -> NDArray[np.int64]:
    return np.array(spans.column(STARTED).to_pylist(), dtype=np.int64)
