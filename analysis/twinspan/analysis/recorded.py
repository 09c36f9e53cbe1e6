"""Recorded runs as the collector's own values, to be reckoned again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from twinspan.analysis.columnar.spans import run_batches
from twinspan.analysis.store import Store
from twinspan.collector.recorded import (
    BESIDE,
    SPAN_ID,
    STARTED,
    RecordedPart,
    RecordedRun,
    RecordedSuperstep,
)


def recorded_runs(store: Store, run_id: str | None = None) -> list[RecordedRun]:
    """Every run that has a root span, in the order of their beginning.

    Args:
        store: opened spans.
        run_id: one run; all of them if None.
    """
    with_root = [run for run in _runs(store, run_id) if run.told]
    return sorted(with_root, key=lambda run: (int(run.told[STARTED]), run.run_id))


def decided_runs(store: Store, run_id: str | None = None) -> list[RecordedRun]:
    """Every run that has decisions, root span or not, without its probe sets."""
    decided = [replace(run, probe_sets=()) for run in _runs(store, run_id) if run.supersteps]
    return sorted(decided, key=lambda run: (int(run.supersteps[0].told[STARTED]), run.run_id))


def _runs(store: Store, run_id: str | None) -> Iterator[RecordedRun]:
    for batch in run_batches(store, run_id):
        yield from batch.recorded()


__all__ = [
    "BESIDE",
    "SPAN_ID",
    "RecordedPart",
    "RecordedRun",
    "RecordedSuperstep",
    "decided_runs",
    "recorded_runs",
]
