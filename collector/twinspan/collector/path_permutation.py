"""A calibrated threshold on the network score itself: permuted twins of the whole path."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from twinspan.collector.reduction import reduce_superstep
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement
from twinspan.instrumentation.settings import Reduction

Vector = NDArray[np.float64]

DEFAULT_REPLICAS: Final = 399

TIE_TOLERANCE: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathState:
    """The observed path and its replicas after some supersteps.

    Attributes:
        raw: moving average without start correction, observed path first, shape ``(R + 1,)``.
        live: paths that were not stopped yet, shape ``(R + 1,)``.
        step: supersteps taken in.
        halted: the observed path was stopped.
    """

    raw: Vector
    live: NDArray[np.bool_]
    step: int = 0
    halted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPermutation:
    """Halts when the score is among the highest of its own permuted twins.

    Beside the observed moving average run R replicas, each fed with one joint permutation of the
    labels of every probe. By step t the highest ``floor(alpha * t / horizon * (R + 1))`` of all
    paths have been stopped; the run halts when the observed one is among them. Without bias the
    observed path is one of R + 1 exchangeable ones, so P(any halt in a run) <= alpha. Paths that
    are tied across the border are let go.

    Exact only if the design and the inputs of later probes do not depend on the labels of
    earlier ones: a fixed number of samples, and no probe sample ever handed on as the node's
    answer. For adaptive probing there is the run monitor, which allows it.

    Args:
        horizon: supersteps of a run; from there on all of alpha is spent.
        smoothing: factor of the moving average, in (0, 1].
        alpha: P(any false halt in a run), in (0, 1).
        replicas: R; ``alpha * (R + 1)`` must reach 1.
        reduction: see :func:`~twinspan.collector.reduction.reduce_superstep`.
        adaptive: whether probing is adaptive; True is refused.

    Raises:
        ConfigurationError: an argument is out of range, or probing is adaptive.

    >>> test = PathPermutation(horizon=1, replicas=19)
    >>> others = np.linspace(-0.1, 0.1, 19)
    >>> test.step(test.initial(), {"a": 0.4}, {"a": others}, {"a": 1.0}).halted
    True
    """

    horizon: int
    smoothing: float = 0.7
    alpha: float = 0.05
    replicas: int = DEFAULT_REPLICAS
    reduction: Reduction = "impact_sum"
    adaptive: bool = False

    def __post_init__(self) -> None:
        if self.adaptive:
            raise ConfigurationError(
                "path permutation is not valid when earlier probes decide what is probed next; "
                "use the run monitor, or a fixed plan"
            )
        if not 0.0 < self.smoothing <= 1.0:
            raise ConfigurationError(f"smoothing {self.smoothing!r} must lie in (0, 1]")
        if self.horizon < 1:
            raise ConfigurationError(f"horizon {self.horizon!r} must be at least 1")
        if not 0.0 < self.alpha < 1.0 or self.alpha * (self.replicas + 1) < 1.0 - 1e-9:
            raise ConfigurationError(
                f"alpha {self.alpha!r} cannot be reached with {self.replicas} replicas; "
                "take at least 1 / alpha - 1"
            )

    def initial(self) -> PathState:
        """The state before the first superstep."""
        count = self.replicas + 1
        return PathState(raw=np.zeros(count), live=np.ones(count, dtype=np.bool_))

    def step(
        self,
        state: PathState,
        magnitudes: Mapping[str, float],
        replicas: Mapping[str, Vector],
        weights: Mapping[str, float],
    ) -> PathState:
        """The state after one more superstep; changes nothing.

        Args:
            state: the state so far.
            magnitudes: observed magnitude per node that was probed.
            replicas: per node R magnitudes, the r-th of every node under the r-th joint
                permutation of its labels over all arms.
            weights: weight per node of the graph.

        Raises:
            InvalidMeasurement: a node has no R finite replicas.
            UnknownNode: a node that fired has no weight.
        """
        values = self._values(magnitudes, replicas, weights)
        raw = self.smoothing * values + (1.0 - self.smoothing) * state.raw
        step = state.step + 1
        stopped = self._stopped(raw, state.live, self._budget(step))
        return PathState(
            raw=raw,
            live=state.live & ~stopped,
            step=step,
            halted=state.halted or bool(stopped[0]),
        )

    def _values(
        self,
        magnitudes: Mapping[str, float],
        replicas: Mapping[str, Vector],
        weights: Mapping[str, float],
    ) -> Vector:
        rows = {node: self._row(node, magnitudes[node], replicas) for node in magnitudes}
        paths = [
            reduce_superstep(
                {node: float(row[path]) for node, row in rows.items()}, weights, self.reduction
            ).value
            for path in range(self.replicas + 1)
        ]
        return np.array(paths)

    def _row(self, node: str, observed: float, replicas: Mapping[str, Vector]) -> Vector:
        drawn = replicas.get(node, np.zeros(0))
        if drawn.shape != (self.replicas,):
            must = f"equal {self.replicas}"
            raise InvalidMeasurement("number of replicas", of=node, value=drawn.size, must=must)
        return np.concatenate([[observed], drawn])

    def _budget(self, step: int) -> int:
        share = min(step / self.horizon, 1.0)
        return math.floor(self.alpha * share * (self.replicas + 1) + 1e-9)

    def _stopped(self, raw: Vector, live: NDArray[np.bool_], budget: int) -> NDArray[np.bool_]:
        """Live paths whose rank among the live ones, ties counted against them, is affordable."""
        left = budget - int(np.count_nonzero(~live))
        ascending = np.sort(raw[live])
        at_least = ascending.size - np.searchsorted(ascending, raw - TIE_TOLERANCE, side="left")
        return np.asarray(live & (at_least <= left))
