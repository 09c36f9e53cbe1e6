"""The run monitors of many runs at once; see `RunMonitor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from twinspan.analysis.columnar.columns import Bools, Floats, Places
from twinspan.analysis.columnar.evidence import Cells
from twinspan.analysis.columnar.probe_sets import SetOrbits
from twinspan.analysis.columnar.segments import lengths_of, row_sums, starts_of, sums
from twinspan.analysis.columnar.settings import Settings
from twinspan.collector.monitor import WEALTH_CEILING
from twinspan.collector.overshoot import remove_overshoot

SPENT_TOLERANCE: Final = 1e-9


@dataclass(slots=True, kw_only=True, eq=False)
class Wealth:
    """What the monitors of all runs have won; see `MonitorState`.

    Attributes:
        axes: how many axes each run has.
        own_alpha: the bound on false halts.
        sparse_share: part of the wealth that bets on single nodes.
        depth: supersteps the start masses are spread over; NaN if not known.
        alpha: the error level in force.
        restarts, steps: restarts, and supersteps with a probe since the last one.
        accumulated: per axis the wealth of bets on bias that spreads; runs x axes.
        value, sparse, spent: see `MonitorState`.
        overspent: runs that staked more than there is.
    """

    axes: Places
    own_alpha: Floats
    sparse_share: Floats
    depth: Floats
    alpha: Floats
    restarts: Places
    steps: Places
    accumulated: Floats
    value: Floats
    sparse: Floats
    spent: Floats
    overspent: Bools

    @classmethod
    def begin(cls, settings: Settings) -> Wealth:
        """All runs before their first superstep."""
        runs = len(settings.of_run)
        axes = np.array([len(each.axes) for each in settings.each], dtype=np.intp)
        alpha = settings.numbers(each.alpha for each in settings.each)
        return cls(
            axes=axes[settings.of_run],
            own_alpha=alpha,
            sparse_share=settings.numbers(each.sparse_share for each in settings.each),
            depth=settings.numbers(each.depth for each in settings.each),
            alpha=alpha.copy(),
            restarts=np.zeros(runs, dtype=np.intp),
            steps=np.zeros(runs, dtype=np.intp),
            accumulated=np.zeros((runs, int(axes.max(initial=1)))),
            value=np.ones(runs),
            sparse=np.ones(runs),
            spent=np.zeros(runs),
            overspent=np.zeros(runs, dtype=np.bool_),
        )

    def restart(self, runs: Places) -> None:
        """Begin afresh after a repair, at a smaller alpha."""
        self.restarts[runs] += 1
        self.alpha[runs] = self.own_alpha[runs] / np.exp2(self.restarts[runs] + 1)
        self.depth[runs] = np.maximum(self.depth[runs] - self.steps[runs], 1.0)
        self.steps[runs] = 0
        self.accumulated[runs] = 0.0
        self.value[runs] = self.sparse[runs] = 1.0
        self.spent[runs] = 0.0

    def update(self, runs: Places, cells: Cells, orbits: SetOrbits) -> None:
        """Let the monitors bet on one superstep of some runs.

        Args:
            runs: the run of each cell.
            cells: the cells, those of a run together.
            orbits: what the cells' probe sets come to.
        """
        if len(runs):
            bets = self._bets(runs, cells)
            self._settle(bets, cells, _paid(cells, bets, orbits))

    def _bets(self, runs: Places, cells: Cells) -> _Bets:
        """What is bet, known before any outcome; see `stakes.stake`."""
        starts = starts_of(cells.decision)
        who = runs[starts]
        run = np.arange(len(starts)).repeat(lengths_of(starts, len(runs)))
        start, tail = self._start_masses(who)
        entering = self.accumulated[who] + start[:, np.newaxis]
        count, share = self.axes[who], self.sparse_share[who]
        # Columns of axes that a run does not have hold no wealth.
        entering[np.arange(entering.shape[1]) >= count[:, np.newaxis]] = 0.0
        spreading = entering[run, cells.axis] * cells.dense
        stake = _mixed(share[run], spreading, cells.single) / count[run]
        at_rest = _mixed(share, row_sums(entering) / count + tail, self.sparse[who])
        room = 1.0 / self.alpha[who] - (at_rest - sums(stake, starts))
        staked = stake > 0.0
        cap = np.where(staked, room[run] / np.where(staked, stake, 1.0), np.inf)
        return _Bets(starts=starts, who=who, run=run, entering=entering, tail=tail, cap=cap)

    def _settle(self, bets: _Bets, cells: Cells, paid: Floats) -> None:
        who, run, count = bets.who, bets.run, self.axes[bets.who]
        means = _means(cells.dense * (paid - 1.0), run, cells.axis, bets.entering)
        accumulated = np.minimum(bets.entering * means, WEALTH_CEILING)
        won = sums(cells.single * (paid - 1.0) / count[run], bets.starts)
        sparse = np.maximum(self.sparse[who] + won, 0.0)
        dense = row_sums(accumulated) / count + bets.tail
        self.accumulated[who], self.sparse[who] = accumulated, sparse
        mixed = _mixed(self.sparse_share[who], dense, sparse)
        self.value[who] = np.minimum(mixed, WEALTH_CEILING)
        self.spent[who] += cells.staked[cells.decision[bets.starts]]
        self.overspent[who] |= self.spent[who] > 1.0 + SPENT_TOLERANCE
        self.steps[who] += 1

    def _start_masses(self, runs: Places) -> tuple[Floats, Floats]:
        """The mass that enters, and the mass kept for later; see `stakes.start_masses`."""
        step, depth = (self.steps[runs] + 1).astype(np.float64), self.depth[runs]
        open_ended = np.isnan(depth)
        ends = np.where(open_ended, 1.0, depth)
        late = step > ends
        start = np.where(late, 0.0, 1.0 / ends)
        tail = np.where(late, 0.0, (ends - step) / ends)
        return (
            np.where(open_ended, 1.0 / (step * (step + 1.0)), start),
            np.where(open_ended, 1.0 / (step + 1.0), tail),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Bets:
    """The bets of some runs on a superstep.

    Attributes:
        starts: where each run's cells begin.
        who: the runs.
        run: per cell the place of its run in `who`.
        entering: per run and axis the wealth that is bet.
        tail: wealth that is kept for later supersteps.
        cap: per cell the smallest e-value with which it alone reaches the limit.
    """

    starts: Places
    who: Places
    run: Places
    entering: Floats
    tail: Floats
    cap: Floats


def _paid(cells: Cells, bets: _Bets, orbits: SetOrbits) -> Floats:
    """The e-values after what lies above the limit was spent on the rest."""
    paid = cells.e_value.copy()
    over = cells.boosted & (bets.cap > 1.0) & (orbits.highest[cells.set] > bets.cap)
    for place in np.flatnonzero(over).tolist():
        everyone = orbits.e_values(cells.set.item(place))
        paid[place] = remove_overshoot(paid.item(place), everyone, bets.cap.item(place))
    return paid


def _mixed(share: Floats, dense: Floats, sparse: Floats) -> Floats:
    return (1.0 - share) * dense + share * sparse


def _means(gain: Floats, row: Places, axis: Places, entering: Floats) -> Floats:
    """Per run and axis what one unit of wealth became: 1 and the gains of the axis' cells."""
    means = np.ones_like(entering)
    order = np.lexsort((axis, row))
    starts = starts_of(row[order], axis[order])
    terms = np.insert(gain[order], starts, 1.0)
    heads = starts + np.arange(len(starts))
    at = order[starts]
    means[row[at], axis[at]] = np.maximum(sums(terms, heads), 0.0)
    return means
