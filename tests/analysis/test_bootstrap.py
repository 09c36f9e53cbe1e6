"""The bootstrap of cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from twinspan.analysis.inference.bootstrap import (
    bootstrap_ratio,
    case_weights,
    cluster_bootstrap,
    order_statistics,
)
from twinspan.analysis.pair_statistics import FLIP_RATE, WITHIN_BAND_RATE, Statistic
from twinspan.analysis.pairs import Pair
from twinspan.instrumentation.errors import ConfigurationError


def alternating(cases: int, *, replicates: int = 1, **flags: bool) -> list[Pair]:
    """Cases of which every second one flips in each of its replicates."""
    return [
        Pair(f"v{n}", action_ref=True, action_cf=n % 2 == 0, **flags)
        for n in range(cases)
        for _ in range(replicates)
    ]


def test_vector_07_flips_everywhere_give_a_point() -> None:
    pairs = [Pair(f"v{n}", action_ref=True, action_cf=False) for n in range(20)]
    found = cluster_bootstrap(pairs, FLIP_RATE, draws=500, seed=1)
    assert (found.ends, found.is_point) == ((1.0, 1.0), True)


def test_vector_08_forty_cases_half_flipped() -> None:
    found = cluster_bootstrap(alternating(40), FLIP_RATE, draws=1000, seed=2)
    assert found.ends == (0.35, 0.65)


def test_vector_09_identical_replicates_are_no_further_evidence() -> None:
    pairs = alternating(10, replicates=5)
    assert cluster_bootstrap(pairs, FLIP_RATE, draws=800, seed=3).ends == (0.2, 0.8)


def test_vector_10_quadrupling_every_pair_changes_nothing() -> None:
    once = cluster_bootstrap(alternating(12), FLIP_RATE, draws=600, seed=5)
    often = cluster_bootstrap(alternating(12, replicates=4), FLIP_RATE, draws=600, seed=5)
    assert once.ends == often.ends
    assert once.ends == pytest.approx((0.25, 0.8333), abs=0.09)


def test_vector_11_the_within_band_rate_has_an_interval_in_its_range() -> None:
    pairs = alternating(8, in_band_ref=True, in_band_cf=True, straddles_threshold=True)
    low, high = cluster_bootstrap(pairs, WITHIN_BAND_RATE, draws=200, seed=1).ends
    assert low is not None and high is not None
    assert 0.0 <= low < 0.5 < high <= 1.0


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("statistic", [FLIP_RATE, WITHIN_BAND_RATE])
def test_a_ratio_and_the_same_function_called_for_each_draw_agree(
    method: str, statistic: Statistic
) -> None:
    pairs = alternating(9, replicates=2, in_band_ref=True, in_band_cf=True)
    pairs = [
        Pair(
            each.case_id,
            action_ref=each.action_ref,
            action_cf=each.action_cf,
            in_band_ref=True,
            in_band_cf=True,
            straddles_threshold=each.case_id != "v3",
        )
        for each in pairs
    ]
    options = {"draws": 200, "seed": 4, "method": method}
    fast = cluster_bootstrap(pairs, statistic, **options)  # type: ignore[arg-type]
    slow = cluster_bootstrap(pairs, lambda drawn: statistic(drawn), **options)  # type: ignore[arg-type]
    assert fast == slow


def test_without_pairs_or_with_one_case_there_is_no_interval() -> None:
    assert cluster_bootstrap([], FLIP_RATE).reason == "no_pairs"
    one = [Pair("v", action_ref=True, action_cf=False)] * 5
    assert cluster_bootstrap(one, FLIP_RATE).reason == "fewer_than_two_cases"


def test_resamples_without_a_value_are_counted_and_may_cost_the_interval() -> None:
    pairs = [Pair("a", action_ref=True, action_cf=False), Pair("b"), Pair("c")]
    found = cluster_bootstrap(pairs, FLIP_RATE, draws=500)
    assert found.reason == "undefined_resample_fraction_exceeded"
    assert 100 < found.undefined < 200  # (2 / 3) ** 3 of 500
    lenient = cluster_bootstrap(pairs, FLIP_RATE, draws=500, max_undefined=0.5)
    assert lenient.ends == (1.0, 1.0)


def test_a_statistic_that_is_never_defined_says_so() -> None:
    found = cluster_bootstrap([Pair("a"), Pair("b")], FLIP_RATE, draws=50)
    assert (found.ends, found.reason) == ((None, None), "all_resamples_undefined")


def test_bca_agrees_with_scipy_on_a_skewed_rate() -> None:
    flips = np.array([0.0, 0, 0, 0, 1, 2, 0, 9, 0, 0, 25, 3])
    cells = np.full(12, 45.0)
    ours = bootstrap_ratio(flips, cells, draws=20_000, method="bca")
    theirs = stats.bootstrap((flips / 45,), np.mean, n_resamples=20_000, rng=1).confidence_interval
    assert ours.ends == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_the_weights_of_a_resample_add_up_and_are_seeded() -> None:
    weights = case_weights(7, 50, seed=3)
    assert (weights.sum(axis=1) == 7).all()
    assert (weights == case_weights(7, 50, seed=3)).all()
    assert (weights != case_weights(7, 50, seed=4)).any()


def test_percentiles_follow_one_rule() -> None:
    draws = np.arange(2000.0)
    assert order_statistics(draws, 0.025, 0.975) == (50.0, 1949.0)
    assert order_statistics(draws[:1], 0.025, 0.975) == (0.0, 0.0)


@pytest.mark.parametrize(("draws", "level"), [(0, 0.95), (10, 1.0), (10, 0.0)])
def test_options_that_make_no_interval_are_refused(draws: int, level: float) -> None:
    with pytest.raises(ConfigurationError):
        cluster_bootstrap(alternating(4), FLIP_RATE, draws=draws, level=level)
