"""Where candidate repairs are measured and reviews are written down, within one intervention."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span

from twinspan.collector.intervention.case import Case, Procedure
from twinspan.collector.intervention.measured import Measured
from twinspan.collector.intervention.skeptics import Skeptic
from twinspan.collector.intervention.trust import TrustGraph
from twinspan.collector.intervention.verdicts import Review
from twinspan.collector.records import ProbeRecord
from twinspan.collector.runs import Runs
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.gate import Boundary, Execution
from twinspan.instrumentation.perturbation import Axis
from twinspan.instrumentation.probing.observation import ProbedNode
from twinspan.instrumentation.probing.recorded import recorded_probe
from twinspan.instrumentation.settings import Settings

SEEDS_PER_ROUND: Final = 1_000
"""Seeds apart from which the rounds of a run draw, so that no two measurements share samples."""


@dataclass(slots=True, kw_only=True)
class Bench:
    """Measures procedures that replace one execution, and writes spans below one intervention.

    Attributes:
        settings: the options.
        runs: where measured probe sets arrive, as spans.
        boundary: the superstep.
        execution: the execution whose payload is frozen.
        axes: the axes on which it was.
        guilty: the probe sets for which it was, the worst first.
        span: the intervention's span.
        intervention_id: the intervention.
        round: number of the try within the run, from 1.
        measurements: how many there were.
    """

    settings: Settings
    runs: Runs
    boundary: Boundary
    execution: Execution
    axes: tuple[Axis, ...]
    guilty: tuple[ProbeRecord, ...]
    span: Span
    intervention_id: str
    round: int
    measurements: int = field(default=0, init=False)

    @property
    def unrepaired(self) -> Measured:
        """How the node measured before."""
        return Measured.of(self.guilty)

    @property
    def before(self) -> float:
        """Its delta; a repair must do better."""
        delta = self.unrepaired.delta
        return 1.0 if delta is None else delta

    async def score(self, procedure: Procedure, candidate: str) -> Measured:
        """Measure a candidate on samples of its own: it decides which one is chosen, no more."""
        bound = self.settings.breaker.equivalence
        span = self.boundary.run.start(
            c.operation_name(c.SPAN_ATTEMPT, candidate),
            "attempt",
            {
                **self._place,
                c.INTERVENTION_CANDIDATE: candidate,
                c.ATTEMPT_BOUND: bound,
            },
            parent=self.span,
        )
        told: dict[str, object] = {}
        try:
            records = await self._probe(procedure, span, candidate)
            measured = Measured.of(records)
            told = {
                c.ATTEMPT_DELTA: measured.delta,
                c.ATTEMPT_UPPER: measured.upper,
                c.ATTEMPT_BELOW_BOUND: measured.equivalent(bound),
            }
        finally:
            self.boundary.run.end(span, told)
        return measured

    async def measure(self, procedure: Procedure) -> tuple[ProbeRecord, ...]:
        """Measure the chosen repair on fresh samples: this is what decides.

        Returns:
            One probe set for each axis; empty if any of them has no score.
        """
        records = await self._probe(procedure, self.span, None)
        # Words that the payload does not have, such as a proxy's, are no gap.
        asked = [record for record in records if record.outcome != "no_op"]
        scored = {record.axis.partition("#")[0] for record in asked if record.delta is not None}
        missing = any(record.delta is None for record in asked)
        if missing or not {axis.name for axis in self.axes} <= scored:
            return ()
        return tuple(asked)

    async def _probe(
        self, procedure: Procedure, span: Span, candidate: str | None
    ) -> list[ProbeRecord]:
        self.measurements += 1
        extra: dict[str, object] = {c.INTERVENTION_ID: self.intervention_id}
        if candidate is not None:
            extra[c.INTERVENTION_CANDIDATE] = candidate
        run = self.boundary.run
        probed = ProbedNode(
            node=self.execution.node,
            task_id=self.execution.task_id,
            scope=self.boundary.scope,
            superstep=self.boundary.superstep,
            weight=self.guilty[0].weight,
            share=self.guilty[0].share,
            parent=trace.set_span_in_context(span),
            baseline_span_id=trace.format_span_id(self.span.get_span_context().span_id),
            extra=extra,
        )
        probe = recorded_probe(
            _coroutine_function(procedure),
            probed,
            run=run,
            hasher=self.boundary.hasher,
            options=self.settings.probe.again(
                self.axes,
                samples=self.settings.repair.repair_samples,
                seed_offset=self.round * SEEDS_PER_ROUND + self.measurements,
            ),
            capture_content=self.settings.capture_content,
        )
        await probe.arun(self.execution.received)
        return self.runs.take_remeasured(run.run_id, self.intervention_id, candidate)

    def watched(self, skeptics: Sequence[Skeptic], graph: TrustGraph) -> list[Skeptic]:
        """The same skeptics, each review of theirs a span."""
        return [_Watched(skeptic, self, graph) for skeptic in skeptics]

    def open_review(self, skeptic: Skeptic) -> Span:
        """Begin a skeptic's span."""
        return self.boundary.run.start(
            c.operation_name(c.SPAN_AGENT, skeptic.role),
            "review",
            {
                **self._place,
                c.GEN_AI_OPERATION: c.SPAN_AGENT,
                c.GEN_AI_AGENT_NAME: skeptic.role,
                c.INTERVENTION_ROLE: skeptic.role,
                c.REVIEW_PROVENANCE: skeptic.provenance,
            },
            parent=self.span,
        )

    def close_review(self, span: Span, review: Review, graph: TrustGraph, provenance: str) -> None:
        """End it with what the skeptic said; its words only where content is open."""
        (weighed,) = graph.decide([review], [provenance]).weighed
        trust = weighed.trust
        words = {c.GEN_AI_OUTPUT_MESSAGES: review.reasoning or None}
        self.boundary.run.end(
            span,
            {
                c.REVIEW_STANCE: review.stance,
                c.REVIEW_WHY: review.why,
                c.REVIEW_FORM: review.form,
                c.REVIEW_CONFIDENCE: review.confidence,
                c.REVIEW_QUOTED: len(review.evidence),
                c.REVIEW_CHECKED: len(review.checked),
                c.REVIEW_CREDIBILITY: trust.credibility,
                c.REVIEW_RELIABILITY: trust.reliability,
                c.REVIEW_INTIMACY: trust.intimacy,
                c.REVIEW_SELF: trust.self_orientation,
                c.REVIEW_TRUST: trust.value,
                c.REVIEW_WEIGHT: weighed.weight,
                **(words if self.settings.capture_content else {}),
            },
        )

    @property
    def _place(self) -> dict[str, object]:
        return {
            c.INTERVENTION_ID: self.intervention_id,
            c.NODE_ID: self.execution.node,
            c.NODE_TASK_ID: self.execution.task_id,
            c.SUPERSTEP_INDEX: self.boundary.superstep,
            c.SUPERSTEP_SCOPE: self.boundary.scope,
        }


class _Watched:
    """A skeptic whose review is a span."""

    def __init__(self, skeptic: Skeptic, bench: Bench, graph: TrustGraph) -> None:
        self._skeptic = skeptic
        self._bench = bench
        self._graph = graph

    @property
    def role(self) -> str:
        """As the skeptic's own."""
        return self._skeptic.role

    @property
    def provenance(self) -> str:
        """As the skeptic's own."""
        return self._skeptic.provenance

    async def review(self, case: Case, /) -> Review:
        """The skeptic's review; one that fails or is cancelled is written down as well."""
        span = self._bench.open_review(self._skeptic)
        review = Review(stance="abstain", why="timeout")
        try:
            with _current(trace.set_span_in_context(span)):
                review = await self._skeptic.review(case)
            return review
        except Exception as error:
            review = replace(review, why=f"error:{type(error).__qualname__}")
            raise
        finally:
            self._bench.close_review(span, review, self._graph, self.provenance)


class _current(AbstractContextManager[None]):
    """Makes a context the current one for a block."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._token: Any = None

    def __enter__(self) -> None:
        self._token = otel_context.attach(self._context)

    def __exit__(self, *raised: object) -> None:
        otel_context.detach(self._token)


def _coroutine_function(procedure: Procedure) -> Procedure:
    """A procedure that a probe recognises as async, whatever kind of callable it is."""

    async def called(payload: Any) -> Any:
        return await procedure(payload)

    return called
