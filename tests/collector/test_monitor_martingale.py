"""M by brute force: every outcome of small orbits, with its exact probability."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from twinspan.collector.cells import Cell
from twinspan.collector.monitor import RunMonitor
from twinspan.collector.monitor_state import MonitorState
from twinspan.collector.overshoot import remove_overshoot
from twinspan.instrumentation.errors import InvalidMeasurement

Orbit: TypeAlias = NDArray[np.float64]
Probe: TypeAlias = tuple[str, str, float, Orbit]
"""Node, axis, share and the e-values of every split of one probe."""

Chooser: TypeAlias = Callable[[MonitorState], Sequence[Probe]]
"""Which probes to run next, from the past alone."""

POSITIVE = st.lists(st.floats(0.01, 50.0), min_size=2, max_size=5)


def as_orbit(values: Sequence[float]) -> Orbit:
    """Positive numbers as e-values: mean exactly 1."""
    orbit = np.array(values)
    return np.asarray(orbit / orbit.mean(), dtype=np.float64)


def outcomes(
    monitor: RunMonitor, state: MonitorState, probes: Sequence[Probe]
) -> list[tuple[float, MonitorState]]:
    """Every joint outcome of independent probes and its probability."""
    chance = math.prod(1 / len(orbit) for *_, orbit in probes)
    found: list[tuple[float, MonitorState]] = []
    for picked in itertools.product(*(orbit for *_, orbit in probes)):
        cells = [
            Cell(node=node, axis=axis, share=share, e_value=float(e_value), orbit=orbit)
            for (node, axis, share, orbit), e_value in zip(probes, picked, strict=True)
        ]
        found.append((chance, monitor.step(state, cells)))
    return found


def tree(monitor: RunMonitor, choosers: Sequence[Chooser]) -> list[tuple[float, list[float]]]:
    """Every path of M through the supersteps with its probability."""
    paths = [(1.0, [1.0], monitor.initial())]
    for choose in choosers:
        paths = [
            (chance * part, [*path, after.value], after)
            for chance, path, state in paths
            for part, after in outcomes(monitor, state, choose(state))
        ]
    return [(chance, path) for chance, path, _ in paths]


def adaptive(orbits: Sequence[Orbit]) -> list[Chooser]:
    """A second superstep that looks at the first: other nodes, axes and orbits after a win."""

    def second(state: MonitorState) -> Sequence[Probe]:
        if state.value > 1.0:
            return [("c", "age", 0.3, orbits[2]), ("c", "gender", 0.3, orbits[0])]
        return [("d", "gender", 0.2, orbits[1])]

    first: list[Probe] = [("a", "age", 0.3, orbits[0]), ("b", "gender", 0.2, orbits[1])]
    return [lambda state: first, second]


@given(POSITIVE, POSITIVE, POSITIVE, st.sampled_from([2, 5, None]), st.floats(0.0, 1.0))
@settings(max_examples=30, deadline=None)
def test_the_expectation_of_m_is_1_whatever_is_chosen_from_the_past(
    one: list[float], two: list[float], three: list[float], depth: int | None, sparse: float
) -> None:
    monitor = RunMonitor(axes=("age", "gender"), depth=depth, sparse_share=sparse, overshoot=False)
    paths = tree(monitor, adaptive([as_orbit(one), as_orbit(two), as_orbit(three)]))
    for step in (1, 2):
        mean = math.fsum(chance * path[step] for chance, path in paths)
        assert mean == pytest.approx(1.0, rel=1e-9)


@given(POSITIVE, POSITIVE, POSITIVE, st.floats(0.05, 0.9))
@settings(max_examples=30, deadline=None)
def test_with_overshoot_removal_it_is_never_above_1_and_hardly_below(
    one: list[float], two: list[float], three: list[float], alpha: float
) -> None:
    """Below only by the grid of the boosts, or once M has reached its limit anyway."""
    monitor = RunMonitor(axes=("age", "gender"), alpha=alpha, depth=2)
    paths = tree(monitor, adaptive([as_orbit(one), as_orbit(two), as_orbit(three)]))
    first = math.fsum(chance * path[1] for chance, path in paths)
    assert 1.0 - 2e-4 <= first <= 1.0 + 1e-9
    assert math.fsum(chance * path[2] for chance, path in paths) <= 1.0 + 1e-9


@given(POSITIVE, POSITIVE, POSITIVE, st.sampled_from([0.05, 0.2, 0.5]), st.booleans())
@settings(max_examples=30, deadline=None)
def test_s6_the_chance_that_m_ever_reaches_its_limit_is_at_most_alpha(
    one: list[float], two: list[float], three: list[float], alpha: float, overshoot: bool
) -> None:
    """Looked at after every superstep, with probing that depends on what was seen."""
    monitor = RunMonitor(axes=("age", "gender"), alpha=alpha, depth=2, overshoot=overshoot)
    paths = tree(monitor, adaptive([as_orbit(one), as_orbit(two), as_orbit(three)]))
    limit = 1 / alpha * (1 - 1e-6)
    assert math.fsum(chance for chance, path in paths if max(path) >= limit) <= alpha + 1e-9


def test_overshoot_removal_pays_the_others_more_at_no_more_false_halts() -> None:
    """One bet that pays 100 with a chance of 1 in 100; 20 is enough."""
    orbit = as_orbit([100.0, *[1e-9] * 99])
    plain = RunMonitor(axes=("age",), depth=1, sparse_share=0.0, overshoot=False)
    capped = RunMonitor(axes=("age",), depth=1, sparse_share=0.0)
    probes: list[Probe] = [("a", "age", 1.0, orbit)]
    halts = [
        math.fsum(chance for chance, after in outcomes(m, m.initial(), probes) if after.fired)
        for m in (plain, capped)
    ]
    assert halts == pytest.approx([0.01, 0.01])
    low = [
        min(after.value for _, after in outcomes(m, m.initial(), probes)) for m in (plain, capped)
    ]
    assert low[1] > 10 * low[0]


@given(st.lists(st.floats(0.001, 100.0), min_size=2, max_size=40), st.floats(1.0, 60.0))
def test_the_boosted_orbit_has_a_mean_of_at_most_1_and_pays_nobody_less(
    values: list[float], cap: float
) -> None:
    orbit = as_orbit(values)
    paid = np.array([remove_overshoot(float(e), orbit, cap) for e in orbit])
    assert paid.mean() <= 1.0 + 1e-9
    assert np.all(paid >= np.minimum(orbit, cap) - 1e-12)


@given(st.lists(st.floats(0.001, 100.0), min_size=2, max_size=40), st.floats(1.001, 60.0))
def test_the_boost_is_the_largest_on_its_grid(values: list[float], cap: float) -> None:
    """Against bisection, 20 halvings of [1, 64], which ends on the same grid."""
    orbit = as_orbit(values)
    low, high = 1.0, 64.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(middle * orbit, cap).mean() <= 1 else (low, middle)
    smallest = float(orbit.min())
    expected = min(low * smallest, cap) if orbit.max() > cap else smallest
    assert remove_overshoot(smallest, orbit, cap) == pytest.approx(expected, rel=1e-4)


def test_what_is_no_orbit_of_e_values_is_refused() -> None:
    for orbit in (np.array([1.0, 2.0]), np.array([3.0, -1.0]), np.zeros(0), np.array([math.nan])):
        with pytest.raises(InvalidMeasurement, match="orbit mean"):
            remove_overshoot(1.0, orbit, 5.0)


def test_the_caps_are_known_before_the_superstep_and_reach_the_limit_exactly() -> None:
    monitor = RunMonitor(axes=("age", "gender"), depth=3)
    monitor.update([Cell(node="root", axis="age", share=0.3, e_value=2.0)])
    caps = monitor.caps({"a": 0.3, "b": 0.2})
    assert set(caps) == {(node, axis) for node in "ab" for axis in ("age", "gender")}
    for (node, axis), cap in caps.items():
        cells = [
            Cell(node=n, axis=x, share=s, e_value=cap if (n, x) == (node, axis) else 0.0)
            for n, s in (("a", 0.3), ("b", 0.2))
            for x in ("age", "gender")
        ]
        assert monitor.step(monitor.state, cells).value == pytest.approx(20.0)
    assert monitor.caps({}) == {}
