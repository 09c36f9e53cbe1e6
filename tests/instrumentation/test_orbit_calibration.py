"""Error rates on seeded nodes; the full tables come from benchmarks/study_detection.py."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from simulated_nodes import (
    HOT,
    SKEWED,
    UNBIASED,
    chordal,
    classes,
    gaussian,
    margin,
    mismatch,
    shifted,
    worded,
)

from twinspan.instrumentation.orbit import OrbitBatch, orbit_e_values, orbit_test_triangles, square

Floats = NDArray[np.float64]

NODES = 1_200


LAWS = [law for law in UNBIASED if law != "300 classes, very hot"]


def _unbiased(law: str, n_reference: int, total: int, nodes: int = NODES) -> Floats:
    """Triangles of unbiased nodes with the named output law."""
    rng = np.random.default_rng([len(law), n_reference, total])
    return UNBIASED[law](rng, nodes, total)


def _coin_p(found: OrbitBatch, seed: int) -> Floats:
    coin = np.random.default_rng(seed).random(len(found.p))
    return found.p - (1 - coin) * found.ties / found.size


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n_reference", "n_counterfactual"), [(5, 5), (10, 5)])
def test_unbiased_nodes_are_flagged_at_most_as_often_as_promised(
    law: str, n_reference: int, n_counterfactual: int
) -> None:
    triangles = _unbiased(law, n_reference, n_reference + n_counterfactual)
    p = orbit_test_triangles(triangles, n_reference).p
    for alpha in (0.05, 0.01):
        assert np.mean(p <= alpha) <= alpha + margin(alpha, NODES)


@pytest.mark.parametrize("law", ["5 classes, skewed", "vectors, t(2) tails"])
def test_random_labellings_keep_the_promise(law: str) -> None:
    found = orbit_test_triangles(_unbiased(law, 20, 30, 1_000), 20)
    assert not found.exact
    for alpha in (0.05, 0.01):
        assert np.mean(found.p <= alpha) <= alpha + margin(alpha, 1_000)


@pytest.mark.parametrize("law", LAWS)
def test_with_ties_split_by_a_coin_p_is_uniform(law: str) -> None:
    """So ties are the only reason for being flagged less often than promised."""
    found = orbit_test_triangles(_unbiased(law, 5, 10), 5)
    assert stats.kstest(_coin_p(found, 1), "uniform").pvalue > 0.001


@pytest.mark.parametrize("law", LAWS)
def test_e_values_pay_out_no_more_than_is_staked(law: str) -> None:
    """Markov: an e-value of mean 1 reaches 20 at most once in 20 times."""
    e = orbit_test_triangles(_unbiased(law, 10, 15), 10).e
    assert np.mean(e >= 20) <= 0.05
    assert np.mean(np.minimum(e, 100)) <= 1 + 4 * np.std(np.minimum(e, 100)) / NODES**0.5


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n_reference", "n_counterfactual"), [(5, 5), (6, 3), (12, 12)])
def test_the_mean_e_value_of_every_orbit_is_exactly_1(
    law: str, n_reference: int, n_counterfactual: int
) -> None:
    total = n_reference + n_counterfactual
    for triangle in _unbiased(law, n_reference, total, 10):
        everyone = orbit_e_values(square(triangle), n_reference)[1]
        assert abs(everyone.mean() - 1) < 1e-9
        assert (everyone >= 0).all()


def test_delta_has_mean_0_over_every_orbit_and_over_unbiased_nodes() -> None:
    for law in LAWS:
        found = orbit_test_triangles(_unbiased(law, 5, 10), 5)
        assert np.abs(found.mean).max() < 1e-12
        assert abs(found.delta.mean()) <= 4 * found.delta.std() / NODES**0.5 + 1e-12


SHIFTED: dict[str, tuple[Floats, Floats]] = {
    "five classes": (SKEWED, shifted(SKEWED, 0.8)),
    "thirty hot": (HOT, HOT[::-1]),
    "coin instead of certainty": (np.array([1.0, 0.0]), np.array([0.5, 0.5])),
}


@pytest.mark.parametrize("name", SHIFTED)
@pytest.mark.parametrize("n", [3, 5, 10, 20, 30])
def test_delta_is_the_same_at_every_number_of_samples(name: str, n: int) -> None:
    """Its mean is half the squared distance of the two laws, with no bias in n."""
    reference, counterfactual = SHIFTED[name]
    truth = float(np.sum((reference - counterfactual) ** 2) / 2)
    rng = np.random.default_rng(n)
    nodes = max(2_000, 20_000 // n)
    laws = (reference, counterfactual)
    codes = np.concatenate([classes(rng, law, (nodes, n)) for law in laws], axis=1)
    # Each arm in a block of its own leaves the observed labelling alone: delta without an orbit.
    arms = [0] * n + [1] * n
    delta = orbit_test_triangles(mismatch(codes), n, blocks=arms).delta
    assert delta.mean() == pytest.approx(truth, abs=0.01)
    assert abs(delta.mean() - truth) <= 4 * delta.std() / len(delta) ** 0.5


def test_an_arm_that_collapses_to_a_canned_answer_is_seen() -> None:
    """Five varied answers against five that vary a third as much around the same centre.

    Both arms have one mean, so a comparison of means is blind to it.
    """
    vectors = gaussian(np.random.default_rng(7), 1_000, (5, 5), "collapses")
    assert np.mean(orbit_test_triangles(chordal(vectors), 5).p <= 0.05) >= 0.85


@pytest.mark.parametrize("n", [5, 10])
def test_random_wording_in_all_arms_absorbs_sensitivity_to_wording(n: int) -> None:
    """A node without any bias whose answer depends on how a request is worded."""
    count = 1_200
    flagged = [
        np.mean(
            orbit_test_triangles(worded(np.random.default_rng(n), count, (n, 5), how), n).p <= 0.05
        )
        for how in ("same input", "one sham edit", "random wording")
    ]
    assert 0.1 < flagged[0] < flagged[1]
    assert flagged[2] <= 0.05 + margin(0.05, count)
