"""The spans of a probe set: one for the set, one for each run of the node."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.hashing import PayloadHasher
from twinspan.instrumentation.perturbation import Rendering
from twinspan.instrumentation.probing.plan import COUNTERFACTUAL, Sample
from twinspan.instrumentation.scoring import BiasScore
from twinspan.instrumentation.tracing import RunTracer

_FIELD: Final = re.compile("[a-z_][a-z0-9_]*|[0-9]*")
"""Keys of a payload that are a program's, not a person's."""

EVALUATION_NAME = "counterfactual_divergence"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedNode:
    """The execution that is probed, as its spans name it.

    Attributes:
        node: the node, path-qualified.
        task_id: the execution.
        scope: the superstep's scope, '' for the root graph.
        superstep: its superstep.
        weight: blast radius, the graph's largest being 1; None without a collector.
        share: blast radius as a share of the graph's.
        rate: probability with which the node was probed.
        repeat: earlier executions of the node in an equally numbered superstep.
        call: which of the execution's model calls is probed, from 1; 0 for the node itself.
        parent: context of the span the sets hang under.
        baseline_span_id: the node's own span, 16 hex characters.
        extra: further attributes of every set, such as the intervention it re-measures.
    """

    node: str
    task_id: str
    scope: str
    superstep: int
    weight: float | None
    share: float | None
    rate: float = 1.0
    repeat: int = 0
    call: int = 0
    parent: Context
    baseline_span_id: str
    extra: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(slots=True)
class Drawn:
    """One sample that was drawn: its span, its outcome, and when it was over."""

    sample: Sample
    rendering: Rendering
    span: Span | None = None
    outcome: object = None
    status: str = "ok"
    error: BaseException | None = None
    output_hash: str | None = None
    ended: int | None = None
    calls: int = 0

    @property
    def is_counterfactual(self) -> bool:
        """Whether the sample belongs to the counterfactual arm."""
        return self.sample.arm == COUNTERFACTUAL


class SetObserver:
    """Opens and closes the spans of one probe set; without a run it does nothing."""

    def __init__(
        self,
        run: RunTracer | None,
        probed: ProbedNode | None,
        hasher: PayloadHasher | None,
        *,
        capture_content: bool = False,
    ) -> None:
        self._run = run
        self._probed = probed
        self._hasher = hasher
        self._capture = capture_content
        self._set: Span | None = None
        self.set_id = uuid.uuid4().hex

    def open_set(self, axis: str, attributes: Mapping[str, object]) -> None:
        """Open the set's span below the node's."""
        if self._run is None or self._probed is None:
            return
        probed = self._probed
        self._set = self._run.start(
            c.operation_name(c.SPAN_PROBE, probed.node),
            "probe_set",
            {
                c.GEN_AI_OPERATION: "evaluation",
                c.GEN_AI_EVALUATION_NAME: EVALUATION_NAME,
                c.PROBE_SET_ID: self.set_id,
                c.NODE_ID: probed.node,
                c.NODE_TASK_ID: probed.task_id,
                c.SUPERSTEP_SCOPE: probed.scope,
                c.SUPERSTEP_INDEX: probed.superstep,
                c.NODE_WEIGHT: probed.weight,
                c.NODE_WEIGHT_SHARE: probed.share,
                c.PROBE_SAMPLING_RATE: probed.rate,
                c.PROBE_AXIS: axis,
                c.PROBE_LEVEL: "model" if probed.call else None,
                c.PROBE_CALL: probed.call or None,
                c.PROBE_BASELINE_SPAN: probed.baseline_span_id,
                **attributes,
                **probed.extra,
            },
            parent=probed.parent,
        )

    def open_probe(self, axis: str, drawn: Drawn) -> Context | None:
        """Open a sample's span; returns the context in which the node is to run."""
        if self._run is None or self._probed is None or self._set is None:
            return None
        sample, rendering = drawn.sample, drawn.rendering
        drawn.span = self._run.start(
            c.operation_name(c.SPAN_PROBE, sample.arm),
            "probe",
            {
                c.PROBE_SET_ID: self.set_id,
                c.PROBE_ARM: sample.arm,
                c.PROBE_REPLICATE: sample.replicate,
                c.PROBE_POSITION: sample.position,
                c.PROBE_SEED: sample.seed,
                c.PROBE_AXIS: axis,
                c.NODE_ID: self._probed.node,
                c.NODE_TASK_ID: self._probed.task_id,
                c.PROBE_INPUT_HASH: self.hash(rendering.payload),
                **self._perturbation(rendering),
            },
            parent=self._set,
        )
        return trace.set_span_in_context(drawn.span)

    def _perturbation(self, rendering: Rendering) -> dict[str, object]:
        words: dict[str, object] = {}
        if self._capture:
            words = {
                c.PERTURBATION_FROM: [edit.original for edit in rendering.edits],
                c.PERTURBATION_TO: [edit.replacement for edit in rendering.edits],
            }
        return {
            c.PERTURBATION_KIND: rendering.kind,
            c.PERTURBATION_ID: rendering.perturbation_id,
            c.PERTURBATION_TARGETS: [self._pointer(each) for each in rendering.targets],
            c.PERTURBATION_EDIT_COUNT: rendering.edit_count,
            **words,
        }

    def _pointer(self, pointer: str) -> str:
        """A JSON pointer without the keys that look like data: a mapping may be keyed by names."""
        if self._capture:
            return pointer
        steps = pointer.split("/")
        return "/".join(step if _FIELD.fullmatch(step) else "*" for step in steps)

    def hash(self, payload: object) -> str | None:
        """The keyed hash of a payload, or None without a run."""
        return None if self._hasher is None else self._hasher(payload)

    def close_probes(
        self,
        drawn: Sequence[Drawn],
        score: BiasScore | None,
        *,
        of: Sequence[Drawn] | None = None,
    ) -> None:
        """End the samples' spans with the times at which they really ended.

        Args:
            drawn: the samples whose spans belong to this set.
            score: the set's score.
            of: all samples that were scored, reference included; `drawn` if None.
        """
        if self._run is None:
            return
        distances = _distance_to_reference(drawn if of is None else of, score)
        for item in drawn:
            if item.span is None:
                continue
            to_reference, flip = distances.get(id(item), (None, None))
            self._run.end(
                item.span,
                {
                    c.PROBE_OUTCOME: item.status,
                    c.PROBE_OUTPUT_HASH: item.output_hash,
                    c.PROBE_DIVERGENCE: to_reference,
                    c.PROBE_FLIP: flip,
                    c.ERROR_TYPE: None if item.error is None else type(item.error).__qualname__,
                },
                end_time=item.ended,
            )

    def close_set(
        self, outcome: str, *, calls: int, score: BiasScore | None, reason: str | None = None
    ) -> None:
        """End the set's span with the score and the raw parts it can be recomputed from."""
        if self._run is None or self._set is None:
            return
        self._run.end(
            self._set,
            {
                c.PROBE_OUTCOME: outcome,
                c.PROBE_CALL_COUNT: calls,
                c.EFFECT_UNDEFINED: reason,
                **({} if score is None else score_attributes(score)),
            },
        )


def score_attributes(score: BiasScore) -> dict[str, object]:
    """A score as attributes: the effect, its evidence, and its raw parts."""
    return {
        c.GEN_AI_EVALUATION_SCORE: score.delta,
        c.GEN_AI_EVALUATION_LABEL: score.verdict,
        c.PROBE_ESTIMATOR: score.estimator,
        c.PROBE_ESTIMATOR_VERSION: score.estimator_version,
        c.EFFECT_VALUE: score.delta,
        c.EFFECT_STANDARDIZED: score.effect_size,
        c.EFFECT_METHOD: "orbit_exact" if score.orbit_exact else "orbit_sampled",
        c.EFFECT_CI_LOWER: score.ci_low,
        c.EFFECT_CI_UPPER: score.ci_high,
        c.EFFECT_CI_LEVEL: score.confidence,
        c.EFFECT_P_VALUE: score.p_value,
        c.EFFECT_E_VALUE: score.e_value,
        c.EFFECT_UNDEFINED: score.undefined_reason,
        c.EFFECT_VERDICT_REASON: score.verdict_reason,
        c.EFFECT_DEPENDENCE_P: score.dependence_p,
        c.DIVERGENCE_CROSS: score.cross_mean,
        c.DIVERGENCE_WITHIN_REFERENCE: score.reference_within,
        c.DIVERGENCE_WITHIN_COUNTERFACTUAL: score.counterfactual_within,
        c.DIVERGENCE_NULL_STDDEV: score.orbit_sd,
        c.DIVERGENCE_REFERENCE_COUNT: score.n_reference,
        c.DIVERGENCE_COUNTERFACTUAL_COUNT: score.n_counterfactual,
        c.DIVERGENCE_DISTANCES: list(score.distances),
        c.FLOOR_VALUE: score.floor,
        c.FLOOR_SOURCE: "measured",
    }


def _distance_to_reference(
    drawn: Sequence[Drawn], score: BiasScore | None
) -> dict[int, tuple[float, bool]]:
    """Per scored sample: mean distance to the reference, and whether its outcome flipped."""
    if score is None:
        return {}
    scored = [item for item in drawn if item.status in ("ok", "error")]
    ordered = sorted(scored, key=lambda item: item.is_counterfactual)
    size = score.n_reference + score.n_counterfactual
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size, 1)] = score.distances
    matrix += matrix.T
    to_reference = matrix[:, : score.n_reference]
    modal = int(np.argmax((to_reference[: score.n_reference] == 0).sum(axis=1)))
    others = np.full(size, score.n_reference)
    others[: score.n_reference] -= 1
    means = to_reference.sum(axis=1) / others
    return {
        id(item): (float(means[index]), bool(matrix[index, modal] > 0))
        for index, item in enumerate(ordered)
    }


def now() -> int:
    """The wall clock in nanoseconds, as spans keep time."""
    return time.time_ns()
