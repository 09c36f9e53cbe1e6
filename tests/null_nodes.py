"""Seeded nodes whose truth is known, for tests of error rates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

CLASS_LAWS: dict[str, Floats] = {
    "binary .5": np.array([0.5, 0.5]),
    "binary .05": np.array([0.95, 0.05]),
    "five skewed": np.array([0.5, 0.25, 0.12, 0.08, 0.05]),
    "thirty hot": np.full(30, 1 / 30),
    "deterministic": np.array([1.0]),
}
"""Output laws of unbiased nodes by name, as shares of classes."""


def draw_classes(rng: np.random.Generator, law: Floats, shape: tuple[int, ...]) -> Codes:
    """Independent classes."""
    return np.searchsorted(np.cumsum(law)[:-1], rng.random(shape), side="right")


def class_triangles(codes: Codes) -> Floats:
    """Upper triangles of 0/1 distances, one row per node."""
    first, second = np.triu_indices(codes.shape[1], 1)
    different: NDArray[np.bool_] = codes[:, first] != codes[:, second]
    return different.astype(np.float64)


def chordal_triangles(vectors: Floats) -> Floats:
    """Upper triangles of chordal distances of B x N x K vectors."""
    units: Floats = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    first, second = np.triu_indices(units.shape[1], 1)
    gaps: Floats = np.linalg.norm(units[:, first] - units[:, second], axis=2)
    return gaps / 2


def margin(rate: float, nodes: int, deviations: float = 4.0) -> float:
    """Monte Carlo error of a rate, in so many standard deviations."""
    return float(deviations * np.sqrt(rate * (1 - rate) / nodes))
