"""Runs a plan: cases by conditions by replicates, in its random order, a bounded number at once."""

from __future__ import annotations

import contextvars
import uuid
from collections.abc import Callable, Container, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.audit.agents import RunAgent, StepAgent
from twinspan.instrumentation.audit.execution import (
    Executed,
    Protocol,
    execute_case,
    execute_steps,
)
from twinspan.instrumentation.audit.plan import AuditPlan, Cell, PlannedRun
from twinspan.instrumentation.audit.run_spans import RunSpans
from twinspan.instrumentation.errors import AuditStopped, ConfigurationError
from twinspan.instrumentation.tracing import RunTracer, Telemetry

MODE: Final = "live"
MAX_FAILURES: Final = 10
"""Runs in a row that an agent may fail before the audit stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSummary:
    """What an audit session did.

    Attributes:
        audit_id: the audit.
        planned: runs of the plan.
        already: runs that were recorded before.
        completed: runs of the session with an answer to every step.
        failed: runs of the session with a step that has none.
        calls: calls of the agent in the session.
        failures: why runs failed, and how many for each reason.
    """

    audit_id: str
    planned: int
    already: int
    completed: int
    failed: int
    calls: int
    failures: dict[str, int]

    @classmethod
    def nothing_left(cls, audit_id: str, planned: int) -> AuditSummary:
        """Of a session that found everything recorded."""
        return cls(
            audit_id=audit_id,
            planned=planned,
            already=planned,
            completed=0,
            failed=0,
            calls=0,
            failures={},
        )

    @property
    def is_whole(self) -> bool:
        """Whether every run of the plan is recorded."""
        return self.already + self.completed + self.failed == self.planned


class AuditRunner:
    """One session of an audit.

    The plan's hash is recorded before the first run begins. A session that was killed is gone on
    with by another one over the same plan, which leaves out what is `done`.

    Args:
        plan: what to run.
        agent: a step agent if the plan has steps that it is to be asked, or a run agent.
        telemetry: where the spans go; whoever made it shuts it down.
        protocol: how each run is done.
        concurrency: runs at once; each is a thread.
        max_failures: runs in a row in which the agent raises before the audit stops.
        audit_id: of the session that this one goes on with; a new one if None.

    Raises:
        ConfigurationError: the agent is of neither form, or forced actions meet a run agent.
    """

    def __init__(
        self,
        plan: AuditPlan,
        agent: StepAgent | RunAgent,
        *,
        telemetry: Telemetry,
        protocol: Protocol,
        concurrency: int = 4,
        max_failures: int = MAX_FAILURES,
        audit_id: str | None = None,
    ) -> None:
        if isinstance(agent, type) or not (hasattr(agent, "answer") or hasattr(agent, "act")):
            raise ConfigurationError(
                f"{type(agent).__name__} is no agent; give an object with answer(request) or "
                "act(request)"
            )
        self.plan = plan
        self.audit_id = audit_id or uuid.uuid4().hex
        self._agent = agent
        self._telemetry = telemetry
        self._protocol = protocol
        self._concurrency = concurrency
        self._max_failures = max_failures
        self._cases = {case.id: case for case in plan.cases}
        self._conditions = {condition.id: condition for condition in plan.conditions}
        self._runs = plan.runs()
        self._tracer = RunTracer(
            telemetry, "", {c.RUN_ID: None, c.AUDIT_WRITER: None, c.AUDIT_ID: self.audit_id}
        )
        self._span = self._open()

    def run(
        self, done: Container[Cell] = (), on_run: Callable[[Executed], None] | None = None
    ) -> AuditSummary:
        """Make every run that is not done, in the plan's order.

        Args:
            done: runs that are recorded already.
            on_run: told of each run that ended, from this thread.

        Raises:
            AuditStopped: the agent raised in too many runs in a row; what ended is recorded, and
                another session goes on from there.
        """
        left = [run for run in self._runs if run.cell not in done]
        executed: list[Executed] = []
        in_a_row = 0
        for ended in self._executed(left):
            executed.append(ended)
            in_a_row = in_a_row + 1 if ended.raised else 0
            if on_run is not None:
                on_run(ended)
            if in_a_row >= self._max_failures:
                raise AuditStopped(
                    in_a_row, cause=ended.failure or "", error=ended.error
                ) from ended.error
        return self._summary(executed, already=len(self._runs) - len(left))

    def close(self, verdict: str | None, *, observed: int, status: str = "success") -> None:
        """End the session.

        Args:
            verdict: ``clear``, ``flagged``, ``inconclusive`` or ``incomplete``.
            observed: runs of the plan that are recorded.
            status: of the audit as a test suite: ``success``, ``failure`` or ``aborted``.
        """
        self._tracer.end(
            self._span,
            {
                c.AUDIT_VERDICT: verdict,
                c.AUDIT_OBSERVED_RUNS: observed,
                c.TEST_SUITE_STATUS: status,
            },
        )

    # --- spans of the session itself --------------------------------------------------------------

    def _open(self) -> Span:
        design = self._design()
        span = self._tracer.start(
            c.operation_name(c.SPAN_AUDIT, self.plan.name), "audit", design, parent=Context()
        )
        sealed = self._tracer.start(
            c.operation_name(c.SPAN_PLAN, self.plan.name), "plan", design, parent=span
        )
        self._tracer.end(sealed)
        return span

    def _design(self) -> dict[str, object]:
        plan = self.plan
        return {
            c.AUDIT_NAME: plan.name,
            c.AUDIT_MODE: MODE,
            c.AUDIT_AXES: sorted({axis for each in plan.conditions for axis in each.varied}),
            c.AUDIT_CASE_COUNT: len(plan.cases),
            c.AUDIT_REPLICATE_COUNT: plan.replicates,
            c.AUDIT_SEED: plan.seed,
            c.AUDIT_PLAN_HASH: plan.hash,
            c.AUDIT_OUTCOMES: list(plan.outcomes),
            c.AUDIT_EXPECTED_RUNS: len(self._runs),
            c.AUDIT_WORDING: self._wording,
            c.TEST_SUITE_NAME: plan.name,
        }

    @property
    def _wording(self) -> str:
        return "same" if self.plan.wording is None else "random"

    # --- runs -----------------------------------------------------------------------------------

    def _executed(self, left: list[PlannedRun]) -> Iterator[Executed]:
        """The runs as they end; they begin in the plan's order, so many at once."""
        waiting = iter(left)
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="twinspan-audit") as pool:
            pending: set[Future[Executed]] = {
                self._submit(pool, run) for run in islice(waiting, self._concurrency)
            }
            try:
                while pending:
                    ended, pending = wait(pending, return_when=FIRST_COMPLETED)
                    pending |= {self._submit(pool, run) for run in islice(waiting, len(ended))}
                    yield from (future.result() for future in ended)
            finally:
                for future in pending:
                    future.cancel()

    def _submit(self, pool: ThreadPoolExecutor, run: PlannedRun) -> Future[Executed]:
        # An empty context: nothing that one run sets is seen by another.
        return pool.submit(contextvars.Context().run, self._execute, run)

    def _execute(self, run: PlannedRun) -> Executed:
        tracer = self._telemetry.run(base={c.AUDIT_ID: self.audit_id})
        spans = RunSpans(
            tracer,
            name=self.plan.name,
            place=self._place(run),
            audit=self._span.get_span_context(),
        )
        case = self._cases[run.case_id]
        try:
            if isinstance(self._agent, StepAgent):
                forced = self.plan.arms.get(run.arm or "", {})
                ended = execute_steps(self._agent, run, case, forced, self._protocol, spans)
            else:
                ended = execute_case(self._agent, run, case, self._protocol, spans)
        except BaseException:
            spans.close("cancelled")
            raise
        spans.close(ended.outcome, error=ended.error)
        return ended

    def _place(self, run: PlannedRun) -> dict[str, object]:
        condition = self._conditions[run.condition_id]
        return {
            c.AUDIT_NAME: self.plan.name,
            c.AUDIT_MODE: MODE,
            c.AUDIT_PLAN_HASH: self.plan.hash,
            c.AUDIT_OUTCOMES: list(self.plan.outcomes),
            c.AUDIT_WORDING: self._wording,
            c.CASE_ID: run.case_id,
            c.CONDITION_ID: run.condition_id,
            c.CONDITION_KIND: condition.kind,
            c.CONDITION_AXIS: "+".join(condition.varied) or None,
            c.REPLICATE_INDEX: run.replicate,
            c.RUN_ARM: run.arm,
            c.RUN_ORDER: run.index,
            c.GEN_AI_REQUEST_MODEL: self._protocol.model,
            c.GEN_AI_REQUEST_SEED: run.seed,
        }

    def _summary(self, executed: list[Executed], *, already: int) -> AuditSummary:
        failures: dict[str, int] = {}
        for each in executed:
            if each.failure is not None:
                failures[each.failure] = failures.get(each.failure, 0) + 1
        return AuditSummary(
            audit_id=self.audit_id,
            planned=len(self._runs),
            already=already,
            completed=sum(each.outcome == "completed" for each in executed),
            failed=sum(each.outcome == "failed" for each in executed),
            calls=sum(each.calls for each in executed),
            failures=dict(sorted(failures.items())),
        )
