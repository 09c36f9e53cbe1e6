"""The exact test against brute force, and what holds for every data set."""

from __future__ import annotations

from itertools import combinations
from math import comb, exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from twinspan.instrumentation import splits
from twinspan.instrumentation.errors import EstimatorError, InsufficientSamples, NonFiniteSample
from twinspan.instrumentation.evidence import bets_of_orbit, rank_bets, weigh_orbit, weigh_orbits
from twinspan.instrumentation.orbit import (
    orbit_e_values,
    orbit_test,
    orbit_test_batch,
    orbit_test_triangles,
    randomised_p,
    samples_of_pairs,
    square,
    stake_triangle,
    stake_triangles,
)
from twinspan.instrumentation.splits import plan_splits, upper_triangle

Floats = NDArray[np.float64]


def _delta(distances: Floats, reference: tuple[int, ...]) -> float:
    """Textbook loops over pairs."""
    total = len(distances)
    sides = [set(reference), set(range(total)) - set(reference)]
    within = [
        float(np.mean([distances[i, j] for i, j in combinations(sorted(side), 2)]))
        for side in sides
    ]
    across = np.mean([distances[i, j] for i in sides[0] for j in sides[1]])
    return float(across - sum(within) / 2)


def _brute_force(distances: Floats, n_reference: int) -> tuple[float, float, float]:
    """Delta, p and e by enumerating every labelling in Python."""
    labellings = combinations(range(len(distances)), n_reference)
    deltas = [_delta(distances, labelling) for labelling in labellings]
    size, sd = len(deltas), float(np.std(deltas))
    ranks = [sum(other >= one - 1e-9 for other in deltas) / size for one in deltas]
    rank_bet = [rank**-0.9 for rank in ranks]
    rise = [exp((one - float(np.mean(deltas))) / sd) if sd > 1e-9 else 1.0 for one in deltas]
    bets = [
        0.5 * rank_bet[k] / float(np.mean(rank_bet)) + 0.5 * rise[k] / float(np.mean(rise))
        for k in range(size)
    ]
    return deltas[0], ranks[0], bets[0]


@st.composite
def probe_sets(draw: st.DrawFn) -> tuple[Floats, int]:
    """Distances on a coarse grid, so that ties are common."""
    n_reference, n_counterfactual = draw(st.integers(2, 5)), draw(st.integers(2, 4))
    total = n_reference + n_counterfactual
    pairs = comb(total, 2)
    steps = draw(st.lists(st.integers(0, 4), min_size=pairs, max_size=pairs))
    return square(step / 4 for step in steps), n_reference


@settings(max_examples=60, deadline=None)
@given(probe_sets())
def test_delta_p_and_e_equal_an_enumeration_in_plain_python(case: tuple[Floats, int]) -> None:
    distances, n_reference = case
    found = orbit_test(distances, n_reference)
    assert (found.delta, found.p, found.e) == pytest.approx(_brute_force(distances, n_reference))


@settings(max_examples=60, deadline=None)
@given(probe_sets())
def test_the_mean_over_the_orbit_is_0_for_delta_and_1_for_e(case: tuple[Floats, int]) -> None:
    found = orbit_test(*case)
    observed, everyone = orbit_e_values(*case)
    assert found.mean == pytest.approx(0, abs=1e-12)
    assert everyone.mean() == pytest.approx(1, abs=1e-9)
    assert observed == pytest.approx(found.e)
    assert everyone[0] == observed


@st.composite
def alike(draw: st.DrawFn) -> tuple[Floats, int]:
    """Probe sets of one shape, with distances of any size: enumerated and sampled orbits."""
    shapes = [(2, 2), (3, 2), (2, 5), (5, 5), (10, 5), (4, 7), (10, 10), (12, 9)]
    n_reference, n_counterfactual = draw(st.sampled_from(shapes))
    width = comb(n_reference + n_counterfactual, 2)
    count, seed = draw(st.integers(1, 4)), draw(st.integers(0, 2**32))
    triangles = np.random.default_rng(seed).random((count, width))
    steps = draw(st.sampled_from([1, 3, 7, None]))
    return triangles if steps is None else np.floor(triangles * (steps + 1)) / steps, n_reference


@settings(max_examples=60, deadline=None)
@given(alike())
def test_a_probe_set_has_the_same_digits_alone_and_among_others(case: tuple[Floats, int]) -> None:
    """What is decided live and what is recomputed in batches is one number, not two that agree."""
    triangles, n_reference = case
    many = orbit_test_triangles(triangles, n_reference)
    together = list(stake_triangles(triangles, n_reference))
    for place, triangle in enumerate(triangles):
        one = orbit_test(square(triangle), n_reference)
        for name in ("delta", "C", "Wx", "Wy", "p", "e", "mean", "sd", "ties"):
            assert getattr(many, name)[place] == getattr(one, name), name
        assert np.isnan(many.z[place]) if one.z is None else many.z[place] == one.z
        alone = stake_triangle(triangle, n_reference)
        assert alone[:4] == together[place][:4] == (one.delta, one.p, one.e, one.sd)
        assert np.array_equal(alone.e_values, together[place].e_values)
        assert one.e == orbit_e_values(square(triangle), n_reference)[0]


@settings(max_examples=40, deadline=None)
@given(alike())
def test_what_control_takes_is_the_orbit_in_ascending_order(case: tuple[Floats, int]) -> None:
    triangles, n_reference = case
    found = stake_triangle(triangles[0], n_reference)
    _, everyone = orbit_e_values(square(triangles[0]), n_reference)
    fold = len(everyone) // len(found.e_values)
    assert (np.diff(found.e_values) >= 0).all()
    assert np.sort(everyone)[::fold] == pytest.approx(found.e_values)
    assert found.e in found.e_values


@pytest.mark.parametrize("shape", [(5, 5), (10, 5), (3, 6), (10, 10)])
def test_sums_do_not_depend_on_the_order_in_which_they_are_taken(shape: tuple[int, int]) -> None:
    """Samples in another order within their arms: the same pairs, added up otherwise."""
    total = sum(shape)
    rng = np.random.default_rng(total)
    distances = square(rng.random(comb(total, 2)))
    order = [*rng.permutation(shape[0]), *(shape[0] + rng.permutation(shape[1]))]
    one, other = (
        orbit_test(each, shape[0]) for each in (distances, distances[np.ix_(order, order)])
    )
    assert (one.delta, one.C, one.Wx, one.Wy) == (other.delta, other.C, other.Wx, other.Wy)
    if one.exact:
        assert (one.p, one.e, one.mean, one.sd) == (other.p, other.e, other.mean, other.sd)


@settings(max_examples=40, deadline=None)
@given(probe_sets(), st.randoms(use_true_random=False))
def test_the_order_within_arms_does_not_matter(case: tuple[Floats, int], random: object) -> None:
    distances, n_reference = case
    shuffled = [*range(n_reference)], [*range(n_reference, len(distances))]
    for arm in shuffled:
        random.shuffle(arm)  # type: ignore[attr-defined]
    order = [*shuffled[0], *shuffled[1]]
    one, other = (
        orbit_test(distances, n_reference),
        orbit_test(distances[np.ix_(order, order)], n_reference),
    )
    assert other == pytest.approx(one)


def test_deterministic_equal_arms_are_no_evidence() -> None:
    found = orbit_test(np.zeros((10, 10)), 5)
    assert (found.delta, found.p, found.e, found.sd, found.z) == (0, 1, 1, 0, None)


@pytest.mark.parametrize(
    ("n_reference", "n_counterfactual", "smallest"),
    [
        (2, 2, 2 / 6),
        (3, 3, 0.1),
        (4, 4, 2 / 70),
        (5, 5, 2 / 252),
        (6, 3, 1 / 84),
        (10, 5, 1 / 3003),
    ],
)
def test_disjoint_arms_reach_the_smallest_p(
    n_reference: int, n_counterfactual: int, smallest: float
) -> None:
    arms = np.arange(n_reference + n_counterfactual) >= n_reference
    found = orbit_test(np.not_equal.outer(arms, arms).astype(float), n_reference)
    assert found.p == found.smallest_p == pytest.approx(smallest)
    assert found.size == comb(n_reference + n_counterfactual, n_reference)


def test_ties_hidden_by_rounding_are_still_ties() -> None:
    """Thirds and sixths add up differently in another order; the tolerance sees through it."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (400, 10, 3))
    exact = (codes[:, :, np.newaxis] != codes[:, np.newaxis]).mean(axis=3)
    noisy = exact + 1e-13 * rng.standard_normal(exact.shape)
    assert orbit_test_batch(noisy, 5).p == pytest.approx(orbit_test_batch(exact, 5).p)


def test_an_arm_of_one_sample_is_refused() -> None:
    with pytest.raises(InsufficientSamples) as caught:
        orbit_test(np.zeros((4, 4)), 3)
    assert (caught.value.arm, caught.value.count) == ("counterfactual", 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_bad_distance_is_refused_and_named(bad: float) -> None:
    distances = np.zeros((6, 6))
    distances[2, :] = distances[:, 2] = bad
    with pytest.raises(NonFiniteSample) as single:
        orbit_test(distances, 3)
    with pytest.raises(NonFiniteSample) as batch:
        orbit_test_batch(np.stack([np.zeros((6, 6)), distances]), 3)
    with pytest.raises(NonFiniteSample):
        orbit_e_values(distances, 3)
    assert (single.value.index, batch.value.index) == (2, 1)


def test_triangles_and_squares_are_two_forms_of_one_thing() -> None:
    distances = square(np.linspace(0, 1, 28))
    assert distances.take(upper_triangle(8)) == pytest.approx(np.linspace(0, 1, 28))
    assert samples_of_pairs(28) == 8
    with pytest.raises(EstimatorError, match="29 distances"):
        orbit_test_triangles(np.zeros((1, 29)), 4)


class TestRandomLabellings:
    """Above 20,000 labellings, 1,999 random ones stand in for all of them."""

    distances = np.random.default_rng(5).random((20, 20))
    distances = (distances + distances.T) / 2

    def test_their_number_is_counted_with_the_observed_one(self) -> None:
        found = orbit_test(self.distances, 10)
        assert (found.size, found.exact, found.smallest_p) == (2000, False, 1 / 2000)

    def test_the_e_values_still_have_mean_1(self) -> None:
        assert orbit_e_values(self.distances, 10)[1].mean() == pytest.approx(1, abs=1e-12)

    def test_the_same_call_gives_the_same_answer(self) -> None:
        assert orbit_test(self.distances, 10) == orbit_test(self.distances, 10)

    def test_another_seed_gives_nearly_the_same_p(self) -> None:
        one, other = (orbit_test(self.distances, 10, seed=seed) for seed in (1, 2))
        assert one.p != other.p
        assert one.p == pytest.approx(other.p, abs=4 * (0.25 / 2000) ** 0.5)

    def test_they_estimate_the_p_of_all_labellings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        small = np.ascontiguousarray(self.distances[:12, :12])
        full = orbit_test(small, 6)
        monkeypatch.setattr(splits, "EXACT_LIMIT", 10)
        splits._plan.cache_clear()
        sampled = orbit_test(small, 6)
        splits._plan.cache_clear()
        assert (full.size, sampled.size) == (924, 2000)
        assert sampled.p == pytest.approx(full.p, abs=4 * (0.25 / 2000) ** 0.5)

    def test_the_seed_does_not_matter_when_all_are_enumerated(self) -> None:
        small = np.ascontiguousarray(self.distances[:10, :10])
        assert orbit_test(small, 5, seed=1) == orbit_test(small, 5, seed=2)
        assert plan_splits(5, 5, seed=1) is plan_splits(5, 5, seed=2)

    def test_large_arms_do_without_a_weight_per_pair(self) -> None:
        rng = np.random.default_rng(8)
        points = rng.random(90)
        distances = np.abs(np.subtract.outer(points, points))
        plan = plan_splits(60, 30)
        found = orbit_test(distances, 60)
        assert plan.weights is None
        assert found.delta == pytest.approx(_delta(distances, tuple(range(60))))
        labels = tuple(np.flatnonzero(plan.labels[7]).tolist())
        _, rows = plan.parts(distances.take(plan.pairs)[np.newaxis])
        assert rows[0, 7] == pytest.approx(_delta(distances, labels))


class TestBlocks:
    """Labels exchanged within blocks only."""

    def test_two_blocks_of_two_have_four_labellings(self) -> None:
        distances = square([1, 0, 1, 1, 0, 1])
        found = orbit_test(distances, 2, blocks=["u", "v", "u", "v"])
        assert found.size == 4
        assert found.delta == pytest.approx(_delta(distances, (0, 1)))

    def test_p_equals_an_enumeration_within_blocks(self) -> None:
        rng = np.random.default_rng(3)
        distances = square(rng.random(36))
        blocks = [0, 0, 1, 1, 2, 2, 0, 1, 2]
        choices = [[(i, j) for i, j in combinations((0, 1, 6), 2)]]
        choices += [list(combinations((2, 3, 7), 2)), list(combinations((4, 5, 8), 2))]
        deltas = [
            _delta(distances, (*a, *b, *c))
            for a in choices[0]
            for b in choices[1]
            for c in choices[2]
        ]
        found = orbit_test(distances, 6, blocks=blocks)
        assert found.size == 27
        assert found.p == pytest.approx(np.mean(np.array(deltas) >= deltas[0] - 1e-9))
        assert found.mean == pytest.approx(np.mean(deltas))

    def test_one_block_is_no_restriction(self) -> None:
        distances = square(np.random.default_rng(4).random(28))
        free, one = orbit_test(distances, 4), orbit_test(distances, 4, blocks=[1] * 8)
        assert (one.p, one.e, one.size) == pytest.approx((free.p, free.e, free.size))

    def test_blocks_of_a_single_arm_leave_nothing_to_exchange(self) -> None:
        found = orbit_test(square(np.ones(15)), 3, blocks=[0, 0, 0, 1, 1, 1])
        assert (found.size, found.p, found.e, found.smallest_p) == (1, 1, 1, 1)

    def test_random_labellings_stay_within_blocks(self) -> None:
        blocks = [k % 12 for k in range(36)]
        plan = plan_splits(24, 12, blocks=blocks)
        assert not plan.exact
        counts = np.stack(
            [plan.labels[:, np.array(blocks) == block].sum(axis=1) for block in range(12)]
        )
        assert (counts == 2).all()

    def test_labels_must_match_the_samples(self) -> None:
        with pytest.raises(EstimatorError, match="3 block labels for 6 samples"):
            orbit_test(np.zeros((6, 6)), 3, blocks=[1, 2, 3])


def test_splitting_ties_by_a_coin_moves_p_within_its_ties() -> None:
    found = orbit_test(np.zeros((6, 6)), 3)
    assert randomised_p(found, 0.0) == 0
    assert randomised_p(found, 0.5) == pytest.approx(0.5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(-3, 3), min_size=7, max_size=7), min_size=1, max_size=5))
def test_orbits_weighed_together_or_apart_are_the_same(rows: list[list[int]]) -> None:
    statistics = np.array(rows, dtype=np.float64)
    together = weigh_orbits(statistics.copy(), rank_bets(7))
    for index, row in enumerate(statistics):
        alone = weigh_orbit(row.copy(), rank_bets(7))
        batch = [together.p, together.e, together.mean, together.sd, together.ties]
        assert tuple(column[index] for column in batch) == alone
        assert bets_of_orbit(row, rank_bets(7))[0] == pytest.approx(alone.e)
