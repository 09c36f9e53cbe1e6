"""The interval for delta: unbiased by construction, and honest about what it cannot know."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from simulated_nodes import BINARY, HOT, SKEWED, classes, margin, mismatch, shifted

from twinspan.instrumentation import effect_interval as module
from twinspan.instrumentation.effect_interval import effect_interval, intervals, unseen_share
from twinspan.instrumentation.errors import ConfigurationError, InsufficientSamples
from twinspan.instrumentation.orbit import square
from twinspan.instrumentation.scoring import compute_local_bias
from twinspan.instrumentation.splits import DEFAULT_SEED

Floats = NDArray[np.float64]


def _naive_draw(distances: Floats, drawn: list[int]) -> float:
    """Mean distance of a resample with pairs of the same original left out."""
    pairs = [
        distances[i, j]
        for a, i in enumerate(drawn)
        for b, j in enumerate(drawn)
        if a != b and i != j
    ]
    return float(np.mean(pairs))


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 6), st.integers(3, 6), st.integers(0, 10**6))
def test_every_draw_is_a_resample_without_pairs_of_one_original(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    distances = square(rng.random((n + m) * (n + m - 1) // 2))
    resamples = module._resamples(n, m, DEFAULT_SEED)
    assert resamples.weights is not None
    row = int(rng.integers(module.DRAWS))
    x = np.repeat(np.arange(n), resamples.reference[row].astype(int)).tolist()
    y = np.repeat(np.arange(n, n + m), resamples.counterfactual[row].astype(int)).tolist()
    across = float(np.mean(distances[np.ix_(x, y)]))
    expected = across - (_naive_draw(distances, x) + _naive_draw(distances, y)) / 2
    pairs = distances[np.triu_indices(n + m, 1)]
    assert resamples.weights[row] @ pairs == pytest.approx(expected)


def test_large_arms_give_the_same_interval_in_less_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    distances = square(np.random.default_rng(1).random(45))
    wide = effect_interval(distances, 6)
    monkeypatch.setattr(module, "_PAIR_FORM_LIMIT", 0)
    module._resamples.cache_clear()
    narrow = effect_interval(distances, 6)
    module._resamples.cache_clear()
    assert narrow == pytest.approx(wide)


def test_ends_are_the_usual_quantiles() -> None:
    ascending = np.sort(np.random.default_rng(2).random((3, 101)), axis=1)
    for share in (0.025, 0.5, 0.975):
        assert module._quantile(ascending, share) == pytest.approx(
            np.quantile(ascending, share, axis=1)
        )


def _coverage(first: Floats, second: Floats, n: int) -> tuple[float, float]:
    """Shares of intervals that cover the truth, and that lie above 0."""
    rng = np.random.default_rng(n)
    codes = np.concatenate([classes(rng, law, (500, n)) for law in (first, second)], axis=1)
    low, high = intervals(mismatch(codes), n, 2 * n)
    truth = float(np.sum((first - second) ** 2) / 2)
    covered = (low - 1e-12 <= truth) & (truth <= high + 1e-12)
    return float(np.mean(covered)), float(np.mean(low > 0))


@pytest.mark.parametrize("law", [BINARY, SKEWED, HOT])
def test_without_bias_the_interval_covers_0_and_hardly_ever_lies_above_it(law: Floats) -> None:
    """A bootstrap that counts pairs of one original puts up to 80% above 0 here."""
    covered, above = _coverage(law, law, 5)
    assert covered >= 0.95 - margin(0.05, 500)
    assert above <= 0.025 + margin(0.025, 500)


def test_a_moderate_shift_is_covered_at_ten_samples() -> None:
    assert _coverage(SKEWED, shifted(SKEWED, 0.5), 10)[0] >= 0.95 - margin(0.05, 500)


def test_deterministic_arms_have_no_width_but_a_bound_on_what_was_not_seen() -> None:
    score = compute_local_bias(["a"] * 5, ["b"] * 5, noise_floor=["a"] * 5)
    assert (score.ci_low, score.ci_high) == pytest.approx((1, 1))
    assert score.unseen_in_counterfactual == pytest.approx(1 - 0.05 ** (1 / 5))
    assert score.unseen_in_reference == pytest.approx(1 - 0.05 ** (1 / 10))
    varied = compute_local_bias(list("aab"), list("bba"))
    assert (varied.unseen_in_reference, varied.unseen_in_counterfactual) == (None, None)


def test_the_upper_bound_allows_for_what_equal_samples_may_hide() -> None:
    """A share u that five equal answers did not show is worth u squared of delta."""
    score = compute_local_bias(["a"] * 5, ["a"] * 5)
    assert score.delta_upper == pytest.approx((1 - 0.05**0.2) ** 2)
    varied = compute_local_bias(list("aabab"), list("babba"))
    assert varied.delta_upper == varied.ci_high


def test_two_samples_an_arm_have_no_interval() -> None:
    score = compute_local_bias(list("ab"), list("cd"))
    assert (score.ci_low, score.ci_high, score.ci_excludes_zero, score.rules_out(1)) == (None,) * 4
    with pytest.raises(InsufficientSamples) as caught:
        effect_interval(np.zeros((4, 4)), 2)
    assert caught.value.needed == 3


def test_the_interval_can_be_left_out() -> None:
    with_it, without = (
        compute_local_bias(list("aaab"), list("abbb"), interval=wanted) for wanted in (True, False)
    )
    assert with_it.ci_low is not None and without.ci_low is None
    assert with_it.p_value == without.p_value


def test_higher_confidence_is_wider() -> None:
    widths = [
        float(np.diff(effect_interval(square(np.linspace(0, 1, 45)), 5, confidence=level))[0])
        for level in (0.5, 0.8, 0.95, 0.99)
    ]
    assert widths == sorted(widths)


@pytest.mark.parametrize("confidence", [0, 1, 2, float("nan")])
def test_confidence_lies_between_0_and_1(confidence: float) -> None:
    with pytest.raises(ConfigurationError):
        effect_interval(np.zeros((6, 6)), 3, confidence=confidence)
    with pytest.raises(ConfigurationError):
        unseen_share(5, confidence)


def test_the_rule_of_three_needs_a_sample() -> None:
    assert unseen_share(1) == pytest.approx(0.95)
    with pytest.raises(ConfigurationError):
        unseen_share(0)


def test_the_standardised_interval_is_the_same_in_another_unit() -> None:
    score = compute_local_bias(list("aaaab"), list("abbbb"))
    assert score.effect_interval is not None
    assert score.ci_low is not None
    assert score.effect_interval[0] * score.orbit_sd == pytest.approx(score.ci_low)
    assert compute_local_bias(["a"] * 3, ["a"] * 3).effect_interval is None
