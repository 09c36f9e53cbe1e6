"""One intervention on one frozen payload: propose, verify, measure afresh, hand on."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import Link

from twinspan.collector.intervention.bench import Bench
from twinspan.collector.intervention.case import Case
from twinspan.collector.intervention.measured import Measured
from twinspan.collector.intervention.proposals import Candidate, Proposal, Repairer
from twinspan.collector.intervention.routing import Route
from twinspan.collector.intervention.verifier import FactualCheck, Verifier, checked
from twinspan.collector.records import ProbeRecord
from twinspan.collector.runs import Runs
from twinspan.collector.telling import cut_edges
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.current import current
from twinspan.instrumentation.gate import Boundary, Execution
from twinspan.instrumentation.settings import Settings
from twinspan.instrumentation.tracing import RunTracer


@dataclass(slots=True, kw_only=True)
class Tried:
    """An intervention that came to something, or to nothing.

    Attributes:
        intervention_id: the intervention.
        strategy: how it was tried.
        round: number of the try within the run.
        node, task_id: whose payload.
        reason: why there is no payload; None where there is one.
        payload: the repaired payload on its way to its reader; None without one.
        measured: the probe sets by which it was measured; empty without a full measurement.
        before: how the node measured unrepaired.
    """

    intervention_id: str
    strategy: str
    round: int
    node: str
    task_id: str
    reason: str | None
    payload: Any = field(default=None, repr=False)
    measured: tuple[ProbeRecord, ...] = ()
    before: Measured
    outcome: str | None = field(default=None, init=False)
    _run: RunTracer
    _span: Span
    told: dict[str, object] = field(default_factory=dict[str, object], repr=False)

    @property
    def failed(self) -> bool:
        """Whether there is nothing to judge."""
        return not self.measured

    @property
    def after(self) -> Measured:
        """How the repaired procedure measured."""
        return Measured.of(self.measured)

    def close(
        self,
        outcome: str,
        *,
        reason: str | None = None,
        reader: str | None = None,
        handed_hash: str | None = None,
    ) -> None:
        """End the intervention's span; a reader's whole input is told by its hash."""
        told = dict(self.told)
        self.outcome = outcome
        self.reason = self.reason or reason
        if reader is not None:
            told[c.INTERVENTION_EDGE] = c.edge_name(self.node, reader)
        self._run.end(
            self._span,
            {
                **told,
                c.INTERVENTION_OUTCOME: outcome,
                c.INTERVENTION_REASON: self.reason,
                c.INTERVENTION_HANDED_HASH: handed_hash,
            },
        )

    def as_mapping(self) -> Mapping[str, object]:
        """What a person needs to know of it, as plain values; never exported."""
        return {
            "intervention_id": self.intervention_id,
            "strategy": self.strategy,
            "round": self.round,
            "node": self.node,
            "outcome": self.outcome,
            "reason": self.reason,
            "delta_before": self.before.delta,
            "delta_after": self.after.delta,
            "upper_after": self.after.upper,
            "payload": self.payload,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervention:
    """Repairs executions of one superstep.

    Attributes:
        settings: the options.
        runs: where the re-measured probe sets arrive, as spans.
        boundary: the superstep.
        round: number of the try within the run, from 1.
        repairer: how it is tried.
        route: why that way.
        verifier: may refute a payload on facts.
    """

    settings: Settings
    runs: Runs
    boundary: Boundary
    round: int
    repairer: Repairer
    route: Route
    verifier: Verifier | None = None

    async def run(self, task_id: str, guilty: Sequence[ProbeRecord]) -> Tried:
        """Repair one execution's payload and measure the repaired procedure.

        A repair that raises, or takes longer than its time, has failed; the payload stays
        frozen, and the span says why.
        """
        execution = next(e for e in self.boundary.executions if e.task_id == task_id)
        bench = self._bench(execution, guilty)
        case = Case(
            node=execution.node,
            payload=execution.received,
            answer=execution.payload,
            axes=bench.axes,
            rerun=execution.rerun,
        )
        try:
            async with asyncio.timeout(self.settings.repair.repair_timeout):
                with current(trace.set_span_in_context(bench.span)):
                    return await self._repaired(case, bench)
        except TimeoutError:
            return self._failed(bench, "timeout")
        except Exception as error:
            return self._failed(bench, f"error:{type(error).__qualname__}", error=error)
        except BaseException:
            self.boundary.run.end(bench.span, {c.INTERVENTION_OUTCOME: "failed"})
            raise

    async def _repaired(self, case: Case, bench: Bench) -> Tried:
        proposal = await self.repairer.propose(case, bench)
        if not proposal.candidates:
            return self._failed(bench, proposal.reason or "nothing_changed", told=proposal.told)
        candidate, check = await self._not_refuted(case, proposal)
        told = {**proposal.told, **self._factual(check)}
        if candidate is None:
            return self._failed(bench, "refuted", told=told)
        measured = await bench.measure(candidate.procedure)
        told[c.INTERVENTION_CANDIDATE] = candidate.label
        if not measured:
            return self._failed(bench, "not_measured", told=told)
        return self._tried(bench, None, told, candidate=candidate, measured=measured)

    async def _not_refuted(
        self, case: Case, proposal: Proposal
    ) -> tuple[Candidate | None, FactualCheck]:
        """The best candidate that the verifier lets pass, and what it said last."""
        check = FactualCheck(verdict="unverified")
        for candidate in proposal.candidates:
            check = await checked(self.verifier, case, candidate.payload)
            if check.verdict != "refuted":
                return candidate, check
        return None, check

    def _factual(self, check: FactualCheck) -> dict[str, object]:
        if self.verifier is None:
            return {}
        return {c.VERIFIER_VERDICT: check.verdict, c.VERIFIER_REASON: check.reason}

    # --- spans --------------------------------------------------------------------------------

    def _bench(self, execution: Execution, guilty: Sequence[ProbeRecord]) -> Bench:
        names = {record.axis.partition("#")[0] for record in guilty}
        known = self.settings.probe.axes
        intervention_id = uuid.uuid4().hex
        return Bench(
            settings=self.settings,
            runs=self.runs,
            boundary=self.boundary,
            execution=execution,
            # A screen names no axis: then all of them are repaired.
            axes=tuple(axis for axis in known if axis.name in names) or known,
            guilty=tuple(guilty),
            span=self._start(intervention_id, execution, guilty),
            intervention_id=intervention_id,
            round=self.round,
        )

    def _start(
        self, intervention_id: str, execution: Execution, guilty: Sequence[ProbeRecord]
    ) -> Span:
        worst = max(guilty, key=lambda record: record.impact)
        spread = self.route.spread
        return self.boundary.run.start(
            c.operation_name(c.SPAN_INTERVENTION, self.repairer.name),
            "intervention",
            {
                c.INTERVENTION_ID: intervention_id,
                c.INTERVENTION_STRATEGY: self.repairer.name,
                c.INTERVENTION_TRIGGER_TASK: execution.task_id,
                c.INTERVENTION_ROUND: self.round,
                c.INTERVENTION_SCORE_BEFORE: worst.delta,
                c.INTERVENTION_EDGE: cut_edges(self.boundary, guilty)[0],
                c.NODE_ID: execution.node,
                c.SUPERSTEP_INDEX: self.boundary.superstep,
                c.SUPERSTEP_SCOPE: self.boundary.scope,
                c.ROUTE_STRATEGY: self.route.strategy,
                c.ROUTE_REASON: self.route.reason,
                c.ROUTE_AXIS: spread.axis,
                c.ROUTE_BIASED: spread.biased,
                c.ROUTE_NODES: spread.total,
                c.ROUTE_THRESHOLD: self.route.threshold,
            },
            parent=self.boundary.parent,
            links=[Link(record.span, {c.LINK_RELATION: "caused_by"}) for record in guilty],
        )

    def _failed(
        self,
        bench: Bench,
        reason: str,
        *,
        told: Mapping[str, object] | None = None,
        error: BaseException | None = None,
    ) -> Tried:
        tried = self._tried(bench, reason, told or {})
        tried.outcome = "failed"
        self.boundary.run.end(
            bench.span,
            {
                **tried.told,
                c.INTERVENTION_OUTCOME: "failed",
                c.INTERVENTION_REASON: reason,
            },
            error=error,
        )
        return tried

    def _tried(
        self,
        bench: Bench,
        reason: str | None,
        told: Mapping[str, object],
        *,
        candidate: Candidate | None = None,
        measured: tuple[ProbeRecord, ...] = (),
    ) -> Tried:
        after = Measured.of(measured)
        payload = None if candidate is None else candidate.payload
        return Tried(
            intervention_id=bench.intervention_id,
            strategy=self.repairer.name,
            round=self.round,
            node=bench.execution.node,
            task_id=bench.execution.task_id,
            reason=reason,
            payload=payload,
            measured=measured,
            before=bench.unrepaired,
            _run=self.boundary.run,
            _span=bench.span,
            told={
                **told,
                c.INTERVENTION_SCORE_AFTER: after.delta,
                c.INTERVENTION_UPPER_AFTER: after.upper,
                c.INTERVENTION_PAYLOAD_HASH: (
                    None if candidate is None else self.boundary.hasher(payload)
                ),
            },
        )
