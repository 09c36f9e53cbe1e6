"""The spans of one audited run: its root, and one for every try of every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import Link, SpanContext

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.hashing import PayloadHasher, canonical
from twinspan.instrumentation.tracing import RunTracer


class RunSpans:
    """Opens and closes the spans of a run, each run in a trace of its own.

    Args:
        tracer: of this run.
        name: what is audited.
        place: where the run stands in the design.
        audit: the audit's own span, which the run's links to.
    """

    def __init__(
        self,
        tracer: RunTracer,
        *,
        name: str,
        place: Mapping[str, object],
        audit: SpanContext,
    ) -> None:
        self._tracer = tracer
        self._hasher = PayloadHasher()
        self._steps: dict[str, int] = {}
        self.root = tracer.start(
            c.operation_name(c.SPAN_RUN, name),
            "run",
            {c.GEN_AI_OPERATION: c.SPAN_RUN, c.GEN_AI_AGENT_NAME: name, **place},
            parent=Context(),
            links=[Link(audit, {c.LINK_RELATION: "part_of_audit"})],
        )

    def begin(
        self,
        step: str,
        *,
        kind: str = "agent",
        attempt: int = 1,
        parents: Sequence[str] = (),
        observed: bool = True,
        superstep: int | None = None,
        payload: object = None,
        started: int | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> Span:
        """Open the span of one try of a step."""
        operation = c.SPAN_AGENT if kind == "agent" else c.SPAN_NODE
        place = self._steps.setdefault(step, len(self._steps))
        return self._tracer.start(
            c.operation_name(operation, step),
            "node",
            {
                c.GEN_AI_OPERATION: operation,
                c.GEN_AI_AGENT_NAME: step,
                c.NODE_ID: step,
                c.NODE_KIND: kind,
                c.NODE_TASK_ID: self._task(step),
                c.NODE_ATTEMPT: attempt,
                c.NODE_PARENTS: list(parents),
                c.NODE_PARENT_TASK_IDS: [self._task(parent) for parent in parents],
                c.NODE_EDGE_KIND: ("observed" if observed else "inferred") if parents else None,
                c.NODE_INPUT_HASH: None if payload is None else self._hasher(payload),
                c.SUPERSTEP_INDEX: place if superstep is None else superstep,
                c.SUPERSTEP_SCOPE: "",
                **(attributes or {}),
            },
            parent=self.root,
            start_time=started,
        )

    def end(
        self,
        span: Span,
        outcome: str,
        *,
        fields: Mapping[str, object] | None = None,
        answer: object = None,
        violations: Sequence[str] = (),
        error: BaseException | None = None,
        ended: int | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> None:
        """Close a try with its outcome and, where there is one, the recorded part of its action."""
        closing: dict[str, object] = {c.NODE_OUTCOME: outcome, **(attributes or {})}
        if answer is not None:
            text = canonical(answer)
            closing |= {
                c.NODE_OUTPUT_HASH: self._hasher.of_text(text),
                c.NODE_OUTPUT_SIZE: len(text),
            }
        if violations:
            closing[c.ANSWER_VIOLATIONS] = list(violations)
        closing |= {f"{c.ACTION_PREFIX}{name}": value for name, value in (fields or {}).items()}
        self._tracer.end(span, closing, error=error, end_time=ended)

    def close(self, outcome: str, *, error: BaseException | None = None) -> None:
        """End the run; nothing of it stays open."""
        self._tracer.end_open({c.NODE_OUTCOME: "cancelled"}, keep=self.root)
        self._tracer.end(
            self.root,
            {
                c.RUN_OUTCOME: outcome,
                c.RUN_NODE_COUNT: self._tracer.started["node"],
                c.RUN_PROBE_COUNT: 0,
                c.RUN_SUPERSTEP_COUNT: len(self._steps),
                c.RUN_SPAN_COUNT: self._tracer.ended_count + 1,
            },
            error=error,
        )

    def _task(self, step: str) -> str:
        return f"{self._tracer.run_id}/{step}"
