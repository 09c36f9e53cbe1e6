"""The state of live runs: each run its own, bounded in number and in age."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
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
        seen: spans that were taken in, so that none counts twice.
        handovers: repaired payloads on their way, by the task that wrote them.
        previous_hash: hash of the last decision.
        interventions: how many were tried.
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
    seen: set[int] = field(default_factory=set[int])
    handovers: dict[str, Handover] = field(default_factory=dict[str, Handover])
    previous_hash: str = GENESIS
    interventions: int = 0


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
        self._most = most
        self._longest = longest
        self._clock = clock
        self.given_up = 0

    def __len__(self) -> int:
        return len(self._runs)

    def open(self, run_id: str, state: RunState) -> None:
        """Begin a run; runs that never ended make room."""
        state.started = self._clock()
        with self._lock:
            self._runs[run_id] = state
            while self._oldest_must_go():
                self._runs.popitem(last=False)
                self.given_up += 1

    def _oldest_must_go(self) -> bool:
        oldest = next(iter(self._runs.values()))
        too_old = self._clock() - oldest.started > self._longest
        return len(self._runs) > self._most or too_old

    def get(self, run_id: str) -> RunState | None:
        """A live run's state; None for one that is over or was never ours."""
        with self._lock:
            return self._runs.get(run_id)

    def close(self, run_id: str) -> RunState | None:
        """Forget a run."""
        with self._lock:
            return self._runs.pop(run_id, None)

    def take_in(self, record: ProbeRecord) -> None:
        """File a probe set under its superstep or its intervention; twice changes nothing.

        A control measures what is not the axis: it is recorded and takes no part here.
        """
        if record.is_control:
            return
        with self._lock:
            state = self._runs.get(record.run_id)
            if state is None or record.span.span_id in state.seen:
                return
            state.seen.add(record.span.span_id)
            if record.intervention_id is not None:
                key_again = (record.intervention_id, record.candidate)
                state.remeasured.setdefault(key_again, []).append(record)
            else:
                key = (record.scope, record.superstep)
                state.pending.setdefault(key, []).append(record)

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
