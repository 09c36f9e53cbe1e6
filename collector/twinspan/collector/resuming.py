"""Takes up a run that stopped, in this process or another: its control is what it was.

The record is the memory. Accumulator, monitor, machine, retries and restarts follow from the
recorded probe sets, by the reckoning that made the decisions. Payloads are in nobody's record:
the graph's checkpoint has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from twinspan.collector.chain import GENESIS
from twinspan.collector.reckoning import begin, goes_on_anew, reckon
from twinspan.collector.recorded import Attributes, RecordedRun
from twinspan.collector.records import ProbeRecord
from twinspan.collector.run_control import NO_AXIS, RunControl
from twinspan.collector.runs import RunState
from twinspan.collector.telling import run_configuration
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.tracing import RunTracer


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUp:
    """A run's state, taken up.

    Attributes:
        state: the state.
        how: `recorded`, or `reconfigured` where graph, axes or options are not what they were
            and control begins anew.
    """

    state: RunState
    how: str


def take_up(
    run: RecordedRun,
    tracer: RunTracer,
    fresh: RunControl,
    *,
    graph_id: object,
) -> TakenUp:
    """The state of a recorded run, for a tracer that goes on with it.

    Args:
        run: the run as it is on record.
        tracer: the run's spans from here on.
        fresh: the control of a run that begins, by the present configuration.
        graph_id: hash of the present graph.
    """
    last = run.last_told
    if not last or _is_configured_alike(last, fresh, graph_id):
        anew = any(part.begins_anew for part in run.parts)
        return TakenUp(state=state_of(run, tracer, None if anew else fresh), how="recorded")
    before = state_of(run, tracer)
    state = RunState(tracer=tracer, control=goes_on_anew(fresh, before.control))
    state.previous_hash, state.interventions = before.previous_hash, before.interventions
    return TakenUp(state=state, how="reconfigured")


def state_of(run: RecordedRun, tracer: RunTracer, control: RunControl | None = None) -> RunState:
    """What a recorded run has come to.

    Args:
        run: the run.
        tracer: the run's spans from here on.
        control: the control that it began with; as its first root span announces it if None.
    """
    begun = begin(run, run.told, None) if control is None else control
    state = RunState(tracer=tracer, control=begun)
    for step in reckon(run, control=begun):
        state.control = step.control
        state.place = step.recorded.place
        if not step.recorded.is_halt:
            state.note_decided(step.recorded.records)
        state.previous_hash = str(step.recorded.told.get(c.AUDIT_HASH, GENESIS))
        if step.recorded.is_halt:
            state.halts[step.recorded.place] = step.recorded.attempt + 1
        elif not step.recorded.is_reset:
            state.halts.pop(step.recorded.place, None)
    state.interventions = run.interventions
    named = {record.set_id for step in run.supersteps for record in step.records}
    for record in sorted(run.probe_sets, key=_in_order):
        state.take_in(record)
    for place, filed in list(state.pending.items()):
        state.pending[place] = [record for record in filed if record.set_id not in named]
    state.remeasured.clear()
    return state


def _in_order(record: ProbeRecord) -> tuple[str, int, str, str]:
    return record.scope, record.superstep, record.node, record.set_id


def _is_configured_alike(told: Attributes, fresh: RunControl, graph_id: object) -> bool:
    """Whether what the run was decided by last is what is in force now."""
    present = run_configuration(fresh.options)
    return (
        {key: told.get(key) for key in present} == present
        and told.get(c.GRAPH_ID) == graph_id
        and tuple(told.get(c.AUDIT_AXES) or NO_AXIS) == tuple(fresh.monitor.axes)
    )
