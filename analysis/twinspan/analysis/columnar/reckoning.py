"""Decisions of many runs, taken again together, the k-th of all of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import numpy as np

from twinspan.analysis.columnar.averages import MovingAverages
from twinspan.analysis.columnar.columns import Bools, Floats, Places
from twinspan.analysis.columnar.decisions import Decisions, decisions_of
from twinspan.analysis.columnar.evidence import Evidence, Inputs, evidence_of, members_of
from twinspan.analysis.columnar.guards import MEASUREMENTS, Guards, MachineStates, Scores
from twinspan.analysis.columnar.probe_sets import ProbeSets, probe_sets_of, probed_axes
from twinspan.analysis.columnar.settings import NAMES, Roots, Settings, roots_of, settings_of
from twinspan.analysis.columnar.spans import NEEDED, RunBatch
from twinspan.analysis.columnar.wealth import Wealth
from twinspan.instrumentation import conventions as c

AS_RECORDED: Final[Mapping[str, object]] = MappingProxyType({})
"""No option is other than it was recorded."""

CONTROL: Final = frozenset(
    {
        *NAMES,
        *(name for needed in NEEDED.values() for name in needed),
        c.RUN_ID,
        c.RUN_RESUMED,
        c.SPAN_TYPE,
        c.AUDIT_SEQ,
        c.AUDIT_WRITER,
        c.SUPERSTEP_SCOPE,
        c.SUPERSTEP_ATTEMPT,
        c.BREAKER_DECISION,
        c.BREAKER_REASON,
        c.NETWORK_PROBE_SETS,
        c.INTERVENTION_ID,
        c.INTERVENTION_CANDIDATE,
        c.PROBE_OUTCOME,
        c.PROBE_CONTRAST,
        c.PROBE_ROUND,
        c.PROBE_ESTIMATOR,
        c.PROBE_SAMPLING_RATE,
        c.EFFECT_VALUE,
        c.EFFECT_P_VALUE,
        c.EFFECT_E_VALUE,
        c.EFFECT_CI_UPPER,
        c.DIVERGENCE_DISTANCES,
        c.DIVERGENCE_REFERENCE_COUNT,
        c.DIVERGENCE_COUNTERFACTUAL_COUNT,
        c.NODE_WEIGHT,
        c.NODE_WEIGHT_SHARE,
    }
)
"""The attributes that decisions follow from, here and where a run is reckoned alone."""

_PLACES: Final = {name: place for place, name in enumerate(MEASUREMENTS)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reckoning:
    """What was decided again, one row a decision; NaN for None.

    Attributes:
        step: supersteps reduced so far.
        fast, slow, raw_fast: network scores.
        observed: share of the blast radius probed so far.
        monitor, limit, sparse: M, where it fires, and the evidence for single nodes.
        state_from, state_to: places in `guards.STATES`.
        decision, reason: places in `guards.DECISIONS` and `guards.REASONS`.
        enforced: a halt would have stopped the run.
    """

    step: Places
    fast: Floats
    slow: Floats
    raw_fast: Floats
    observed: Floats
    monitor: Floats
    limit: Floats
    sparse: Floats
    state_from: Places
    state_to: Places
    decision: Places
    reason: Places
    enforced: Bools

    @classmethod
    def unwritten(cls, enforced: Bools) -> Reckoning:
        """Room for as many decisions."""
        decisions = len(enforced)
        return cls(
            step=_places(decisions),
            fast=_numbers(decisions),
            slow=_numbers(decisions),
            raw_fast=_numbers(decisions),
            observed=_numbers(decisions),
            monitor=_numbers(decisions),
            limit=_numbers(decisions),
            sparse=_numbers(decisions),
            state_from=_places(decisions),
            state_to=_places(decisions),
            decision=_places(decisions),
            reason=_places(decisions),
            enforced=enforced,
        )


def _numbers(count: int) -> Floats:
    return np.full(count, np.nan)


def _places(count: int) -> Places:
    return np.zeros(count, dtype=np.intp)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReckonedBatch:
    """A batch of runs, decided again.

    Attributes:
        batch: the runs.
        roots, settings, decisions, sets: what they are made of.
        reckoning: what is decided now; None where no run has a setting.
        ordinary: runs for which it holds. The collector itself decides the others: runs without
            a root, those that were reset, attempted again or configured anew, those that paths
            decide, and those whose record says something that it would not take.
    """

    batch: RunBatch
    roots: Roots
    settings: Settings
    decisions: Decisions
    sets: ProbeSets
    reckoning: Reckoning | None
    ordinary: Bools


def reckon(batch: RunBatch, changes: Mapping[str, object] = AS_RECORDED) -> ReckonedBatch:
    """Decide every superstep of the runs of a batch again.

    Args:
        batch: whole runs.
        changes: options of the breaker that are other than recorded.
    """
    # Runs that turn out not to be ordinary may lead to any numbers on the way.
    with np.errstate(all="ignore"):
        return _reckoned(batch, changes)


def _reckoned(batch: RunBatch, changes: Mapping[str, object]) -> ReckonedBatch:
    runs = len(batch)
    roots = roots_of(batch.by_type["run"], runs)
    decisions = decisions_of(batch.by_type["network"], batch.by_type["run"], runs)
    sets = probe_sets_of(batch.by_type["probe_set"], runs)
    settings, known = settings_of(roots.told, probed_axes(sets, runs), changes)
    odd = roots.anew | roots.odd | decisions.odd | sets.odd | ~known
    reckoning = None
    if settings.each:
        members = members_of(decisions, sets, runs)
        evidence = evidence_of(decisions, sets, members, settings, runs)
        reckoning, overspent = _decided(decisions, sets, evidence, settings)
        paths = settings.flags(each.options.trigger == "path" for each in settings.each)
        odd |= members.odd | evidence.odd | overspent | paths
    return ReckonedBatch(
        batch=batch,
        roots=roots,
        settings=settings,
        decisions=decisions,
        sets=sets,
        reckoning=reckoning,
        ordinary=~odd,
    )


def _decided(
    decisions: Decisions, sets: ProbeSets, evidence: Evidence, settings: Settings
) -> tuple[Reckoning, Bools]:
    """What is decided, and which runs staked more than there is."""
    inputs, cells = evidence.inputs, evidence.cells
    control = _Control.begin(settings)
    measurement = _measurements(decisions, evidence)
    enforced = settings.flags(each.machine.enforced for each in settings.each)
    told = Reckoning.unwritten(enforced[decisions.run])
    told.observed[:] = inputs.observed
    turns = np.searchsorted(decisions.turn, np.arange(int(decisions.turn.max(initial=-1)) + 2))
    bounds = pairwise(np.searchsorted(cells.decision, turns).tolist())
    for (first, last), bets in zip(pairwise(turns.tolist()), bounds, strict=True):
        own = slice(first, last)
        runs = decisions.run[own]
        control.take_in(runs, inputs, own, decisions.is_repair[own], evidence.remeasured[own])
        placed = cells.between(*bets)
        control.wealth.update(decisions.run[placed.decision], placed, sets.orbits)
        control.decide(runs, measurement[own], told, own)
    return told, control.wealth.overspent


def _measurements(decisions: Decisions, evidence: Evidence) -> Places:
    """How each superstep was measured; see `measurement_of`."""
    executed = np.where(evidence.inputs.scored, _PLACES["fresh"], _PLACES["none"])
    proven = np.where(evidence.unproven, _PLACES["unproven"], _PLACES["repair"])
    repaired = np.where(evidence.remeasured, proven, _PLACES["failed"])
    return np.where(decisions.is_repair, repaired, executed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Control:
    """Accumulators, monitors and machines of a batch; see `RunControl`."""

    averages: tuple[MovingAverages, MovingAverages]
    before: tuple[MovingAverages, MovingAverages]
    wealth: Wealth
    guards: Guards
    states: MachineStates

    @classmethod
    def begin(cls, settings: Settings) -> _Control:
        fast = settings.numbers(each.fast_alpha for each in settings.each)
        slow = settings.numbers(each.slow_alpha for each in settings.each)
        return cls(
            averages=(MovingAverages.begin(fast), MovingAverages.begin(slow)),
            before=(MovingAverages.begin(fast), MovingAverages.begin(slow)),
            wealth=Wealth.begin(settings),
            guards=Guards(settings=settings),
            states=MachineStates.begin(len(settings.of_run)),
        )

    def take_in(
        self, runs: Places, inputs: Inputs, own: slice, is_repair: Bools, remeasured: Bools
    ) -> None:
        """Reduce a superstep of some runs into the network score, or the last one anew."""
        scored = inputs.scored[own]
        for average, before in zip(self.averages, self.before, strict=True):
            average.keep(before, runs[~is_repair])
            # A frozen payload never reached the network: the repaired one's score replaces it.
            before.keep(average, runs[remeasured])
            average.update(runs[scored], inputs.value[own][scored], inputs.variance[own][scored])
        self.wealth.restart(runs[remeasured])

    def decide(self, runs: Places, measurement: Places, told: Reckoning, own: slice) -> None:
        """Decide on the numbers as they stand, and write down what was decided."""
        (fast, slow), wealth = self.averages, self.wealth
        scores = Scores(
            fast=fast.value(runs),
            slow=slow.value(runs),
            step=fast.step[runs],
            fast_deviation=fast.deviation(runs),
            slow_deviation=slow.deviation(runs),
            monitor=wealth.value[runs],
            limit=1.0 / wealth.alpha[runs],
        )
        told.step[own], told.fast[own], told.slow[own] = scores.step, scores.fast, scores.slow
        told.raw_fast[own] = np.where(scores.step > 0, fast.raw[runs], np.nan)
        told.monitor[own], told.limit[own] = scores.monitor, scores.limit
        told.sparse[own] = wealth.sparse[runs]
        told.state_from[own] = self.states.state[runs]
        decided = self.guards.step(self.states, runs, scores, measurement)
        told.decision[own], told.reason[own] = decided
        told.state_to[own] = self.states.state[runs]
