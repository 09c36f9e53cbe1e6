"""What the runs of a batch were decided by: options, graph, weights and axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from twinspan.analysis.columnar.columns import Bools, Floats, Places
from twinspan.analysis.columnar.segments import any_in
from twinspan.analysis.columnar.spans import REST, Spans
from twinspan.collector.machine import ControlMachine
from twinspan.collector.reckoning import begin, graph_weights
from twinspan.collector.recorded import ANEW, STARTED, RecordedRun, dag_of
from twinspan.collector.telling import OPTION_KEYS, options_of
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import TwinspanError
from twinspan.instrumentation.settings import BreakerOptions, Reduction

NAMES: Final = (
    *OPTION_KEYS.values(),
    c.AUDIT_AXES,
    c.GRAPH_NODES,
    c.GRAPH_EDGES,
    c.GRAPH_PROBED_DEPTH,
    c.GRAPH_NODE_COUNT,
    c.GRAPH_DEPTH,
)
"""What of a root span its run's control depends on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What control of a run is, before anything was measured.

    Attributes:
        options: the breaker's, as recorded or as another configuration has them.
        axes: contrasts that can decide.
        weights, shares: by node, of a graph that is spelled out; empty for another.
        fast_alpha, slow_alpha: smoothing factors.
        reduction: how the scores of a superstep become one.
        alpha: bound on false halts.
        depth: supersteps over which the monitor's start masses are spread; None if not known.
        cyclic: nodes may fire again.
        sparse_share: part of the wealth that bets on single nodes.
        machine: the guards.
    """

    options: BreakerOptions
    axes: tuple[str, ...]
    weights: Mapping[str, float]
    shares: Mapping[str, float]
    fast_alpha: float
    slow_alpha: float
    reduction: Reduction
    alpha: float
    depth: int | None
    cyclic: bool
    sparse_share: float
    machine: ControlMachine


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settings:
    """The settings of a batch's runs, each kept once.

    Attributes:
        each: the different ones.
        of_run: place of each run's in `each`.
    """

    each: Sequence[Setting]
    of_run: Places

    def numbers(self, values: Iterable[float | None]) -> Floats:
        """A number of each run, given for each setting; NaN for None."""
        filled = [math.nan if value is None else float(value) for value in values]
        return np.array(filled, dtype=np.float64)[self.of_run]

    def flags(self, values: Iterable[bool]) -> Bools:
        """A truth value of each run, given for each setting."""
        return np.fromiter(values, dtype=np.bool_)[self.of_run]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Roots:
    """The root spans of a batch, one for each run.

    Attributes:
        told: what `NAMES` says of each run; None without a root.
        started: when the run's first root began; 0 without one.
        anew: runs whose control began anew on the way.
        odd: runs of which a root says something out of place.
    """

    told: list[tuple[Any, ...] | None]
    started: Places
    anew: Bools
    odd: Bools


def roots_of(spans: Spans, runs: int) -> Roots:
    """Read the root spans, of several in a run the first one."""
    started = np.array(spans.column(STARTED).to_pylist(), dtype=np.int64)
    columns = [_frozen(spans.column(name).to_pylist()) for name in NAMES]
    rows = list(zip(*columns, strict=True))
    told: list[tuple[Any, ...] | None] = [None] * runs
    begun = np.zeros(runs, dtype=np.int64)
    first = np.lexsort((spans.words("span_id").ranked().codes, started, spans.run))
    for row in first[::-1].tolist():
        run = int(spans.run[row])
        told[run], begun[run] = rows[row], started[row]
    resumed = spans.words(c.RUN_RESUMED)
    anew = np.isin(resumed.codes, resumed.codes_of(sorted(ANEW)))
    odd = np.array([text not in (None, "{}") for text in spans.column(REST).to_pylist()], np.bool_)
    return Roots(
        told=told,
        started=begun,
        anew=any_in(anew, spans.run, runs),
        odd=any_in(odd, spans.run, runs),
    )


def _frozen(values: list[Any]) -> list[Any]:
    return [tuple(value) if isinstance(value, list) else value for value in values]  # pyright: ignore


def settings_of(
    roots: Sequence[tuple[Any, ...] | None],
    probed: Sequence[tuple[str, ...]],
    changes: Mapping[str, object],
) -> tuple[Settings, Bools]:
    """The settings of some runs, and which of the runs have any.

    Args:
        roots: what `NAMES` says of each run.
        probed: axes that each run's probe sets name.
        changes: options that are other than recorded.
    """
    places: dict[object, int] = {}
    each: list[Setting] = []
    of_run: list[int] = []
    changed = tuple(changes.items())
    for root, axes in zip(roots, probed, strict=True):
        place = places.get((root, axes))
        if place is None:
            setting = None if root is None else _setting(root, axes, changed)
            place = places[root, axes] = -1 if setting is None else len(each)
            each += [] if setting is None else [setting]
        of_run.append(place)
    found = np.array(of_run, dtype=np.intp)
    return Settings(each=each, of_run=found), found >= 0


@lru_cache(maxsize=1024)
def _setting(
    root: tuple[Any, ...], probed: tuple[str, ...], changes: tuple[tuple[str, Any], ...]
) -> Setting | None:
    told = {name: value for name, value in zip(NAMES, root, strict=True) if value is not None}
    told[c.AUDIT_AXES] = tuple(dict.fromkeys([*(told.get(c.AUDIT_AXES) or ()), *probed]))
    run = RecordedRun(run_id="", told=told, parts=(), probe_sets=())
    try:
        recorded = options_of(told)
        options = replace(recorded, **dict(changes))
        control = begin(run, told, options)
        weights = graph_weights(dag_of(told), recorded)
    except TwinspanError:
        return None
    monitor, network = control.monitor, control.accumulator
    spelled_out = bool(len(dag_of(told)))
    return Setting(
        options=options,
        axes=tuple(monitor.axes),
        weights=weights.scaled if spelled_out else {},
        shares=weights.shares if spelled_out else {},
        fast_alpha=network.fast_alpha,
        slow_alpha=network.slow_alpha,
        reduction=network.reduction,
        alpha=monitor.alpha,
        depth=monitor.depth,
        cyclic=monitor.cyclic,
        sparse_share=monitor.sparse_share,
        machine=control.machine,
    )
