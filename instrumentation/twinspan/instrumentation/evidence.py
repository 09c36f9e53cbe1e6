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
    return _staked(statistics, bets).evidence


def stake_orbit(statistics: Floats, bets: Floats) -> tuple[Evidence, Floats]:
    """`weigh_orbit`, and the e-values of all labellings in ascending order; their mean is 1.

    >>> found, everyone = stake_orbit(np.array([3.0, 1.0, 1.0, 0.0]), rank_bets(4))
    >>> everyone.round(2), bool(found.e == everyone[-1])
    (array([0.37, 0.6 , 0.6 , 2.43]), True)
    """
    staked = _staked(statistics, bets)
    values = staked.rank / staked.ranks + staked.rise / staked.rises
    values *= len(bets) / 2
    return staked.evidence, values.repeat(staked.lengths)


class _Staked(NamedTuple):
    """One orbit, and what is bet on each run of tied labellings, in ascending order."""

    evidence: Evidence
    lengths: Counts
    rank: Floats
    ranks: float
    rise: Floats
    rises: float


def _staked(statistics: Floats, bets: Floats) -> _Staked:
    # Sums as a batch takes them, so that digits are the same: BLAS would add in another order.
    size = statistics.shape[0]
    observed = statistics.item(0)
    statistics.sort()
    mean = float(np.add.reduce(statistics)) / size
    spread = statistics.item(-1) - statistics.item(0)
    edges = _edges(statistics, size)
    starts = edges[:-1]
    lengths = edges[1:] - starts
    values = statistics.take(starts)
    square = np.add.reduceat(values * values * lengths, _FIRST).item() / size
    sd = 0.0 if spread <= TIE else sqrt(max(square - mean * mean, 0.0))
    scale = 1 / sd if sd else 0.0
    rank, rise = bets.take(starts), np.exp((values - mean) * scale)
    ranks = np.add.reduceat(rank * lengths, _FIRST).item()
    rises = np.add.reduceat(rise * lengths, _FIRST).item()
    mine = int(values.searchsorted(observed, "right")) - 1
    share = rank.item(mine) / ranks + rise.item(mine) / rises
    found = Evidence(
        (size - starts.item(mine)) / size, size / 2 * share, mean, sd, lengths.item(mine)
    )
    return _Staked(found, lengths, rank, ranks, rise, rises)


_FIRST: Final[Counts] = np.zeros(1, dtype=np.intp)


def weigh_orbits(statistics: Floats, bets: Floats) -> EvidenceBatch:
    """Rank B orbits at once; to the last digit what `weigh_orbit` makes of each row.

    Args:
        statistics: B x labellings, column 0 the observed one; sorted in place, C-contiguous.
        bets: `rank_bets` of as many labellings.

    >>> weigh_orbits(np.array([[3.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]), rank_bets(4)).p
    array([0.25, 1.  ])
    """
    return _staked_rows(statistics, bets).evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class OrbitBets:
    """What B orbits pay, each tied e-value once: most are never looked at one by one.

    Attributes:
        highest: the largest e-value of each orbit, length B.
    """

    highest: Floats
    _values: Floats
    _lengths: Counts
    _ends: Counts

    def of(self, row: int) -> Floats:
        """The e-values of all labellings of one orbit in ascending order; their mean is 1."""
        own = slice(self._ends.item(row - 1) if row else 0, self._ends.item(row))
        return self._values[own].repeat(self._lengths[own])


def stake_orbits(statistics: Floats, bets: Floats) -> tuple[EvidenceBatch, OrbitBets]:
    """`stake_orbit` of B orbits at once; the e-values of one orbit when they are asked for.

    >>> found, paid = stake_orbits(np.array([[3.0, 1.0, 1.0, 0.0]]), rank_bets(4))
    >>> paid.of(0).round(2), paid.highest.round(2), found.e.round(2)
    (array([0.37, 0.6 , 0.6 , 2.43]), array([2.43]), array([2.43]))
    """
    staked = _staked_rows(statistics, bets)
    values = staked.rank / staked.ranks.repeat(staked.runs)
    values += staked.rise / staked.rises.repeat(staked.runs)
    values *= len(bets) / 2
    ends: Counts = np.cumsum(staked.runs)
    paid = OrbitBets(
        highest=values.take(ends - 1), _values=values, _lengths=staked.lengths, _ends=ends
    )
    return staked.evidence, paid


class _StakedRows(NamedTuple):
    """B orbits, and what is bet on the runs of all of them, one orbit after the other."""

    evidence: EvidenceBatch
    lengths: Counts
    runs: Counts
    rank: Floats
    ranks: Floats
    rise: Floats
    rises: Floats


def _staked_rows(statistics: Floats, bets: Floats) -> _StakedRows:
    rows, size = len(statistics), len(bets)
    observed = statistics[:, 0].copy()
    statistics.sort(axis=1)
    mean = np.add.reduce(statistics, axis=1) / size
    edges = _edges(statistics.ravel(), size)
    starts = edges[:-1]
    lengths = edges[1:] - starts
    begins = np.arange(rows, dtype=np.intp) * size
    first: Counts = starts.searchsorted(begins)
    runs: Counts = np.diff(first, append=len(starts))
    values = statistics.ravel().take(starts)
    square = np.add.reduceat(values * values * lengths, first) / size
    sd = np.sqrt(np.maximum(square - mean * mean, 0.0))
    sd[statistics[:, -1] - statistics[:, 0] <= TIE] = 0.0
    scale = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
    position = starts - begins.repeat(runs)
    rank: Floats = bets.take(position)
    rise = np.exp((values - mean.repeat(runs)) * scale.repeat(runs))
    ranks = np.add.reduceat(rank * lengths, first)
    rises = np.add.reduceat(rise * lengths, first)
    reached = (values <= observed.repeat(runs)).view(np.int8)
    mine: Counts = first + np.add.reduceat(reached, first, dtype=np.intp) - 1
    share = rank.take(mine) / ranks + rise.take(mine) / rises
    found = EvidenceBatch(
        p=(size - position.take(mine)) / size,
        e=size / 2 * share,
        mean=mean,
        sd=sd,
        ties=lengths.take(mine),
    )
    return _StakedRows(found, lengths, runs, rank, ranks, rise, rises)


def bets_of_orbit(statistics: Floats, bets: Floats) -> Floats:
    """The e-value of every labelling of one orbit, in the order given; their mean is exactly 1.

    >>> bets_of_orbit(np.array([3.0, 1.0, 1.0, 0.0]), rank_bets(4)).round(2)
    array([2.43, 0.6 , 0.6 , 0.37])
    """
    order = np.argsort(statistics, kind="stable")
    spread = np.empty(len(statistics))
    spread[order] = stake_orbit(statistics.copy(), bets)[1]
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
