"""One intervention on one frozen payload: repair it, measure again, hand it on."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import Link

from twinspan.collector.intervention.blind import BlindRerun
from twinspan.collector.records import ProbeRecord
from twinspan.collector.runs import Runs
from twinspan.collector.telling import cut_edges
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.gate import Boundary, Execution
from twinspan.instrumentation.probing.observation import ProbedNode
from twinspan.instrumentation.probing.recorded import recorded_probe
from twinspan.instrumentation.settings import Settings
from twinspan.instrumentation.tracing import RunTracer

BLIND_RERUN: Final = "blind_rerun"


@dataclass(slots=True, kw_only=True)
class Repaired:
    """A repaired payload on its way to its reader.

    Attributes:
        intervention_id: the intervention.
        task_id: the execution whose payload it replaces.
        payload: the repaired payload.
        measured: the probe sets by which the repair was measured.
    """

    intervention_id: str
    task_id: str
    payload: Any = field(repr=False)
    measured: tuple[ProbeRecord, ...]
    _run: RunTracer
    _span: Span
    _told: dict[str, object]

    def close(
        self, outcome: str, *, reader: str | None = None, handed_hash: str | None = None
    ) -> None:
        """End the intervention's span; a reader's whole input is told by its hash."""
        told = dict(self._told)
        node = str(told.pop(c.NODE_ID))
        if reader is not None:
            told[c.INTERVENTION_EDGE] = c.edge_name(node, reader)
        self._run.end(
            self._span,
            {**told, c.INTERVENTION_OUTCOME: outcome, c.INTERVENTION_HANDED_HASH: handed_hash},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervention:
    """Repairs executions of one superstep.

    Attributes:
        settings: the options; the re-measurement probes as the first measurement did.
        runs: where the re-measured probe sets arrive, as spans.
        boundary: the superstep.
        round: number of the try within the run, from 1.
    """

    settings: Settings
    runs: Runs
    boundary: Boundary
    round: int

    async def run(self, task_id: str, guilty: Sequence[ProbeRecord]) -> Repaired | None:
        """Repair one execution's payload and measure the repaired procedure.

        Returns:
            The repaired payload with its measurement; None where it cannot be repaired.
        """
        execution = next(e for e in self.boundary.executions if e.task_id == task_id)
        names = {record.axis.partition("#")[0] for record in guilty}
        axes = tuple(axis for axis in self.settings.probe.axes if axis.name in names)
        intervention_id = uuid.uuid4().hex
        span = self._start(intervention_id, execution, guilty)
        strategy = BlindRerun.of(execution, axes)
        if strategy is None:
            self.boundary.run.end(span, {c.INTERVENTION_OUTCOME: "failed"})
            return None
        try:
            payload = await strategy(execution.received)
            measured = await self._measure(intervention_id, span, execution, strategy, guilty)
        except Exception as error:
            # A repair that fails leaves the payload frozen: the run is halted, not broken.
            self.boundary.run.end(span, {c.INTERVENTION_OUTCOME: "failed"}, error=error)
            return None
        except BaseException:
            self.boundary.run.end(span, {c.INTERVENTION_OUTCOME: "failed"})
            raise
        return self._repaired(intervention_id, span, execution, payload, measured)

    def _start(
        self, intervention_id: str, execution: Execution, guilty: Sequence[ProbeRecord]
    ) -> Span:
        worst = max(guilty, key=lambda record: record.impact)
        return self.boundary.run.start(
            c.operation_name(c.SPAN_INTERVENTION, BLIND_RERUN),
            "intervention",
            {
                c.INTERVENTION_ID: intervention_id,
                c.INTERVENTION_STRATEGY: BLIND_RERUN,
                c.INTERVENTION_TRIGGER_TASK: execution.task_id,
                c.INTERVENTION_ROUND: self.round,
                c.INTERVENTION_SCORE_BEFORE: worst.delta,
                c.INTERVENTION_EDGE: cut_edges(self.boundary, guilty)[0],
                c.NODE_ID: execution.node,
                c.SUPERSTEP_INDEX: self.boundary.superstep,
                c.SUPERSTEP_SCOPE: self.boundary.scope,
            },
            parent=self.boundary.parent,
            links=[Link(record.span, {c.LINK_RELATION: "caused_by"}) for record in guilty],
        )

    async def _measure(
        self,
        intervention_id: str,
        span: Span,
        execution: Execution,
        strategy: BlindRerun,
        guilty: Sequence[ProbeRecord],
    ) -> tuple[ProbeRecord, ...]:
        """Probe the repaired procedure on what the node had read, with fresh samples."""
        worst = guilty[0]
        run = self.boundary.run
        probed = ProbedNode(
            node=execution.node,
            task_id=execution.task_id,
            scope=self.boundary.scope,
            superstep=self.boundary.superstep,
            weight=worst.weight,
            share=worst.share,
            parent=trace.set_span_in_context(span),
            baseline_span_id=trace.format_span_id(span.get_span_context().span_id),
            extra={c.INTERVENTION_ID: intervention_id},
        )
        probe = recorded_probe(
            strategy.__call__,
            probed,
            run=run,
            hasher=self.boundary.hasher,
            options=self.settings.probe.only(strategy.axes, seed_offset=self.round),
            capture_content=self.settings.capture_content,
        )
        await probe.arun(execution.received)
        return tuple(self.runs.take_remeasured(run.run_id, intervention_id))

    def _repaired(
        self,
        intervention_id: str,
        span: Span,
        execution: Execution,
        payload: Any,
        measured: tuple[ProbeRecord, ...],
    ) -> Repaired:
        deltas = [record.delta for record in measured if record.delta is not None]
        return Repaired(
            intervention_id=intervention_id,
            task_id=execution.task_id,
            payload=payload,
            measured=measured,
            _run=self.boundary.run,
            _span=span,
            _told={
                c.NODE_ID: execution.node,
                c.INTERVENTION_SCORE_AFTER: max(deltas) if deltas else None,
                c.INTERVENTION_PAYLOAD_HASH: self.boundary.hasher(payload),
            },
        )
