"""Which nodes are probed, how much, and what that does to the score."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from control_rules import weights_of
from control_world import LAYERS
from hypothesis import given
from hypothesis import strategies as st

from twinspan.collector.allocation import (
    allocate_samples,
    horvitz_thompson,
    inclusion_probabilities,
)
from twinspan.collector.reduction import reduce_superstep
from twinspan.instrumentation.errors import ConfigurationError, UnknownNode
from twinspan.instrumentation.probing.budget import CallBudget, uniform_draw

SHARES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.0, 1.0), min_size=1)


@given(SHARES, st.floats(0.01, 0.9), st.floats(0.0, 1.0))
def test_probabilities_sum_to_the_budget_and_keep_their_floor(
    shares: dict[str, float], minimum: float, part: float
) -> None:
    low, high = len(shares) * minimum, float(len(shares))
    expected = low + part * (high - low)
    found = inclusion_probabilities(shares, expected=expected, minimum=minimum)
    assert all(minimum - 1e-12 <= p <= 1.0 for p in found.values())
    if all(share > 1e-3 for share in shares.values()):
        assert math.fsum(found.values()) == pytest.approx(expected, rel=1e-9)


def test_a_subnormal_share_stays_at_the_floor() -> None:
    assert inclusion_probabilities({"a": 5e-324}, expected=0.5, minimum=0.5) == {"a": 0.5}


@given(SHARES)
def test_a_larger_share_is_never_probed_less(shares: dict[str, float]) -> None:
    expected = 0.5 * len(shares)
    found = inclusion_probabilities(shares, expected=expected, minimum=0.1)
    for one, other in itertools.combinations(shares, 2):
        if shares[one] >= shares[other]:
            assert found[one] >= found[other] - 1e-12


def test_between_floor_and_ceiling_probabilities_are_in_proportion() -> None:
    found = inclusion_probabilities({"a": 0.4, "b": 0.2, "c": 0.4}, expected=1.5, minimum=0.1)
    assert found == pytest.approx({"a": 0.6, "b": 0.3, "c": 0.6})


def test_a_budget_for_all_probes_all() -> None:
    found = inclusion_probabilities({"a": 0.9, "b": 0.1}, expected=2.0, minimum=0.1)
    assert found == {"a": 1.0, "b": 1.0}


def test_a_budget_below_the_floor_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="lower the minimum"):
        inclusion_probabilities({"a": 0.9, "b": 0.1}, expected=0.1, minimum=0.2)
    with pytest.raises(ConfigurationError, match="unwatched"):
        inclusion_probabilities({"a": 1.0}, expected=1.0, minimum=0.0)


@given(
    st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3),
    st.lists(st.floats(0.1, 1.0), min_size=3, max_size=3),
)
def test_over_all_draws_the_corrected_score_has_the_mean_of_full_probing(
    magnitudes: list[float], probabilities: list[float]
) -> None:
    """Brute force: every subset of three nodes with its probability."""
    weights = {"a": 1.0, "b": 0.5, "c": 0.25}
    full = dict(zip("abc", magnitudes, strict=True))
    chances = dict(zip("abc", probabilities, strict=True))
    mean = 0.0
    for drawn in itertools.product([True, False], repeat=3):
        chosen = [node for node, in_it in zip("abc", drawn, strict=True) if in_it]
        chance = math.prod(chances[n] if n in chosen else 1 - chances[n] for n in "abc")
        corrected = horvitz_thompson({n: full[n] for n in chosen}, chances)
        mean += chance * reduce_superstep(corrected, weights, "impact_sum").value
    assert mean == pytest.approx(reduce_superstep(full, weights, "impact_sum").value, abs=1e-9)


def test_a_probed_node_needs_a_probability() -> None:
    with pytest.raises(UnknownNode):
        horvitz_thompson({"a": 0.1}, {"b": 0.5})
    for probability in (0.0, 1.5, math.nan):
        with pytest.raises(ConfigurationError, match="probed with probability"):
            horvitz_thompson({"a": 0.1}, {"a": probability})


def weighted_power(
    given_samples: dict[str, int], shares: dict[str, float], curve: Sequence[tuple[int, float]]
) -> float:
    power = {0: 0.0, **dict(curve)}
    return math.fsum(share * power[given_samples[node]] for node, share in shares.items())


def test_the_greedy_allocation_is_the_best_of_all() -> None:
    """A concave curve: exhaustive search over four nodes finds nothing better."""
    curve = [(5, 0.4), (10, 0.65), (15, 0.8)]
    shares = {"a": 0.5, "b": 0.3, "c": 0.15, "d": 0.05}
    for total in (0, 5, 20, 35, 60):
        found = allocate_samples(shares, curve, total=total)
        assert sum(found.values()) <= total
        best = max(
            weighted_power(dict(zip(shares, sizes, strict=True)), shares, curve)
            for sizes in itertools.product((0, 5, 10, 15), repeat=4)
            if sum(sizes) <= total
        )
        assert weighted_power(found, shares, curve) == pytest.approx(best)


def test_a_curve_that_starts_slowly_is_climbed_in_one_step() -> None:
    """5 samples show almost nothing: nobody stops there."""
    curve = [(5, 0.01), (10, 0.6), (20, 0.7)]
    found = allocate_samples({"a": 0.6, "b": 0.4}, curve, total=20)
    assert found == {"a": 10, "b": 10}


def test_by_share_alone_half_of_a_layered_graph_is_never_looked_at() -> None:
    """Why there is a floor: with 25-fold weights the far end of the graph gets no sample."""
    shares = dict(weights_of(LAYERS))
    found = allocate_samples(shares, [(5, 0.3), (10, 0.7), (20, 0.9)], total=110)
    assert sum(samples == 0 for samples in found.values()) >= 10
    probabilities = inclusion_probabilities(shares, expected=11.0, minimum=0.1)
    assert min(probabilities.values()) >= 0.1


def test_a_power_curve_must_rise_in_samples() -> None:
    with pytest.raises(ConfigurationError, match="rising"):
        allocate_samples({"a": 1.0}, [(10, 0.5), (5, 0.3)], total=10)


def test_draws_are_uniform_and_depend_on_every_label() -> None:
    draws = np.array([uniform_draw(1, "audit", f"n{i}", "0") for i in range(4_000)])
    assert draws.mean() == pytest.approx(0.5, abs=0.02)
    assert np.quantile(draws, [0.1, 0.9]) == pytest.approx([0.1, 0.9], abs=0.02)
    one = uniform_draw(1, "a", "b")
    assert one != uniform_draw(2, "a", "b")
    assert one != uniform_draw(1, "ab", "")


def test_a_budget_cannot_be_overspent() -> None:
    budget = CallBudget(limit=40).after(30)
    assert budget.left == 10
    with pytest.raises(ConfigurationError, match="ask the plan"):
        budget.after(11)
