"""The state of live runs: each run its own, bounded in number and in age."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from twinspan.collector.chain import GENESIS
from twinspan.collector.records import ProbeRecord
from twinspan.collector.run_control import RunControl
from twinspan.instrumentation.tracing import RunTracer

MOST_RUNS: Final = 10_000
"""Runs that may be live at once; the oldest beyond it is given up."""

LONGEST_SECONDS: Final = 24 * 3600.0
"""Age at which a run that never ended is given up."""

MOST_WAITING: Final = 1_000
"""Runs that stopped and may go on, whose state is kept where there is no record of them."""

MOST_SEEN: Final = 4_096
"""Latest probe sets of a run by which one that comes twice is known."""


class Handover(Protocol):
    """A repaired payload that its reader has not yet read: the intervention is still open."""

    def close(
        self, outcome: str, *, reader: str | None = None, handed_hash: str | None = None
    ) -> None:
        """End the intervention."""
        ...


@dataclass(slots=True)
class RunState:
    """Everything a run has come to so far.

    Attributes:
        tracer: the run's spans.
        control: what its scores come to.
        pending: probe sets that have ended, by scope and superstep.
        remeasured: probe sets of an intervention, by its id and the candidate measured.
        seen: spans that were taken in last, so that none counts twice.
        handovers: repaired payloads on their way, by the task that wrote them.
        previous_hash: hash of the last decision.
        interventions: how many were tried.
        halts: supersteps that were halted, by scope and index, and how often.
        decided: executions that were decided last, with their node and superstep.
        place: scope and index of the superstep that was decided last.
        spent: node runs that the run's probes have cost.
    """

    tracer: RunTracer
    control: RunControl
    started: float = 0.0
    pending: dict[tuple[str, int], list[ProbeRecord]] = field(
        default_factory=dict[tuple[str, int], list[ProbeRecord]]
    )
    remeasured: dict[tuple[str, str | None], list[ProbeRecord]] = field(
        default_factory=dict[tuple[str, str | None], list[ProbeRecord]]
    )
    seen: OrderedDict[int, None] = field(default_factory=OrderedDict[int, None])
    handovers: dict[str, Handover] = field(default_factory=dict[str, Handover])
    previous_hash: str = GENESIS
    interventions: int = 0
    halts: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    decided: OrderedDict[str, tuple[str, int]] = field(
        default_factory=OrderedDict[str, tuple[str, int]]
    )
    place: tuple[str, int] = ("", 0)
    spent: int = 0

    def take_in(self, record: ProbeRecord) -> None:
        """File a probe set under its superstep or its intervention; twice changes nothing.

        A control measures what is not the axis: it costs, and takes no part in what follows.
        """
        if record.span.span_id in self.seen:
            return
        self.seen[record.span.span_id] = None
        if len(self.seen) > MOST_SEEN:
            self.seen.popitem(last=False)
        self.spent += record.calls
        if record.is_control:
            return
        if record.intervention_id is not None:
            key = (record.intervention_id, record.candidate)
            self.remeasured.setdefault(key, []).append(record)
            return
        filed = self.pending.setdefault((record.scope, record.superstep), [])
        if not any(_is_the_same(record, other) for other in filed):
            filed.append(record)

    def undecided(self, records: Sequence[ProbeRecord]) -> list[ProbeRecord]:
        """Those of a superstep's scores whose execution has no decision yet; now they have one.

        An execution that was decided and runs again, after a crash, keeps its decision: a probe
        measures what a node does with its input, and that has not changed.
        """
        fresh = [record for record in records if record.task_id not in self.decided]
        self.note_decided(fresh)
        return fresh

    def note_decided(self, records: Sequence[ProbeRecord]) -> None:
        """Remember whose scores were decided on."""
        for record in records:
            if record.delta is not None and record.task_id not in self.decided:
                self.decided[record.task_id] = (record.node, record.superstep)
        while len(self.decided) > MOST_SEEN:
            self.decided.popitem(last=False)


def _is_the_same(one: ProbeRecord, other: ProbeRecord) -> bool:
    """Whether two sets measured one execution twice, on the same samples.

    An execution that failed or was interrupted after it had been probed runs again when its run
    goes on, under the same task and with the same wording: the first measurement counts.
    """
    return other.delta is not None and (
        (one.task_id, one.axis, one.round, one.contrast)
        == (other.task_id, other.axis, other.round, other.contrast)
    )


class Runs:
    """The live runs of a process."""

    def __init__(
        self,
        *,
        most: int = MOST_RUNS,
        longest: float = LONGEST_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, RunState] = OrderedDict()
        self._stopped: OrderedDict[str, RunState] = OrderedDict()
        self._most = most
        self._longest = longest
        self._clock = clock
        self.given_up = 0

    def __len__(self) -> int:
        return len(self._runs)

    def open(self, run_id: str, state: RunState) -> list[str]:
        """Begin a run; runs that never ended make room, and are named."""
        state.started = self._clock()
        gone: list[str] = []
        with self._lock:
            self._runs[run_id] = state
            while self._oldest_must_go():
                gone.append(self._runs.popitem(last=False)[0])
            self.given_up += len(gone)
        return gone

    def keep(self, run_id: str, state: RunState) -> None:
        """Keep the state of a run that stopped and may go on; the oldest make room."""
        with self._lock:
            self._stopped[run_id] = state
            if len(self._stopped) > MOST_WAITING:
                self._stopped.popitem(last=False)

    def take_up(self, run_id: str) -> RunState | None:
        """The kept state of a run that goes on; None where it was not kept."""
        with self._lock:
            return self._stopped.pop(run_id, None)

    def _oldest_must_go(self) -> bool:
        oldest = next(iter(self._runs.values()))
        too_old = self._clock() - oldest.started > self._longest
        return len(self._runs) > self._most or too_old

    def kept(self, run_id: str) -> RunState | None:
        """The kept state of a run that stopped, where it stays."""
        with self._lock:
            return self._stopped.get(run_id)

    def stopped(self) -> list[RunState]:
        """The states that are kept of runs that stopped."""
        with self._lock:
            return list(self._stopped.values())

    def ids(self) -> list[str]:
        """The live runs, the oldest first."""
        with self._lock:
            return list(self._runs)

    def get(self, run_id: str) -> RunState | None:
        """A live run's state; None for one that is over or was never ours."""
        with self._lock:
            return self._runs.get(run_id)

    def close(self, run_id: str) -> RunState | None:
        """Forget a run."""
        with self._lock:
            return self._runs.pop(run_id, None)

    def take_in(self, record: ProbeRecord) -> None:
        """File a probe set in its run, if that is live."""
        with self._lock:
            state = self._runs.get(record.run_id)
            if state is not None:
                state.take_in(record)

    def take_out(self, run_id: str, scope: str, superstep: int) -> list[ProbeRecord]:
        """The probe sets of a superstep, in an order that does not depend on who came first."""
        with self._lock:
            state = self._runs.get(run_id)
            found = [] if state is None else state.pending.pop((scope, superstep), [])
        return sorted(found, key=lambda record: (record.node, record.task_id, record.axis))

    def take_remeasured(
        self, run_id: str, intervention_id: str, candidate: str | None = None
    ) -> list[ProbeRecord]:
        """The probe sets by which an intervention, or one candidate of it, was measured."""
        with self._lock:
            state = self._runs.get(run_id)
            found = [] if state is None else state.remeasured.pop((intervention_id, candidate), [])
        return sorted(found, key=lambda record: (record.node, record.axis))
