"""Sums, products and counts over runs of rows that belong together.

Sums are rounded once, as `math.fsum` does it, so that they have the digits of a sum over the same
numbers in any order. Two numbers are added like that by any addition; only longer rows are taken
one by one.
"""

from __future__ import annotations

from math import fsum

import numpy as np

from twinspan.analysis.columnar.columns import Bools, Floats, Places


def starts_of(*keys: Places) -> Places:
    """Where rows that agree in all keys begin; rows that agree stand together.

    >>> starts_of(np.array([0, 0, 1]), np.array([0, 0, 0]))
    array([0, 2])
    """
    if not len(keys[0]):
        return np.zeros(0, dtype=np.intp)
    new = np.ones(len(keys[0]), dtype=np.bool_)
    new[1:] = False
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(new)


def lengths_of(starts: Places, rows: int) -> Places:
    """How long each segment is.

    >>> lengths_of(np.array([0, 2]), 3)
    array([2, 1])
    """
    return np.diff(starts, append=rows)


def sums(values: Floats, starts: Places) -> Floats:
    """The sum of each segment.

    >>> sums(np.array([1e16, 1.0, 1.0, 5.0]), np.array([0, 3])).tolist() == [1e16 + 2, 5.0]
    True
    """
    lengths = lengths_of(starts, len(values))
    found = values.take(starts)
    pairs = starts[lengths == 2]
    found[lengths == 2] += values.take(pairs + 1)
    long = np.flatnonzero(lengths > 2)
    if len(long):
        listed: list[float] = values.tolist()
        spans = zip(starts[long].tolist(), (starts + lengths)[long].tolist(), strict=True)
        found[long] = [fsum(listed[start:end]) for start, end in spans]
    return found


def row_sums(matrix: Floats) -> Floats:
    """The sum of each row of a matrix.

    >>> row_sums(np.array([[0.1, 0.2, 0.3]]))
    array([0.6])
    """
    if matrix.shape[1] == 1:
        return matrix[:, 0]
    if matrix.shape[1] == 2:
        return matrix[:, 0] + matrix[:, 1]
    return np.array([fsum(row) for row in matrix.tolist()])


def products(values: Floats, starts: Places) -> Floats:
    """The product of each segment, taken from its first row on.

    >>> products(np.array([2.0, 3.0, 5.0]), np.array([0, 2]))
    array([6., 5.])
    """
    lengths = lengths_of(starts, len(values))
    found = values.take(starts)
    for place in range(1, int(lengths.max(initial=1))):
        more = lengths > place
        found[more] *= values.take(starts[more] + place)
    return found


def within(starts: Places, rows: int) -> Places:
    """Each row's place in its segment, from 0.

    >>> within(np.array([0, 2]), 3)
    array([0, 1, 0])
    """
    return np.arange(rows) - starts.repeat(lengths_of(starts, rows))


def any_in(flags: Bools, groups: Places, count: int) -> Bools:
    """Which of some groups have a row that is marked.

    >>> any_in(np.array([True, False]), np.array([2, 0]), 3)
    array([False, False,  True])
    """
    found = np.zeros(count, dtype=np.bool_)
    found[groups[flags]] = True
    return found
