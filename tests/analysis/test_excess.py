"""Excess over the floor and over control arms: exactness, size and power."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from audit_world import Truth, answers, arms, batch_arm, by_case
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from twinspan.analysis.inference import Answers, excess_over_controls, excess_over_floor
from twinspan.analysis.inference.answers import Pooled, distances
from twinspan.analysis.inference.excess import excess_fraction, shift_fraction
from twinspan.analysis.inference.labels import block_rows, excess_rows, label_rows
from twinspan.analysis.inference.strata import BinaryCase, ExactSum
from twinspan.instrumentation.audit import power
from twinspan.instrumentation.errors import ConfigurationError, UnsuitableValue
from twinspan.instrumentation.orbit import orbit_test

small_arm = st.lists(st.booleans(), min_size=1, max_size=4)
small_case = st.tuples(small_arm, small_arm)


def relabelled(case: tuple[list[bool], list[bool]]) -> list[tuple[list[bool], list[bool]]]:
    """All ways to give the labels of a case to its answers."""
    first, second = case
    pool = [*first, *second]
    return [
        (
            [pool[i] for i in range(len(pool)) if i not in chosen],
            [pool[i] for i in chosen],
        )
        for chosen in itertools.combinations(range(len(pool)), len(second))
    ]


def excess(first: list[bool], second: list[bool]) -> Fraction:
    """The excess of one case by its definition, pair by pair."""
    across = Fraction(sum(a != b for a in first for b in second), len(first) * len(second))
    own = [
        Fraction(sum(a != b for a, b in itertools.combinations(arm, 2)), math.comb(len(arm), 2))
        for arm in (first, second)
        if len(arm) > 1
    ]
    return across - sum(own, Fraction(0)) / len(own) if own else across


def shift(cases: list[tuple[list[bool], list[bool]]]) -> Fraction:
    """The summed shift of cases by its definition."""
    parts = [Fraction(sum(b), len(b)) - Fraction(sum(a), len(a)) for a, b in cases]
    return sum(parts, Fraction(0))


@settings(max_examples=40, deadline=None)
@given(st.lists(small_case, min_size=1, max_size=2))
def test_the_computed_null_is_the_enumeration_of_all_labels(
    cases: list[tuple[list[bool], list[bool]]],
) -> None:
    reference: Answers = {f"v{n}": first for n, (first, _) in enumerate(cases)}
    other: Answers = {f"v{n}": second for n, (_, second) in enumerate(cases)}
    found = excess_over_floor(reference, other)
    every = list(itertools.product(*map(relabelled, cases)))
    seen = sum((excess(*case) for case in cases), Fraction(0))
    sums = [sum((excess(*case) for case in each), Fraction(0)) for each in every]
    assert found.exact
    assert found.p_excess == pytest.approx(sum(value >= seen for value in sums) / len(every))
    moved = shift(cases)
    shifts = [shift(list(each)) for each in every]
    expected = sum(abs(value) >= abs(moved) for value in shifts) / len(every)
    assert found.p_shift == pytest.approx(expected)


@settings(deadline=None)
@given(small_arm, small_arm)
def test_the_fraction_of_a_case_is_its_definition(first: list[bool], second: list[bool]) -> None:
    counts = (sum(first), len(first), sum(second), len(second))
    assert excess_fraction(*counts) == excess(first, second)


@settings(max_examples=30, deadline=None)
@given(st.lists(small_case, min_size=1, max_size=3))
def test_counts_and_distances_tell_the_same(cases: list[tuple[list[bool], list[bool]]]) -> None:
    words = {True: "yes", False: "no"}
    arms_of = [{f"v{n}": case[side] for n, case in enumerate(cases)} for side in (0, 1)]
    said = [{name: [words[a] for a in arm] for name, arm in each.items()} for each in arms_of]
    counted = excess_over_floor(*arms_of)
    measured = excess_over_floor(*said, draws=9)
    for name in ("cross", "floor_reference", "floor_counterfactual", "value"):
        assert getattr(counted, name) == pytest.approx(getattr(measured, name))


def test_one_case_agrees_with_the_live_probe() -> None:
    reference, other = list("aaaaaaaabb"), list("bbbba")
    found = excess_over_floor({"v": reference}, {"v": other}, draws=4999, seed=1)
    table = distances(Pooled((list(reference), list(other))), "flip")
    probe = orbit_test(table, 10)
    assert found.value == pytest.approx(probe.delta) == pytest.approx(0.3022222222)
    assert found.p_excess == pytest.approx(probe.p, abs=0.02)


def test_the_signed_test_of_one_pair_per_case_is_the_sign_test() -> None:
    reference: Answers = {f"v{n}": [False] for n in range(9)}
    other: Answers = {f"v{n}": [n != 0] for n in range(9)}
    found = excess_over_floor(reference, other)
    assert found.p_shift == pytest.approx(stats.binomtest(8, 8).pvalue)
    assert (found.value, found.reason) == (None, "no_case_has_two_answers_in_both_arms")
    assert found.p_excess == 1.0  # without replicates a flip has no floor to be above


def test_flips_less_the_reference_floor_are_blind_where_ours_are_not() -> None:
    coin: Answers = {f"v{n}": [True] * 5 + [False] * 5 for n in range(8)}
    always: Answers = {f"v{n}": [True] * 10 for n in range(8)}
    found = excess_over_floor(coin, always)
    assert found.cross is not None and found.floor_reference is not None
    assert found.cross < found.floor_reference
    assert found.value == pytest.approx(2 / 9)
    assert found.p_excess is not None and found.p_excess < 1e-6


def test_arms_that_never_differ_have_p_one_and_no_interval() -> None:
    same: Answers = {f"v{n}": [True] * 5 for n in range(4)}
    found = excess_over_floor(same, same)
    assert (found.value, found.p_value, found.low, found.high) == (0.0, 1.0, None, None)


def test_cases_of_one_arm_only_are_left_out_and_counted() -> None:
    found = excess_over_floor({"a": [True, True], "b": [True]}, {"a": [False, None, False]})
    assert (found.n_cases, found.n_cases_left_out, found.n_missing) == (1, 1, 1)
    nothing = excess_over_floor({"a": [True]}, {"b": [True]})
    assert (nothing.value, nothing.p_value, nothing.reason) == (
        None,
        None,
        "no_case_has_answers_in_both_arms",
    )


def test_categories_have_an_excess_and_no_shift() -> None:
    reference: Answers = {f"v{n}": ["ward", "ward", "home", "ward"] for n in range(6)}
    other: Answers = {f"v{n}": ["icu", "icu", "icu", "icu"] for n in range(6)}
    found = excess_over_floor(reference, other, draws=999)
    assert (found.shift, found.p_shift, found.exact, found.draws) == (None, None, False, 999)
    assert found.p_value == found.p_excess == 0.001
    with pytest.raises(UnsuitableValue):
        excess_over_floor(reference, other, distance="absolute")


def test_lists_are_compared_as_wholes() -> None:
    orders: Answers = {"v": [["ecg", "cbc"], ["ecg"]]}
    assert excess_over_floor(orders, {"v": [["ecg"], ["ecg"]]}, draws=99).cross == 0.5


def test_grades_can_be_measured_by_distance() -> None:
    reference: Answers = {f"v{n}": [1, 1, 2, 1] for n in range(5)}
    other: Answers = {f"v{n}": [4, 5, 5, 4] for n in range(5)}
    found = excess_over_floor(reference, other, distance="absolute", draws=999)
    assert (found.cross, found.shift) == (3.25, 3.25)
    assert found.p_shift == 0.001


@settings(max_examples=30, deadline=None)
@given(small_arm, small_arm, st.integers(0, 2**16))
def test_labelled_rows_start_with_the_observed_and_agree_with_the_definition(
    first: list[bool], second: list[bool], seed: int
) -> None:
    rows = label_rows(len(first), len(second), 3, np.random.default_rng(seed))
    table = distances(Pooled((list(first), list(second))), "flip")
    values = excess_rows(rows, table)
    assert values[0] == pytest.approx(float(excess(first, second)))
    pool = [*first, *second]
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        parts = [
            [p for p, label in zip(pool, row, strict=True) if label == side] for side in (0, 1)
        ]
        assert value == pytest.approx(float(excess(*parts)))


def test_shared_replicates_are_all_enumerated_the_observed_first() -> None:
    rows, exact = block_rows(3, 2, 0, np.random.default_rng(0))
    assert exact and len(rows) == 10
    assert rows[0].tolist() == [0, 0, 0, 1, 1]
    assert len({tuple(row) for row in rows.tolist()}) == 10


def test_shared_replicates_with_gaps_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="gaps"):
        excess_over_floor({"a": [True, None]}, {"a": [True, True]}, shared_replicates=True)
    with pytest.raises(ConfigurationError, match="gaps"):
        excess_over_floor(
            {"a": [True], "b": [True, True]}, {"a": [True], "b": [True]}, shared_replicates=True
        )


def test_a_lattice_that_would_be_too_long_is_sampled() -> None:
    primes = (7, 11, 13, 17, 19, 23)
    cases = [BinaryCase(ones_first=2, first=n, ones_second=3, second=n - 2) for n in primes]
    assert not ExactSum(cases, excess_fraction).feasible
    reference: Answers = {f"v{n}": [True] * 2 + [False] * (n - 2) for n in primes}
    other: Answers = {f"v{n}": [True] * 3 + [False] * (n - 5) for n in primes}
    found = excess_over_floor(reference, other, draws=199)
    assert (found.exact, found.draws) == (False, 199)
    small = [BinaryCase(ones_first=1, first=4, ones_second=3, second=4)] * 3
    exact = ExactSum(small, excess_fraction)
    drawn = exact.sampled(20_000, np.random.default_rng(1))
    assert np.mean(drawn >= drawn[0] - 1e-9) == pytest.approx(exact.upper_tail(), abs=0.01)


def test_the_exact_shift_is_the_conditional_test_of_stratified_tables() -> None:
    cases = [BinaryCase(ones_first=1, first=6, ones_second=5, second=6)] * 3
    exact = ExactSum(cases, shift_fraction).two_sided()
    law = stats.hypergeom(12, 6, 6).pmf(np.arange(7))
    sums = np.convolve(np.convolve(law, law), law)
    assert exact == pytest.approx(sums[:4].sum() + sums[15:].sum())


@pytest.mark.parametrize("replicates", [(10, 10), (10, 5), (10, 1), (5, 5)])
def test_the_tests_keep_their_level(replicates: tuple[int, int]) -> None:
    rng = np.random.default_rng(20)
    runs, seen = 120, np.zeros(3)
    for _ in range(runs):
        first, second = arms(rng, "null", reference=replicates[0], counterfactual=replicates[1])
        found = excess_over_floor(first, second)
        seen += [(p or 0) <= 0.05 for p in (found.p_excess, found.p_shift, found.p_value)]
    assert (seen / runs <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / runs)).all()


@pytest.mark.parametrize(
    ("truth", "excess_power", "shift_power"), [("all up", 0.6, 0.85), ("mixed signs", 0.6, 0.0)]
)
def test_the_tests_find_what_they_are_for(
    truth: Truth, excess_power: float, shift_power: float
) -> None:
    rng = np.random.default_rng(21)
    found = [excess_over_floor(*arms(rng, truth)) for _ in range(60)]
    assert np.mean([(each.p_excess or 1) <= 0.05 for each in found]) >= excess_power
    assert np.mean([(each.p_shift or 1) <= 0.05 for each in found]) >= shift_power
    assert np.mean([(each.p_value or 1) <= 0.05 for each in found]) >= 0.6


@pytest.mark.parametrize("design", [(8, 10, 10, 0.15), (16, 5, 5, 0.15), (16, 10, 10, 0.2)])
def test_the_power_that_a_plan_promises_is_kept(design: tuple[int, int, int, float]) -> None:
    cases, n, m, moved = design
    rng = np.random.default_rng(25)
    runs = 80
    found = [
        excess_over_floor(
            by_case(answers(rng, np.full(cases, 0.3), n)),
            by_case(answers(rng, np.full(cases, 0.3 + moved), m)),
        )
        for _ in range(runs)
    ]
    floor = 0.3 * 0.7 + (0.3 + moved) * (0.7 - moved)
    seen = {
        "shift": np.mean([(each.p_shift or 1) <= 0.05 for each in found]),
        "excess": np.mean([(each.p_excess or 1) <= 0.05 for each in found]),
    }
    for test, share in seen.items():
        promised = power(
            moved**2,
            floor,
            cases=cases,
            reference=n,
            counterfactual=m,
            test=test,  # type: ignore[arg-type]
        )
        assert share == pytest.approx(promised, abs=0.05 + 3 * math.sqrt(0.25 / runs))


def test_switching_policies_look_like_bias_unless_replicates_are_permuted_whole() -> None:
    rng = np.random.default_rng(22)
    apart, whole, runs = 0, 0, 60
    for number in range(runs):
        table = batch_arm(rng, cases=16, replicates=10, switch=0.5)
        reference, other = by_case(table[:, :5]), by_case(table[:, 5:])
        apart += (excess_over_floor(reference, other).p_shift or 1) <= 0.05
        found = excess_over_floor(reference, other, shared_replicates=True, seed=number)
        assert found.exact
        whole += (found.p_shift or 1) <= 0.05
    assert apart / runs > 0.2
    assert whole / runs <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / runs)


# --- controls ---------------------------------------------------------------------------------


def shares(*values: float, replicates: int = 10, seed: int = 0) -> Answers:
    """Answers of eight cases for each of these shares of a yes."""
    rng = np.random.default_rng(seed)
    return by_case(answers(rng, np.repeat(values, 8), replicates))


def test_a_swap_that_does_what_the_sham_does_beats_nothing() -> None:
    reference, sham, swap = shares(0.2), shares(0.6, seed=1), shares(0.6, seed=2)
    verdict = excess_over_controls(reference, swap, {"sham": sham}, draws=999)
    assert verdict.beats_every_control() is False
    assert (excess_over_floor(reference, swap).p_value or 1) < 0.01


def test_the_claim_falls_with_any_control() -> None:
    reference, swap = shares(0.2), shares(0.9, seed=2)
    controls = {"rerender": shares(0.2, seed=3), "sham": shares(0.9, seed=5)}
    verdict = excess_over_controls(reference, swap, controls, draws=999)
    assert (verdict.by_control["rerender"].p_value or 1) < 0.01
    assert verdict.hardest == "sham"
    assert verdict.p_value == verdict.by_control["sham"].p_value
    assert verdict.beats_every_control() is False


def test_a_control_that_cannot_be_compared_leaves_the_claim_open() -> None:
    verdict = excess_over_controls(shares(0.2), shares(0.9), {"sham": {"elsewhere": [True]}})
    assert (verdict.p_value, verdict.beats_every_control(), verdict.hardest) == (None, None, None)
    assert verdict.reason == "no_case_has_answers_in_all_three_arms"


def test_a_control_that_is_farther_out_than_the_swap_is_not_beaten() -> None:
    verdict = excess_over_controls(
        shares(0.1), shares(0.3, seed=1), {"sham": shares(0.95, seed=2)}, draws=999
    )
    assert verdict.by_control["sham"].value is not None
    assert verdict.by_control["sham"].value < 0
    assert (verdict.p_value or 0) > 0.5


def test_the_comparison_with_a_control_keeps_its_level() -> None:
    rng = np.random.default_rng(23)
    runs, rejected = 150, 0
    for number in range(runs):
        law = rng.beta(0.5, 0.5, 12)
        moved = np.clip(law + 0.2, 0, 1)
        reference, sham, swap = (by_case(answers(rng, p, 6)) for p in (law, moved, moved))
        verdict = excess_over_controls(reference, swap, {"sham": sham}, draws=199, seed=number)
        rejected += verdict.beats_every_control() is True
    assert rejected / runs <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / runs)


def test_a_single_replicate_in_an_arm_is_compared_without_own_noise() -> None:
    verdict = excess_over_controls(
        shares(0.0), shares(1.0, replicates=1), {"sham": shares(0.0)}, draws=999
    )
    assert verdict.by_control["sham"].value == pytest.approx(1.0)
    assert verdict.beats_every_control() is True


def test_categories_are_compared_without_a_shift() -> None:
    reference: Answers = {f"v{n}": ["a"] * 6 for n in range(6)}
    swap: Answers = {f"v{n}": ["b"] * 6 for n in range(6)}
    verdict = excess_over_controls(reference, swap, {"sham": reference}, draws=999)
    found = verdict.by_control["sham"]
    assert (found.shift, found.p_shift, found.value) == (None, None, 1.0)
    assert verdict.beats_every_control(0.01) is True


def test_controls_can_be_permuted_by_whole_replicates() -> None:
    rng = np.random.default_rng(24)
    table = batch_arm(rng, cases=16, replicates=15, switch=0.5)
    reference, sham, swap = (by_case(table[:, place : place + 5]) for place in (0, 5, 10))
    found = excess_over_controls(reference, swap, {"sham": sham}, shared_replicates=True)
    assert found.p_value is not None and found.p_value >= 1 / 252
    with pytest.raises(ConfigurationError, match="gaps"):
        gaps: Answers = {"v0": [True], "v1": [True, True]}
        excess_over_controls(reference, swap, {"sham": gaps}, shared_replicates=True)
