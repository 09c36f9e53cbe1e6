"""From the statistic of every labelling to a p-value and an e-value.

Everything here sees only the numbers of an orbit, the observed one first, and does not care
which statistic they are: a single delta, or the largest of several standardised ones.

The e-value bets on the observed labelling, ``f(observed) / mean f`` with the mean over the
whole orbit (Koning 2023, arXiv 2310.01153). Here ``f`` is half a bet on the rank, ``p ** -0.9``,
and half a bet on the distance, ``exp(z)``, each divided by its own mean. Under the null its
expectation is exactly 1 whatever the data, ties and deterministic arms included.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.intp]

TIE: Final = 1e-9
"""Orbit values nearer than this to a neighbour are one value; ties count against rejection."""


class Evidence(NamedTuple):
    """What one orbit says about its observed labelling.

    Attributes:
        p: share of labellings with a statistic at least as large, in (0, 1].
        e: bet on the observed labelling, in [0, labellings]; mean exactly 1 over the orbit.
        mean: mean of the statistic over the orbit.
        sd: its population standard deviation; exactly 0 when all values are tied.
        ties: kept labellings tied with the observed one, itself included.
    """

    p: float
    e: float
    mean: float
    sd: float
    ties: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceBatch:
    """The fields of `Evidence` for B orbits, as arrays of length B."""

    p: Floats
    e: Floats
    mean: Floats
    sd: Floats
    ties: Counts


def rank_bets(rows: int) -> Floats:
    """``p ** -0.9`` for each position of an ascending orbit without ties.

    >>> rank_bets(2)
    array([1.        , 1.86606598])
    """
    return (np.arange(rows, 0, -1) / rows) ** -0.9


def weigh_orbit(statistics: Floats, bets: Floats) -> Evidence:
    """Rank one orbit.

    Args:
        statistics: the statistic of each labelling, the observed one first; sorted in place.
        bets: `rank_bets` of as many labellings.

    >>> weigh_orbit(np.array([3.0, 1.0, 1.0, 0.0]), rank_bets(4))
    Evidence(p=0.25, e=2.43..., mean=1.25, sd=1.089..., ties=1)
    """
    size = statistics.shape[0]
    observed = statistics.item(0)
    statistics.sort()
    mean = float(statistics.sum()) / size
    spread = statistics.item(-1) - statistics.item(0)
    variance = float(statistics.dot(statistics)) / size - mean * mean
    sd = 0.0 if spread <= TIE else sqrt(max(variance, 0.0))
    edges = _edges(statistics, size)
    starts = edges[:-1]
    lengths = edges[1:] - starts
    values = statistics.take(starts)
    mine = int(values.searchsorted(observed, "right")) - 1
    scale = 1 / sd if sd else 0.0
    rank, rise = bets.take(starts), np.exp((values - mean) * scale)
    share = rank.item(mine) / rank.dot(lengths) + rise.item(mine) / rise.dot(lengths)
    return Evidence(
        (size - starts.item(mine)) / size,
        float(size / 2 * share),
        mean,
        sd,
        lengths.item(mine),
    )


def weigh_orbits(statistics: Floats, bets: Floats) -> EvidenceBatch:
    """Rank B orbits at once; the same numbers as `weigh_orbit` row by row.

    Args:
        statistics: B x labellings, column 0 the observed one; sorted in place, C-contiguous.
        bets: `rank_bets` of as many labellings.

    >>> weigh_orbits(np.array([[3.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]), rank_bets(4)).p
    array([0.25, 1.  ])
    """
    rows, size = len(statistics), len(bets)
    observed = statistics[:, 0].copy()
    statistics.sort(axis=1)
    mean = statistics.sum(axis=1) / size
    sd = _deviations(statistics, mean)
    edges = _edges(statistics.ravel(), size)
    starts = edges[:-1]
    lengths = edges[1:] - starts
    numbers = np.arange(rows, dtype=np.intp)
    first = edges.searchsorted(numbers * size)
    orbit = numbers.repeat(np.diff(first, append=len(starts)))
    position = starts - orbit * size
    values = statistics.ravel().take(starts)
    reached = (values <= observed.take(orbit)).view(np.int8)
    mine = first + np.add.reduceat(reached, first, dtype=np.intp) - 1
    scale = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
    rank, rise = bets.take(position), np.exp((values - mean.take(orbit)) * scale.take(orbit))
    share = _share(rank, lengths, first, mine) + _share(rise, lengths, first, mine)
    return EvidenceBatch(
        p=(size - position.take(mine)) / size,
        e=size / 2 * share,
        mean=mean,
        sd=sd,
        ties=lengths.take(mine),
    )


def bets_of_orbit(statistics: Floats, bets: Floats) -> Floats:
    """The e-value of every labelling of one orbit, in the order given; their mean is exactly 1.

    >>> bets_of_orbit(np.array([3.0, 1.0, 1.0, 0.0]), rank_bets(4)).round(2)
    array([2.43, 0.6 , 0.6 , 0.37])
    """
    size = len(statistics)
    order = np.argsort(statistics, kind="stable")
    ascending = statistics[order]
    mean = ascending.sum(keepdims=True) / size
    sd = float(_deviations(ascending[np.newaxis], mean)[0])
    edges = _edges(ascending, size)
    starts, lengths = edges[:-1], np.diff(edges)
    rank = bets.take(starts)
    rise = np.exp((ascending.take(starts) - mean) * (1 / sd if sd else 0.0))
    values = size / 2 * (rank / rank.dot(lengths) + rise / rise.dot(lengths))
    spread = np.empty(size)
    spread[order] = np.repeat(values, lengths)
    return spread


def upper_tail(statistics: Floats) -> float:
    """Share of statistics at least as large as the first, which counts itself.

    >>> upper_tail(np.array([2.0, 1.0, 2.0, 3.0]))
    0.75
    """
    reached = np.count_nonzero(statistics >= statistics[0] - TIE)
    return float(reached) / len(statistics)


def standardised(statistics: Floats) -> Floats:
    """Each row less its mean, in its standard deviations; 0 where a row has no spread.

    >>> standardised(np.array([[1.0, 3.0], [5.0, 5.0]]))
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    centred: Floats = statistics - statistics.mean(axis=-1, keepdims=True)
    sd = centred.std(axis=-1, keepdims=True)
    scaled: Floats = np.divide(centred, sd, out=np.zeros_like(centred), where=sd > TIE)
    return scaled


def _edges(ascending: Floats, size: int) -> Counts:
    """Where each run of tied values starts, and one past the end; runs stop at every orbit."""
    fresh = np.empty(ascending.shape[0] + 1, dtype=np.bool_)
    np.greater(ascending[1:] - ascending[:-1], TIE, out=fresh[1:-1])
    fresh[::size] = True
    return fresh.nonzero()[0]


def _deviations(ascending: Floats, mean: Floats) -> Floats:
    square = np.vecdot(ascending, ascending) / ascending.shape[1]
    sd: Floats = np.sqrt(np.maximum(square - mean * mean, 0.0))
    sd[ascending[:, -1] - ascending[:, 0] <= TIE] = 0.0
    return sd


def _share(bet: Floats, lengths: Counts, first: Counts, mine: Counts) -> Floats:
    """The observed labelling's part of all that is staked on its orbit."""
    return bet.take(mine) / np.add.reduceat(bet * lengths, first)
