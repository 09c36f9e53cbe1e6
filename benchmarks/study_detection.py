"""What the exact test of one probe set promises and what it finds, on simulated nodes.

Prints tables of false alarms, power, stability of delta over the number of samples, intervals,
several axes, wording and dependence, each with its Monte Carlo error. Nothing here calls a
model; every number can be had again.

Run with ``python benchmarks/study_detection.py``; ``--quick`` for a tenth of the nodes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from math import comb
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import simulated_nodes as nodes
from simulated_nodes import Floats

from twinspan.instrumentation.dependence import dependence_test
from twinspan.instrumentation.effect_interval import intervals
from twinspan.instrumentation.evidence import TIE
from twinspan.instrumentation.joint import joint_maxima
from twinspan.instrumentation.orbit import (
    OrbitBatch,
    orbit_e_values,
    orbit_test_triangles,
    square,
)
from twinspan.instrumentation.splits import plan_splits


def rng_of(*key: int) -> nodes.Rng:
    """A generator of its own for every cell of a table."""
    return np.random.default_rng([2026, *key])


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], error: str) -> None:
    """One table, printed as its rows are done."""
    print(f"\n{title}  [{error}]")
    print(f"{'':<34}" + "".join(f"{name:>21}" for name in head))
    for name, *cells in rows:
        print(f"{name:<34}" + "".join(f"{cell:>21}" for cell in cells), flush=True)


def error_at(rate: float, count: int) -> str:
    """Monte Carlo error of a rate."""
    return f"+- {100 * np.sqrt(rate * (1 - rate) / count):.1f} points at {rate:g}"


def rate(p: Floats, alpha: float = 0.05) -> float:
    """Share of p-values at most alpha."""
    return float(np.mean(p <= alpha))


def both(p: Floats) -> str:
    """Shares at .05 and .01."""
    return f"{rate(p):.3f} / {rate(p, 0.01):.3f}"


def coin(found: OrbitBatch, rng: nodes.Rng) -> Floats:
    """p-values with ties split by a coin."""
    values: Floats = found.p - (1 - rng.random(len(found.p))) * found.ties / found.size
    return values


# --- false alarms ---------------------------------------------------------------------------


def false_alarms(count: int) -> None:
    """Every law and shape: share flagged, and whether ties explain all that is missing."""

    def rows() -> Iterable[Sequence[str]]:
        for key, (law, make) in enumerate(nodes.UNBIASED.items()):
            found = {
                n: orbit_test_triangles(make(rng_of(1, key, n), count, n + m), n)
                for n, m in ((10, 5), (20, 10), (5, 5))
            }
            split = coin(found[10], rng_of(2, key))
            fit = stats.kstest(split, "uniform").pvalue
            tail = (both(split), f"KS p {fit:.3f}", f"{np.mean(found[10].e >= 20):.4f}")
            yield (law, *(both(each.p) for each in found.values()), *tail)

    head = ("10:5 at .05/.01", "20:10", "5:5", "10:5, ties by coin", "uniform?", "P(e >= 20)")
    table(f"False alarms, {count} unbiased nodes", head, rows(), error_at(0.05, count))


def e_values(count: int) -> None:
    """The mean e-value over whole orbits, with ties and determinism."""
    worst = 0.0
    for key, make in enumerate(nodes.UNBIASED.values()):
        for n, m in ((5, 5), (10, 5), (6, 3), (12, 12)):
            for triangle in make(rng_of(3, key, n), count // 32, n + m):
                _, everyone = orbit_e_values(square(triangle), n)
                worst = max(worst, abs(float(everyone.mean()) - 1))
    print(f"\nMean e-value over an orbit: farthest from 1 in {count} orbits: {worst:.1e}")


# --- power ----------------------------------------------------------------------------------


def power(count: int) -> None:
    """Our distance beside 1 - cos and the cosine distance of the arms' means."""

    def rows() -> Iterable[Sequence[str]]:
        for key, kind in enumerate(nodes.GAUSSIAN):
            for n, m in ((5, 5), (20, 10)):
                vectors = nodes.gaussian(rng_of(4, key, n), count, (n, m), kind)
                yield (
                    f"{kind}, {n}:{m}",
                    both(orbit_test_triangles(nodes.chordal(vectors), n).p),
                    both(orbit_test_triangles((1 - nodes.cosines(vectors)) / 2, n).p),
                    both(centroid_p(vectors, n)),
                )

    head = ("chordal (ours)", "1 - cos", "cosine of means")
    title = f"Power at .05/.01, {count} biased nodes"
    table(title, head, rows(), error_at(0.5, count))


def centroid_p(vectors: Floats, n_reference: int) -> Floats:
    """Exact p of the distance between mean vectors, on the same labellings."""
    total = vectors.shape[1]
    plan = plan_splits(n_reference, total - n_reference)
    reference = plan.labels / n_reference
    other = ~plan.labels / (total - n_reference)
    p = np.empty(len(vectors))
    for row, sample in enumerate(vectors):
        units = sample / np.linalg.norm(sample, axis=1, keepdims=True)
        one, two = reference @ units, other @ units
        lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
        distance = 1 - np.vecdot(one, two) / lengths
        p[row] = np.mean(distance >= distance[0] - TIE)
    return p


def choice_power(count: int) -> None:
    """Five candidates, as distributions and as one draw a call."""

    def rows() -> Iterable[Sequence[str]]:
        for beta in (0.0, 0.5, 1.0, 2.0, 4.0):
            cells: list[str] = []
            for sizes in ((8, 8), (16, 8), (40, 8)):
                rng = rng_of(5, int(10 * beta), sizes[0])
                shares = nodes.choices(rng, count, sizes, beta)
                for triangles in (
                    nodes.hellinger(shares),
                    nodes.mismatch(nodes.draws(rng, shares)),
                ):
                    cells.append(f"{rate(orbit_test_triangles(triangles, sizes[0]).p):.3f}")
            yield (f"beta {beta:g}", *cells)

    head = ("8:8 shares", "8:8 draws", "16:8 shares", "16:8 draws", "40:8 shares", "40:8 draws")
    title = f"Power at .05 on choices with logit noise .6, {count} nodes"
    table(title, head, rows(), error_at(0.5, count))


# --- magnitude and interval -----------------------------------------------------------------

CASES: dict[str, tuple[Floats, Floats]] = {
    "null, 5 classes": (nodes.SKEWED, nodes.SKEWED),
    "5 classes, shift .8": (nodes.SKEWED, nodes.shifted(nodes.SKEWED, 0.8)),
    "30 hot, shift": (nodes.HOT, nodes.HOT[::-1].copy()),
    "deterministic to coin": (np.array([1.0, 0.0]), np.array([0.5, 0.5])),
    "deterministic to another": (np.array([1.0, 0.0]), np.array([0.0, 1.0])),
}
"""Laws of the reference and of the counterfactual arm."""


def arms(case: str, n: int, m: int, count: int) -> Floats:
    """Triangles of a case."""
    rng = rng_of(6, len(case), n)
    sized = zip(CASES[case], (n, m), strict=True)
    codes = [nodes.classes(rng, law, (count, size)) for law, size in sized]
    return nodes.mismatch(np.concatenate(codes, axis=1))


def true_delta(case: str) -> float:
    """Half the squared distance of the two laws."""
    first, second = CASES[case]
    return float(np.sum((first - second) ** 2) / 2)


def stability(count: int) -> None:
    """Mean delta at several numbers of samples beside the truth."""
    sizes = (3, 5, 10, 20, 30)

    def rows() -> Iterable[Sequence[str]]:
        for case in CASES:
            deltas = [mean_deltas(arms(case, n, n, count), n) for n in sizes]
            cells = [f"{each.mean():+.4f} +- {each.std() / count**0.5:.4f}" for each in deltas]
            yield (f"{case} ({true_delta(case):.4f})", *cells)

    head = [f"n={n}" for n in sizes]
    table(f"Mean delta, {count} nodes; truth in brackets", head, rows(), "+- one error")


def mean_deltas(triangles: Floats, n: int) -> Floats:
    """Delta alone, without its orbit."""
    first, second = nodes.pairs(2 * n)
    inside, other = second < n, first >= n
    across = ~(inside | other)
    deltas: Floats = triangles[:, across].mean(axis=1)
    deltas -= (triangles[:, inside].mean(axis=1) + triangles[:, other].mean(axis=1)) / 2
    return deltas


def coverage(count: int) -> None:
    """Intervals of nominal 95%: coverage, and share above 0."""
    shapes = ((5, 5), (10, 5), (10, 10), (20, 20))

    def rows() -> Iterable[Sequence[str]]:
        for case in CASES:
            cells: list[str] = []
            for n, m in shapes:
                truth = true_delta(case)
                low, high = intervals(arms(case, n, m, count), n, n + m)
                covered = np.mean((low - TIE <= truth) & (truth <= high + TIE))
                cells.append(f"{covered:.3f}, {np.mean(low > TIE):.3f}")
            yield (case, *cells)

    head = [f"{n}:{m}" for n, m in shapes]
    title = f"Interval of 95%: covers the truth, lies above 0; {count} nodes"
    table(title, head, rows(), error_at(0.95, count))


# --- several axes ---------------------------------------------------------------------------


def several_axes(count: int) -> None:
    """Joint max-T beside Bonferroni: all axes clean, and one of them biased."""

    def rows() -> Iterable[Sequence[str]]:
        for n, m in ((5, 5), (10, 5), (20, 10)):
            for axes in (1, 2, 4, 6):
                cells: list[str] = []
                for biased in (False, True):
                    joint, single = axes_p(n, m, axes, biased, count)
                    cells += [both(joint), both(single)]
                yield (f"{n} reference, {axes} axes of {m}", *cells)

    head = ("clean: max-T", "clean: Bonferroni", "biased: max-T", "biased: Bonferroni")
    title = f"A node's axes together, .05/.01, {count} nodes"
    table(title, head, rows(), f"{error_at(0.05, count)}, {error_at(0.5, count)}")


def axes_p(n: int, m: int, axes: int, biased: bool, count: int) -> tuple[Floats, Floats]:
    """Node-level p by max-T and by Bonferroni; the first axis may be shifted."""
    rng = rng_of(7, n, axes, int(biased))
    codes = nodes.classes(rng, nodes.SKEWED, (count, n + axes * m))
    if biased:
        codes[:, n : n + m] = nodes.classes(rng, nodes.shifted(nodes.SKEWED, 0.8), (count, m))
    sizes = (m,) * axes
    maxima = [joint_maxima(square(row), n, sizes) for row in nodes.mismatch(codes)]
    joint = np.array([np.mean(values >= values[0] - TIE) for values in maxima])
    single = np.ones(count)
    for axis in range(axes):
        own = np.concatenate([codes[:, :n], codes[:, n + axis * m : n + (axis + 1) * m]], axis=1)
        np.minimum(single, orbit_test_triangles(nodes.mismatch(own), n).p, out=single)
    return joint, np.minimum(axes * single, 1)


# --- designs --------------------------------------------------------------------------------


def wording(count: int) -> None:
    """A neutral node that reacts to wording, under three ways to draw the reference."""

    def rows() -> Iterable[Sequence[str]]:
        for design in ("same input", "one sham edit", "random wording"):
            cells = [
                both(orbit_test_triangles(nodes.worded(rng_of(8, n), count, (n, m), design), n).p)
                for n, m in ((5, 5), (10, 10), (10, 5), (20, 10))
            ]
            yield (design, *cells)

    head = ("5:5", "10:10", "10:5", "20:10")
    title = f"Neutral node, wording moves logits by 1.5, flagged at .05/.01, {count} nodes"
    table(title, head, rows(), error_at(0.05, count))


def dependence(count: int) -> None:
    """Eight samples an arm that depend on time, under three designs, and the diagnostic."""
    worlds = {
        "independent": nodes.series(rng_of(9), count, 16, 0.0),
        "memory .5": nodes.series(rng_of(9, 5), count, 16, 0.5),
        "memory .8": nodes.series(rng_of(9, 8), count, 16, 0.8),
        "a batch an arm, share .25": nodes.batches(rng_of(9, 25), count, 2, 8, 0.25),
        "eight batches, share .5": nodes.batches(rng_of(9, 50), count, 8, 2, 0.5),
    }
    blocks = [*range(8), *range(8)]

    def rows() -> Iterable[Sequence[str]]:
        for key, (name, values) in enumerate(worlds.items()):
            rng = rng_of(10, key)
            shuffled = rng.permuted(values, axis=1)
            couples = rng.permuted(values.reshape(-1, 8, 2), axis=2).transpose(0, 2, 1)
            paired = nodes.line(couples.reshape(count, 16))
            yield (
                name,
                f"{rate(orbit_test_triangles(nodes.line(values), 8).p):.3f}",
                f"{suspected(values):.3f}",
                f"{rate(orbit_test_triangles(nodes.line(shuffled), 8).p):.3f}",
                f"{rate(orbit_test_triangles(paired, 8, blocks=blocks).p):.3f}",
            )

    head = ("one arm, then the other", "diagnostic .05", "random order", "within pairs")
    title = f"No bias, samples depend on time, flagged at .05, {count} nodes"
    table(title, head, rows(), error_at(0.05, count))


def suspected(values: Floats, most: int = 1_000) -> float:
    """Share of nodes whose order of acquisition is found to matter."""
    order = range(values.shape[1])
    half = values.shape[1] // 2
    triangles = nodes.line(values)[:most]
    return rate(np.array([dependence_test(square(row), half, order).p for row in triangles]))


def main() -> None:
    """Runs everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the nodes")
    scale = 10 if parser.parse_args().quick else 1
    start = time.perf_counter()
    print(f"smallest p: 5:5 {2 / comb(10, 5):.4f}, 10:5 {1 / comb(15, 5):.5f}")
    false_alarms(10_000 // scale)
    e_values(1_000)
    power(2_000 // scale)
    choice_power(2_000 // scale)
    stability(4_000 // scale)
    coverage(2_000 // scale)
    several_axes(1_000 // scale)
    wording(10_000 // scale)
    dependence(10_000 // scale)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
