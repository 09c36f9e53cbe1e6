"""One run's control: what its scores come to, superstep by superstep.

Live and in replay the same object does the reckoning, so that a record can be recomputed with
nothing but the spans in it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from twinspan.collector.accumulator import (
    SLOW_ALPHA,
    NetworkAccumulator,
    NetworkState,
    slow_alpha_for_depth,
)
from twinspan.collector.breaker import CircuitBreaker
from twinspan.collector.control_state import (
    WATCHING,
    ControlInputs,
    ControlState,
    Measurement,
)
from twinspan.collector.decision import BreakerDecision
from twinspan.collector.evidence import Evidence, evidence_of
from twinspan.collector.intervention.measured import Measured
from twinspan.collector.intervention.routing import Leaning, Spread
from twinspan.collector.machine import ControlMachine
from twinspan.collector.monitor import RunMonitor
from twinspan.collector.orbits import Orbits
from twinspan.collector.path_watch import PathWatch
from twinspan.collector.records import ProbeRecord
from twinspan.collector.topology import AgentDAG
from twinspan.instrumentation.settings import BreakerOptions

NO_EVIDENCE: Final = evidence_of(())
"""What a superstep in which nothing was probed comes to."""

NO_AXIS: Final = ("",)
"""Axes of a monitor in a run in which nothing is probed."""


def options_for(dag: AgentDAG, options: BreakerOptions) -> BreakerOptions:
    """The options with what they leave to the graph: how far back B_slow remembers.

    >>> options_for(AgentDAG([("a", "b"), ("b", "c")]), BreakerOptions()).slow_alpha
    0.5
    >>> options_for(AgentDAG([("a", "b"), ("b", "a")]), BreakerOptions()).slow_alpha
    0.1
    """
    if options.slow_alpha is not None:
        return options
    chosen = slow_alpha_for_depth(dag.depth) if dag.depth else SLOW_ALPHA
    return replace(options, slow_alpha=chosen)


@cache
def machine_of(options: BreakerOptions) -> ControlMachine:
    """The control machine that the options ask for."""
    return ControlMachine(
        breaker=CircuitBreaker(
            tau_enter=options.tau_enter,
            tau_exit=options.tau_exit,
            tau_warn=options.tau_warn,
            scaling=options.scaling,
            fast_alpha=options.fast_alpha,
            slow_alpha=options.slow_alpha or SLOW_ALPHA,
        ),
        trigger=options.trigger,
        cooldown=options.cooldown,
        max_retries=max(1, options.max_retries),
        reroute=False,
        enforced=options.mode != "shadow",
    )


@dataclass(slots=True)
class RunControl:
    """Accumulator, monitor and machine of one run.

    Attributes:
        accumulator: the network score.
        monitor: the evidence of the whole run.
        machine: decides; holds options only.
        weights: blast radius by node, the graph's largest being 1.
        options: the configuration in force, with nothing left to the graph.
        state: where the run stands.
        before: the network score before the superstep that was taken in last.
        observed: share of the blast radius, by node, whose score was taken in.
        bound: delta that a repair must be shown to stay below.
        leaning: nodes over their floor so far, by axis.
        resets: how often a person let the run go on.
        on_scale: nodes of the superstep that was taken in last whose scores were accumulated.
        paths: the network score of every axis beside its permuted twins, where they decide.
        orbits: those of the superstep that was taken in last, and any that were known before.
    """

    accumulator: NetworkAccumulator
    monitor: RunMonitor
    machine: ControlMachine
    weights: Mapping[str, float]
    options: BreakerOptions
    state: ControlState = field(default_factory=ControlState)
    before: NetworkState = field(init=False)
    observed: dict[str, float] = field(default_factory=dict[str, float])
    bound: float | None = None
    leaning: Leaning = field(default_factory=Leaning)
    resets: int = 0
    paths: PathWatch | None = None
    on_scale: tuple[str, ...] = ()
    orbits: Orbits = field(default_factory=Orbits)

    def __post_init__(self) -> None:
        self.before = self.accumulator.state

    @classmethod
    def begin(
        cls,
        dag: AgentDAG,
        weights: Mapping[str, float],
        axes: Sequence[str],
        options: BreakerOptions,
        *,
        probed_depth: int | None = None,
    ) -> RunControl:
        """The control of a run that begins.

        Args:
            dag: the graph as it is known beforehand.
            weights: blast radius by node, the graph's largest being 1.
            axes: labels of what may be probed.
            options: the breaker's.
            probed_depth: see :meth:`RunMonitor.for_graph`.
        """
        options = options_for(dag, options)
        return cls(
            accumulator=NetworkAccumulator(
                fast_alpha=options.fast_alpha,
                slow_alpha=options.slow_alpha or SLOW_ALPHA,
                reduction=options.reduction,
            ),
            monitor=RunMonitor.for_graph(
                dag, tuple(axes) or NO_AXIS, alpha=options.alpha, probed_depth=probed_depth
            ),
            machine=machine_of(options),
            weights=weights,
            options=options,
            bound=options.equivalence,
            paths=_paths(dag, tuple(axes) or NO_AXIS, options),
        )

    @property
    def spread(self) -> Spread:
        """How many nodes of the graph lean the same way so far."""
        return self.leaning.spread(len(self.weights))

    @property
    def observed_share(self) -> float:
        """Share of the graph's blast radius that was probed so far, 0 to 1."""
        return math.fsum(self.observed.values())

    def take_in(self, records: Sequence[ProbeRecord]) -> Evidence:
        """Reduce a superstep's scores into the network score, and let the monitor bet on them."""
        self.before, self.on_scale = self.accumulator.state, ()
        if not records:
            return NO_EVIDENCE
        self.orbits.begin_superstep()
        evidence = self._evidence_of(records)
        self._accumulate(evidence)
        self.monitor.update(evidence.cells)
        self._follow(evidence)
        self.leaning.note(evidence.scored)
        return evidence

    def take_in_again(
        self, kept: Sequence[ProbeRecord], measured: Sequence[ProbeRecord]
    ) -> Evidence:
        """Reduce the last superstep anew, after a repair.

        A frozen payload never reached the network, so the repaired one's score stands in its
        place. The monitor starts anew at a smaller alpha and bets on the fresh samples only. A
        repair without a score changes nothing.

        Args:
            kept: the superstep's scores of executions that were not repaired.
            measured: the scores of the repaired ones.
        """
        if not any(record.delta is not None for record in measured):
            return evidence_of([])
        evidence = self._evidence_of([*kept, *measured])
        self.accumulator.state = self.before
        self._accumulate(evidence)
        fresh = self._evidence_of(measured)
        self._restart()
        self.monitor.update(fresh.cells)
        self._follow(fresh)
        return evidence

    def _evidence_of(self, records: Sequence[ProbeRecord]) -> Evidence:
        return evidence_of(records, self.monitor.axes, self.orbits)

    def _restart(self) -> None:
        """Evidence begins afresh, at a smaller alpha."""
        self.monitor.restart()
        if self.paths is not None:
            self.paths.restart()

    def _follow(self, evidence: Evidence) -> None:
        if self.paths is not None and evidence.scored:
            self.paths.update(evidence.scored, self._weights_of(evidence))

    def _weights_of(self, evidence: Evidence) -> dict[str, float]:
        return {**self.weights, **{record.node: record.weight for record in evidence.scored}}

    def take_in_executed(
        self, records: Sequence[ProbeRecord], *, attempt: int
    ) -> tuple[Evidence, bool]:
        """Take in a superstep that was executed, maybe again after it was halted.

        What was halted never reached the network: as after a repair, the new scores stand in its
        place and the monitor starts anew, unless a person's reset has seen to both.

        Args:
            records: its probe sets.
            attempt: how often it was halted before.

        Returns:
            What was taken in, and whether it counts as the measurement of a repair.
        """
        if not attempt or self.state.state in WATCHING:
            return self.take_in(records), False
        return self.take_in_again([], records), True

    def reset(self, scope: str, superstep: int) -> BreakerDecision:
        """A person lets the run go on.

        M starts anew at a smaller alpha, so that the run keeps its bound. What was halted never
        reached the network, so B_net is what it was before; in shadow mode it did, and stays.
        """
        self.resets += 1
        self._restart()
        if self.machine.enforced:
            self.accumulator.state = self.before
        self.state, decision = self.machine.reset(
            self.state, self._inputs(f"{superstep_id(scope, superstep)}/reset-{self.resets}")
        )
        return decision

    def has_decided(self, scope: str, superstep: int) -> bool:
        """Whether a superstep was decided already."""
        return superstep_id(scope, superstep) in self.state.decided

    def name(
        self, scope: str, superstep: int, *, repair: int | None = None, attempt: int = 0
    ) -> str:
        """The name under which the next decision on a superstep is taken.

        A superstep that an interrupt parted is decided in parts, each once: what was written
        before it, and what is written when the run goes on.
        """
        first = superstep_id(scope, superstep, repair, attempt=attempt)
        if first not in self.state.decided:
            return first
        parts = (f"{first}/part-{n}" for n in itertools.count(2))
        return next(name for name in parts if name not in self.state.decided)

    def _accumulate(self, evidence: Evidence) -> None:
        self.on_scale = self._on_scale(evidence)
        if not evidence.scored:
            return
        self.observed |= {record.node: record.share for record in evidence.scored}
        if self.on_scale:
            self.accumulator.update(
                {node: evidence.magnitudes[node] for node in self.on_scale},
                self._weights_of(evidence),
                variances={node: evidence.variances[node] for node in self.on_scale},
                estimators={node: evidence.estimators[node] for node in self.on_scale},
            )

    def _on_scale(self, evidence: Evidence) -> tuple[str, ...]:
        """The nodes whose scores are on the network score's scale, that of the run's first one.

        A label and a letter are compared by different distances, and their scores have no common
        scale. The monitor bets on e-values, which have none, and takes them all in.
        """
        first = next(iter(evidence.estimators.values()), None)
        scale = self.accumulator.state.estimator or first
        return tuple(node for node, each in evidence.estimators.items() if each == scale)

    def suspects(self, evidence: Evidence) -> tuple[ProbeRecord, ...]:
        """Whom a halt would name, the largest impact first.

        The cells that e-BH names and whose payload is still here; where it names none, the one
        that adds most to the network score. Evidence names, impact ranks: a tiny effect in a
        large sample comes after a large one.
        """
        if not evidence.scored:
            return ()
        named = set(self.monitor.guilty())
        ranked = sorted(evidence.scored, key=lambda record: -record.impact)
        return tuple(record for record in ranked if record.key in named) or tuple(ranked[:1])

    def decide(
        self,
        superstep: str,
        *,
        measurement: Measurement,
        payload: object = None,
        edge: str | None = None,
    ) -> BreakerDecision:
        """What the machine makes of the numbers as they stand."""
        inputs = self._inputs(superstep, measurement=measurement, payload=payload, edge=edge)
        self.state, decision = self.machine.step(self.state, inputs)
        return decision

    def _inputs(
        self,
        superstep: str,
        *,
        measurement: Measurement = "none",
        payload: object = None,
        edge: str | None = None,
    ) -> ControlInputs:
        network, monitor = self.accumulator.state, self.monitor.state
        step = network.step
        return ControlInputs(
            superstep=superstep,
            fast=network.fast if step else None,
            slow=network.slow if step else None,
            step=step,
            fast_deviation=network.fast_average.deviation if step else None,
            slow_deviation=network.slow_average.deviation if step else None,
            monitor=monitor.value,
            monitor_limit=monitor.limit,
            path=self.paths is not None and bool(self.paths.fired),
            measurement=measurement,
            payload=payload,
            edge=edge,
        )


def _paths(dag: AgentDAG, axes: tuple[str, ...], options: BreakerOptions) -> PathWatch | None:
    """What the trigger `path` needs.

    Where a cycle leaves the depth open, all of alpha is spent after as many supersteps as there
    are nodes.
    """
    if options.trigger != "path":
        return None
    return PathWatch(
        axes=axes,
        alpha=options.alpha,
        horizon=dag.depth or max(len(dag), 1),
        smoothing=options.fast_alpha,
        reduction=options.reduction,
    )


def superstep_id(scope: str, superstep: int, repair: int | None = None, *, attempt: int = 0) -> str:
    """The name under which a superstep is decided once; a repair or a new attempt is another.

    >>> superstep_id("", 2), superstep_id("", 2, repair=1), superstep_id("", 2, attempt=1)
    ('/2', '/2/repair-1', '/2/again-1')
    """
    again = f"/again-{attempt}" if attempt else ""
    suffix = "" if repair is None else f"/repair-{repair}"
    return f"{scope}/{superstep}{again}{suffix}"


def measurement_of(evidence: Evidence, *, repair: bool, bound: float | None = None) -> Measurement:
    """What a superstep was measured by: nothing, its own probes, or those of a repair.

    Args:
        evidence: what was taken in.
        repair: whether it is the measurement of a repair.
        bound: delta that an intervention's repair must be shown to stay below; None asks
            nothing of it.
    """
    if not evidence.scored:
        return "failed" if repair else "none"
    if not repair:
        return "fresh"
    again = [record for record in evidence.scored if record.intervention_id is not None]
    if bound is None or not again or Measured.of(again).equivalent(bound):
        return "repair"
    return "unproven"
