"""Halting rules over whole arrays of runs; the package's own rules, vectorised for a study.

Shapes: R runs, S supersteps, N nodes, A axes. A path is the (R, S) array of a rule's number after
each superstep.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from control_world import (
    CLASSES,
    LAWS,
    Floats,
    Ints,
    OrbitBook,
    Probes,
    Scenario,
    World,
    layered,
    steps_of,
)

from twinspan.collector.monitor import DEFAULT_SPARSE_SHARE
from twinspan.collector.overshoot import BOOST_STEP, HIGHEST_BOOST
from twinspan.collector.stakes import start_masses
from twinspan.collector.weights import DependencyWeights, dependency_weights
from twinspan.instrumentation.probing.rounds import ProbePlan


def weights_of(layers: Sequence[int]) -> DependencyWeights:
    """Katz weights of the layered graph."""
    return dependency_weights(layered(layers))


def in_order(weights: DependencyWeights, *, scaled: bool = False) -> Floats:
    """Weights by node position: shares, or with the largest at 1."""
    return np.array(list((weights.scaled if scaled else weights.shares).values()))


class Halts(NamedTuple):
    """When each run was halted: superstep from 0, the number of supersteps if never."""

    step: Ints
    steps: int

    @classmethod
    def at(cls, path: Floats, limit: float) -> Halts:
        """The first superstep at which a path reaches a limit."""
        reached = path >= limit * (1 - 1e-6)
        first = np.where(reached.any(axis=1), reached.argmax(axis=1), path.shape[1])
        return cls(first.astype(np.int64), path.shape[1])

    @property
    def rate(self) -> float:
        """Share of runs that were halted."""
        return float((self.step < self.steps).mean())

    def detection(self, start: int) -> tuple[float, float]:
        """Share halted once the bias began, and their mean delay; earlier halts are left out."""
        late = self.step[self.step >= start]
        found = late[late < self.steps]
        return len(found) / max(len(late), 1), float((found - start).mean()) if len(found) else 0.0


@dataclass(slots=True)
class Monitor:
    """M of many runs at once; every node fires once and all are probed."""

    layers: Sequence[int]
    axes: int
    alpha: float = 0.05
    sparse_share: float = DEFAULT_SPARSE_SHARE
    depth_known: bool = True
    shares: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.shares = in_order(weights_of(self.layers))

    def path(self, e_values: Floats, probes: Probes | None = None) -> Floats:
        """M after each superstep, shape (R, S).

        Args:
            e_values: (R, N, A).
            probes: where the e-values come from, to remove overshoot; ``None`` leaves it.
        """
        runs, values = len(e_values), []
        wealth, sparse = np.zeros((runs, self.axes)), np.ones(runs)
        depth = len(self.layers) if self.depth_known else None
        for step, fired in enumerate(steps_of(self.layers), start=1):
            start, tail = start_masses(step, depth)
            dense = self.shares[fired] / self.shares[fired].sum()
            single = self.shares[fired]
            paid = e_values[:, fired]
            if probes is not None:
                caps = self._caps(wealth + start, tail, sparse, dense, single)
                here = Probes(probes.book, probes.which[:, fired], probes.place[:, fired])
                paid = boosted(paid, here, caps)
            wealth = (wealth + start) * np.einsum("f,rfa->ra", dense, paid)
            sparse = sparse + np.einsum("f,rfa->r", single / self.axes, paid - 1.0)
            values.append(self._mixed(wealth.mean(axis=1) + tail, sparse))
        return np.stack(values, axis=1)

    def _mixed(self, dense: Floats, sparse: Floats) -> Floats:
        return np.asarray((1 - self.sparse_share) * dense + self.sparse_share * sparse)

    def _caps(
        self, entering: Floats, tail: float, sparse: Floats, dense: Floats, single: Floats
    ) -> Floats:
        gain = (1 - self.sparse_share) * entering[:, None, :] * dense[None, :, None]
        gain = (gain + self.sparse_share * single[None, :, None]) / self.axes
        rest = self._mixed(entering.mean(axis=1) + tail, sparse) - gain.sum(axis=(1, 2))
        return np.asarray((1 / self.alpha - rest)[:, None, None] / gain)


def boosted(e_values: Floats, probes: Probes, caps: Floats) -> Floats:
    """Overshoot removal of many probes at once; see ``remove_overshoot``."""
    width = max(len(each.keys) for each in probes.book.orbits)
    table = np.zeros((2, len(probes.book.orbits), width))
    for number, each in enumerate(probes.book.orbits):
        table[:, number, : len(each.keys)] = each.e_values, each.weights
    highest = table[0].max(axis=1)
    hit = (highest[probes.which] > caps) & (caps > 1)
    if not hit.any():
        return e_values
    values, weights = table[:, probes.which[hit]]
    factor = _boosts(values, weights, caps[hit])
    result = e_values.copy()
    result[hit] = np.minimum(factor * e_values[hit], caps[hit])
    return result


def _boosts(values: Floats, weights: Floats, caps: Floats) -> Floats:
    factor = np.ones(len(caps))
    while True:
        below = factor[:, None] * values < caps[:, None]
        room = 1 - caps * (weights * ~below).sum(axis=1)
        stake = (weights * values * below).sum(axis=1)
        better = (stake > 0) & (room > factor * stake * (1 + 1e-12))
        if not better.any():
            grid = np.floor((np.minimum(factor, HIGHEST_BOOST) - 1) / BOOST_STEP)
            return np.asarray(1 + grid * BOOST_STEP)
        factor[better] = room[better] / stake[better]


def ewma(inputs: Floats, alpha: float) -> Floats:
    """Bias-corrected moving average along the last axis."""
    raw, out = np.zeros(inputs.shape[:-1]), np.empty_like(inputs)
    for step in range(inputs.shape[-1]):
        raw = alpha * inputs[..., step] + (1 - alpha) * raw
        out[..., step] = raw / (1 - (1 - alpha) ** (step + 1))
    return out


def reduced(magnitudes: Floats, weights: Floats, layers: Sequence[int], rule: str) -> Floats:
    """The input of the moving average, (R, S), from magnitudes (R, N)."""
    impact = magnitudes * weights
    columns = []
    for fired in steps_of(layers):
        if rule == "impact_sum":
            columns.append(impact[:, fired].sum(axis=1))
        elif rule == "impact_max":
            columns.append(impact[:, fired].max(axis=1))
        elif rule == "weighted_mean":
            columns.append(impact[:, fired].sum(axis=1) / weights[fired].sum())
        else:
            columns.append(magnitudes[:, fired].max(axis=1))
    return np.stack(columns, axis=1)


def standardised(
    probes: Probes, weights: Floats, layers: Sequence[int], rule: str, alpha: float
) -> Floats:
    """B over its null standard deviation, (R, S), from the orbit variances of the probes.

    The axes of a node share their reference samples; the covariance of two deltas is taken as half
    their variance, which the orbits do not tell exactly.
    """
    axes = probes.which.shape[2]
    per_orbit = np.array([float(o.weights @ o.deltas**2) for o in probes.book.orbits])
    variance = per_orbit[probes.which].mean(axis=2) * (1 + (axes - 1) / 2) / axes
    value = ewma(reduced(probes.delta.mean(axis=2), weights, layers, rule), alpha)
    factors = weights**2
    if rule == "weighted_mean":
        for fired in steps_of(layers):
            factors[fired] = (weights[fired] / weights[fired].sum()) ** 2
    inputs = reduced(variance, factors, layers, "impact_sum")
    raw = np.zeros(len(inputs))
    deviation = np.empty_like(inputs)
    for step in range(inputs.shape[1]):
        raw = alpha**2 * inputs[:, step] + (1 - alpha) ** 2 * raw
        deviation[:, step] = np.sqrt(raw) / (1 - (1 - alpha) ** (step + 1))
    return np.asarray(value / np.maximum(deviation, 1e-9))


class Adaptive(NamedTuple):
    """Wealth (R, N, A) after a plan, and the calls it took (R, N)."""

    wealth: Floats
    calls: Ints


def probe_adaptively(world: World, plan: ProbePlan, runs: int, scenario: Scenario) -> Adaptive:
    """Every node of every run probed by a plan, with fresh samples in every round."""
    wealth = np.ones((runs, world.nodes, world.axes))
    calls = np.zeros((runs, world.nodes), dtype=np.int64)
    live = np.ones((runs, world.nodes, world.axes), dtype=np.bool_)
    if plan.screen is not None:
        book = _book(plan.screen.reference, plan.screen.counterfactual)
        paid = world.screens(book, runs, scenario).e
        calls += plan.screen.calls(1)
        wealth *= paid[:, :, None]
        live &= (paid >= plan.screen_bar)[:, :, None]
    for number, each in enumerate(plan.rounds):
        if number:
            live &= wealth >= plan.bars[number - 1]
        paid = world.probes(_book(each.reference, each.counterfactual), runs, scenario).e
        wealth = np.where(live, wealth * paid, wealth)
        axes = live.sum(axis=2)
        calls += np.where(axes > 0, each.reference + each.counterfactual * axes, 0)
    return Adaptive(wealth, calls)


@cache
def _book(n: int, m: int) -> OrbitBook:
    return OrbitBook(n, m)


_PAIR_SIGNATURES: Final = np.random.default_rng(1).integers(1, 2**62, size=(64, 64))
_PAIR_SIGNATURES[0, 0] = 0

# The prior implementation's rule, rebuilt on exact orbits ----------------------------------------


@cache
def _peer_orbit(counts: tuple[int, ...], n: int) -> tuple[Floats, Floats]:
    """Jensen-Shannon divergence in bits of every split into n and n, with its probability."""
    ways: dict[tuple[int, float], int] = {(0, 0.0): 1}
    for count in counts:
        grown: dict[tuple[int, float], int] = defaultdict(int)
        for (taken, total), number in ways.items():
            for part in range(min(count, n - taken) + 1):
                term = _divergence_term((count - part) / n, part / n)
                key = (taken + part, round(total + term, 12))
                grown[key] += number * math.comb(count, part)
        ways = grown
    kept = sorted((value, number) for (taken, value), number in ways.items() if taken == n)
    values = np.array([value for value, _ in kept])
    weights = np.array([number for _, number in kept], dtype=np.float64)
    return values, weights / weights.sum()


def _divergence_term(p: float, q: float) -> float:
    middle = (p + q) / 2
    return sum(0.5 * x * math.log2(x / middle) for x in (p, q) if x > 0)


def peer_magnitudes(reference: Ints, others: Ints, n: int) -> Floats:
    """Excess divergence of the axis with the largest effect, 0 unless its p is at most .05."""
    pooled = (reference + others).reshape(-1, CLASSES)
    mine = others.reshape(-1, CLASSES)
    # A score does not care which class had which pair of counts, so few are different.
    signature = _PAIR_SIGNATURES[pooled, mine].sum(axis=1)
    _, first, back = np.unique(signature, return_index=True, return_inverse=True)
    results = np.array([_peer_score(pooled[row], mine[row], n) for row in first])
    effect, magnitude = results[back].reshape(*others.shape[:-1], 2).transpose(3, 0, 1, 2)
    worst = effect.argmax(axis=2)[:, :, None]
    return np.asarray(np.take_along_axis(magnitude, worst, axis=2)[:, :, 0])


def _peer_score(pooled: Ints, other: Ints, n: int) -> tuple[float, float]:
    counts = tuple(sorted((int(count) for count in pooled if count), reverse=True))
    values, weights = _peer_orbit(counts, n)
    pairs = zip(pooled - other, other, strict=True)
    observed = sum(_divergence_term(int(x) / n, int(y) / n) for x, y in pairs)
    mean = float(weights @ values)
    deviation = max(math.sqrt(max(float(weights @ (values - mean) ** 2), 0.0)), 1e-9)
    p_value = float(weights[values >= observed - 1e-9].sum())
    return (observed - mean) / deviation, max(observed - mean, 0.0) if p_value <= 0.05 else 0.0


# A bias that spreads -----------------------------------------------------------------------------

HUB: Final = (1, 1, 4)


@dataclass(frozen=True, slots=True)
class Spread:
    """What B_fast did over the seeds.

    Attributes:
        rises: share of seeds in which it ends above where the bias began.
        over: share that ends more than 1.645 null deviations above 0.
        first, last: its mean where the bias began, and at the end.
    """

    rises: float
    over: float
    first: float
    last: float


def spread(
    layers: tuple[int, ...], start: int, share: float, weights: Floats, seeds: int
) -> Spread:
    """Probe a bias that begins in one superstep and reaches every later node."""
    world, book = World(layers=layers, laws=(LAWS[1],), axes=1, seed=20260731), OrbitBook(10, 5)
    probes = world.probes(book, seeds, Scenario(share=share, start=start))
    score = ewma(reduced(probes.delta.mean(axis=2), weights, layers, "impact_sum"), 0.7)
    deviations = standardised(probes, weights, layers, "impact_sum", 0.7)
    return Spread(
        rises=float((score[:, -1] > score[:, start]).mean()),
        over=float((deviations[:, -1] > 1.645).mean()),
        first=float(score[:, start].mean()),
        last=float(score[:, -1].mean()),
    )


# Path permutation --------------------------------------------------------------------------------

REPLICAS: Final = 399


def permuted_scores(
    world: World, reference: Ints, others: Ints, n: int, m: int, weights: Floats
) -> Floats:
    """B_fast inputs of every run and its replicas, (R, S, 1 + replicas), mean over the axes."""
    runs = len(reference)
    magnitudes = np.stack([_permuted(world, reference[r], others[r], n, m) for r in range(runs)])
    columns = [
        np.einsum("f,rfk->rk", weights[fired], magnitudes[:, fired])
        for fired in steps_of(world.layers)
    ]
    return np.stack(columns, axis=1)


def _permuted(world: World, reference: Ints, others: Ints, n: int, m: int) -> Floats:
    """Mean delta over the axes per node, observed first, (N, 1 + replicas)."""
    total = n + m * world.axes
    groups = np.repeat(np.arange(world.axes + 1), [n] + [m] * world.axes)
    out = np.empty((world.nodes, REPLICAS + 1))
    for node in range(world.nodes):
        arms = np.concatenate([reference[node], others[node]])
        answers = np.concatenate([np.repeat(np.arange(CLASSES), row) for row in arms])
        orders = world.rng.permuted(np.tile(np.arange(total), (REPLICAS, 1)), axis=1)
        labels = np.concatenate([groups[None, :], groups[orders]])
        counts = np.zeros((REPLICAS + 1, world.axes + 1, CLASSES), dtype=np.int64)
        np.add.at(counts, (np.arange(REPLICAS + 1)[:, None], labels, answers[None, :]), 1)
        first, rest = counts[:, :1], counts[:, 1:]
        keys = _wide_statistic(first, rest, n, m)
        out[node] = keys.mean(axis=1)
    return out


def _wide_statistic(first: Ints, rest: Ints, n: int, m: int) -> Floats:
    across = 1 - (first * rest).sum(-1) / (n * m)
    within_first = (n * n - (first * first).sum(-1)) / (n * (n - 1))
    within_rest = (m * m - (rest * rest).sum(-1)) / (m * (m - 1))
    return np.asarray(across - (within_first + within_rest) / 2)


def path_permutation_halts(inputs: Floats, alpha: float, smoothing: float = 0.7) -> Halts:
    """Which superstep stops the observed path, all runs at once; see ``PathPermutation``."""
    runs, steps, paths = inputs.shape
    raw, live = np.zeros((runs, paths)), np.ones((runs, paths), dtype=np.bool_)
    first = np.full(runs, steps, dtype=np.int64)
    for step in range(steps):
        raw = smoothing * inputs[:, step] + (1 - smoothing) * raw
        budget = math.floor(alpha * (step + 1) / steps * paths + 1e-9)
        for run in range(runs):
            left = budget - int((~live[run]).sum())
            ranked = np.sort(raw[run][live[run]])
            at_least = ranked.size - np.searchsorted(ranked, raw[run] - 1e-12)
            stopped = live[run] & (at_least <= left)
            if stopped[0]:
                first[run] = min(first[run], step)
            live[run] &= ~stopped
    return Halts(first, steps)
