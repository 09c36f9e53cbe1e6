"""What the supersteps of a batch bring: one input of the averages each, and the monitor's cells.

The columnar form of `twinspan.collector.evidence`, of the reduction of a superstep, and of the
stakes that do not depend on what was won before.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np

from twinspan.analysis.columnar.columns import Bools, Floats, Places
from twinspan.analysis.columnar.decisions import Decisions
from twinspan.analysis.columnar.probe_sets import ProbeSets
from twinspan.analysis.columnar.segments import (
    any_in,
    lengths_of,
    products,
    starts_of,
    sums,
    within,
)
from twinspan.analysis.columnar.settings import Settings
from twinspan.collector.reduction import REDUCTIONS
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.effect_interval import unseen_share


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Members:
    """The probe sets that decisions name, in the order of the decisions.

    Attributes:
        decision: place of the decision.
        set: place of the probe set.
        odd: runs that name a set that is not there, or name one twice.
        named: whether a decision names any set.
    """

    decision: Places
    set: Places
    odd: Bools
    named: Bools


def members_of(decisions: Decisions, sets: ProbeSets, runs: int) -> Members:
    """Find the probe sets that each decision names."""
    named = decisions.spans.lists(c.NETWORK_PROBE_SETS)
    decision = np.arange(len(decisions)).repeat(named.lengths)
    own = sets.spans.words(c.PROBE_SET_ID)
    codes = own.codes_of([str(each) for each in named.values.to_pylist()])
    size = len(own.words) + 3
    keys = sets.run * size + own.codes
    order = np.argsort(keys, kind="stable")
    asked = decisions.run[decision] * size + codes
    at = np.minimum(np.searchsorted(keys[order], asked), max(len(keys) - 1, 0))
    found = order[at] if len(keys) else np.zeros(len(asked), dtype=np.intp)
    missing = (keys[found] != asked) if len(keys) else np.ones(len(asked), dtype=np.bool_)
    double = _repeated(keys)
    again = _repeated(decision * (len(sets) + 1) + found)
    return Members(
        decision=decision[~missing],
        set=found[~missing],
        odd=any_in(missing | again, decisions.run[decision], runs) | any_in(double, sets.run, runs),
        named=named.lengths > 0,
    )


def _repeated(keys: Places) -> Bools:
    """Which keys there are more than once."""
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse] > 1, dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inputs:
    """What each decision's superstep adds to the moving averages.

    Attributes:
        scored: whether it adds anything.
        value: the reduced superstep; 0 where it adds nothing.
        variance: its null variance; NaN where that is not known.
        observed: share of the graph's blast radius that was probed so far.
    """

    scored: Bools
    value: Floats
    variance: Floats
    observed: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """What the monitor bets on, the cells of a decision together.

    Attributes:
        decision: place of the decision.
        axis: place of the axis among those of the run.
        set: the probe set that the cell is about, of several rounds the first one.
        e_value: evidence.
        single: share that its execution stakes on itself.
        dense: weight of its execution within the superstep.
        boosted: it rests on one round alone, so that overshoot can be removed.
        staked: per decision what its executions stake on themselves.
    """

    decision: Places
    axis: Places
    set: Places
    e_value: Floats
    single: Floats
    dense: Floats
    boosted: Bools
    staked: Floats

    def between(self, first: int, last: int) -> Cells:
        """Those from one place to another."""
        own = slice(first, last)
        return Cells(
            decision=self.decision[own],
            axis=self.axis[own],
            set=self.set[own],
            e_value=self.e_value[own],
            single=self.single[own],
            dense=self.dense[own],
            boosted=self.boosted[own],
            staked=self.staked,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """Everything that the decisions of a batch rest on.

    Attributes:
        inputs: for the moving averages.
        cells: for the monitor.
        remeasured: the decision judges a repair that has a score.
        unproven: that repair's delta is not shown to be below the bound.
        odd: runs that the collector would refuse, or that measure on several scales.
    """

    inputs: Inputs
    cells: Cells
    remeasured: Bools
    unproven: Bools
    odd: Bools


def evidence_of(
    decisions: Decisions, sets: ProbeSets, members: Members, settings: Settings, runs: int
) -> Evidence:
    """What the supersteps of a batch bring.

    Args:
        decisions: the decisions.
        sets: the probe sets.
        members: which of these they name.
        settings: the settings of the runs.
        runs: how many runs there are.
    """
    scored = sets.scored[members.set]
    rows = _Rows.of(members.decision[scored], members.set[scored], decisions, sets)
    measured = sets.measures[rows.set]
    judged = decisions.is_repair[rows.decision]
    remeasured = any_in(judged & measured, rows.decision, len(decisions))
    slots, unannounced = _slots(rows, sets, settings)
    odd = unannounced | sets.is_control[rows.set] | _out_of_range(rows.set, sets)
    counts = ~judged | remeasured[rows.decision]
    reduced = rows.take(np.flatnonzero(counts))
    bet = np.flatnonzero(~judged | measured)
    cells, beyond = _cells(rows.take(bet), slots[bet], decisions, sets, settings, remeasured)
    return Evidence(
        inputs=_inputs(reduced, decisions, sets, settings, runs),
        cells=cells,
        remeasured=remeasured,
        unproven=_unproven(rows.take(np.flatnonzero(judged & measured)), decisions, sets, settings),
        odd=any_in(odd, rows.run, runs)
        | any_in(beyond, decisions.run[cells.decision], runs)
        | _inconsistent(rows, sets, runs),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """Probe sets with a score, each as often as a decision takes it in, in the order taken.

    Attributes:
        decision, set, run: places.
        order: rises in the order in which a decision takes its sets in.
    """

    decision: Places
    set: Places
    run: Places
    order: Places

    @classmethod
    def of(cls, decision: Places, of_set: Places, decisions: Decisions, sets: ProbeSets) -> _Rows:
        # After a repair what was not repaired comes first.
        later = decisions.is_repair[decision] & sets.measures[of_set]
        order = np.lexsort((np.arange(len(decision)), later, decision))
        return cls(
            decision=decision[order],
            set=of_set[order],
            run=decisions.run[decision[order]],
            order=np.arange(len(decision)),
        )

    def take(self, rows: Places) -> _Rows:
        return _Rows(
            decision=self.decision[rows],
            set=self.set[rows],
            run=self.run[rows],
            order=self.order[rows],
        )


def _slots(rows: _Rows, sets: ProbeSets, settings: Settings) -> tuple[Places, Bools]:
    """The place of each row's axis among those of its run; which rows have none and need one."""
    setting, axis = settings.of_run[rows.run], sets.axis.codes[rows.set]
    size = len(sets.axis.words) + 1
    keys, inverse = np.unique(setting * size + axis + 1, return_inverse=True)
    places: list[int] = []
    listed: list[int] = keys.tolist()
    for key in listed:
        which, code = divmod(key, size)
        axes = settings.each[which].axes if code else ()
        name = sets.axis.words[code - 1] if code else ""
        places.append(axes.index(name) if name in axes else -1)
    slots = np.array(places, dtype=np.intp)[inverse]
    return slots, (slots < 0) & ~sets.is_screen[rows.set]


def _out_of_range(of_set: Places, sets: ProbeSets) -> Bools:
    weight, share, rate = sets.weight[of_set], sets.share[of_set], sets.rate[of_set]
    fine = (weight >= 0.0) & (weight <= 1.0) & (share >= 0.0) & (share <= 1.0)
    fine &= (rate > 0.0) & np.isfinite(rate) & np.isfinite(sets.delta[of_set])
    return ~fine


def _inconsistent(rows: _Rows, sets: ProbeSets, runs: int) -> Bools:
    """Runs that measure on several scales, or give one node several weights."""
    order = np.lexsort((sets.node.codes[rows.set], rows.run))
    run, of_set = rows.run[order], rows.set[order]
    node = sets.node.codes[of_set]
    same_run = run[1:] == run[:-1]
    same_node = same_run & (node[1:] == node[:-1])
    differ = np.zeros(len(run), dtype=np.bool_)
    estimator = sets.estimator.codes[of_set]
    differ[1:] = same_run & (estimator[1:] != estimator[:-1])
    for told in (sets.weight[of_set], sets.share[of_set]):
        differ[1:] |= same_node & (told[1:] != told[:-1])
    return any_in(differ, run, runs)


# --- the moving averages' inputs ------------------------------------------------------------------


def _inputs(
    rows: _Rows, decisions: Decisions, sets: ProbeSets, settings: Settings, runs: int
) -> Inputs:
    decision, of_set, delta, variance = _magnitudes(rows, sets)
    weight = sets.weight[of_set]
    starts = starts_of(decision)
    value, spread = np.zeros(len(decisions)), np.zeros(len(decisions))
    own = decision[starts]
    value[own], spread[own] = _reduced(
        delta, weight, variance, starts, _reductions(decisions.run[own], settings)
    )
    scored = np.zeros(len(decisions), dtype=np.bool_)
    scored[own] = True
    return Inputs(
        scored=scored,
        value=value,
        variance=spread,
        observed=_observed(decision, of_set, decisions, sets, runs),
    )


def _magnitudes(rows: _Rows, sets: ProbeSets) -> tuple[Places, Places, Floats, Floats]:
    """Per decision and node: one of its sets, the largest delta, and that one's variance."""
    rows, first_of_execution = _without_screens(rows, sets)
    node, task = sets.node.codes[rows.set], sets.task.codes[rows.set]
    axis = np.where(sets.is_screen[rows.set], -1, sets.axis.codes[rows.set])
    order = np.lexsort((rows.order, axis, task, node, rows.decision))
    sorted_rows = rows.take(order)
    starts = starts_of(sorted_rows.decision, node[order], task[order], axis[order])
    lengths = lengths_of(starts, len(order))
    of_set = sorted_rows.set
    samples = sets.n_counterfactual[of_set].astype(np.float64)
    total = np.add.reduceat(samples, starts) if len(starts) else samples
    rate = sets.rate[of_set[starts]]
    part = samples / total.repeat(lengths) / rate.repeat(lengths)
    delta = sums(part * sets.delta[of_set], starts)
    variance = sums(part**2 * sets.orbits.sd[of_set] ** 2, starts)
    # Of equal ones the first counts.
    begun, appeared = first_of_execution[order][starts], sorted_rows.order[starts]
    group_decision, group_node = sorted_rows.decision[starts], node[order][starts]
    best = np.lexsort((appeared, begun, -delta, group_node, group_decision))
    best = best[starts_of(group_decision[best], group_node[best])]
    return group_decision[best], of_set[starts][best], delta[best], variance[best]


def _without_screens(rows: _Rows, sets: ProbeSets) -> tuple[_Rows, Places]:
    """A screen stands in where it was all there is; and when each row's execution came up."""
    node, task = sets.node.codes[rows.set], sets.task.codes[rows.set]
    order = np.lexsort((rows.order, task, node, rows.decision))
    starts = starts_of(rows.decision[order], node[order], task[order])
    lengths = lengths_of(starts, len(order))
    plain = ~sets.is_screen[rows.set[order]]
    any_plain = np.add.reduceat(plain.astype(np.intp), starts) if len(starts) else starts
    kept = plain | (any_plain == 0).repeat(lengths)
    first = rows.order[order][starts].repeat(lengths)
    return rows.take(order[kept]), first[kept]


def _reductions(runs: Places, settings: Settings) -> Places:
    names = [REDUCTIONS.index(setting.reduction) for setting in settings.each]
    return np.array(names, dtype=np.intp)[settings.of_run[runs]]


def _reduced(
    delta: Floats, weight: Floats, variance: Floats, starts: Places, reduction: Places
) -> tuple[Floats, Floats]:
    """Each superstep's value and null variance; NaN for one without a closed form."""
    if not len(starts):
        return np.zeros(0), np.zeros(0)
    lengths = lengths_of(starts, len(delta))
    total = sums(weight, starts).repeat(lengths)
    factors = {
        "impact_sum": weight,
        "weighted_mean": np.divide(weight, total, out=np.zeros_like(weight), where=total != 0),
    }
    value, spread = np.zeros(len(starts)), np.full(len(starts), np.nan)
    for code, name in enumerate(REDUCTIONS):
        mine = reduction == code
        if not mine.any():
            continue
        if name in factors:
            factor = factors[name]
            value[mine] = sums(factor * delta, starts)[mine]
            spread[mine] = sums(factor**2 * variance, starts)[mine]
        else:
            impact = weight * delta if name == "impact_max" else delta
            value[mine] = np.maximum.reduceat(impact, starts)[mine]
    return value, spread


def _observed(
    decision: Places, of_set: Places, decisions: Decisions, sets: ProbeSets, runs: int
) -> Floats:
    """Per decision the share of the blast radius of all nodes that were scored by then."""
    run, node = decisions.run[decision], sets.node.codes[of_set]
    turn, share = decisions.turn[decision], sets.share[of_set]
    order = np.lexsort((turn, node, run))
    first = order[starts_of(run[order], node[order])]
    first = first[np.lexsort((turn[first], run[first]))]
    span = int(decisions.turn.max(initial=0)) + 1
    began = np.searchsorted(run[first], decisions.run, side="left")
    ended = np.searchsorted(
        run[first] * span + turn[first], decisions.run * span + decisions.turn, side="right"
    )
    shares: list[float] = share[first].tolist()
    pairs = zip(began.tolist(), ended.tolist(), strict=True)
    return np.array([fsum(shares[start:end]) for start, end in pairs])


# --- the monitor's cells --------------------------------------------------------------------------


def _cells(
    rows: _Rows,
    slots: Places,
    decisions: Decisions,
    sets: ProbeSets,
    settings: Settings,
    remeasured: Bools,
) -> tuple[Cells, Bools]:
    """The cells, and which of them no monitor takes."""
    rows, slots = _screens_on_every_axis(rows, slots, sets, settings)
    node, task = sets.node.codes[rows.set], sets.task.codes[rows.set]
    plain = ~sets.is_screen[rows.set]
    order = np.lexsort((rows.order, plain, slots, task, node, rows.decision))
    rows, slots, plain = rows.take(order), slots[order], plain[order]
    node, task = node[order], task[order]
    starts = starts_of(rows.decision, node, task, slots)
    alone = lengths_of(starts, len(order)) == 1
    decision, first = rows.decision[starts], rows.set[starts]
    e_value = products(sets.orbits.e[rows.set], starts)
    single, dense, staked = _stakes(
        decision, node[starts], task[starts], sets.share[first], decisions, settings, remeasured
    )
    cells = Cells(
        decision=decision,
        axis=slots[starts],
        set=first,
        e_value=e_value,
        single=single,
        dense=dense,
        boosted=alone & plain[starts],
        staked=staked,
    )
    return cells, ~np.isfinite(e_value)


def _screens_on_every_axis(
    rows: _Rows, slots: Places, sets: ProbeSets, settings: Settings
) -> tuple[_Rows, Places]:
    """A screen, which swaps all attributes at once, counts on every axis of its run."""
    screen = sets.is_screen[rows.set]
    if not screen.any():
        return rows, slots
    axes = np.array([len(setting.axes) for setting in settings.each], dtype=np.intp)
    times = np.where(screen, axes[settings.of_run[rows.run]], 1)
    repeated = np.arange(len(slots)).repeat(times)
    place = within(np.cumsum(times) - times, len(repeated))
    return rows.take(repeated), np.where(screen[repeated], place, slots[repeated])


def _stakes(
    decision: Places,
    node: Places,
    task: Places,
    share: Floats,
    decisions: Decisions,
    settings: Settings,
    remeasured: Bools,
) -> tuple[Floats, Floats, Floats]:
    """Per cell what its execution stakes on itself and its weight; per decision all it stakes."""
    staked = np.zeros(len(decisions))
    if not len(decision):
        return np.zeros(0), np.zeros(0), staked
    cells = starts_of(decision, node, task)
    repeats = lengths_of(cells, len(decision))
    decision, node, task, share = decision[cells], node[cells], task[cells], share[cells]
    firing = _firings(decision, node, task, decisions, remeasured)
    cyclic = settings.flags(setting.cyclic for setting in settings.each)
    part = np.where(
        cyclic[decisions.run[decision]], 1.0 / (firing * (firing + 1)), (firing == 1) * 1.0
    )
    single = share * part
    starts = starts_of(decision)
    counts = lengths_of(starts, len(decision))
    total = sums(share, starts).repeat(counts)
    dense = np.where(
        total != 0, share / np.where(total != 0, total, 1.0), 1.0 / counts.repeat(counts)
    )
    staked[decision[starts]] = sums(single, starts)
    return single.repeat(repeats), dense.repeat(repeats), staked


def _firings(
    decision: Places, node: Places, task: Places, decisions: Decisions, remeasured: Bools
) -> Places:
    """How often each execution's node was probed since the monitor's last start, from 1."""
    run, turn = decisions.run[decision], decisions.turn[decision]
    start = _monitor_starts(decisions, remeasured)[decision]
    order = np.lexsort((task, turn, node, start, run))
    firing = np.empty(len(decision), dtype=np.intp)
    starts = starts_of(run[order], start[order], node[order])
    firing[order] = within(starts, len(order)) + 1
    return firing


def _monitor_starts(decisions: Decisions, remeasured: Bools) -> Places:
    """How often the monitor of each decision's run was restarted by then."""
    order = np.lexsort((decisions.turn, decisions.run))
    begun: Places = np.cumsum(remeasured[order], dtype=np.intp)
    starts = starts_of(decisions.run[order])
    before: Places = begun[starts] - remeasured[order][starts]
    found = np.empty(len(decisions), dtype=np.intp)
    found[order] = begun - before.repeat(lengths_of(starts, len(order)))
    return found


# --- repairs --------------------------------------------------------------------------------------


def _unproven(rows: _Rows, decisions: Decisions, sets: ProbeSets, settings: Settings) -> Bools:
    """Decisions on a repair whose interval does not lie below the bound, where there is one."""
    high = sets.spans.numbers(c.EFFECT_CI_UPPER).values[rows.set]
    fewest = np.minimum(sets.n_reference[rows.set], sets.n_counterfactual[rows.set]).clip(min=1)
    sizes, inverse = np.unique(fewest, return_inverse=True)
    unseen = np.array([unseen_share(size) for size in sizes.tolist()])[inverse]
    bounds = settings.numbers(setting.options.equivalence for setting in settings.each)
    bound = bounds[decisions.run[rows.decision]]
    # No interval is none below the bound; without a bound nothing is asked.
    beyond = ~(np.maximum(high, unseen) < bound) & ~np.isnan(bound)
    return any_in(beyond, rows.decision, len(decisions))
