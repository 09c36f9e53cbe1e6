"""Path permutation of a live run: a calibrated threshold on the network score of every axis."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from twinspan.collector.path_permutation import (
    DEFAULT_REPLICAS,
    TIE_TOLERANCE,
    PathPermutation,
    PathState,
)
from twinspan.collector.records import ProbeRecord
from twinspan.instrumentation.orbit import square
from twinspan.instrumentation.settings import Reduction

Vector = NDArray[np.float64]

UNITS: Final = 20
"""Paths that the error level is worth at least, so that it can be spent little by little."""

MOST_REPLICAS: Final = 20_000


@dataclass(slots=True, kw_only=True)
class PathWatch:
    """One path permutation per axis, each with its share of the error level.

    The axes of a node share its reference samples, and their cross distances are not on record,
    so the labels of one axis are permuted at a time and the level is divided by the number of
    axes: without bias any of them ever halts the run with probability at most alpha, whatever the
    axes have to do with each other.

    A replica is drawn from the recorded distances with the probe set's id as seed, so that anyone
    can draw it again.

    Args:
        axes: every axis that may be probed.
        alpha: P(any false halt in a run), in (0, 1).
        horizon: supersteps over which the level is spent.
        smoothing: factor of the moving average, in (0, 1].
        reduction: how the scores of a superstep become one.

    Attributes:
        restarts: repairs and resets so far; each leaves a fresh path and half of the level.
    """

    axes: tuple[str, ...]
    alpha: float
    horizon: int
    smoothing: float
    reduction: Reduction
    restarts: int = 0
    _test: PathPermutation | None = field(init=False)
    _states: dict[str, PathState] = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Set the paths back to their start."""
        level = self.alpha / len(self.axes)
        if self.restarts:
            level /= 2.0 ** (self.restarts + 1)
        replicas = min(max(DEFAULT_REPLICAS, math.ceil(UNITS / level) - 1), MOST_REPLICAS)
        self._states = {}
        self._test = None
        if level * (replicas + 1) >= 1.0:
            self._test = PathPermutation(
                horizon=self.horizon,
                smoothing=self.smoothing,
                alpha=level,
                replicas=replicas,
                reduction=self.reduction,
            )

    def restart(self) -> None:
        """Begin afresh after a repair or a reset, with ``alpha / 2**(k + 1)`` the k-th time."""
        self.restarts += 1
        self.begin()

    def update(self, records: Sequence[ProbeRecord], weights: dict[str, float]) -> None:
        """Take in the scores of one superstep.

        Args:
            records: the probe sets that have a score, of one round each.
            weights: blast radius by node.
        """
        test = self._test
        if test is None:
            return
        of_axis: defaultdict[str, list[ProbeRecord]] = defaultdict(list)
        for record in records:
            if record.axis in self.axes:
                of_axis[record.axis].append(record)
        for axis, found in of_axis.items():
            paths = _paths(found, test.replicas)
            self._states[axis] = test.step(
                self._states.get(axis) or test.initial(),
                {node: float(row[0]) for node, row in paths.items()},
                {node: row[1:] for node, row in paths.items()},
                weights,
            )

    @property
    def fired(self) -> tuple[str, ...]:
        """The axes on which the observed path was stopped."""
        return tuple(axis for axis in self.axes if axis in self._states and self._of(axis).halted)

    @property
    def ranks(self) -> tuple[float, ...]:
        """Per axis the share of paths at least as high as the observed one; 1 without a score."""
        return tuple(_rank(self._of(axis)) if axis in self._states else 1.0 for axis in self.axes)

    def _of(self, axis: str) -> PathState:
        return self._states[axis]


def _rank(state: PathState) -> float:
    at_least = np.count_nonzero(state.raw >= state.raw[0] - TIE_TOLERANCE)
    return float(at_least) / state.raw.size


def _paths(records: Sequence[ProbeRecord], replicas: int) -> dict[str, Vector]:
    """Per node its magnitude, observed first and then permuted, over the rate of probing.

    Of several executions in one superstep the largest counts, in every path by itself.
    """
    paths: dict[str, Vector] = {}
    for record in records:
        row = permuted_deltas(record, replicas) / record.rate
        known = paths.get(record.node)
        paths[record.node] = row if known is None else np.maximum(known, row)
    return paths


def permuted_deltas(record: ProbeRecord, replicas: int) -> Vector:
    """A probe set's delta, then its delta under so many random labellings, from its distances.

    >>> from opentelemetry.trace import INVALID_SPAN_CONTEXT
    >>> from twinspan.collector.records import record_of
    >>> from twinspan.instrumentation import conventions as c
    >>> told = {c.RUN_ID: "r", c.PROBE_SET_ID: "s", c.NODE_ID: "n", c.NODE_TASK_ID: "t"}
    >>> told |= {c.PROBE_AXIS: "age", c.SUPERSTEP_SCOPE: "", c.SUPERSTEP_INDEX: 1}
    >>> told |= {c.DIVERGENCE_REFERENCE_COUNT: 2, c.DIVERGENCE_COUNTERFACTUAL_COUNT: 2}
    >>> told[c.DIVERGENCE_DISTANCES] = [0, 1, 1, 1, 1, 0]  # a a | b b
    >>> deltas = permuted_deltas(record_of(told, INVALID_SPAN_CONTEXT), 300)
    >>> float(deltas[0]), sorted(set(deltas.tolist()))
    (1.0, [-0.5, 1.0])
    """
    distances = square(record.distances)
    n, m = record.n_reference, record.n_counterfactual
    rng = np.random.default_rng(list(record.set_id.encode()))
    order = rng.permuted(np.tile(np.arange(n + m), (replicas, 1)), axis=1)
    labels = np.zeros((replicas + 1, n + m))
    labels[0, n:] = 1.0
    np.put_along_axis(labels[1:], order[:, :m], 1.0, axis=1)
    toward = labels @ distances
    within = np.vecdot(toward, labels)
    across = toward.sum(axis=1) - within
    rest = distances.sum() - within - 2.0 * across
    deltas: Vector = across / (n * m) - (rest / (n * (n - 1)) + within / (m * (m - 1))) / 2.0
    return deltas
