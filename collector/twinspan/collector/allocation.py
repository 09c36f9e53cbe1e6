"""Which nodes to probe, and how much, when not every node can be."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from twinspan.instrumentation.errors import ConfigurationError, UnknownNode


def inclusion_probabilities(
    shares: Mapping[str, float], *, expected: float, minimum: float
) -> dict[str, float]:
    """Probability of probing each node: in proportion to its blast share, never below a floor.

    The floor keeps every node under watch: with shares that differ 25-fold a pure allocation
    by share leaves half of the nodes unprobed for ever.

    Args:
        shares: share of the blast radius per node, at least 0.
        expected: how many nodes are probed on average.
        minimum: floor of every probability, in (0, 1].

    Returns:
        Probabilities in [minimum, 1] that sum to ``expected``, or all 1 when ``expected`` covers
        every node.

    Raises:
        ConfigurationError: the floor alone exceeds ``expected``, or a number is out of range.

    >>> inclusion_probabilities({"hub": 0.7, "a": 0.2, "b": 0.1}, expected=1.8, minimum=0.2)
    {'hub': 1.0, 'a': 0.533333, 'b': 0.266667}
    """
    if not 0.0 < minimum <= 1.0:
        raise ConfigurationError(
            f"minimum {minimum!r} must lie in (0, 1]; 0 leaves nodes unwatched"
        )
    if len(shares) * minimum > expected + 1e-12:
        raise ConfigurationError(
            f"{len(shares)} nodes at a probability of {minimum:g} are more than {expected:g} on "
            "average; lower the minimum or probe more"
        )
    if expected >= len(shares):
        return dict.fromkeys(shares, 1.0)
    factor = _scale_to_sum(list(shares.values()), expected, minimum)
    return {node: _clipped(share, factor, minimum) for node, share in shares.items()}


def _scale_to_sum(shares: Sequence[float], expected: float, minimum: float) -> float:
    """The factor at which the clipped shares sum to ``expected``: piecewise linear and rising."""
    # A subnormal share overflows as a divisor; it stays at the floor, as a share of 0 does.
    positive = [share for share in shares if share >= sys.float_info.min]
    bends = sorted({bend / share for share in positive for bend in (minimum, 1.0)})
    for low, high in pairwise([0.0, *bends]):
        at_low, at_high = (
            math.fsum(_clipped(share, factor, minimum) for share in shares)
            for factor in (low, high)
        )
        if at_low <= expected <= at_high:
            part = (expected - at_low) / (at_high - at_low) if at_high > at_low else 0.0
            return low + part * (high - low)
    return bends[-1] if bends else 0.0


def _clipped(share: float, factor: float, minimum: float) -> float:
    return min(max(share * factor, minimum), 1.0)


def horvitz_thompson(
    magnitudes: Mapping[str, float], probabilities: Mapping[str, float]
) -> dict[str, float]:
    """Magnitudes of the probed nodes over their probability of being probed.

    With nodes that were not drawn counting 0, any sum of the results has the expectation it
    would have had if every node had been probed (Horvitz & Thompson 1952). The run monitor needs
    no such correction: there an unprobed node counts with e = 1.

    Raises:
        UnknownNode: a probed node has no probability.
        ConfigurationError: a probability is not in (0, 1].

    >>> horvitz_thompson({"leaf": 0.1}, {"hub": 1.0, "leaf": 0.25})
    {'leaf': 0.4}
    """
    corrected: dict[str, float] = {}
    for node, magnitude in magnitudes.items():
        if node not in probabilities:
            raise UnknownNode(node, known=tuple(probabilities))
        probability = probabilities[node]
        if not 0.0 < probability <= 1.0:
            raise ConfigurationError(
                f"node {node!r} was probed with probability {probability!r}; it must lie in (0, 1]"
            )
        corrected[node] = magnitude / probability
    return corrected


class _Step(NamedTuple):
    """A stretch of the power curve's concave majorant."""

    samples: int
    slope: float


def allocate_samples(
    shares: Mapping[str, float], power: Sequence[tuple[int, float]], *, total: int
) -> dict[str, int]:
    """Samples per node that make the share-weighted power largest under a total.

    Greedy on the concave majorant of the power curve, which is optimal up to the last step.
    Nodes that get none should still be drawn now and then: :func:`inclusion_probabilities`.

    Args:
        shares: share of the blast radius per node.
        power: points ``(samples, power)`` of one node's power curve, ``samples`` rising; (0, 0) is
            added.
        total: samples to give away.

    >>> curve = [(5, 0.3), (10, 0.7), (20, 0.9)]
    >>> allocate_samples({"hub": 0.8, "leaf": 0.2}, curve, total=30)
    {'hub': 20, 'leaf': 10}
    """
    steps = _concave_steps(power)
    offers = [
        (share * step.slope, -order, node, step.samples)
        for node, share in shares.items()
        for order, step in enumerate(steps)
    ]
    given = dict.fromkeys(shares, 0)
    left = total
    for gain, _, node, samples in sorted(offers, key=lambda offer: offer[:2], reverse=True):
        if gain <= 0.0 or samples > left:
            break
        given[node] += samples
        left -= samples
    return given


def _concave_steps(power: Sequence[tuple[int, float]]) -> list[_Step]:
    hull: list[tuple[int, float]] = [(0, 0.0)]
    for point in power:
        if point[0] <= hull[-1][0]:
            raise ConfigurationError(f"power curve {power!r} must have rising sample sizes above 0")
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], point):
            hull.pop()
        hull.append(point)
    return [_Step(after[0] - before[0], _slope(before, after)) for before, after in pairwise(hull)]


def _slope(before: tuple[int, float], after: tuple[int, float]) -> float:
    return (after[1] - before[1]) / (after[0] - before[0])
