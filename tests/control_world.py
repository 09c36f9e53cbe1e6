"""A world to study control in: a 21-node graph whose nodes answer by known laws.

Answers are categories at distance 0 or 1, so the orbit of a probe depends only on how often each
category occurs in its pooled samples. All e- and p-values are therefore exact, and cheap: there
are 176 different orbits for 10 reference and 5 counterfactual samples.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinspan.collector.topology import AgentDAG

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LAYERS: Final = (1, 2, 3, 3, 2, 3, 3, 2, 1, 1)
AXES: Final = ("age", "gender", "origin", "religion")

LAWS: Final[tuple[tuple[float, ...], ...]] = (
    (0.8, 0.2),
    (0.5, 0.25, 0.12, 0.08, 0.05),
    tuple(math.exp(-k / 15) / sum(math.exp(-j / 15) for j in range(30)) for k in range(30)),
    (1.0, 0.0),
)
"""Two classes, five skewed ones, thirty at a high temperature, and always the same answer."""

CLASSES: Final = max(map(len, LAWS))


def layered(layers: Sequence[int] = LAYERS) -> AgentDAG:
    """Layers of agents, each reading everything the layer before wrote."""
    names = [[f"n{level}.{place}" for place in range(size)] for level, size in enumerate(layers)]
    edges = [
        (source, target)
        for before, after in pairwise(names)
        for source in before
        for target in after
    ]
    return AgentDAG(edges, nodes=[name for layer in names for name in layer])


def steps_of(layers: Sequence[int] = LAYERS) -> list[slice]:
    """The positions of the nodes that fire in each superstep."""
    ends = np.cumsum(layers).tolist()
    return [slice(end - size, end) for end, size in zip(ends, layers, strict=True)]


class Orbit(NamedTuple):
    """All splits of one pool of answers, grouped by their statistic, in rising order."""

    keys: Ints
    weights: Floats
    e_values: Floats
    p_values: Floats
    deltas: Floats


def moved(law: Sequence[float], share: float) -> Floats:
    """The law after a share of its likeliest class went to its least likely one."""
    probabilities = np.zeros(CLASSES)
    probabilities[: len(law)] = law
    probabilities[len(law) - 1] += share * probabilities[0]
    probabilities[0] *= 1 - share
    return probabilities


def statistic(pooled: Ints, other: Ints, n: int, m: int) -> Ints:
    """delta times its denominator ``2 n m (n - 1)(m - 1)``: an integer, so ties are exact."""
    squares = (other * other).sum(-1)
    cross = (pooled * other).sum(-1) - squares
    reference = ((pooled - other) ** 2).sum(-1)
    between = 2 * (n - 1) * (m - 1) * (n * m - cross)
    within = m * (m - 1) * (n * n - reference) + n * (n - 1) * (m * m - squares)
    return np.asarray(between - within, dtype=np.int64)


@cache
def orbit(counts: tuple[int, ...], n: int, m: int) -> Orbit:
    """The orbit of a pool with these class counts: a sum over classes, class by class."""
    ways: dict[tuple[int, int, int], int] = {(0, 0, 0): 1}
    for count in counts:
        grown: dict[tuple[int, int, int], int] = defaultdict(int)
        for (taken, squares, cross), number in ways.items():
            for part in range(min(count, m - taken) + 1):
                key = (taken + part, squares + part * part, cross + count * part)
                grown[key] += number * math.comb(count, part)
        ways = grown
    return _ranked(ways, counts, n, m)


def _ranked(
    ways: dict[tuple[int, int, int], int], counts: tuple[int, ...], n: int, m: int
) -> Orbit:
    pool = sum(count * count for count in counts)
    grouped: dict[int, int] = defaultdict(int)
    for (taken, squares, mixed), number in ways.items():
        if taken == m:
            between = 2 * (n - 1) * (m - 1) * (n * m - (mixed - squares))
            reference = n * n - (pool - 2 * mixed + squares)
            within = m * (m - 1) * reference + n * (n - 1) * (m * m - squares)
            grouped[between - within] += number
    keys = np.array(sorted(grouped), dtype=np.int64)
    weights = np.array([grouped[int(key)] for key in keys], dtype=np.float64)
    weights /= weights.sum()
    deltas = keys / (2 * n * m * (n - 1) * (m - 1))
    return Orbit(keys, weights, _e_values(deltas, weights), _tails(weights), deltas)


def _tails(weights: Floats) -> Floats:
    return np.asarray(np.cumsum(weights[::-1])[::-1])


def _e_values(deltas: Floats, weights: Floats) -> Floats:
    mean = float(weights @ deltas)
    deviation = math.sqrt(max(float(weights @ (deltas - mean) ** 2), 0.0))
    score = (deltas - mean) / deviation if deviation > 1e-12 else np.zeros_like(deltas)
    rank, distance = _tails(weights) ** -0.9, np.exp(score)
    return np.asarray(0.5 * rank / (weights @ rank) + 0.5 * distance / (weights @ distance))


@dataclass(slots=True)
class OrbitBook:
    """All orbits of one shape that came up, side by side for lookups over whole arrays."""

    n: int
    m: int
    known: dict[int, int] = field(default_factory=dict[int, int])
    orbits: list[Orbit] = field(default_factory=list[Orbit])

    def look_up(self, pooled: Ints, other: Ints) -> Probes:
        """The probe results of counts with shape ``(..., classes)``."""
        shape = pooled.shape[:-1]
        flat, mine = pooled.reshape(-1, pooled.shape[-1]), other.reshape(-1, other.shape[-1])
        which = self._numbers(flat)
        keys = statistic(flat, mine, self.n, self.m)
        places = np.empty(len(flat), dtype=np.int64)
        for number in np.unique(which):
            rows = which == number
            places[rows] = np.searchsorted(self.orbits[number].keys, keys[rows])
        return Probes(self, which.reshape(shape), places.reshape(shape))

    def _numbers(self, pooled: Ints) -> Ints:
        # The sum does not care which class had which count.
        signature = _SIGNATURES[pooled].sum(axis=1)
        values, first, back = np.unique(signature, return_index=True, return_inverse=True)
        numbers = [
            self._number(int(value), pooled[row]) for value, row in zip(values, first, strict=True)
        ]
        return np.array(numbers, dtype=np.int64)[back]

    def _number(self, signature: int, counts: Ints) -> int:
        if signature not in self.known:
            self.known[signature] = len(self.orbits)
            present = tuple(sorted((int(c) for c in counts if c), reverse=True))
            self.orbits.append(orbit(present, self.n, self.m))
        return self.known[signature]

    def column(self, name: str) -> tuple[Floats, Ints]:
        """One field of all orbits in one row, and where each orbit begins."""
        parts = [getattr(each, name) for each in self.orbits]
        return np.concatenate(parts), np.cumsum([0, *map(len, parts[:-1])])


_SIGNATURES: Final = np.concatenate(
    [[0], np.random.default_rng(0).integers(1, 2**62, size=64, dtype=np.int64)]
)


@dataclass(frozen=True, slots=True)
class Probes:
    """Results of many probes: which orbit each belongs to and where in it."""

    book: OrbitBook
    which: Ints
    place: Ints

    def _field(self, name: str) -> Floats:
        values, starts = self.book.column(name)
        return np.asarray(values[starts[self.which] + self.place])

    @property
    def e(self) -> Floats:
        """e-values."""
        return self._field("e_values")

    @property
    def p(self) -> Floats:
        """p-values."""
        return self._field("p_values")

    @property
    def delta(self) -> Floats:
        """Excess disagreements."""
        return self._field("deltas")

    def every_e(self, index: tuple[int, ...]) -> Floats:
        """The e-values of all splits of one probe, as the monitor is given them."""
        found = self.book.orbits[int(self.which[index])]
        total = math.comb(self.book.n + self.book.m, self.book.m)
        return np.repeat(found.e_values, np.rint(found.weights * total).astype(int))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Who is biased, on the first axis, and by how much.

    Attributes:
        share: part of the likeliest answer that moves.
        start: the first layer, from 0, whose nodes are biased.
        single: only one node of that layer is, each in turn over the runs.
    """

    share: float = 0.0
    start: int = 3
    single: bool = False

    def guilty(self, layers: Sequence[int], runs: int) -> NDArray[np.bool_]:
        """Which node is biased in which run, shape ``(runs, nodes)``."""
        nodes = sum(layers)
        biased = np.zeros((runs, nodes), dtype=np.bool_)
        if not self.share:
            return biased
        first = sum(layers[: self.start])
        if self.single:
            biased[np.arange(runs), first + np.arange(runs) % layers[self.start]] = True
        else:
            biased[:, first:] = True
        return biased


@dataclass(slots=True)
class World:
    """Draws answers; one instance per simulation."""

    layers: Sequence[int] = LAYERS
    laws: Sequence[Sequence[float]] = LAWS
    axes: int = len(AXES)
    seed: int = 20260731
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return sum(self.layers)

    def draw(self, size: int, runs: int, share: float, biased: NDArray[np.bool_]) -> Ints:
        """Counts of ``size`` answers of every node in every run: (runs, nodes, classes)."""
        counts = np.zeros((runs, self.nodes, CLASSES), dtype=np.int64)
        for node in range(self.nodes):
            law = self.laws[node % len(self.laws)]
            for state, chosen in ((0.0, ~biased[:, node]), (share, biased[:, node])):
                drawn = self.rng.multinomial(size, moved(law, state), size=int(chosen.sum()))
                counts[chosen, node] = drawn
        return counts

    def arms(self, n: int, m: int, runs: int, scenario: Scenario) -> tuple[Ints, Ints]:
        """Reference counts (runs, nodes, 1, classes) and one arm per axis (..., axes, classes)."""
        nobody = np.zeros((runs, self.nodes), dtype=np.bool_)
        guilty = scenario.guilty(self.layers, runs)
        reference = self.draw(n, runs, 0.0, nobody)[:, :, None, :]
        others = [
            self.draw(m, runs, scenario.share, guilty if axis == 0 else nobody)
            for axis in range(self.axes)
        ]
        return reference, np.stack(others, axis=2)

    def probes(self, book: OrbitBook, runs: int, scenario: Scenario) -> Probes:
        """One probe of every node on every axis, shape (runs, nodes, axes)."""
        reference, others = self.arms(book.n, book.m, runs, scenario)
        return book.look_up(reference + others, others)

    def screens(self, book: OrbitBook, runs: int, scenario: Scenario) -> Probes:
        """One probe of every node with all axes swapped together, shape (runs, nodes)."""
        nobody = np.zeros((runs, self.nodes), dtype=np.bool_)
        reference = self.draw(book.n, runs, 0.0, nobody)
        others = self.draw(book.m, runs, scenario.share, scenario.guilty(self.layers, runs))
        return book.look_up(reference + others, others)
