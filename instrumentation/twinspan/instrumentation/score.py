"""The score of one node along one axis, with everything it can be recomputed from."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from twinspan.instrumentation.effect_interval import unseen_share
from twinspan.instrumentation.errors import ConfigurationError, EstimatorError
from twinspan.instrumentation.orbit import OrbitResult, orbit_test, square

Verdict = Literal["above_floor", "within_floor", "inconclusive"]

NullKind = Literal["randomised_wording", "same_input", "sham"]
"""How the reference arm was drawn: wording at random in every arm, the input unchanged, or one
fixed edit without meaning. Only the first leaves the axis as the one systematic difference."""

VerdictReason = Literal[
    "reacts_to_axis", "reacts_to_edit", "not_above_noise", "too_few_samples", "no_op", "only_errors"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasScore:
    """How far a counterfactual arm differs from its reference, beyond the node's own noise.

    ``delta`` is what is accumulated: its mean without bias is 0 at every number of samples, and
    with bias it does not depend on that number. ``effect_size`` is the same in units of the
    orbit and grows with the number of samples; thresholds on it would depend on the budget.
    ``p_value`` and ``e_value`` decide. Distances, delta and the parts lie in [0, 1], delta down
    to -1; larger is farther from the reference.

    Attributes:
        delta: excess disagreement, ``cross_mean - floor``; neither clipped nor gated.
        effect_size: (delta - orbit_mean) / orbit_sd; None when the orbit has no spread.
        undefined_reason: why there is no effect size.
        ci_low: lower end of the bootstrap interval for delta; None when it was not asked for
            or an arm has fewer than three samples. Indicative at five samples an arm.
        ci_high: upper end.
        confidence: nominal coverage of that interval, in (0, 1).
        p_value: share of all labellings with a delta at least as large, in (0, 1].
        e_value: bet on the observed labelling, mean exactly 1 without bias.
        estimator: the distance; scores of different ones are never combined.
        estimator_version: its version.
        n_reference: reference samples, baseline and null re-samples together.
        n_counterfactual: counterfactual samples.
        n_baseline: how many of the reference samples, the first ones, are baseline.
        axis: what was varied.
        kind: how it was varied, such as ``attribute_swap`` or ``proxy_swap``.
        null: how the reference was drawn; None is read as ``same_input``.
        cross_mean: C, mean distance across the arms.
        reference_within: W_x, mean distance within the reference.
        counterfactual_within: W_y, mean distance within the counterfactual arm.
        orbit_size: labellings the score was compared with, itself included.
        orbit_exact: whether those were all there are.
        orbit_mean: mean of delta over them, 0 up to rounding unless sampled or blocked.
        orbit_sd: population standard deviation of delta over them.
        smallest_p: the smallest p that samples of this number could reach.
        distances: upper triangle of the distance matrix, row-major, reference first.
        outcomes: for each sample the label of its outcome, None for ordinary values.
        blocks: block of each sample, when labels were exchanged within blocks only.
        dependence_p: p-value of "samples do not depend on the order they were drawn in"; None
            when no order was given. Small means that p and e cannot be trusted.
        alpha: level of the verdict, in (0, 1).
        seed: seed of what was random; None is the default seed.
        verdict: ``above_floor`` if p <= alpha; ``inconclusive`` if the data could not have
            shown a difference; else ``within_floor``, which is no proof of sameness.
        verdict_reason: why, from a closed list.

    Raises:
        EstimatorError: a value is not finite or out of its range, or the number of distances
            does not fit the number of samples.
    """

    delta: float
    effect_size: float | None
    p_value: float
    e_value: float
    estimator: str
    n_reference: int
    n_counterfactual: int
    cross_mean: float
    reference_within: float
    counterfactual_within: float
    orbit_size: int
    orbit_exact: bool
    orbit_mean: float
    orbit_sd: float
    smallest_p: float
    distances: tuple[float, ...]
    verdict: Verdict
    verdict_reason: VerdictReason
    ci_low: float | None = None
    ci_high: float | None = None
    confidence: float = 0.95
    undefined_reason: str | None = None
    estimator_version: str = "1"
    n_baseline: int | None = None
    axis: str | None = None
    kind: str | None = None
    null: NullKind | None = None
    outcomes: tuple[str | None, ...] = ()
    blocks: tuple[Hashable, ...] | None = None
    dependence_p: float | None = None
    alpha: float = 0.05
    seed: int | None = None

    def __post_init__(self) -> None:
        if not (isfinite(self.delta) and 0 <= self.p_value <= 1 and 0 <= self.e_value):
            raise EstimatorError(
                f"delta={self.delta!r}, p={self.p_value!r}, e={self.e_value!r} is no score; "
                "scores come from compute_local_bias"
            )
        total = self.n_reference + self.n_counterfactual
        if len(self.distances) != total * (total - 1) // 2:
            raise EstimatorError(
                f"{len(self.distances)} distances for {total} samples; give N(N-1)/2 of them"
            )
        if self.ci_low is not None and self.ci_high is not None and self.ci_low > self.ci_high:
            raise EstimatorError(f"interval {self.ci_low!r} to {self.ci_high!r} is reversed")

    @property
    def floor(self) -> float:
        """The disagreement there is without the axis: the mean of both arms', in [0, 1]."""
        return (self.reference_within + self.counterfactual_within) / 2

    @property
    def energy_coefficient(self) -> float:
        """Excess as a share of ``cross_mean``, at most 1, 0 if that is 0; for display only."""
        return self.delta / self.cross_mean if self.cross_mean else 0.0

    @property
    def effect_interval(self) -> tuple[float, float] | None:
        """The interval for delta in the unit of ``effect_size``; None when either is."""
        if self.ci_low is None or self.ci_high is None or self.effect_size is None:
            return None
        return (
            (self.ci_low - self.orbit_mean) / self.orbit_sd,
            (self.ci_high - self.orbit_mean) / self.orbit_sd,
        )

    @property
    def ci_excludes_zero(self) -> bool | None:
        """Whether the interval lies above 0; None without one. Indicative: p and e decide."""
        return None if self.ci_low is None else self.ci_low > 0

    @property
    def refusal_gap(self) -> float:
        """Share of refusals in the counterfactual arm less that in the reference, -1 to 1."""
        refused = [outcome == "refusal" for outcome in self.outcomes]
        reference, counterfactual = refused[: self.n_reference], refused[self.n_reference :]
        return sum(counterfactual) / self.n_counterfactual - sum(reference) / self.n_reference

    @property
    def unseen_in_reference(self) -> float | None:
        """Share of other outcomes still possible in a reference without any disagreement."""
        return None if self.reference_within else unseen_share(self.n_reference, self.confidence)

    @property
    def unseen_in_counterfactual(self) -> float | None:
        """The same for the counterfactual arm; None when its samples do disagree."""
        if self.counterfactual_within:
            return None
        return unseen_share(self.n_counterfactual, self.confidence)

    def is_significant(self, alpha: float = 0.05) -> bool:
        """Whether ``p_value`` is at most alpha.

        Raises:
            ConfigurationError: alpha is outside (0, 1).
        """
        if not 0 < alpha < 1:
            raise ConfigurationError(f"alpha {alpha!r} is not between 0 and 1")
        return self.p_value <= alpha

    @property
    def delta_upper(self) -> float | None:
        """Upper end of the interval, raised for what few equal samples leave open, at most 1.

        An arm without any disagreement may still hide a share u of other outcomes (see
        `unseen_share`), which can be worth u squared of delta. Where no two samples agree
        at all, nothing is known and the bound is 1. None without an interval.
        """
        if self.ci_high is None:
            return None
        if self.cross_mean and not self.orbit_sd:
            return 1.0
        unseen = max(self.unseen_in_reference or 0.0, self.unseen_in_counterfactual or 0.0)
        return min(1.0, self.ci_high + unseen**2)

    def rules_out(self, delta: float) -> bool | None:
        """Whether ``delta_upper`` lies below a delta that would matter; None without one.

        A repair is done when this holds, not when a test has become insignificant: with few
        samples nothing is significant.
        """
        return None if self.delta_upper is None else self.delta_upper < delta

    def recompute(self) -> OrbitResult:
        """The test once more, from the recorded distances alone."""
        return orbit_test(
            square(self.distances), self.n_reference, blocks=self.blocks, seed=self.seed
        )

    def harness_drift(self) -> OrbitResult | None:
        """Baseline against null re-samples: the harness as its own negative control.

        Both come from the same input, so over many scores these p-values must be uniform up to
        ties. None when either has fewer than two samples.
        """
        first = self.n_reference if self.n_baseline is None else self.n_baseline
        if first < 2 or self.n_reference - first < 2:
            return None
        everyone = square(self.distances)
        reference = everyone[: self.n_reference, : self.n_reference]
        return orbit_test(reference.copy(), first, seed=self.seed)
