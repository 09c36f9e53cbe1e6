"""Across the runs of a deployment: an alarm that has no end, stated as an average run length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from twinspan.analysis.store import Store
from twinspan.collector.detector import DetectorState, EDetector

_RUNS = """
WITH evidence AS (
    -- What the monitor had come to when the run ended, or when it was first restarted: a moment
    -- that only the past decides, so without bias its mean is at most 1.
    SELECT run_id, arg_max(monitor_value, (start_unix_nano, audit_seq)) AS e_value
    FROM spans
    WHERE span_type = 'network' AND monitor_value IS NOT NULL AND coalesce(monitor_restart, 0) = 0
    GROUP BY run_id
)
SELECT evidence.run_id, runs.graph, runs.start_time, evidence.e_value
FROM evidence
JOIN runs ON runs.run_id = evidence.run_id
ORDER BY runs.start_unix_nano, evidence.run_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRun:
    """A run of a deployment.

    Attributes:
        run_id: the run.
        graph: its graph.
        start_time: when it began.
        e_value: its monitor's value when it ended, or before its first restart.
        detector: R after it; see `EDetector`.
        runs: runs since the start or the last alarm, this one included.
        alarm: it raised R to the limit.
    """

    run_id: str
    graph: str | None
    start_time: datetime | None
    e_value: float
    detector: float
    runs: int
    alarm: bool


def watched_runs(store: Store, average_run_length: float) -> Iterator[WatchedRun]:
    """Every run that was monitored, in the order in which they began.

    Args:
        store: opened spans.
        average_run_length: runs that it takes at least on average to a false alarm, above 1.
    """
    detector, state = EDetector(alpha=1.0 / average_run_length), DetectorState()
    for run_id, graph, started, told in store.table(_RUNS).rows:
        e_value = float(str(told))
        state = detector.step(state, e_value)
        yield WatchedRun(
            run_id=str(run_id),
            graph=cast("str | None", graph),
            start_time=cast("datetime | None", started),
            e_value=e_value,
            detector=state.value,
            runs=state.runs,
            alarm=state.alarm,
        )
