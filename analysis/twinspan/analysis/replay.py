"""What another configuration would have decided on a recorded run.

The collector's own reckoning runs again on the recorded probe sets. What a run went on to do
after a decision is as it was recorded: a halt that another configuration would have taken
earlier does not unmake what came later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from twinspan.analysis.recorded import RecordedRun, RecordedSuperstep
from twinspan.collector.decision import BreakerDecision
from twinspan.collector.orbits import Key, staked_orbits
from twinspan.collector.reckoning import Reckoned, reckon
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.orbit import StakedOrbit
from twinspan.instrumentation.settings import BreakerOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A superstep, reckoned again.

    Attributes:
        recorded: what was recorded.
        decision: what is decided now.
        step: supersteps reduced so far.
        raw_fast: B_fast without bias correction.
        observed: share of the blast radius probed so far.
        monitor_sparse: the monitor's evidence for single nodes.
        path_ranks, path_fired: what the permuted paths say; None where they do not decide.
    """

    recorded: RecordedSuperstep
    decision: BreakerDecision
    step: int
    raw_fast: float
    observed: float
    monitor_sparse: float
    path_ranks: tuple[float, ...] | None
    path_fired: tuple[str, ...] | None


Orbits = Mapping[Key, StakedOrbit]

HALTING: Final = ("halt", "reroute", "escalate")
"""Decisions that do not let a payload pass."""

RUNS_AT_ONCE: Final = 64
"""Runs whose orbits are enumerated together: enough to fill batches, few enough to be held."""


def with_orbits(runs: Iterable[RecordedRun]) -> Iterator[tuple[RecordedRun, Orbits]]:
    """Each run with the orbits of its probe sets, which are enumerated for many runs at once."""
    remaining = iter(runs)
    while some := list(islice(remaining, RUNS_AT_ONCE)):
        orbits = staked_orbits(record for run in some for record in run.probe_sets)
        for run in some:
            yield run, orbits


def replay(
    run: RecordedRun, options: BreakerOptions | None = None, orbits: Orbits | None = None
) -> list[Replayed]:
    """Decide every superstep of a recorded run again.

    Args:
        run: the run.
        options: the configuration; the recorded one if None.
        orbits: those of `with_orbits`, where there are many runs.
    """
    return [_replayed(step) for step in reckon(run, options, orbits=orbits)]


def _replayed(step: Reckoned) -> Replayed:
    control = step.control
    network = control.accumulator.state
    return Replayed(
        recorded=step.recorded,
        decision=step.decision,
        step=network.step,
        raw_fast=network.fast_average.raw,
        observed=control.observed_share,
        monitor_sparse=control.monitor.state.sparse,
        path_ranks=None if control.paths is None else control.paths.ranks,
        path_fired=None if control.paths is None else control.paths.fired,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySummary:
    """One run under another configuration.

    Attributes:
        run_id: the run.
        supersteps: decisions that were replayed.
        recorded_halt: first superstep at which it was halted, as recorded.
        replayed_halt: the same under the other configuration.
        largest_b_fast: largest B_fast under the other configuration.
        largest_monitor: largest M.
        reason: why it would have been halted.
    """

    run_id: str
    supersteps: int
    recorded_halt: int | None
    replayed_halt: int | None
    largest_b_fast: float | None
    largest_monitor: float | None
    reason: str | None


def summary(
    run: RecordedRun, options: BreakerOptions, orbits: Orbits | None = None
) -> ReplaySummary:
    """What another configuration would have decided, in one row."""
    steps = replay(run, options, orbits)
    halted = [step for step in steps if step.decision.halted]
    recorded = [
        int(item.told[c.SUPERSTEP_INDEX])
        for item in run.supersteps
        if item.told.get(c.BREAKER_DECISION) in HALTING
    ]
    return ReplaySummary(
        run_id=run.run_id,
        supersteps=len(steps),
        recorded_halt=recorded[0] if recorded else None,
        replayed_halt=(int(halted[0].recorded.told[c.SUPERSTEP_INDEX]) if halted else None),
        largest_b_fast=_largest([step.decision.b_fast for step in steps]),
        largest_monitor=_largest([step.decision.monitor for step in steps]),
        reason=halted[0].decision.reason.value if halted else None,
    )


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
