"""A person lets a stopped run go on, and it is on record who did."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from opentelemetry.context import Context

from twinspan.collector.decision import BreakerDecision
from twinspan.collector.evidence import evidence_of
from twinspan.collector.recorder import Recorder
from twinspan.collector.resuming import state_of
from twinspan.collector.run_files import read_run
from twinspan.collector.runs import RunState
from twinspan.collector.telling import tell
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import ConfigurationError, UnknownRun
from twinspan.instrumentation.gate import Boundary
from twinspan.instrumentation.hashing import PayloadHasher
from twinspan.instrumentation.tracing import Telemetry


def reset_run(record: str | PathLike[str], run_id: str, *, by: str) -> BreakerDecision:
    """Let a run go on that was stopped, from its record alone.

    The reset is written as the run's next decision: it names who made it, is chained to the
    decision before, and the monitor starts anew at a smaller alpha. Whoever executes the run
    again, in whatever process, goes on from there. A superstep that was halted is executed and
    probed again; if it is biased still, it is halted again.

    Args:
        record: the folder that the run is recorded in.
        run_id: the run.
        by: who decides it, as they call themselves; it is recorded.

    Raises:
        UnknownRun: the record has no such run.
        NothingToReset: the run is not stopped.
        RecordError: a file of the run cannot be read.
    """
    recorder = Recorder(Path(record))
    try:
        return reset_recorded(recorder, run_id, by=by)
    finally:
        recorder.shutdown()


def reset_recorded(recorder: Recorder, run_id: str, *, by: str) -> BreakerDecision:
    """The same through a recorder that is there already."""
    recorder.flush(run_id)
    run = read_run(recorder.folder, run_id)
    if run is None or not run.told:
        raise UnknownRun(run_id, where=repr(str(recorder.folder)))
    state = state_of(run, Telemetry([recorder]).run(run_id, resumed=True))
    decision = reset_state(state, by=by)
    recorder.close_run(run_id)
    return decision


def reset_state(state: RunState, *, by: str) -> BreakerDecision:
    """The same for a run whose state is in memory."""
    if not by.strip():
        raise ConfigurationError("a reset needs to say who makes it; give a name")
    if state.tracer.resumable:
        # Its root span has ended and said how many spans there are: this one is another writer's.
        state.tracer = state.tracer.telemetry.run(state.tracer.run_id, resumed=True)
        state.tracer.resumable = True
    scope, superstep = state.place
    decision = state.control.reset(scope, superstep)
    boundary = Boundary(
        run=state.tracer,
        hasher=PayloadHasher(),
        parent=Context(),
        scope=scope,
        superstep=superstep,
        executions=(),
    )
    tell(
        state,
        boundary,
        decision,
        evidence=evidence_of([]),
        extra={c.BREAKER_RESET_BY: by.strip()},
    )
    return decision
