"""The run monitor."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from twinspan.collector.cells import Cell
from twinspan.collector.monitor import RunMonitor
from twinspan.collector.topology import AgentDAG
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement, UnknownAxis
from twinspan.instrumentation.orbit import orbit_e_values

AXES = ("age", "gender")

Row = list[tuple[float, float, float]]
"""Per node its share and its e-value on either axis."""

THREE_STEPS: list[Row] = [[(0.3, 1.2, 0.8)], [(0.25, 6, 0.9), (0.2, 1.1, 1)], [(0.25, 4, 0.7)]]


def cells_of(step: int, row: Row) -> list[Cell]:
    return [
        Cell(node=f"n{step}.{place}", axis=axis, share=share, e_value=e_value)
        for place, (share, *e_values) in enumerate(row)
        for axis, e_value in zip(AXES, e_values, strict=True)
    ]


def values(rows: list[Row], *, depth: int | None) -> list[float]:
    monitor = RunMonitor(axes=AXES, depth=depth, overshoot=False)
    return [monitor.update(cells_of(step, row)).value for step, row in enumerate(rows)]


def orbit(reference: str, counterfactual: str) -> tuple[float, NDArray[np.float64]]:
    answers = np.array(list(reference + counterfactual))
    distances = (answers[:, None] != answers[None, :]).astype(np.float64)
    return orbit_e_values(distances, len(reference))


def test_vectors_with_a_known_and_an_unknown_depth() -> None:
    known = values(THREE_STEPS, depth=3)
    assert known == pytest.approx([1, 1.939018518518519, 5.662074074074074], abs=1e-12)
    unknown = values(THREE_STEPS, depth=None)
    assert unknown == pytest.approx([1, 1.977388888888889, 5.587111111111112], abs=1e-12)


def test_vector_of_one_guilty_cell() -> None:
    rows: list[Row] = [[(0.3, 1, 1)], [(0.25, 50, 1), (0.2, 1, 1)], [(0.25, 1, 1)]]
    expected = [1, 9.484259259259261, 9.484259259259261]
    assert values(rows, depth=3) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("overshoot", "expected"),
    [(False, [1.991484448264867, 1948.5328720025302]), (True, [2.5419186724, 20.0])],
)
def test_vector_with_and_without_overshoot_removal(overshoot: bool, expected: list[float]) -> None:
    monitor = RunMonitor(axes=("age",), depth=2, overshoot=overshoot)
    found: list[float] = []
    for node, share, arms in (("x", 0.4, ("aaaaaaaabb", "bbbba")), ("y", 0.3, ("a" * 10, "b" * 5))):
        e_value, orbits = orbit(*arms)
        cell = Cell(node=node, axis="age", share=share, e_value=e_value, orbit=orbits)
        found.append(monitor.update([cell]).value)
    assert found == pytest.approx(expected, abs=1e-9)
    assert monitor.state.fired


def test_a_value_a_millionth_below_the_limit_has_reached_it() -> None:
    """Overshoot removal aims at the limit exactly; rounding must not lose the halt."""
    monitor = RunMonitor(axes=("age",), depth=1, sparse_share=0.0)
    monitor.update([Cell(node="a", axis="age", share=1.0, e_value=20 * (1 - 5e-7))])
    assert monitor.state.fired
    other = RunMonitor(axes=("age",), depth=1, sparse_share=0.0)
    other.update([Cell(node="a", axis="age", share=1.0, e_value=20 * (1 - 5e-6))])
    assert not other.state.fired


def test_a_superstep_without_a_probe_is_skipped() -> None:
    monitor = RunMonitor(axes=AXES, depth=3)
    before = monitor.update(cells_of(0, [(0.3, 1.2, 0.8)]))
    assert monitor.update([]) is before
    assert monitor.update([], unprobed={"n9": 0.2}) is before


def test_an_unprobed_node_and_an_unprobed_axis_count_with_1() -> None:
    explicit = RunMonitor(axes=AXES, depth=2)
    explicit.update(cells_of(0, [(0.3, 4.0, 1.0), (0.2, 1.0, 1.0)]))
    implicit = RunMonitor(axes=AXES, depth=2)
    cell = Cell(node="n0.0", axis="age", share=0.3, e_value=4.0)
    implicit.update([cell], unprobed={"n0.1": 0.2})
    assert implicit.state.value == pytest.approx(explicit.state.value)


def test_a_deterministic_clean_node_moves_nothing() -> None:
    monitor = RunMonitor(axes=("age",), depth=4)
    e_value, orbits = orbit("a" * 10, "a" * 5)
    cell = Cell(node="a", axis="age", share=0.5, e_value=e_value, orbit=orbits)
    assert monitor.update([cell]).value == pytest.approx(1.0, abs=1e-12)


def test_the_order_of_the_cells_plays_no_part_to_the_last_bit() -> None:
    draw = random.Random(2)
    cells = cells_of(0, [(0.1, draw.random() * 5, draw.random() * 5) for _ in range(8)])
    shuffled = list(cells)
    draw.shuffle(shuffled)
    one, other = RunMonitor(axes=AXES), RunMonitor(axes=AXES)
    assert one.update(cells).value == other.update(shuffled).value


def test_step_changes_nothing_and_update_moves_on() -> None:
    monitor = RunMonitor(axes=AXES, depth=3)
    state = monitor.step(monitor.state, cells_of(0, [(0.3, 6.0, 1.0)]))
    assert monitor.state.value == 1.0
    assert monitor.update(cells_of(0, [(0.3, 6.0, 1.0)])) == state


def test_a_cached_reference_feeds_the_additive_part_alone() -> None:
    fresh = Cell(node="a", axis="age", share=0.4, e_value=5.0)
    cached = Cell(node="a", axis="age", share=0.4, e_value=5.0, cached=True)
    monitor = RunMonitor(axes=("age",), depth=2)
    state = monitor.step(monitor.initial(), [cached])
    assert state.dense == pytest.approx(1.0)
    assert state.sparse == pytest.approx(1.0 + 0.4 * 4.0)
    assert state.log_evidence == {}
    assert monitor.step(monitor.initial(), [fresh]).dense > 1.0


def test_in_a_loop_the_kth_firing_stakes_a_shrinking_part_of_the_share() -> None:
    """Shares .4/2, .4/6, .4/12 with e = 3: sparse grows by twice as much each time."""
    monitor = RunMonitor(axes=("age",), cyclic=True)
    sparse = [
        monitor.update([Cell(node="a", axis="age", share=0.4, e_value=3.0)]).sparse
        for _ in range(3)
    ]
    expected = np.cumsum([2 * 0.4 / (k * (k + 1)) for k in (1, 2, 3)]) + 1
    assert sparse == pytest.approx(list(expected))


def test_two_tasks_of_one_node_in_one_superstep_are_two_firings() -> None:
    monitor = RunMonitor(axes=("age",), cyclic=True)
    tasks = [Cell(node="a", axis="age", share=0.4, e_value=3.0, task=t) for t in ("1", "2")]
    assert monitor.update(tasks).sparse == pytest.approx(1 + 2 * 0.4 * (1 / 2 + 1 / 6))
    assert monitor.state.firings == {"a": 2}


@given(st.lists(st.floats(0.0, 0.3), min_size=1, max_size=6), st.integers(1, 30))
@settings(max_examples=50)
def test_the_wealth_is_never_negative_even_when_every_bet_is_lost(
    shares: list[float], supersteps: int
) -> None:
    total = math.fsum(shares) or 1.0
    monitor = RunMonitor(axes=AXES, cyclic=True)
    cells = [
        Cell(node=f"n{i}", axis=axis, share=share / max(total, 1.0), e_value=0.0)
        for i, share in enumerate(shares)
        for axis in AXES
    ]
    for _ in range(supersteps):
        state = monitor.update(cells)
        assert state.value >= 0.0
        assert state.sparse >= 0.0
        assert state.spent <= 1.0 + 1e-9


def test_weights_that_are_not_shares_are_refused() -> None:
    monitor = RunMonitor(axes=("age",))
    cells = [Cell(node=n, axis="age", share=1.0, e_value=1.0) for n in ("hub", "root")]
    with pytest.raises(ConfigurationError, match="sum to 2"):
        monitor.update(cells)


def test_shares_too_small_for_a_float_are_bet_evenly() -> None:
    monitor = RunMonitor(axes=("age",), depth=1)
    cells = [Cell(node=n, axis="age", share=0.0, e_value=e) for n, e in (("a", 3.0), ("b", 1.0))]
    assert monitor.update(cells).dense == pytest.approx(2.0)


def test_a_restart_halves_the_level_and_forgets_the_past() -> None:
    monitor = RunMonitor(axes=("age",), alpha=0.04, depth=5)
    monitor.update([Cell(node="a", axis="age", share=0.9, e_value=600.0)])
    assert monitor.state.fired
    first = monitor.restart()
    assert (first.value, first.alpha, first.restarts, first.depth) == (1.0, 0.01, 1, 4)
    assert first.spent == 0.0
    assert monitor.restart().alpha == 0.005
    assert monitor.restart().limit == 400.0


def test_the_levels_of_all_restarts_sum_to_at_most_half_of_alpha() -> None:
    monitor = RunMonitor(axes=("age",), alpha=0.05)
    assert math.fsum(monitor.restart().alpha for _ in range(40)) <= 0.025


def test_a_monitor_for_a_graph_knows_its_depth_and_its_loops() -> None:
    plain = RunMonitor.for_graph(AgentDAG([("a", "b"), ("b", "c")]), AXES)
    assert (plain.depth, plain.cyclic, plain.node_count) == (3, False, 3)
    one_probed = RunMonitor.for_graph(AgentDAG([("a", "b"), ("b", "c")]), AXES, probed_depth=1)
    assert (one_probed.depth, one_probed.cyclic, one_probed.node_count) == (1, False, 3)
    looped = RunMonitor.for_graph(AgentDAG([("a", "b"), ("b", "a")]), AXES, alpha=0.01)
    assert (looped.depth, looped.cyclic, looped.alpha) == (None, True, 0.01)


@pytest.mark.parametrize("e_value", [math.nan, -0.1, math.inf])
def test_e10_an_impossible_e_value_raises(e_value: float) -> None:
    with pytest.raises(InvalidMeasurement, match="e-value of 'a'"):
        Cell(node="a", axis="age", share=0.1, e_value=e_value)


@pytest.mark.parametrize("share", [math.nan, -0.1, 1.5])
def test_e10_an_impossible_share_raises(share: float) -> None:
    with pytest.raises(InvalidMeasurement, match="share of 'a'"):
        Cell(node="a", axis="age", share=share, e_value=1.0)


def test_an_axis_nobody_declared_is_refused() -> None:
    with pytest.raises(UnknownAxis, match="'height'"):
        RunMonitor(axes=AXES).update([Cell(node="a", axis="height", share=0.1, e_value=1.0)])


def test_a_cell_that_comes_twice_is_refused() -> None:
    cell = Cell(node="a", axis="age", share=0.1, e_value=1.0)
    with pytest.raises(ConfigurationError, match="twice"):
        RunMonitor(axes=AXES).update([cell, cell])


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"axes": ()}, "axes"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"sparse_share": 1.5}, "sparse_share"),
        ({"depth": 0}, "depth"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        RunMonitor(**{"axes": AXES, **options})  # type: ignore[arg-type]  # pyright: ignore
