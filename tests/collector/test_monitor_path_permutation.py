"""The calibrated threshold on the network score."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from control_rules import path_permutation_halts

from twinspan.collector.path_permutation import PathPermutation
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement, UnknownNode
from twinspan.instrumentation.probing.rounds import ADAPTIVE_PLAN, FIXED_PLAN

ONE = {"a": 1.0}


def halted(test: PathPermutation, steps: np.ndarray) -> bool:
    """Whether the first of the paths (steps, 1 + replicas) is stopped."""
    state = test.initial()
    for row in steps:
        state = test.step(state, {"a": float(row[0])}, {"a": row[1:]}, ONE)
    return state.halted


def test_it_is_refused_when_probing_is_adaptive() -> None:
    assert ADAPTIVE_PLAN.adaptive
    with pytest.raises(ConfigurationError, match="run monitor"):
        PathPermutation(horizon=5, adaptive=ADAPTIVE_PLAN.adaptive)
    assert PathPermutation(horizon=5, adaptive=FIXED_PLAN.adaptive).replicas == 399


def test_of_all_arrangements_of_one_superstep_exactly_alpha_halt() -> None:
    """Twenty different values, each in turn the observed one: one of twenty halts at .05."""
    test = PathPermutation(horizon=1, alpha=0.05, replicas=19)
    values = np.linspace(-1.0, 1.0, 20)
    assert sum(halted(test, np.roll(values, k)[None, :]) for k in range(20)) == 1


def test_over_two_supersteps_at_most_alpha_of_exchangeable_paths_halt() -> None:
    """Brute force: every pairing of four first and four second inputs, each path observed."""
    test = PathPermutation(horizon=2, alpha=0.5, replicas=3)
    first = np.array([0.1, 0.4, 0.2, 0.3])
    halts = total = 0
    for second in itertools.permutations((0.5, -0.2, 0.1, 0.7)):
        for observed in range(4):
            halts += halted(test, np.roll(np.stack([first, np.array(second)]), observed, axis=1))
            total += 1
    assert halts / total == 0.5


def test_ties_across_the_border_are_let_go() -> None:
    test = PathPermutation(horizon=1, alpha=0.05, replicas=19)
    assert not halted(test, np.zeros((1, 20)))


def test_alpha_is_spent_evenly_over_the_horizon() -> None:
    """With 39 replicas and .05 over two supersteps: one path may be stopped by the first."""
    test = PathPermutation(horizon=2, alpha=0.05, replicas=39)
    others = np.linspace(-1.0, 0.9, 39)
    state = test.step(test.initial(), {"a": 1.0}, {"a": others}, ONE)
    assert state.halted
    second = test.step(test.initial(), {"a": 0.89}, {"a": others}, ONE)
    assert not second.halted


def test_a_halt_is_remembered() -> None:
    test = PathPermutation(horizon=1, replicas=19)
    rows = np.stack([np.array([1.0, *np.zeros(19)]), np.array([-5.0, *np.zeros(19)])])
    assert halted(test, rows)


def test_the_study_halts_the_same_runs() -> None:
    """The vectorised rule of the study and the product decide alike."""
    rng = np.random.default_rng(8)
    inputs = rng.normal(size=(30, 4, 40))
    test = PathPermutation(horizon=4, alpha=0.2, replicas=39)
    expected = path_permutation_halts(inputs, 0.2)
    found = [halted(test, run) for run in inputs]
    assert found == list(expected.step < 4)
    assert any(found)


def test_wrong_use_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="cannot be reached"):
        PathPermutation(horizon=5, alpha=0.01, replicas=19)
    with pytest.raises(ConfigurationError, match="horizon"):
        PathPermutation(horizon=0)
    with pytest.raises(ConfigurationError, match="smoothing"):
        PathPermutation(horizon=1, smoothing=0.0)
    test = PathPermutation(horizon=1, replicas=19)
    with pytest.raises(InvalidMeasurement, match="number of replicas"):
        test.step(test.initial(), {"a": 0.1}, {"a": np.zeros(5)}, ONE)
    with pytest.raises(UnknownNode):
        test.step(test.initial(), {"z": 0.1}, {"z": np.zeros(19)}, ONE)
