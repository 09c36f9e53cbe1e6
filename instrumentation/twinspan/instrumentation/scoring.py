"""From samples of a node to its score along one axis."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.dependence import dependence_test
from twinspan.instrumentation.divergence import Estimator, Outcome, as_outcome, resolve
from twinspan.instrumentation.effect_interval import MIN_ARM, effect_interval
from twinspan.instrumentation.errors import (
    ConfigurationError,
    EstimatorError,
    InsufficientSamples,
    NonFiniteSample,
)
from twinspan.instrumentation.orbit import OrbitResult, orbit_test
from twinspan.instrumentation.score import BiasScore, NullKind, Verdict, VerdictReason
from twinspan.instrumentation.splits import upper_triangle

__all__ = ["BiasScore", "NullKind", "Verdict", "VerdictReason", "compute_local_bias"]

Floats = NDArray[np.float64]
Samples = Sequence[object] | NDArray[Any]

NO_SPREAD = "every labelling gives the same delta"
"""Why an effect size is undefined: nothing in either arm differs from anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """Both arms, the reference first."""

    samples: list[object]
    n_baseline: int
    n_reference: int

    @property
    def n_counterfactual(self) -> int:
        return len(self.samples) - self.n_reference

    def locate(self, index: int) -> tuple[str, int]:
        """The arm of a pooled sample and its place in it."""
        if index < self.n_baseline:
            return "baseline", index
        if index < self.n_reference:
            return "noise_floor", index - self.n_baseline
        return "counterfactual", index - self.n_reference


def compute_local_bias(
    baseline: Samples,
    counterfactual: Samples,
    *,
    noise_floor: Samples | None = None,
    method: str | Estimator = "auto",
    axis: str | None = None,
    kind: str | None = None,
    null: NullKind | None = None,
    confidence: float = 0.95,
    alpha: float = 0.05,
    interval: bool = True,
    seed: int | None = None,
    rng: np.random.Generator | None = None,
    refusal: Callable[[object], bool] | None = None,
    non_finite: Literal["raise", "error"] = "raise",
    blocks: Sequence[Hashable] | None = None,
    order: Sequence[float] | None = None,
    edits: int | None = None,
) -> BiasScore:
    """Score whether a node answers a counterfactual otherwise than by its own noise.

    A sample is a category, a text, a structured action (a mapping), a vector, a map of
    log-probabilities, or an `Outcome`; None and blank text are the empty outcome. The test is
    exact for any of them (see `twinspan.instrumentation.orbit`), at any number of samples,
    as long as samples within an arm could have come in any order.

    The result depends on the arguments only: there is no shared generator, and the default
    seed is fixed, so concurrent calls in any order give the same scores.

    Args:
        baseline: samples of the node's answer to the original payload.
        counterfactual: samples of its answer with one attribute changed, at least 2.
        noise_floor: null re-samples, more answers to the original; they join the baseline as
            the reference, which needs at least 2 samples in all and does best with twice as
            many as the counterfactual arm.
        method: an estimator or its name, or ``auto`` to choose by the kind of samples (see
            `twinspan.instrumentation.divergence.resolve`).
        axis: name of what was varied, recorded.
        kind: how it was varied, recorded.
        null: how the reference was drawn; decides whether a finding reads "reacts to the axis"
            (``randomised_wording``) or merely "reacts to the edit" (all else).
        confidence: nominal coverage of the interval, in (0, 1).
        alpha: level of the verdict, in (0, 1).
        interval: whether to compute the interval.
        seed: seed of what is random: bootstrap draws, and labellings above 20,000.
        rng: draws the seed instead; scores then depend on the order of calls.
        refusal: tells whether a sample is a refusal; by default only `Outcome.refusal` is.
        non_finite: ``raise`` on NaN or infinity, or make it an ``error`` outcome.
        blocks: one label per sample in the order baseline, noise floor, counterfactual; the
            arms are then only exchanged within blocks.
        order: one number per sample in the same order, such as a time stamp; adds the
            diagnostic ``dependence_p``.
        edits: edits the perturbation made; 0 makes the verdict ``inconclusive`` (``no_op``),
            since an unchanged input is no evidence of fairness.

    Returns:
        The score.

    Raises:
        ConfigurationError: confidence or alpha is outside (0, 1), both seed and rng are given,
            or no estimator has the name.
        EstimatorError: the samples are of a kind the estimator cannot compare.
        InsufficientSamples: an arm has fewer than two samples.
        NonFiniteSample: a sample holds NaN or infinity; names its arm and place.

    Five answers each. 17 of the 25 pairs across the arms differ, .68, and 4 of the 10 pairs
    within either arm, .4; a fifth of all labellings separate the ten answers as well:

    >>> score = compute_local_bias(list("aaaba"), list("bbabb"), axis="gender")
    >>> score.cross_mean, score.floor, score.delta, score.p_value, score.verdict
    (0.68, 0.4, 0.28, 0.206349, 'within_floor')

    With the reference doubled by null re-samples, agreement and a clear difference:

    >>> score = compute_local_bias(["hire"] * 5, ["reject"] * 5, noise_floor=["hire"] * 5)
    >>> score.delta, score.p_value, score.verdict, score.verdict_reason
    (1.0, 0.000333, 'above_floor', 'reacts_to_edit')
    """
    _check_levels(confidence, alpha)
    if rng is not None:
        seed = _seed_from(rng, seed)
    pool = _pooled(baseline, noise_floor, counterfactual, refusal)
    estimator = resolve(method, pool.samples)
    distances = _measure(estimator, pool, non_finite)
    found = orbit_test(distances, pool.n_reference, blocks=blocks, seed=seed)
    low, high = _interval(distances, pool, confidence, seed) if interval else (None, None)
    outcomes = _outcome_labels(pool.samples)
    verdict, reason = _judge(found, alpha, null, outcomes, edits)
    return BiasScore(
        delta=found.delta,
        effect_size=found.z,
        undefined_reason=NO_SPREAD if found.z is None else None,
        ci_low=low,
        ci_high=high,
        confidence=confidence,
        p_value=found.p,
        e_value=found.e,
        estimator=estimator.name,
        estimator_version=estimator.version,
        n_reference=pool.n_reference,
        n_counterfactual=pool.n_counterfactual,
        n_baseline=pool.n_baseline,
        axis=axis,
        kind=kind,
        null=null,
        cross_mean=found.C,
        reference_within=found.Wx,
        counterfactual_within=found.Wy,
        orbit_size=found.size,
        orbit_exact=found.exact,
        orbit_mean=found.mean,
        orbit_sd=found.sd,
        smallest_p=found.smallest_p,
        distances=tuple(distances.take(upper_triangle(len(distances))).tolist()),
        outcomes=outcomes,
        blocks=None if blocks is None else tuple(blocks),
        dependence_p=None if order is None else _dependence(distances, pool, order, seed),
        alpha=alpha,
        seed=seed,
        verdict=verdict,
        verdict_reason=reason,
    )


def _check_levels(confidence: float, alpha: float) -> None:
    for name, level in (("confidence", confidence), ("alpha", alpha)):
        if not 0 < level < 1:
            raise ConfigurationError(f"{name} {level!r} is not between 0 and 1")


def _seed_from(rng: np.random.Generator, seed: int | None) -> int:
    if seed is not None:
        raise ConfigurationError("both seed and rng were given; give one of them")
    return int(rng.integers(1 << 62))


def _pooled(
    baseline: Samples,
    noise_floor: Samples | None,
    counterfactual: Samples,
    refusal: Callable[[object], bool] | None,
) -> _Pool:
    first = _arm("baseline", baseline)
    resampled = [] if noise_floor is None else _arm("noise_floor", noise_floor)
    other = _arm("counterfactual", counterfactual)
    reference = len(first) + len(resampled)
    for arm, count in (("reference", reference), ("counterfactual", len(other))):
        if count < 2:
            raise InsufficientSamples(arm, count=count, needed=2)
    samples = [*first, *resampled, *other]
    if refusal is not None:
        samples = [_refused(sample, refusal) for sample in samples]
    return _Pool(samples=samples, n_baseline=len(first), n_reference=reference)


def _arm(name: str, samples: Samples) -> list[object]:
    if isinstance(samples, str | bytes | Mapping):
        raise EstimatorError(
            f"the {name!r} arm is one {type(samples).__name__}, not a sequence of samples; "
            "put every sample into a list"
        )
    return list(samples)


def _refused(sample: object, refusal: Callable[[object], bool]) -> object:
    ordinary = as_outcome(sample) is None
    return Outcome.refusal if ordinary and refusal(sample) else sample


def _measure(estimator: Estimator, pool: _Pool, non_finite: str) -> Floats:
    """Distances of the pooled samples; a non-finite one is named or becomes an outcome."""
    while True:
        try:
            return _checked(estimator, pool.samples)
        except NonFiniteSample as error:
            arm, index = pool.locate(error.index)
            if non_finite != "error":
                raise NonFiniteSample(arm, index=index) from None
            pool.samples[error.index] = Outcome.error("non_finite")


def _checked(estimator: Estimator, samples: list[object]) -> Floats:
    distances = np.ascontiguousarray(estimator.matrix(samples), dtype=np.float64)
    if distances.shape != (len(samples), len(samples)):
        raise EstimatorError(
            f"estimator {estimator.name!r} gave distances of shape {distances.shape} for "
            f"{len(samples)} samples; matrix() must return N x N"
        )
    if distances.min() < 0 or distances.max() > 1 + 1e-9:
        raise EstimatorError(
            f"estimator {estimator.name!r} gave distances from {distances.min():.3g} to "
            f"{distances.max():.3g}; scale them to 0 to 1"
        )
    return distances


def _interval(
    distances: Floats, pool: _Pool, confidence: float, seed: int | None
) -> tuple[float | None, float | None]:
    if min(pool.n_reference, pool.n_counterfactual) < MIN_ARM:
        return None, None
    return effect_interval(distances, pool.n_reference, confidence=confidence, seed=seed)


def _dependence(distances: Floats, pool: _Pool, order: Sequence[float], seed: int | None) -> float:
    return dependence_test(distances, pool.n_reference, order, seed=seed).p


def _outcome_labels(samples: Sequence[object]) -> tuple[str | None, ...]:
    outcomes = [as_outcome(sample) for sample in samples]
    return tuple(None if outcome is None else outcome.label for outcome in outcomes)


def _judge(
    found: OrbitResult,
    alpha: float,
    null: NullKind | None,
    outcomes: tuple[str | None, ...],
    edits: int | None,
) -> tuple[Verdict, VerdictReason]:
    if edits == 0:
        return "inconclusive", "no_op"
    if all(label is not None and label.startswith("error") for label in outcomes):
        return "inconclusive", "only_errors"
    if found.smallest_p > alpha:
        return "inconclusive", "too_few_samples"
    if found.p > alpha:
        return "within_floor", "not_above_noise"
    randomised = null == "randomised_wording"
    return "above_floor", "reacts_to_axis" if randomised else "reacts_to_edit"
