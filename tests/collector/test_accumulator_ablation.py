"""Do the weights matter? The default reduction is the one for which the answer is yes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from control_rules import Halts, ewma, in_order, reduced, standardised, weights_of
from control_world import LAYERS, Floats, OrbitBook, Probes, Scenario, World

from twinspan.collector.accumulator import DEFAULT_REDUCTION, NetworkAccumulator
from twinspan.collector.topology import AgentDAG
from twinspan.collector.weights import dependency_weights
from twinspan.instrumentation.settings import Reduction

KATZ = in_order(weights_of(LAYERS), scaled=True)
UNIFORM = np.ones_like(KATZ)

HUB = AgentDAG([("root", "hub"), *(("hub", f"w{i}") for i in range(1, 5))])


def final_fast(
    weights: dict[str, float], supersteps: list[dict[str, float]], reduction: Reduction
) -> float:
    accumulator = NetworkAccumulator(reduction=reduction)
    for magnitudes in supersteps:
        accumulator.update(magnitudes, weights)
    return accumulator.state.fast


def spread(source: str) -> list[dict[str, float]]:
    """A magnitude of .2 at one node of the hub graph; from the hub it reaches all four workers."""
    workers = [f"w{i}" for i in range(1, 5)]
    reached = workers if source == "hub" else [source]
    return [
        {"root": 0.0},
        {"hub": 0.2 if source == "hub" else 0.0},
        {worker: 0.2 if worker in reached else 0.0 for worker in workers},
    ]


def test_s1_uniform_weights_change_the_default_score() -> None:
    """The published contrast of hub and worker was the same to the last bit without weights."""
    katz = dict(dependency_weights(HUB).scaled)
    uniform = dict.fromkeys(katz, 1.0)
    for source in ("hub", "w1"):
        supersteps = spread(source)
        weighted = final_fast(katz, supersteps, DEFAULT_REDUCTION)
        assert weighted != pytest.approx(final_fast(uniform, supersteps, DEFAULT_REDUCTION))
        same = final_fast(katz, supersteps, "weighted_mean")
        assert same == pytest.approx(final_fast(uniform, supersteps, "weighted_mean"))
        assert final_fast(katz, supersteps, "max") == final_fast(uniform, supersteps, "max")


def test_s1_on_a_chain_the_same_magnitude_counts_more_upstream() -> None:
    chain = AgentDAG([(f"n{i}", f"n{i + 1}") for i in range(5)])
    weights = dict(dependency_weights(chain).scaled)
    alone = [final_fast(weights, [{node: 0.4}], DEFAULT_REDUCTION) for node in chain]
    assert alone == sorted(alone, reverse=True)
    assert alone[0] == pytest.approx(0.4)
    assert alone[-1] == pytest.approx(0.4 * weights["n5"])


def test_s1_a_leaf_that_is_probed_alone_does_not_fill_the_score() -> None:
    """One leaf of weight .001 of fifty nodes with magnitude .4 once gave .4."""
    star = AgentDAG(("hub", f"leaf{i}") for i in range(49))
    weights = dict(dependency_weights(star).scaled)
    assert final_fast(weights, [{"leaf7": 0.4}], DEFAULT_REDUCTION) < 0.02
    assert final_fast(weights, [{"leaf7": 0.4}], "weighted_mean") == pytest.approx(0.4)


class Study:
    """Clean and biased runs of the 21-node graph, probed once."""

    def __init__(self) -> None:
        world, book = World(seed=5), OrbitBook(10, 5)
        self.controls = world.probes(book, 1_500, Scenario())
        self.clean = world.probes(book, 1_500, Scenario())
        self.spread = world.probes(book, 400, Scenario(share=0.7))

    def rates(self, score: Callable[[Probes], Floats]) -> tuple[float, float]:
        """Clean runs halted and spreads detected, threshold at 5 % of the controls' maxima."""
        tau = float(np.quantile(score(self.controls).max(axis=1), 0.95))
        halts = Halts.at(score(self.clean), tau), Halts.at(score(self.spread), tau)
        return halts[0].rate, halts[1].rate


@pytest.fixture(scope="module")
def study() -> Study:
    return Study()


def raw(rule: Reduction, weights: Floats) -> Callable[[Probes], Floats]:
    return lambda probes: ewma(reduced(probes.delta.mean(axis=2), weights, LAYERS, rule), 0.7)


def in_deviations(rule: Reduction, weights: Floats) -> Callable[[Probes], Floats]:
    return lambda probes: standardised(probes, weights, LAYERS, rule, 0.7)


@pytest.mark.parametrize("rule", ["weighted_mean", "max"])
def test_on_layers_of_equal_agents_the_old_reductions_do_not_see_the_weights(
    study: Study, rule: Reduction
) -> None:
    one, other = raw(rule, KATZ)(study.clean), raw(rule, UNIFORM)(study.clean)
    np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("rule", ["impact_sum", "impact_max"])
def test_the_new_reductions_do(study: Study, rule: Reduction) -> None:
    one, other = raw(rule, KATZ)(study.clean), raw(rule, UNIFORM)(study.clean)
    assert float(np.abs(one - other).mean()) > 0.01


def test_the_default_detects_a_spread_when_thresholds_follow_the_deviation(study: Study) -> None:
    """Seven tenths of the top answer move in every later node; 5 % of clean runs halted."""
    clean, found = study.rates(in_deviations("impact_sum", KATZ))
    assert clean <= 0.07
    assert found >= 0.9
    assert found >= study.rates(in_deviations("weighted_mean", KATZ))[1] - 0.02
    assert found >= study.rates(in_deviations("impact_sum", UNIFORM))[1] - 0.02


def test_the_default_with_a_constant_threshold_is_drowned_by_its_first_supersteps(
    study: Study,
) -> None:
    """Why the docstring asks for variances: the noise of the root sets the threshold."""
    assert study.rates(raw("impact_sum", KATZ))[1] < 0.3
    assert study.rates(raw("impact_sum", KATZ))[1] >= study.rates(raw("impact_max", KATZ))[1]
