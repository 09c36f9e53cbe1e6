"""The network score: bias-corrected moving averages over supersteps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from twinspan.collector.reduction import (
    REDUCTIONS,
    ReducedSuperstep,
    reduce_superstep,
)
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement, MixedEstimators
from twinspan.instrumentation.settings import Reduction

FAST_ALPHA: Final = 0.7
SLOW_ALPHA: Final = 0.1
DEFAULT_REDUCTION: Final[Reduction] = "impact_sum"


def slow_alpha_for_depth(depth: int) -> float:
    """The smoothing factor that remembers about ``depth`` supersteps: 2 / (depth + 1).

    Args:
        depth: supersteps on the longest path of the graph, at least 1.

    >>> slow_alpha_for_depth(19)
    0.1
    """
    if depth < 1:
        raise ConfigurationError(f"depth {depth!r} must be at least 1; count the longest path")
    return 2.0 / (depth + 1)


def warmup_factor(alpha: float, step: int) -> float:
    """How much wider than in the long run the average scatters at a step, at least 1.

    The correction for the start removes the bias of the first steps and leaves their noise:
    with inputs of equal variance the standard deviation at step t is
    ``sqrt((1 + (1 - alpha)**t) / (1 - (1 - alpha)**t))`` times that of the long run. A limit
    multiplied with it is equally strict at every step.

    Args:
        alpha: smoothing factor, in (0, 1].
        step: 1 for the first superstep.

    >>> warmup_factor(0.1, 1), warmup_factor(0.1, 50)  # sqrt(1.9 / 0.1) at first
    (4.35890, 1.00517)
    >>> warmup_factor(1.0, 1)
    1.0
    """
    _check_alpha("alpha", alpha)
    if step < 1:
        raise ConfigurationError(f"step {step!r} must be at least 1; nothing was averaged before")
    left = (1.0 - alpha) ** step
    return math.sqrt((1.0 + left) / (1.0 - left))


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingAverage:
    """One exponentially weighted average and its null variance, immutable.

    After t inputs ``raw = alpha * x_t + (1 - alpha) * raw_before`` and
    ``value = raw / (1 - (1 - alpha)**t)``, so that a constant input is reported at once.

    Attributes:
        alpha: smoothing factor, in (0, 1].
        raw: the average without the correction for the start.
        raw_variance: null variance of ``raw``; ``None`` once an input came without one.
        step: number of inputs.

    >>> average = MovingAverage(alpha=0.5).after(1.0, variance=0.04)
    >>> average.value, average.variance
    (1.0, 0.04)
    """

    alpha: float
    raw: float = 0.0
    raw_variance: float | None = 0.0
    step: int = 0

    def after(self, value: float, *, variance: float | None) -> MovingAverage:
        """The average with one more input."""
        keep = 1.0 - self.alpha
        known = None
        if variance is not None and self.raw_variance is not None:
            known = self.alpha**2 * variance + keep**2 * self.raw_variance
        return MovingAverage(
            alpha=self.alpha,
            raw=self.alpha * value + keep * self.raw,
            raw_variance=known,
            step=self.step + 1,
        )

    @property
    def value(self) -> float:
        """The average corrected for the start; 0 before the first input."""
        return self.raw / self._mass if self.step else 0.0

    @property
    def variance(self) -> float | None:
        """Null variance of :attr:`value` for independent inputs, ``None`` when not known."""
        if self.raw_variance is None or not self.step:
            return None
        return self.raw_variance / self._mass**2

    @property
    def deviation(self) -> float | None:
        """Null standard deviation of :attr:`value`, ``None`` when not known."""
        variance = self.variance
        return None if variance is None else math.sqrt(variance)

    @property
    def standardised(self) -> float | None:
        """Value over its null standard deviation; ``None`` when that is unknown or zero."""
        deviation = self.deviation
        return self.value / deviation if deviation else None

    @property
    def _mass(self) -> float:
        return 1.0 - (1.0 - self.alpha) ** self.step


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkState:
    """Everything the accumulator knows after a superstep, immutable.

    Attributes:
        fast_average, slow_average: the two averages.
        superstep: what the last superstep added, ``None`` before the first.
        estimator: the estimator all magnitudes came from, ``None`` while none was named.

    >>> state = NetworkAccumulator().update({"a": 0.4}, {"a": 1.0})
    >>> state.step, state.fast, state.slow
    (1, 0.4, 0.4)
    """

    fast_average: MovingAverage
    slow_average: MovingAverage
    superstep: ReducedSuperstep | None = None
    estimator: str | None = None

    @property
    def step(self) -> int:
        """Number of supersteps taken in."""
        return self.fast_average.step

    @property
    def fast(self) -> float:
        """B on the fast scale: sees spikes."""
        return self.fast_average.value

    @property
    def slow(self) -> float:
        """B on the slow scale: sees drift."""
        return self.slow_average.value

    @property
    def fast_standardised(self) -> float | None:
        """B on the fast scale over its null standard deviation."""
        return self.fast_average.standardised

    @property
    def slow_standardised(self) -> float | None:
        """B on the slow scale over its null standard deviation."""
        return self.slow_average.standardised


@dataclass(slots=True)
class NetworkAccumulator:
    """Two moving averages of the weighted magnitudes, one input per superstep.

    One instance belongs to one run. :meth:`step` is the pure transition behind
    :meth:`update`: recorded inputs and :meth:`initial` rebuild any state.

    The default reduction is ``impact_sum``: replacing the weights by equal ones changes it, which
    ``weighted_mean`` and ``max`` do not notice where nodes of equal weight fire together, and
    it detects more than ``impact_max``. Since the nodes with the largest weights fire first, its
    noise falls along a run: give variances and let the thresholds follow the deviation, or a
    constant threshold that the first supersteps respect is never reached by a late spread.

    Args:
        fast_alpha: smoothing factor for spikes, in (0, 1].
        slow_alpha: smoothing factor for drift, in (0, 1]; see :func:`slow_alpha_for_depth`.
        reduction: see :func:`~twinspan.collector.reduction.reduce_superstep`.

    Raises:
        ConfigurationError: an alpha or the reduction has no meaning.

    >>> accumulator = NetworkAccumulator()
    >>> for magnitude in (1.0, 0.0):
    ...     state = accumulator.update({"hub": magnitude}, {"hub": 1.0, "leaf": 0.5})
    >>> state.fast, state.slow  # 0.3 * 0.7 / 0.91 and 0.9 * 0.1 / 0.19
    (0.230769, 0.473684)
    """

    fast_alpha: float = FAST_ALPHA
    slow_alpha: float = SLOW_ALPHA
    reduction: Reduction = DEFAULT_REDUCTION
    state: NetworkState = field(init=False)

    def __post_init__(self) -> None:
        _check_alpha("fast_alpha", self.fast_alpha)
        _check_alpha("slow_alpha", self.slow_alpha)
        if self.reduction not in REDUCTIONS:
            raise ConfigurationError(
                f"reduction {self.reduction!r} is unknown; use one of {', '.join(REDUCTIONS)}"
            )
        self.state = self.initial()

    @classmethod
    def for_depth(cls, depth: int, *, reduction: Reduction = DEFAULT_REDUCTION) -> Self:
        """An accumulator whose slow scale spans a graph of this depth."""
        return cls(slow_alpha=slow_alpha_for_depth(depth), reduction=reduction)

    def initial(self) -> NetworkState:
        """The state before the first superstep."""
        return NetworkState(
            fast_average=MovingAverage(alpha=self.fast_alpha),
            slow_average=MovingAverage(alpha=self.slow_alpha),
        )

    def update(
        self,
        magnitudes: Mapping[str, float],
        weights: Mapping[str, float],
        *,
        variances: Mapping[str, float] | None = None,
        estimators: Mapping[str, str] | None = None,
    ) -> NetworkState:
        """Takes in one superstep, whatever the order of its nodes, and returns the new state.

        Call it once per superstep with the nodes that fired in it, and only with those: a
        superstep in which none fired counts as 0. On an error the state stays as it was.

        Args:
            magnitudes: magnitude per node, neither clipped nor gated.
            weights: weight per node of the graph.
            variances: null variance of the magnitudes, for the standardised scores.
            estimators: which estimator made each magnitude; all must agree over the whole run.

        Raises:
            UnknownNode: a node that fired has no weight.
            InvalidMeasurement: a number is NaN, infinite or out of range.
            MixedEstimators: the magnitudes are not on one scale.
        """
        estimator = _one_estimator(self.state.estimator, estimators or {})
        reduced = reduce_superstep(magnitudes, weights, self.reduction, variances=variances)
        self.state = self.step(self.state, reduced, estimator=estimator)
        return self.state

    @staticmethod
    def step(
        state: NetworkState, reduced: ReducedSuperstep, *, estimator: str | None = None
    ) -> NetworkState:
        """The state after one more reduced superstep; changes nothing."""
        if not math.isfinite(reduced.value):
            raise InvalidMeasurement(
                "magnitude", of="superstep", value=reduced.value, must="be finite"
            )
        value, variance = reduced.value, reduced.variance
        return NetworkState(
            fast_average=state.fast_average.after(value, variance=variance),
            slow_average=state.slow_average.after(value, variance=variance),
            superstep=reduced,
            estimator=estimator or state.estimator,
        )


def _one_estimator(known: str | None, estimators: Mapping[str, str]) -> str | None:
    for estimator in estimators.values():
        if known is not None and estimator != known:
            raise MixedEstimators(known, estimator)
        known = estimator
    return known


def _check_alpha(name: str, alpha: float) -> None:
    if not 0.0 < alpha <= 1.0:
        raise ConfigurationError(f"{name} {alpha!r} must lie in (0, 1]; 0.7 is fast, 0.1 is slow")
