"""One number for one superstep: how the magnitudes of its nodes are combined."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, get_args

from twinspan.collector.weights import DependencyWeights
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement, UnknownNode
from twinspan.instrumentation.settings import Reduction

REDUCTIONS: Final[tuple[Reduction, ...]] = get_args(Reduction)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedSuperstep:
    """What one superstep adds to the moving averages.

    Attributes:
        value: the combined magnitude; 0 when no node fired.
        contributions: what each node put in; for sums and means they add up to ``value``, for
            maxima they are the numbers the largest was taken of.
        variance: variance of ``value`` when no node is biased, ``None`` when the variance of a
            magnitude is not known or the reduction is a maximum, which has no closed form.
    """

    value: float
    contributions: Mapping[str, float]
    variance: float | None


class _Part(NamedTuple):
    """One node's magnitude, weight and variance."""

    magnitude: float
    weight: float
    variance: float | None


def reduce_superstep(
    magnitudes: Mapping[str, float],
    weights: Mapping[str, float],
    reduction: Reduction,
    *,
    variances: Mapping[str, float] | None = None,
) -> ReducedSuperstep:
    """Combines the magnitudes of the nodes that fired together; their order plays no part.

    With b a magnitude and w a weight, the node's own:

    * ``impact_sum``: sum of w b, with w scaled so that the graph's largest is 1. One node
      alone enters with exactly w b, so a leaf counts for less than a hub.
    * ``impact_max``: the largest w b, same scale.
    * ``weighted_mean``: sum of w b over sum of w. The weights of a node that fires alone, or
      beside nodes of equal weight, cancel.
    * ``max``: the largest b; weights play no part, but are still required.

    Args:
        magnitudes: measured magnitude per node that fired; negative values are kept.
        weights: weight per node of the graph. :class:`DependencyWeights` are put on the scale
            the reduction needs; of any other mapping the impact reductions ask that its values
            lie in [0, 1] and have been scaled to the largest of the whole graph.
        reduction: one of the four.
        variances: null variance of each magnitude; a node that is missing has none known.

    Raises:
        UnknownNode: a node that fired has no weight.
        InvalidMeasurement: a magnitude is not finite, or a weight or variance is negative or
            not finite, or a weight above 1 meets an impact reduction.
        ConfigurationError: the reduction is unknown.

    >>> weights = {"hub": 1.0, "leaf": 0.25}
    >>> reduce_superstep({"leaf": 0.4}, weights, "impact_sum").value
    0.1
    >>> reduce_superstep({"leaf": 0.4}, weights, "weighted_mean").value
    0.4
    """
    if reduction not in REDUCTIONS:
        known = ", ".join(REDUCTIONS)
        raise ConfigurationError(f"reduction {reduction!r} is unknown; use one of {known}")
    scaled = weights.scaled if isinstance(weights, DependencyWeights) else weights
    known_variances = variances or {}
    parts = {
        node: _part(node, magnitude, scaled, known_variances.get(node))
        for node, magnitude in magnitudes.items()
    }
    if reduction in ("impact_sum", "impact_max"):
        _check_scale(parts)
    return _REDUCERS[reduction](parts)


def _part(
    node: str, magnitude: float, weights: Mapping[str, float], variance: float | None
) -> _Part:
    if node not in weights:
        raise UnknownNode(node, known=tuple(weights))
    weight = weights[node]
    if not math.isfinite(magnitude):
        raise InvalidMeasurement("magnitude", of=node, value=magnitude, must="be finite")
    for quantity, value in (("weight", weight), ("variance", variance)):
        if value is not None and not (math.isfinite(value) and value >= 0):
            must = "be finite and not negative"
            raise InvalidMeasurement(quantity, of=node, value=value, must=must)
    return _Part(magnitude, weight, variance)


def _check_scale(parts: Mapping[str, _Part]) -> None:
    for node, part in parts.items():
        if part.weight > 1:
            must = "be scaled to at most 1 in the whole graph"
            raise InvalidMeasurement("weight", of=node, value=part.weight, must=must)


def _impact_sum(parts: Mapping[str, _Part]) -> ReducedSuperstep:
    return _linear({node: part.weight for node, part in parts.items()}, parts)


def _weighted_mean(parts: Mapping[str, _Part]) -> ReducedSuperstep:
    total = math.fsum(part.weight for part in parts.values())
    return _linear({n: p.weight / total if total else 0.0 for n, p in parts.items()}, parts)


def _linear(factors: Mapping[str, float], parts: Mapping[str, _Part]) -> ReducedSuperstep:
    contributions = {node: factors[node] * part.magnitude for node, part in parts.items()}
    return ReducedSuperstep(
        value=math.fsum(contributions.values()),
        contributions=MappingProxyType(contributions),
        variance=_variance(factors, parts),
    )


def _variance(factors: Mapping[str, float], parts: Mapping[str, _Part]) -> float | None:
    terms: list[float] = []
    for node, part in parts.items():
        if part.variance is None:
            return None
        terms.append(factors[node] ** 2 * part.variance)
    return math.fsum(terms)


def _impact_max(parts: Mapping[str, _Part]) -> ReducedSuperstep:
    return _largest({node: part.weight * part.magnitude for node, part in parts.items()})


def _plain_max(parts: Mapping[str, _Part]) -> ReducedSuperstep:
    return _largest({node: part.magnitude for node, part in parts.items()})


def _largest(contributions: dict[str, float]) -> ReducedSuperstep:
    return ReducedSuperstep(
        value=max(contributions.values(), default=0.0),
        contributions=MappingProxyType(contributions),
        variance=None if contributions else 0.0,
    )


_REDUCERS: Final[dict[Reduction, Callable[[Mapping[str, _Part]], ReducedSuperstep]]] = {
    "impact_sum": _impact_sum,
    "impact_max": _impact_max,
    "weighted_mean": _weighted_mean,
    "max": _plain_max,
}
