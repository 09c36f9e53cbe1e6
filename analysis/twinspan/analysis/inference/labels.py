"""Permutations of arm labels within cases, and the statistics that they leave behind."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_SPLITS: Final = 20_000
"""Ways to label shared replicates that are enumerated; more are sampled."""

TOLERANCE: Final = 1e-9
"""Statistics closer than this are ties; ties count against rejection."""


def label_rows(first: int, second: int, draws: int, rng: np.random.Generator) -> Floats:
    """Random labellings of a case, one a row; 1 marks the second arm. The first row is observed.

    >>> label_rows(2, 1, 0, np.random.default_rng(0)).tolist()
    [[0.0, 0.0, 1.0]]
    """
    observed = np.repeat([0.0, 1.0], (first, second))
    return np.vstack([observed, rng.permuted(np.tile(observed, (draws, 1)), axis=1)])


def block_rows(
    first: int, second: int, draws: int, rng: np.random.Generator
) -> tuple[Floats, bool]:
    """Labellings that all cases share, and whether they are all there are.

    >>> block_rows(1, 1, 9, np.random.default_rng(0))[0].tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    total = first + second
    if comb(total, second) > MOST_SPLITS:
        return label_rows(first, second, draws, rng), False
    # Counted down, the second arm's own places come first.
    chosen = [
        [total - 1 - place for place in split] for split in combinations(range(total), second)
    ]
    rows = np.zeros((len(chosen), total))
    np.put_along_axis(rows, np.array(chosen), 1.0, axis=1)
    return rows, True


def excess_rows(rows: Floats, distances: Floats) -> Floats:
    """Excess disagreement of the second arm over the first for each labelling.

    C - (W1 + W2) / 2 with the mean distance C across the arms and W within them. An arm with a
    single answer has no W; the other's stands for both.
    """
    total = rows.shape[1]
    second = rows[0].sum()
    first = total - second
    products = rows @ distances
    within_second = np.einsum("ij,ij->i", products, rows)
    touching = products.sum(axis=1)
    across = (touching - within_second) / (first * second)
    within_first = distances.sum() - 2 * touching + within_second
    own = [
        within / (size * (size - 1))
        for within, size in ((within_first, first), (within_second, second))
        if size > 1
    ]
    excess: Floats = across - sum(own) / len(own) if own else across
    return excess


def shift_rows(rows: Floats, numbers: Floats) -> Floats:
    """Mean of the second arm less mean of the first for each labelling."""
    second = rows[0].sum()
    of_second: Floats = rows @ numbers
    of_first: Floats = numbers.sum() - of_second
    shifts: Floats = of_second / second - of_first / (len(numbers) - second)
    return shifts


def tail_share(values: Floats, *, two_sided: bool = False) -> float:
    """p-value from the statistic of all labellings, the observed one first.

    Among sampled labellings the observed one is what keeps the p-value above 0.

    >>> tail_share(np.array([2.0, 1.0, 0.0, -2.0]), two_sided=True)
    0.5
    """
    seen = np.abs(values) if two_sided else values
    return int(np.sum(seen >= seen[0] - TOLERANCE)) / len(values)
