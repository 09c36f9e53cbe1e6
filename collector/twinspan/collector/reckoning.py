"""A recorded run, decided again: the same reckoning live, in replay and when a run goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from twinspan.collector.control_state import WATCHING, ControlState
from twinspan.collector.decision import BreakerDecision
from twinspan.collector.evidence import Evidence
from twinspan.collector.monitor import RunMonitor
from twinspan.collector.orbits import Key, Orbits
from twinspan.collector.recorded import Attributes, RecordedRun, RecordedSuperstep, dag_of
from twinspan.collector.run_control import RunControl, measurement_of, superstep_id
from twinspan.collector.telling import options_of
from twinspan.collector.topology import AgentDAG
from twinspan.collector.weights import DependencyWeights, dependency_weights
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.orbit import StakedOrbit
from twinspan.instrumentation.settings import BreakerOptions, WeightMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoned:
    """A recorded decision, taken again.

    Attributes:
        recorded: what was recorded.
        control: the run's control right after, changed by the next one.
        decision: what is decided now.
    """

    recorded: RecordedSuperstep
    control: RunControl
    decision: BreakerDecision


def begin(run: RecordedRun, told: Attributes, options: BreakerOptions | None) -> RunControl:
    """The control of a run as one of its root spans announces it."""
    used, dag = options or options_of(told), dag_of(told)
    weights = graph_weights(dag, used).scaled
    probed_depth = told.get(c.GRAPH_PROBED_DEPTH)
    control = RunControl.begin(dag, weights, run.axes_of(told), used, probed_depth=probed_depth)
    if not len(dag) and told.get(c.GRAPH_NODE_COUNT):
        # Too large to be spelled out: weights are on the probe sets, the rest is told in numbers.
        depth, node_count = told.get(c.GRAPH_DEPTH), int(told[c.GRAPH_NODE_COUNT])
        control.monitor = RunMonitor.for_shape(
            control.monitor.axes,
            depth=depth,
            node_count=node_count,
            alpha=used.alpha,
            probed_depth=probed_depth,
        )
        if control.paths is not None:
            control.paths.horizon = depth or node_count
            control.paths.begin()
    return control


def graph_weights(dag: AgentDAG, options: BreakerOptions) -> DependencyWeights:
    """The blast radii of a recorded graph under some options."""
    return _weights(dag, options.weights, options.attenuation)


@lru_cache(maxsize=16)
def _weights(dag: AgentDAG, method: WeightMethod, attenuation: float) -> DependencyWeights:
    return dependency_weights(dag, method, attenuation)


def reckon(
    run: RecordedRun,
    options: BreakerOptions | None = None,
    *,
    control: RunControl | None = None,
    orbits: Mapping[Key, StakedOrbit] | None = None,
) -> Iterator[Reckoned]:
    """Take every decision of a run again, in order.

    Args:
        run: the run.
        options: the configuration; the recorded one if None.
        control: the control to begin with; as the first root span announces it if None.
        orbits: orbits of probe sets that are known already, see `staked_orbits`.
    """
    control = begin(run, run.told, options) if control is None else control
    control.orbits = Orbits(orbits)
    repairs = 0
    for part in run.parts:
        if part.begins_anew and part.told is not None:
            control = goes_on_anew(begin(run, part.told, options), control)
            control.orbits = Orbits(orbits)
        for item in part.supersteps:
            repairs += item.is_repair
            decision = again(control, item, repairs if item.is_repair else None)
            yield Reckoned(recorded=item, control=control, decision=decision)


def goes_on_anew(fresh: RunControl, before: RunControl) -> RunControl:
    """A fresh control for a run that was configured anew; an incident stays one."""
    if before.state.state not in WATCHING:
        fresh.state = ControlState(
            state=before.state.state,
            attempts=before.state.attempts,
            cooldown=before.state.cooldown,
        )
    return fresh


def again(control: RunControl, item: RecordedSuperstep, repair: int | None) -> BreakerDecision:
    """Take one recorded decision again."""
    scope, superstep = item.place
    if item.is_reset:
        return _reset_again(control, scope, superstep)
    evidence, is_repair = _taken_in(control, item, repair)
    return control.decide(
        control.name(scope, superstep, repair=repair, attempt=item.attempt),
        measurement=measurement_of(evidence, repair=is_repair, bound=control.bound),
    )


def _reset_again(control: RunControl, scope: str, superstep: int) -> BreakerDecision:
    """A reset; one where nothing was stopped is decided as the empty superstep that it is."""
    if control.state.state not in WATCHING:
        return control.reset(scope, superstep)
    name = f"{superstep_id(scope, superstep)}/reset-{control.resets + 1}"
    return control.decide(name, measurement="none")


def _taken_in(
    control: RunControl, item: RecordedSuperstep, repair: int | None
) -> tuple[Evidence, bool]:
    if repair is not None:
        return control.take_in_again(item.kept, item.measured), True
    return control.take_in_executed(item.records, attempt=item.attempt)
