"""Error rates on seeded nodes; the full tables come from benchmarks/study_detection.py."""

from __future__ import annotations

import numpy as np
import pytest
from null_nodes import (
    CLASS_LAWS,
    chordal_triangles,
    class_triangles,
    draw_classes,
    margin,
)
from numpy.typing import NDArray
from scipy import stats

from twinspan.instrumentation.orbit import OrbitBatch, orbit_e_values, orbit_test_triangles, square
from twinspan.instrumentation.splits import plan_splits

Floats = NDArray[np.float64]

NODES = 2_000


def _unbiased(name: str, n_reference: int, total: int, nodes: int = NODES) -> Floats:
    """Triangles of unbiased nodes with the named output law."""
    rng = np.random.default_rng([len(name), n_reference, total])
    if name == "heavy tails":
        return chordal_triangles(rng.standard_t(2, (nodes, total, 16)) + 1)
    if name == "four fields":
        fields = [class_triangles(rng.integers(0, 2, (nodes, total))) for _ in range(4)]
        total_distance: Floats = np.sum(fields, axis=0)
        return total_distance / 4
    return class_triangles(draw_classes(rng, CLASS_LAWS[name], (nodes, total)))


LAWS = [*CLASS_LAWS, "heavy tails", "four fields"]


def _coin_p(found: OrbitBatch, seed: int) -> Floats:
    coin = np.random.default_rng(seed).random(len(found.p))
    return found.p - (1 - coin) * found.ties / found.size


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("n_reference", "n_counterfactual"), [(5, 5), (10, 5)])
def test_unbiased_nodes_are_flagged_at_most_as_often_as_promised(
    name: str, n_reference: int, n_counterfactual: int
) -> None:
    triangles = _unbiased(name, n_reference, n_reference + n_counterfactual)
    p = orbit_test_triangles(triangles, n_reference).p
    for alpha in (0.05, 0.01):
        assert np.mean(p <= alpha) <= alpha + margin(alpha, NODES)


@pytest.mark.parametrize("name", ["five skewed", "heavy tails"])
def test_random_labellings_keep_the_promise(name: str) -> None:
    found = orbit_test_triangles(_unbiased(name, 20, 30, 1_000), 20)
    assert not found.exact
    for alpha in (0.05, 0.01):
        assert np.mean(found.p <= alpha) <= alpha + margin(alpha, 1_000)


@pytest.mark.parametrize("name", LAWS)
def test_with_ties_split_by_a_coin_p_is_uniform(name: str) -> None:
    """So ties are the only reason for being flagged less often than promised."""
    found = orbit_test_triangles(_unbiased(name, 5, 10), 5)
    assert stats.kstest(_coin_p(found, 1), "uniform").pvalue > 0.001


@pytest.mark.parametrize("name", LAWS)
def test_e_values_pay_out_no_more_than_is_staked(name: str) -> None:
    """Markov: an e-value of mean 1 reaches 20 at most once in 20 times."""
    e = orbit_test_triangles(_unbiased(name, 10, 15), 10).e
    assert np.mean(e >= 20) <= 0.05
    assert np.mean(np.minimum(e, 100)) <= 1 + 4 * np.std(np.minimum(e, 100)) / NODES**0.5


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("n_reference", "n_counterfactual"), [(5, 5), (6, 3), (12, 12)])
def test_the_mean_e_value_of_every_orbit_is_exactly_1(
    name: str, n_reference: int, n_counterfactual: int
) -> None:
    total = n_reference + n_counterfactual
    for triangle in _unbiased(name, n_reference, total, 10):
        everyone = orbit_e_values(square(triangle), n_reference)[1]
        assert abs(everyone.mean() - 1) < 1e-9
        assert (everyone >= 0).all()


def test_delta_has_mean_0_over_every_orbit_and_over_unbiased_nodes() -> None:
    for name in LAWS:
        found = orbit_test_triangles(_unbiased(name, 5, 10), 5)
        assert np.abs(found.mean).max() < 1e-12
        assert abs(found.delta.mean()) <= 4 * found.delta.std() / NODES**0.5 + 1e-12


SHIFTED: dict[str, tuple[Floats, Floats]] = {
    "five classes": (
        np.array([0.5, 0.25, 0.12, 0.08, 0.05]),
        np.array([0.1, 0.25, 0.12, 0.08, 0.45]),
    ),
    "thirty hot": (np.full(30, 1 / 30), np.repeat([1 / 60, 3 / 60], 15)),
    "coin instead of certainty": (np.array([1.0, 0.0]), np.array([0.5, 0.5])),
}


@pytest.mark.parametrize("name", SHIFTED)
@pytest.mark.parametrize("n", [3, 5, 10, 20, 30])
def test_delta_is_the_same_at_every_number_of_samples(name: str, n: int) -> None:
    """Its mean is half the squared distance of the two laws, with no bias in n."""
    reference, counterfactual = SHIFTED[name]
    truth = float(np.sum((reference - counterfactual) ** 2) / 2)
    rng = np.random.default_rng(n)
    nodes = max(12_000 // n, 800)
    codes = np.concatenate(
        [draw_classes(rng, law, (nodes, n)) for law in (reference, counterfactual)], axis=1
    )
    plan = plan_splits(n, n)
    means = np.concatenate(
        [plan.parts(class_triangles(part))[0] for part in np.array_split(codes, 40)]
    )
    delta = means[:, 0] - (means[:, 1] + means[:, 2]) / 2
    assert delta.mean() == pytest.approx(truth, abs=0.01)
    assert abs(delta.mean() - truth) <= 4 * delta.std() / len(delta) ** 0.5


def _collapsing(rng: np.random.Generator, nodes: int, spread: float) -> Floats:
    """Five varied answers against five that vary a third as much around the same centre."""
    scale = np.repeat([spread, spread / 3], 5)[:, np.newaxis]
    vectors: Floats = 1 / 32**0.5 + scale * rng.standard_normal((nodes, 10, 32))
    return vectors


def test_an_arm_that_collapses_to_a_canned_answer_is_seen() -> None:
    """Both arms have one mean, so a comparison of means is blind to it."""
    vectors = _collapsing(np.random.default_rng(7), 1_000, 0.25)
    power = np.mean(orbit_test_triangles(chordal_triangles(vectors), 5).p <= 0.05)
    assert power >= 0.85


def test_random_wording_in_all_arms_absorbs_sensitivity_to_wording() -> None:
    """A node without any bias whose answer depends on how a request is worded."""
    rng = np.random.default_rng(11)
    nodes = 1_500

    def answers(wordings: int) -> NDArray[np.intp]:
        logits = rng.normal(0, 1.5, (nodes, wordings, 5)).repeat(5 // wordings, axis=1)
        choices: NDArray[np.intp] = np.argmax(logits + rng.gumbel(size=(nodes, 5, 5)), axis=2)
        return choices

    fixed = class_triangles(np.concatenate([answers(1), answers(1)], axis=1))
    drawn = class_triangles(np.concatenate([answers(5), answers(5)], axis=1))
    flagged = [np.mean(orbit_test_triangles(arms, 5).p <= 0.05) for arms in (fixed, drawn)]
    assert flagged[0] > 0.2
    assert flagged[1] <= 0.05 + margin(0.05, nodes)
