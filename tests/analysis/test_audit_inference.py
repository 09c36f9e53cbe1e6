"""McNemar, multiplicity, permutation, ordinal shifts, propagation, accumulation, wild bootstrap."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from twinspan.analysis.inference import (
    WEBB_WEIGHTS,
    adjust,
    disparity_propagation,
    e_discoveries,
    e_from_p,
    interventional_propagation,
    mcnemar_exact,
    paired_permutation_test,
    paired_values_by_case,
    sign_flip_test,
    signed_ordinal_disparity,
    trajectory_accumulation,
    wild_cluster_bootstrap_ci,
    wild_cluster_bootstrap_p,
)
from twinspan.analysis.pair_statistics import (
    FLIP_RATE,
    MEAN_ABSOLUTE_SCORE_DIFFERENCE,
    MEAN_SCORE_DIFFERENCE,
    SIGNED_FLIP_RATE,
    WITHIN_BAND_RATE,
    Statistic,
    signed_flip_value,
)
from twinspan.analysis.pairs import Pair
from twinspan.analysis.rates import mean_absolute_score_difference
from twinspan.instrumentation.errors import ConfigurationError

T, F = True, False


def discordant(b: int, c: int) -> list[Pair]:
    only_ref = [Pair(f"b{n}", action_ref=T, action_cf=F) for n in range(b)]
    return only_ref + [Pair(f"c{n}", action_ref=F, action_cf=T) for n in range(c)]


# --- McNemar ----------------------------------------------------------------------------------


def test_vector_04_fifteen_flips_one_way_and_one_the_other() -> None:
    assert mcnemar_exact(discordant(15, 1)).p_value == pytest.approx(0.000518798828125, abs=1e-15)


def test_vector_05_without_a_flip_the_test_is_undefined() -> None:
    found = mcnemar_exact([Pair("a", action_ref=T, action_cf=T)])
    assert (found.p_value, found.n_discordant) == (None, 0)
    assert "undefined" in str(found.reason)


@pytest.mark.parametrize(("b", "c", "p"), [(5, 0, 0.0625), (3, 3, 1.0), (6, 1, 0.125)])
def test_vector_06_exact_p_values_of_few_flips(b: int, c: int, p: float) -> None:
    assert mcnemar_exact(discordant(b, c)).p_value == pytest.approx(p)


@settings(deadline=None)
@given(st.integers(0, 30), st.integers(0, 30))
def test_the_exact_p_is_the_binomial_tests_and_the_mid_p_is_smaller(b: int, c: int) -> None:
    found = mcnemar_exact(discordant(b, c))
    if b + c:
        assert found.p_value == pytest.approx(stats.binomtest(b, b + c).pvalue)
        assert found.p_mid is not None and found.p_value is not None
        assert found.p_mid <= found.p_value + 1e-12


def test_pairs_of_one_case_are_counted_as_no_further_evidence() -> None:
    assert mcnemar_exact([*discordant(2, 1), *discordant(1, 0)]).n_repeated == 1


# --- multiplicity -----------------------------------------------------------------------------


def test_vector_12_benjamini_hochberg() -> None:
    found = adjust([0.001, 0.01, 0.02, 0.5, 0.9], procedure="bh")
    assert found.adjusted == pytest.approx((0.005, 0.025, 0.1 / 3, 0.625, 0.9))
    assert found.rejected == (T, T, T, F, F)


def test_vector_13_hochberg_and_yekutieli() -> None:
    p_values = [0.001, 0.01, 0.03, 0.2, 0.5]
    assert adjust(p_values, procedure="bh").adjusted == pytest.approx(
        (0.005, 0.025, 0.05, 0.25, 0.5)
    )
    assert adjust(p_values, procedure="bh").rejected == (T, T, T, F, F)
    found = adjust(p_values, procedure="by")
    expected = (0.011416667, 0.057083333, 0.114166667, 0.570833333, 1)
    assert found.adjusted == pytest.approx(expected)
    assert found.c_m == pytest.approx(2.283333333)


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=8),
    st.sampled_from(["holm", "bh", "by"]),
)
def test_none_stays_none_and_takes_no_part(p_values: list[float | None], procedure: Any) -> None:
    found = adjust(p_values, procedure=procedure)
    alone = adjust([p for p in p_values if p is not None], procedure=procedure)
    assert [value is None for value in found.adjusted] == [value is None for value in p_values]
    assert tuple(value for value in found.adjusted if value is not None) == alone.adjusted
    assert found.n_tests == alone.n_tests


def test_e_values_that_are_missing_still_count_as_hypotheses() -> None:
    assert e_discoveries({"a": 45.0, "b": 45.0}) == ("a", "b")
    assert e_discoveries({"a": 45.0, "b": 45.0, "c": None, "d": None, "e": None}) == ()
    assert e_discoveries({"a": 0.0, "b": 41.0}) == ("b",)
    with pytest.raises(ConfigurationError, match="negative"):
        e_discoveries({"a": -1.0})


def test_an_e_value_from_a_uniform_p_value_has_mean_one() -> None:
    # In t = -ln p; all that lies beyond t is 1 / t.
    mean, _ = integrate.quad(lambda t: (e_from_p(math.exp(-t)) or 0) * math.exp(-t), 0, 700)
    assert mean == pytest.approx(1 - 1 / 700, abs=1e-4)
    assert e_from_p(1e-300) == pytest.approx(1e300 / math.log(1e-300) ** 2)
    assert (e_from_p(0.0), e_from_p(1.0)) == (math.inf, 0.5)
    with pytest.raises(ConfigurationError):
        e_from_p(math.nan)


# --- permutation ------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", [FLIP_RATE, WITHIN_BAND_RATE, MEAN_ABSOLUTE_SCORE_DIFFERENCE])
def test_vector_36_a_statistic_that_has_no_direction_has_no_permutation_test(
    statistic: Statistic,
) -> None:
    pairs = [
        Pair(
            f"v{n}",
            action_ref=n % 2 == 0,
            action_cf=n % 3 == 0,
            score_ref=n,
            score_cf=2 * n + 1,
            in_band_ref=T,
            in_band_cf=T,
            straddles_threshold=T,
        )
        for n in range(9)
    ]
    found = paired_permutation_test(pairs, statistic)
    assert (found.degenerate, found.p_value, found.n) == (True, None, 9)
    assert "invariant" in str(found.reason)


def test_vector_37_eight_flips_one_way_are_two_of_256() -> None:
    found = paired_permutation_test(discordant(8, 0), SIGNED_FLIP_RATE)
    assert (found.exact, found.draws, found.p_value) == (True, 256, 2 / 256)


def test_vector_38_without_any_difference_p_is_one() -> None:
    pairs = [Pair(f"v{n}", score_ref=5, score_cf=5) for n in range(6)]
    found = paired_permutation_test(pairs, MEAN_SCORE_DIFFERENCE)
    assert (found.p_value, found.degenerate) == (1.0, False)
    assert "no within-pair variation" in str(found.reason)


def test_without_pairs_there_is_no_test() -> None:
    found = paired_permutation_test([], SIGNED_FLIP_RATE)
    assert (found.p_value, found.n, found.reason) == (None, 0, "no_pairs")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-3, 3)), min_size=1, max_size=8))
def test_a_permutation_test_is_the_enumeration_over_cases(rows: list[tuple[str, int]]) -> None:
    pairs = [Pair(case, score_ref=0, score_cf=shift) for case, shift in rows]
    found = paired_permutation_test(pairs, MEAN_SCORE_DIFFERENCE)
    cases = sorted({case for case, _ in rows})
    sums = [sum(shift for case, shift in rows if case == each) for each in cases]
    every = [
        abs(sum(sign * total for sign, total in zip(signs, sums, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(sums))
    ]
    if any(shift for _, shift in rows) and max(every) > 0:
        assert found.p_value == sum(value >= abs(sum(sums)) for value in every) / len(every)
    plain = paired_permutation_test(pairs, lambda drawn: MEAN_SCORE_DIFFERENCE(drawn))
    assert plain.p_value == found.p_value


def test_many_cases_are_sampled_with_a_seed() -> None:
    pairs = discordant(18, 6)
    found = paired_permutation_test(pairs, SIGNED_FLIP_RATE, draws=2000, seed=1)
    assert not found.exact
    assert found == paired_permutation_test(pairs, SIGNED_FLIP_RATE, draws=2000, seed=1)
    assert found.p_value == pytest.approx(stats.binomtest(6, 24).pvalue, abs=0.02)


# --- ordinal ----------------------------------------------------------------------------------


def graded(*moves: tuple[int, int]) -> list[Pair]:
    return [Pair(f"v{n}", action_ref=a, action_cf=b) for n, (a, b) in enumerate(moves)]


def test_vector_39_a_drift_and_noise_of_the_same_size_are_told_apart() -> None:
    drift, noise = graded(*[(2, 3)] * 6), graded(*[(2, 3)] * 3, *[(3, 2)] * 3)
    assert signed_ordinal_disparity(drift).mean_signed_difference == 1.0
    assert signed_ordinal_disparity(noise).mean_signed_difference == 0.0
    assert signed_ordinal_disparity(drift).transitions == {(2, 3): 6}
    scores = [
        mean_absolute_score_difference(
            [Pair(p.case_id, score_ref=p.action_ref, score_cf=p.action_cf) for p in pairs]  # type: ignore[arg-type]
        ).value
        for pairs in (drift, noise)
    ]
    assert scores[0] == scores[1]


def test_vector_40_equal_pairs_leave_the_rank_sum() -> None:
    found = signed_ordinal_disparity(graded((2, 2), (2, 3), (2, 3)))
    assert (found.n, found.n_nonzero, found.wilcoxon_w) == (3, 2, 0.0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=10))
def test_the_rank_sum_is_scipys(moves: list[tuple[int, int]]) -> None:
    found = signed_ordinal_disparity(graded(*moves))
    differences = [b - a for a, b in moves]
    if not any(differences):
        assert found.wilcoxon_w is None
        return
    expected = stats.wilcoxon(differences, method="approx").statistic
    assert found.wilcoxon_w == expected


def test_without_grades_there_is_a_reason() -> None:
    found = signed_ordinal_disparity([Pair("a", action_ref=2)])
    assert (found.reason, found.n_missing, found.p_value) == ("nothing_to_compare", 1, None)


def test_a_sign_test_over_replicates_counts_cases() -> None:
    once = signed_ordinal_disparity(graded(*[(2, 3)] * 4))
    often = signed_ordinal_disparity(graded(*[(2, 3)] * 4) * 5)
    assert once.p_value == often.p_value == 2 / 16


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_the_sign_flip_test_is_scipys_exact_one(values: list[int]) -> None:
    found = sign_flip_test(np.array(values, dtype=float))
    sums = [abs(sum(s * v for s, v in zip(signs, values, strict=True)))
            for signs in itertools.product((1, -1), repeat=len(values))]  # fmt: skip
    assert found.p_value == pytest.approx(np.mean(np.array(sums) >= abs(sum(values))))


# --- propagation ------------------------------------------------------------------------------


def test_vector_41_flips_that_follow_flips() -> None:
    up = [
        *discordant(2, 0),
        Pair("s0", action_ref=T, action_cf=T),
        Pair("s1", action_ref=F, action_cf=F),
    ]
    found = disparity_propagation(up, up).as_dict()
    assert found["downstream_cfr_given_upstream_flip"] == 1.0
    assert found["downstream_cfr_given_upstream_stable"] == 0.0
    assert (found["propagation"], found["n_upstream_flipped"], found["n_upstream_stable"]) == (
        1,
        2,
        2,
    )


def test_vector_42_without_an_upstream_flip_nothing_follows_one() -> None:
    stable = [Pair(case, action_ref=T, action_cf=T) for case in "ab"]
    found = disparity_propagation(stable, stable)
    assert (found.given_flip.value, found.value, found.reason) == (
        None,
        None,
        "no_pair_flipped_upstream",
    )


def test_vector_43_a_baseline_is_compared_with_all_of_it() -> None:
    up = [Pair("a", action_ref=T, action_cf=F), Pair("b", action_ref=T, action_cf=T)]
    baseline = [Pair(case, action_ref=T, action_cf=T) for case in "cd"]
    found = disparity_propagation(up, up, baseline).as_dict()
    assert (found["baseline_cfr"], found["vs_baseline"], found["n_baseline"]) == (0.0, 0.5, 2)


def test_vector_44_a_forced_flip_has_an_effect() -> None:
    flipped = [Pair(case, action_ref=F, action_cf=T) for case in "abcd"]
    held = [Pair(case, action_ref=F, action_cf=F) for case in "abcd"]
    found = interventional_propagation(flipped, held)
    assert (found.value, found.balanced, found.paired_cases) == (1.0, True, 4)


def test_vector_45_arms_of_other_cases_are_not_compared() -> None:
    found = interventional_propagation(
        [Pair("v1", action_ref=F, action_cf=T)], [Pair("v2", action_ref=F, action_cf=F)]
    )
    assert (found.balanced, found.paired_cases, found.value) == (False, 0, None)
    assert found.as_dict()["withheld_reason"]


def test_no_arms_have_no_effect_and_say_so() -> None:
    found = interventional_propagation([], [])
    assert (found.value, found.reason) == (None, "an arm has no pair with both actions")


# --- accumulation -----------------------------------------------------------------------------


def test_vector_46_shifts_that_all_agree_add_up() -> None:
    steps = {f"s{n}": {f"v{k}": 1.0 for k in range(40)} for n in range(4)}
    found = trajectory_accumulation(steps, draws=400, seed=1)
    assert (found.p_value, found.concordance) == (1 / 401, 1.0)
    assert found.identified is False


def test_vector_47_alternating_shifts_cancel() -> None:
    steps = {f"s{n}": {f"v{k}": (-1.0) ** n for k in range(10)} for n in range(4)}
    found = trajectory_accumulation(steps, draws=200)
    assert (found.mean_abs_composite, found.p_value, found.concordance) == (0.0, 1.0, 0.0)


def test_vector_48_one_shift_cannot_agree_with_itself() -> None:
    steps = {f"s{n}": {"v": float(n == 0)} for n in range(4)}
    found = trajectory_accumulation(steps)
    assert (found.n_concordance_eligible, found.concordance) == (0, None)


def test_no_shifts_are_not_a_shift_of_zero() -> None:
    found = trajectory_accumulation({"s": {"v": None}})
    assert (found.mean_abs_composite, found.reason, found.n_missing) == (None, "no_shifts", 1)


# --- wild cluster bootstrap -------------------------------------------------------------------


def clusters(*values: float) -> dict[str, list[float]]:
    return {f"v{n}": [value] for n, value in enumerate(values)}


def test_vector_49_webbs_weights_have_mean_zero_and_mean_square_one() -> None:
    assert math.fsum(WEBB_WEIGHTS) == pytest.approx(0, abs=1e-15)
    assert math.fsum(w * w for w in WEBB_WEIGHTS) / 6 == pytest.approx(1)
    assert sorted(-w for w in WEBB_WEIGHTS) == pytest.approx(sorted(WEBB_WEIGHTS))


def test_vector_50_the_standard_error_does_not_shrink_with_copies() -> None:
    once = wild_cluster_bootstrap_p(clusters(0, 1, 0, 1, 0, 1, 0, 1), signed=True)
    twice = wild_cluster_bootstrap_p(
        {name: values * 2 for name, values in clusters(0, 1, 0, 1, 0, 1, 0, 1).items()}, signed=True
    )
    assert once.se == pytest.approx(0.1889822365)
    assert twice.se == pytest.approx(once.se)


def test_vector_51_what_cannot_be_tested_is_refused_by_name() -> None:
    refused = {
        "zero_cluster_robust_variance": wild_cluster_bootstrap_p(clusters(*[1.0] * 6), signed=True),
        "too_few_clusters": wild_cluster_bootstrap_p(clusters(0, 1), signed=True),
        "unsigned_statistic_not_declared_signed": wild_cluster_bootstrap_p(clusters(0, 1, 0)),
        "no_observations": wild_cluster_bootstrap_p({}, signed=True),
    }
    assert {name: test.as_dict()["refused"] for name, test in refused.items()} == {
        name: name for name in refused
    }


@pytest.mark.parametrize("cases", [4, 5])
def test_vector_52_few_clusters_need_webbs_weights(cases: int) -> None:
    values = clusters(*[1 + 0.001 * n for n in range(cases)])
    signs = wild_cluster_bootstrap_p(values, signed=True, weights="rademacher")
    webb = wild_cluster_bootstrap_p(values, signed=True)
    assert signs.exact and webb.exact
    assert signs.p_value == 2 / 2**cases
    assert webb.p_value is not None and webb.p_value < 0.05 < (signs.p_value or 0)


def test_the_interval_holds_what_the_test_accepts() -> None:
    values = clusters(0.2, 0.1, 0.4, 0.3, 0.5, -0.1)
    found = wild_cluster_bootstrap_ci(values, signed=True)
    assert found.low is not None and found.high is not None
    for mean, accepted in ((found.low + 1e-6, True), (found.low - 1e-3, False), (found.high, True)):
        p_value = wild_cluster_bootstrap_p(values, null=mean, signed=True).p_value
        assert p_value is not None and (p_value > 0.05) is accepted


def test_an_interval_that_does_not_end_says_so() -> None:
    found = wild_cluster_bootstrap_ci(clusters(1, 2, 3), signed=True, weights="rademacher")
    assert (found.truncated_low, found.truncated_high) == (True, True)


def test_signed_values_are_gathered_by_case() -> None:
    pairs = [*discordant(1, 1), Pair("b0", action_ref=F, action_cf=T), Pair("x")]
    assert paired_values_by_case(pairs, signed_flip_value) == {"b0": [-1.0, 1.0], "c0": [1.0]}


def test_the_wild_bootstrap_keeps_its_level_with_six_cases() -> None:
    rng = np.random.default_rng(8)
    rejected = 0
    for number in range(300):
        values = {f"v{n}": list(rng.normal() + rng.normal(size=4)) for n in range(6)}
        test = wild_cluster_bootstrap_p(values, signed=True, draws=299, seed=number)
        rejected += (test.p_value or 1) <= 0.05
    assert rejected / 300 <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 300)
