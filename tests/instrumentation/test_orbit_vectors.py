"""Probe sets whose every number was computed by two other implementations."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from twinspan.instrumentation.divergence import (
    ActionEstimator,
    CategoryEstimator,
    EmbeddingEstimator,
    Estimator,
)
from twinspan.instrumentation.orbit import (
    OrbitResult,
    orbit_e_values,
    orbit_test,
    orbit_test_batch,
)

VECTORS_A = ([1, 0, 0.1], [1, 0.1, 0], [0.9, 0, 0], [1, 0.05, 0.05])
VECTORS_B = ([0, 1, 0.1], [0.1, 1, 0], [0, 0.9, 0], [0.05, 1, 0.05])


def _fields(text: str) -> list[dict[str, str]]:
    return [dict(zip("xyz", word, strict=True)) for word in text.split()]


Row = tuple[Estimator, list[object], list[object], tuple[float, ...]]

# samples, then C, Wx, Wy, delta, splits, orbit sd, p, e
ROWS: dict[str, Row] = {
    "aaaba|bbabb": (
        CategoryEstimator(),
        list("aaaba"),
        list("bbabb"),
        (0.68, 0.4, 0.4, 0.28, 252, 0.1690308509, 0.2063492063, 1.512524998),
    ),
    "aaaaaaaabb|bbbba": (
        CategoryEstimator(),
        list("aaaaaaaabb"),
        list("bbbba"),
        (0.68, 0.3555555556, 0.4, 0.3022222222, 3003, 0.1154700538, 0.0889110889, 3.0655926006),
    ),
    "abcab|cbcca": (
        CategoryEstimator(),
        list("abcab"),
        list("cbcca"),
        (0.72, 0.8, 0.7, -0.03, 252, 0.1478416141, 0.5714285714, 0.5189790549),
    ),
    "aaaaa|aaaaa": (CategoryEstimator(), list("aaaaa"), list("aaaaa"), (0, 0, 0, 0, 252, 0, 1, 1)),
    "aaaaa|bbbbb": (
        CategoryEstimator(),
        list("aaaaa"),
        list("bbbbb"),
        (1, 0, 0, 1, 252, 0.1690308509, 0.0079365079, 58.8238019946),
    ),
    "ten a|five b": (
        CategoryEstimator(),
        list("a" * 10),
        list("b" * 5),
        (1, 0, 0, 1, 3003, 0.1054092553, 0.0003330003, 1155.3699617104),
    ),
    "aaaaaa|bbb": (
        CategoryEstimator(),
        list("aaaaaa"),
        list("bbb"),
        (1, 0, 0, 1, 84, 0.1924500897, 0.0119047619, 37.2992856511),
    ),
    "chordal vectors": (
        EmbeddingEstimator(),
        list(VECTORS_A),
        list(VECTORS_B),
        (
            *(0.6794303165, 0.0459466346, 0.0459466346, 0.6334836819),
            *(70, 0.1417527855, 0.0285714286, 16.0677279936),
        ),
    ),
    "Gower of three fields": (
        ActionEstimator(),
        list(_fields("012 012 011 112 012")),
        list(_fields("102 101 002 111 102")),
        (
            *(0.64, 0.2666666667, 0.4666666667, 0.2733333333),
            *(252, 0.0863731293, 0.0238095238, 9.8341118158),
        ),
    ),
}

pytestmark = pytest.mark.parametrize("name", ROWS)


def _distances(name: str) -> tuple[NDArray[np.float64], int, tuple[float, ...]]:
    estimator, reference, counterfactual, expected = ROWS[name]
    return estimator.matrix([*reference, *counterfactual]), len(reference), expected


def _as_printed(expected: object) -> object:
    """Ten decimals were printed."""
    return pytest.approx(expected, rel=1e-9, abs=5.1e-11)


def _numbers(found: OrbitResult) -> tuple[float, ...]:
    return (
        *(found.C, found.Wx, found.Wy, found.delta),
        *(found.size, found.sd, found.p, found.e),
    )


def test_a_single_probe_set_gives_the_published_numbers(name: str) -> None:
    distances, n_reference, expected = _distances(name)
    assert _numbers(orbit_test(distances, n_reference)) == _as_printed(expected)


def test_a_batch_gives_the_published_numbers(name: str) -> None:
    distances, n_reference, expected = _distances(name)
    found = orbit_test_batch(np.stack([distances] * 3), n_reference)
    assert found.size == expected[4]
    columns = [found.C, found.Wx, found.Wy, found.delta, found.sd, found.p, found.e]
    rows = np.stack(columns, axis=1)
    assert rows == _as_printed(np.array([expected[:4] + expected[5:]] * 3))


def test_the_orbit_knows_the_published_e_value(name: str) -> None:
    distances, n_reference, expected = _distances(name)
    observed, everyone = orbit_e_values(distances, n_reference)
    assert observed == _as_printed(expected[7])
    assert len(everyone) == expected[4]
    assert everyone.mean() == pytest.approx(1, abs=1e-12)
