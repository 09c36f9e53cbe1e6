"""Simulated nodes whose truth is known, thousands at a time, for tests and studies of detection.

Every function returns upper triangles of distance matrices, one row per node, the reference
arm first, ready for `orbit_test_triangles`; or the samples they are made of.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Rng = np.random.Generator

BINARY = np.array([0.5, 0.5])
SKEWED = np.array([0.5, 0.25, 0.12, 0.08, 0.05])
HOT = np.arange(30, 0, -1) ** 1.0 / 465


def classes(rng: Rng, law: Floats, shape: tuple[int, ...]) -> Codes:
    """Independent classes with the given shares."""
    return np.searchsorted(np.cumsum(law)[:-1], rng.random(shape), side="right")


def margin(rate: float, count: int, deviations: float = 4.0) -> float:
    """Monte Carlo error of a rate, in so many standard deviations."""
    return float(deviations * np.sqrt(rate * (1 - rate) / count))


def pairs(total: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The pairs i < j, row-major."""
    first, second = np.triu_indices(total, 1)
    return first, second


def mismatch(codes: Codes) -> Floats:
    """0/1 distances of B x N classes."""
    first, second = pairs(codes.shape[1])
    different: NDArray[np.bool_] = codes[:, first] != codes[:, second]
    return different.astype(np.float64)


def cosines(vectors: Floats) -> Floats:
    """Cosines of B x N x K vectors."""
    units: Floats = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    first, second = pairs(units.shape[1])
    grams: Floats = units @ units.transpose(0, 2, 1)
    return grams[:, first, second]


def chordal(vectors: Floats) -> Floats:
    """Chordal distances of B x N x K vectors."""
    squared: Floats = np.maximum(2 - 2 * cosines(vectors), 0)
    return np.sqrt(squared) / 2


def hellinger(shares: Floats) -> Floats:
    """Hellinger distances of B x N x K distributions."""
    return np.sqrt(np.maximum(1 - cosines(np.sqrt(shares)), 0))


def four_fields(rng: Rng, nodes: int, total: int) -> Floats:
    """Gower distances of actions with four binary fields."""
    fields: Floats = np.zeros((nodes, total * (total - 1) // 2))
    for _ in range(4):
        fields += mismatch(rng.integers(0, 2, (nodes, total)))
    return fields / 4


def heavy_tails(rng: Rng, nodes: int, total: int) -> Floats:
    """Vectors whose entries have t(2) tails."""
    return chordal(rng.standard_t(2, (nodes, total, 24)) + 0.5)


def _classes_of(law: Floats, rng: Rng, nodes: int, total: int) -> Floats:
    return mismatch(classes(rng, law, (nodes, total)))


UNBIASED: dict[str, Callable[[Rng, int, int], Floats]] = {
    "binary p=.5": partial(_classes_of, BINARY),
    "binary p=.05": partial(_classes_of, np.array([0.95, 0.05])),
    "5 classes, skewed": partial(_classes_of, SKEWED),
    "30 classes, hot": partial(_classes_of, HOT),
    "300 classes, very hot": partial(_classes_of, np.full(300, 1 / 300)),
    "deterministic": partial(_classes_of, np.array([1.0])),
    "vectors, t(2) tails": heavy_tails,
    "4 binary fields, Gower": four_fields,
}
"""Nodes whose arms have one law, by name."""


def shifted(law: Floats, share: float) -> Floats:
    """A law with a share of its top mass moved to its rarest class."""
    moved = law.copy()
    moved[-1] += share * moved[0]
    moved[0] *= 1 - share
    return moved


def gaussian(rng: Rng, nodes: int, sizes: tuple[int, int], kind: str) -> Floats:
    """Vectors of 32 entries whose counterfactual arm is moved, canned, wilder or re-mixed."""
    n, m = sizes
    noise = rng.standard_normal((nodes, n + m, 32))
    centre: Floats = np.full(32, 1 / 32**0.5)
    late = np.repeat([0.0, 1.0], sizes)[:, np.newaxis]
    if kind == "mean shift":
        step = rng.standard_normal((nodes, 1, 32))
        step *= 0.45 / np.linalg.norm(step, axis=2, keepdims=True)
        noise *= 0.25
        stepped: Floats = centre + late * step + noise
        return stepped
    if kind == "mode weights change":
        modes = rng.standard_normal((nodes, 2, 32)) / 32**0.5
        first = rng.random((nodes, n + m)) < np.repeat([0.8, 0.25], sizes)
        picked: Floats = np.where(first[..., np.newaxis], modes[:, :1], modes[:, 1:])
        picked += 0.1 * noise
        return picked
    spread = {"collapses": 1 / 3, "more varied": 1.8}[kind]
    noise *= 0.25 * (1 + late * (spread - 1))
    moved: Floats = centre + noise
    return moved


GAUSSIAN = ("mean shift", "collapses", "more varied", "mode weights change")


def worded(rng: Rng, nodes: int, sizes: tuple[int, int], design: str) -> Floats:
    """A neutral node whose five logits react to wording with standard deviation 1.5.

    ``same input``: one wording an arm, the reference's being the original. ``one sham edit``:
    the reference is edited, too. ``random wording``: each sample has its own.
    """
    arms: list[Codes] = []
    for arm, size in enumerate(sizes):
        wordings = size if design == "random wording" else 1
        effect = rng.normal(0, 1.5, (nodes, wordings, 5))
        if design == "same input" and arm == 0:
            effect[:] = 0
        logits = np.broadcast_to(effect, (nodes, size, 5)) + rng.gumbel(size=(nodes, size, 5))
        arms.append(logits.argmax(axis=2))
    return mismatch(np.concatenate(arms, axis=1))


def series(rng: Rng, nodes: int, length: int, memory: float) -> Floats:
    """Answers on a line that remember the one before, in order of time."""
    values = rng.standard_normal((nodes, length))
    for step in range(1, length):
        values[:, step] *= (1 - memory**2) ** 0.5
        values[:, step] += memory * values[:, step - 1]
    return values


def batches(rng: Rng, nodes: int, count: int, size: int, share: float) -> Floats:
    """Answers on a line with a part common to their batch, in order of time."""
    common = rng.standard_normal((nodes, count, 1)) * share**0.5
    own = rng.standard_normal((nodes, count, size)) * (1 - share) ** 0.5
    values: Floats = (common + own).reshape(nodes, count * size)
    return values


def line(values: Floats) -> Floats:
    """Distances on a line, scaled to [0, 1]."""
    first, second = pairs(values.shape[1])
    gaps: Floats = np.abs(values[:, first] - values[:, second])
    gaps /= gaps.max()
    return gaps


def choices(rng: Rng, nodes: int, sizes: tuple[int, int], beta: float) -> Floats:
    """Shares of five candidates; the counterfactual adds beta along a random direction."""
    direction = rng.standard_normal((nodes, 1, 5))
    direction /= np.linalg.norm(direction, axis=2, keepdims=True)
    late = np.repeat([0.0, beta], sizes)[:, np.newaxis]
    weights: Floats = np.exp(late * direction + 0.6 * rng.standard_normal((nodes, sum(sizes), 5)))
    weights /= weights.sum(axis=2, keepdims=True)
    return weights


def draws(rng: Rng, shares: Floats) -> Codes:
    """One class from each B x N x K distribution."""
    reached: NDArray[np.bool_] = shares.cumsum(axis=2) > rng.random((*shares.shape[:2], 1))
    chosen: Codes = reached.argmax(axis=2)
    return chosen
