"""Error rates and detection on simulated runs: the study in small.

The full study, with more runs and more rules, is ``benchmarks/study_control.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from control_rules import (
    Adaptive,
    Halts,
    Monitor,
    ewma,
    in_order,
    peer_magnitudes,
    probe_adaptively,
    reduced,
    weights_of,
)
from control_world import AXES, LAWS, LAYERS, OrbitBook, Scenario, World, layered, steps_of

from twinspan.collector.cells import Cell
from twinspan.collector.monitor import RunMonitor
from twinspan.instrumentation.orbit import orbit_e_values
from twinspan.instrumentation.probing.rounds import (
    ADAPTIVE_PLAN,
    FIXED_PLAN,
    THOROUGH_PLAN,
    NextRound,
    ProbePlan,
    ProbeProgress,
    Round,
)

START = 3


def test_the_simulated_orbits_are_the_real_ones() -> None:
    """Count tables against the exact test on the answers themselves."""
    world, book = World(seed=3), OrbitBook(6, 3)
    reference, others = world.arms(6, 3, 3, Scenario(share=0.5))
    probes = book.look_up(reference + others, others)
    for run, node, axis in ((0, 0, 0), (1, 5, 2), (2, 7, 0), (2, 2, 1)):
        arms = np.concatenate(
            [
                np.repeat(np.arange(30), reference[run, node, 0]),
                np.repeat(np.arange(30), others[run, node, axis]),
            ]
        )
        distances = (arms[:, None] != arms[None, :]).astype(np.float64)
        observed, every = orbit_e_values(distances, 6)
        assert probes.e[run, node, axis] == pytest.approx(observed)
        np.testing.assert_allclose(np.sort(probes.every_e((run, node, axis))), np.sort(every))


@pytest.mark.parametrize("overshoot", [False, True])
def test_the_simulated_monitor_is_the_real_one(overshoot: bool) -> None:
    """M after every superstep of ten runs, spread bias so that caps bind."""
    world, book = World(seed=4), OrbitBook(10, 5)
    probes = world.probes(book, 10, Scenario(share=0.8))
    path = Monitor(LAYERS, world.axes).path(probes.e, probes if overshoot else None)
    shares = weights_of(LAYERS)
    names = layered().nodes
    for run in range(10):
        monitor = RunMonitor.for_graph(layered(), AXES)
        monitor.overshoot = overshoot
        for step, fired in enumerate(steps_of()):
            cells = [
                Cell(
                    node=names[node],
                    axis=axis,
                    share=shares[names[node]],
                    e_value=float(probes.e[run, node, place]),
                    orbit=probes.every_e((run, node, place)),
                )
                for node in range(fired.start, fired.stop)
                for place, axis in enumerate(AXES)
            ]
            value = monitor.update(cells).value
            assert value == pytest.approx(path[run, step], rel=1e-4)
            if monitor.state.fired:
                break


@pytest.fixture(scope="module")
def fixed() -> dict[str, Halts]:
    """The monitor at .05 on the fixed plan."""
    world, book = World(seed=6), OrbitBook(10, 5)
    monitor = Monitor(LAYERS, world.axes)
    scenarios = {
        "clean": (Scenario(), 2_000),
        "prop .5": (Scenario(share=0.5), 400),
        "prop .7": (Scenario(share=0.7), 300),
        "prop .9": (Scenario(share=0.9), 300),
    }
    found: dict[str, Halts] = {}
    for name, (scenario, runs) in scenarios.items():
        probes = world.probes(book, runs, scenario)
        found[name] = Halts.at(monitor.path(probes.e, probes), 20.0)
    return found


def test_s2_clean_runs_are_halted_less_often_than_alpha(fixed: dict[str, Halts]) -> None:
    """Runs, not supersteps, on the 21-node graph."""
    assert fixed["clean"].rate <= 0.05


@pytest.mark.parametrize(
    ("name", "least"), [("prop .5", 0.75), ("prop .7", 0.98), ("prop .9", 0.99)]
)
def test_spreading_bias_is_detected(fixed: dict[str, Halts], name: str, least: float) -> None:
    assert fixed[name].detection(START)[0] >= least


def test_s2_the_prior_rule_halts_a_third_of_clean_runs_at_its_five_percent() -> None:
    """Superstep quantiles are no run-level rates: .36 at .05 and .10 at .01 on this graph."""
    world = World(seed=11)
    weights = in_order(weights_of(LAYERS))
    paths = [
        ewma(
            reduced(
                peer_magnitudes(*world.arms(5, 5, 1_200, Scenario()), 5),
                weights,
                LAYERS,
                "weighted_mean",
            ),
            0.7,
        )
        for _ in range(2)
    ]
    rates = [Halts.at(paths[1], float(np.quantile(paths[0], level))).rate for level in (0.95, 0.99)]
    assert rates[0] == pytest.approx(0.36, abs=0.05)
    assert rates[1] == pytest.approx(0.10, abs=0.04)


@pytest.mark.parametrize(
    ("nodes", "axes", "steps", "law", "sizes"),
    [
        (1, 1, 50, LAWS[0], (6, 3)),
        (1, 2, 5, LAWS[1], (10, 5)),
        (2, 1, 20, LAWS[2], (10, 5)),
        (3, 2, 10, LAWS[1], (6, 3)),
    ],
)
@pytest.mark.parametrize("depth_known", [True, False])
def test_s6_and_s7_no_shape_of_run_is_halted_more_often_than_alpha(
    nodes: int,
    axes: int,
    steps: int,
    law: tuple[float, ...],
    sizes: tuple[int, int],
    depth_known: bool,
) -> None:
    """Looks after every superstep, several nodes and axes: still one alpha for the run."""
    world = World(layers=(nodes,) * steps, laws=(law,), axes=axes, seed=9)
    probes = world.probes(OrbitBook(*sizes), 1_500, Scenario())
    for alpha in (0.05, 0.2):
        monitor = Monitor(world.layers, axes, alpha=alpha, depth_known=depth_known)
        halts = Halts.at(monitor.path(probes.e, probes), 1 / alpha)
        deviation = (alpha * (1 - alpha) / 1_500) ** 0.5
        assert halts.rate <= alpha + 2 * deviation


def scalar_calls(plan: ProbePlan, e_values: dict[str, list[float]], screen: float) -> int:
    """What the plan itself asks for when the rounds pay these e-values."""
    progress, calls = ProbeProgress.start(tuple(e_values)), 0
    while isinstance(due := plan.next(progress), NextRound):
        calls += due.calls
        if due.combined:
            progress = progress.after_screen(screen)
        else:
            paid = {axis: e_values[axis][progress.rounds] for axis in due.axes}
            progress = progress.after_round(paid)
    return calls


def test_a_clean_run_of_the_adaptive_plan_costs_two_fifths(plans: dict[str, Adaptive]) -> None:
    assert plans["fixed"].calls.sum(axis=1).mean() == 630
    assert plans["adaptive clean"].calls.sum(axis=1).mean() <= 0.40 * 630
    assert plans["thorough clean"].calls.sum(axis=1).mean() <= 0.32 * 1_260


@pytest.fixture(scope="module")
def plans() -> dict[str, Adaptive]:
    world = World(seed=13)
    spread, single = Scenario(share=0.5), Scenario(share=0.9, single=True)
    return {
        "fixed": probe_adaptively(world, FIXED_PLAN, 300, spread),
        "fixed single": probe_adaptively(world, FIXED_PLAN, 300, single),
        "adaptive": probe_adaptively(world, ADAPTIVE_PLAN, 300, spread),
        "adaptive single": probe_adaptively(world, ADAPTIVE_PLAN, 300, single),
        "adaptive clean": probe_adaptively(world, ADAPTIVE_PLAN, 1_000, Scenario()),
        "thorough": probe_adaptively(world, THOROUGH_PLAN, 300, spread),
        "thorough clean": probe_adaptively(world, THOROUGH_PLAN, 500, Scenario()),
    }


def test_adaptive_probing_detects_no_less_and_halts_no_clean_run_more(
    plans: dict[str, Adaptive],
) -> None:
    monitor = Monitor(LAYERS, len(AXES))
    rate = {name: Halts.at(monitor.path(plan.wealth), 20.0) for name, plan in plans.items()}
    for kind in ("", " single"):
        adaptive = rate["adaptive" + kind].detection(START)
        fixed = rate["fixed" + kind].detection(START)
        assert adaptive[0] >= fixed[0] - 0.03
        assert adaptive[1] <= fixed[1]
    assert rate["thorough"].detection(START)[0] >= 0.97
    assert rate["adaptive clean"].rate <= 0.05
    assert rate["thorough clean"].rate <= 0.05


def test_the_study_counts_the_calls_the_plan_asks_for() -> None:
    """Screened out: 9. Screen passed, one axis of two live after the first round: 9 + 12 + 15."""
    wealth = {"age": [4.0, 0.1, 1.0], "gender": [0.2, 1.0, 1.0]}
    assert scalar_calls(ADAPTIVE_PLAN, wealth, screen=1.0) == 9
    assert scalar_calls(ADAPTIVE_PLAN, wealth, screen=1.5) == 9 + 12 + 15
    assert scalar_calls(FIXED_PLAN, wealth, screen=1.0) == 20
    double = ProbePlan(rounds=(Round(reference=20, counterfactual=10),))
    assert scalar_calls(double, wealth, screen=1.0) == 40
