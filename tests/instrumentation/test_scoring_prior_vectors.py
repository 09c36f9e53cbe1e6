"""The numbers of the prior implementation: where they hold here too, and where not and why.

The prior implementation permutes the divergence of the arms' means; this one permutes the
excess of the mean distance. Both are exact, so p-values agree where both statistics order the
labellings alike. Its magnitude is gated by p and less a null mean that contains the shift;
here delta is neither, so those numbers differ on purpose.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from twinspan.instrumentation.divergence import cosine_distance, jsd
from twinspan.instrumentation.errors import (
    ConfigurationError,
    EstimatorError,
    InsufficientSamples,
)
from twinspan.instrumentation.orbit import orbit_test_triangles
from twinspan.instrumentation.scoring import BiasScore, compute_local_bias
from twinspan.instrumentation.splits import plan_splits

Floats = NDArray[np.float64]

A = np.array(
    [(0.6, 0.3, 0.1), (0.5, 0.4, 0.1), (0.55, 0.35, 0.1), (0.65, 0.25, 0.1), (0.6, 0.25, 0.15)]
)
B = np.array(
    [(0.2, 0.3, 0.5), (0.25, 0.25, 0.5), (0.3, 0.3, 0.4), (0.2, 0.4, 0.4), (0.25, 0.35, 0.4)]
)


def _score(first: Floats, second: Floats) -> BiasScore:
    with np.errstate(divide="ignore"):
        return compute_local_bias(np.log(first), np.log(second), method="js_logprob")


def test_vector_12_divergence_of_the_means() -> None:
    assert jsd(A.mean(axis=0), B.mean(axis=0)) == pytest.approx(0.1289406928935877, abs=1e-15)


def test_vector_13_exact_null_of_that_divergence_and_the_same_p() -> None:
    pooled = np.concatenate([A, B])
    labels = plan_splits(5, 5).labels
    values = np.array([jsd(pooled[row].mean(axis=0), pooled[~row].mean(axis=0)) for row in labels])
    assert values.mean() == pytest.approx(0.0153891989, abs=1e-10)
    assert values.std() == pytest.approx(0.0192729975, abs=1e-10)
    assert (values[0] - values.mean()) / values.std() == pytest.approx(5.8917402, abs=1e-7)
    assert _score(A, B).p_value == pytest.approx(2 / 252)


def test_vector_14_an_exact_p_in_place_of_a_sampled_one() -> None:
    """There .0110 from 1,000 draws with one seed; here 2/252 with every seed."""
    assert {_score(A, B).p_value} == {
        compute_local_bias(np.log(A), np.log(B), method="js_logprob", seed=seed).p_value
        for seed in range(5)
    }


def test_vector_15_identical_arms() -> None:
    score = _score(np.full((4, 2), 0.5), np.full((4, 2), 0.5))
    assert (score.delta, score.p_value, score.orbit_sd) == (0, 1, 0)
    assert (score.ci_low, score.ci_high) == (0, 0)
    assert score.effect_size is None, "there 0; a standardised effect without spread is undefined"


@pytest.mark.parametrize(
    ("n", "p"), [(2, 0.3333), (3, 0.1), (4, 0.0286), (5, 0.0079), (6, 0.0022), (8, 0.000155)]
)
def test_vectors_16_and_17_disjoint_deterministic_arms(n: int, p: float) -> None:
    """There the magnitude is 0, 0, .892, .912, .929, .951; here 1 at every n."""
    score = _score(np.tile([1.0, 0.0], (n, 1)), np.tile([0.0, 1.0], (n, 1)))
    assert score.p_value == pytest.approx(p, rel=0.02)
    assert score.delta == 1


def test_vector_18_embedding_arms() -> None:
    first = np.array([(1, 0, 0.1), (1, 0.1, 0), (0.9, 0, 0), (1, 0.05, 0.05)])
    second = np.array([(0, 1, 0.1), (0.1, 1, 0), (0, 0.9, 0), (0.05, 1, 0.05)])
    of_means = cosine_distance(first.mean(axis=0), second.mean(axis=0))
    assert of_means == pytest.approx(0.9218289085545722, abs=1e-15)
    score = compute_local_bias(first, second)
    assert score.estimator == "embedding"
    assert score.p_value == pytest.approx(2 / 70)


def test_vector_19_what_is_refused() -> None:
    with pytest.raises(InsufficientSamples):
        compute_local_bias([[1.0, 0.0]], [[1.0, 0.0]] * 2)
    with pytest.raises(EstimatorError, match="widths"):
        compute_local_bias([[1.0, 0.0]] * 2, [[1.0, 0.0, 0.0]] * 2)
    with pytest.raises(ConfigurationError, match="confidence"):
        compute_local_bias([[1.0, 0.0]] * 2, [[1.0, 0.0]] * 2, confidence=1.5)


def test_vector_20_a_polarised_arm_is_flagged() -> None:
    """Half strongly for and half strongly against; the means agree and there p is .93."""
    rng = np.random.default_rng(0)
    lean = 0.5 + 0.01 * rng.standard_normal(10)
    even = np.stack([lean, 1 - lean], axis=1)
    poles = np.array([(0.95, 0.05), (0.05, 0.95)] * 5)
    score = _score(even, poles)
    assert (score.verdict, score.p_value <= 1e-3) == ("above_floor", True)


def test_vector_21_the_magnitude_does_not_move_with_n() -> None:
    """There .202, .317 and .274 at n = 5, 12 and 30 for a strong injected effect."""
    rng = np.random.default_rng(1)
    means = []
    for n in (5, 12, 30):
        nodes = 600 // n
        direction = rng.standard_normal((nodes, 1, 5))
        direction /= np.linalg.norm(direction, axis=2, keepdims=True)
        shift = np.repeat([0.0, 4.0], n)[:, np.newaxis] * direction
        logits = shift + 0.5 * rng.standard_normal((nodes, 2 * n, 5))
        roots = np.exp(logits / 2)
        roots /= np.linalg.norm(roots, axis=2, keepdims=True)
        first, second = np.triu_indices(2 * n, 1)
        gaps = np.linalg.norm(roots[:, first] - roots[:, second], axis=2) / 2**0.5
        found = orbit_test_triangles(gaps, n)
        means.append((found.delta.mean(), found.delta.std() / nodes**0.5))
    for value, error in means:
        assert value == pytest.approx(means[0][0], abs=4 * (error + means[0][1]))


def _with_p(p: float) -> BiasScore:
    """A score with a p-value of one's choice."""
    return replace(compute_local_bias(list("aaaba"), list("bbabb")), p_value=p)


def test_vector_27_delta_is_not_gated_by_p() -> None:
    """There a magnitude drops to 0 when p exceeds alpha, and its mean becomes power times it."""
    score = compute_local_bias(list("aaaba"), list("bbabb"))
    assert not score.is_significant()
    assert score.delta == pytest.approx(0.28)
    below = compute_local_bias(list("abcab"), list("cbcca"))
    assert below.delta == pytest.approx(-0.03), "a clip at 0 would give noise a positive mean"


def test_vector_28_significance_includes_alpha() -> None:
    decisions = [
        _with_p(p).is_significant(alpha)
        for p, alpha in [(0.01, 0.05), (0.05, 0.05), (0.06, 0.05), (0.5, 0.1)]
    ]
    assert decisions == [True, True, False, False]
    for alpha in (0, 1, -0.1, 1.5):
        with pytest.raises(ConfigurationError):
            _with_p(0.01).is_significant(alpha)


def test_vector_29_an_interval_excludes_zero_only_above_it() -> None:
    score = compute_local_bias(list("aaaba"), list("bbabb"))
    excludes = [
        replace(score, ci_low=low, ci_high=1.0).ci_excludes_zero for low in (0.5, 0.0, -0.5)
    ]
    assert excludes == [True, False, False]
