"""What another configuration would have decided, run by run, for a whole record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from twinspan.analysis.columnar.columns import Bools, Floats, Places
from twinspan.analysis.columnar.decisions import Decisions
from twinspan.analysis.columnar.guards import DECISIONS, REASONS
from twinspan.analysis.columnar.reckoning import AS_RECORDED, CONTROL, ReckonedBatch, reckon
from twinspan.analysis.columnar.segments import starts_of
from twinspan.analysis.columnar.spans import RunBatch, run_batches
from twinspan.analysis.garbage import garbage_kept
from twinspan.analysis.replay import HALTING, ReplaySummary, summary, with_orbits
from twinspan.analysis.store import Store
from twinspan.collector.recorded import STARTED
from twinspan.instrumentation import conventions as c

_Begun = tuple[int, ReplaySummary]
"""When a run began, and its summary."""


def summaries(
    store: Store, changes: Mapping[str, Any] = AS_RECORDED, run_id: str | None = None
) -> list[ReplaySummary]:
    """What another configuration would have decided on every run that has decisions.

    Args:
        store: opened spans.
        changes: fields of `BreakerOptions` that are other than recorded.
        run_id: one run; all of them if None.

    Returns:
        One row a run, in the order of their beginning.

    Raises:
        ConfigurationError: there are no such options.
    """
    found: list[_Begun] = []
    with garbage_kept():
        for batch in run_batches(store, run_id, CONTROL):
            found += _of_batch(batch, changes)
    return [told for _, told in sorted(found, key=lambda each: (each[0], each[1].run_id))]


def _of_batch(batch: RunBatch, changes: Mapping[str, Any]) -> Iterator[_Begun]:
    reckoned = reckon(batch, changes)
    alone = batch.of(np.flatnonzero(~reckoned.ordinary).tolist())
    runs = (run for run in alone.recorded() if run.told and run.supersteps)
    for run, orbits in with_orbits(runs):
        yield int(run.told[STARTED]), summary(run, replace(run.options, **changes), orbits)
    yield from _ordinary(reckoned)


def _ordinary(reckoned: ReckonedBatch) -> Iterator[_Begun]:
    """The same of the runs that were reckoned together."""
    decisions, again = reckoned.decisions, reckoned.reckoning
    if again is None:
        return
    recorded = decisions.spans.words(c.BREAKER_DECISION)
    was_halted = np.isin(recorded.codes, recorded.codes_of(HALTING))
    halts = np.array([each.value in HALTING for each in DECISIONS])[again.decision]
    superstep = decisions.spans.column(c.SUPERSTEP_INDEX).to_pylist()
    runs = len(reckoned.batch)
    before, now = _first(was_halted, decisions, runs), _first(halts, decisions, runs)
    counts = np.bincount(decisions.run, minlength=runs)
    fast, monitor = (_largest(each, decisions, runs) for each in (again.fast, again.monitor))
    for run in np.flatnonzero(reckoned.ordinary & (counts > 0)).tolist():
        old, new = int(before[run]), int(now[run])
        yield (
            int(reckoned.roots.started[run]),
            ReplaySummary(
                run_id=reckoned.batch.run_ids[run],
                supersteps=int(counts[run]),
                recorded_halt=None if old < 0 else superstep[old],
                replayed_halt=None if new < 0 else superstep[new],
                largest_b_fast=_number(fast[run]),
                largest_monitor=_number(monitor[run]),
                reason=None if new < 0 else REASONS[again.reason.item(new)].value,
            ),
        )


def _first(marked: Bools, decisions: Decisions, runs: int) -> Places:
    """The first decision of each run that is marked; -1 where none is."""
    found = np.full(runs, -1, dtype=np.intp)
    places = np.flatnonzero(marked)[::-1]
    # Decisions come in the order of their turns: the first of a run is written last.
    found[decisions.run[places]] = places
    return found


def _largest(values: Floats, decisions: Decisions, runs: int) -> Floats:
    """The largest value of each run; NaN where it has none."""
    found = np.full(runs, np.nan)
    order = np.argsort(decisions.run, kind="stable")
    starts = starts_of(decisions.run[order])
    found[decisions.run[order][starts]] = (
        np.fmax.reduceat(values[order], starts) if len(starts) else ()
    )
    return found


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
