"""Several axes of one node: one test for the node, one p-value for each axis.

Taking the largest of several axes without more turns a 5% test of six axes into one of up to
26%. Here the labels of all arms are exchanged jointly and the largest delta is compared with
the largest delta of every labelling (max-T, Westfall & Young 1993): exact when no axis
matters, and sharper than Bonferroni because the axes share a reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import EstimatorError
from twinspan.instrumentation.evidence import standardised, upper_tail
from twinspan.instrumentation.multiplicity import holm
from twinspan.instrumentation.orbit import OrbitResult, orbit_test
from twinspan.instrumentation.splits import DEFAULT_SEED

Floats = NDArray[np.float64]

JOINT_DRAWS: Final = 999
"""Joint labellings drawn beside the observed one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisResult:
    """One axis of a node.

    Attributes:
        axis: its name.
        alone: its arm against the reference, as if it were the only one.
        p_holm: its p-value adjusted for the node's other axes, in (0, 1]; names the guilty.
    """

    axis: str
    alone: OrbitResult
    p_holm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JointResult:
    """All axes of a node.

    Attributes:
        p: p-value of "no axis matters" over the joint labellings, in (0, 1].
        statistic: the largest delta; standardised over the joint labellings first when the
            arms have different sizes.
        draws: joint labellings drawn beside the observed one.
        axes: the axes in the order given.
    """

    p: float
    statistic: float
    draws: int
    axes: tuple[AxisResult, ...]

    @property
    def worst(self) -> AxisResult:
        """The axis with the largest delta."""
        return max(self.axes, key=lambda axis: axis.alone.delta)


def joint_test(
    distances: Floats,
    n_reference: int,
    arms: Mapping[str, int],
    *,
    draws: int = JOINT_DRAWS,
    seed: int | None = None,
) -> JointResult:
    """Test one reference arm against the counterfactual arms of several axes.

    Args:
        distances: N x N distances in [0, 1], the reference samples first, then the arms in the
            order of ``arms``.
        n_reference: reference samples, at least 2.
        arms: samples of each axis' arm, at least 2 each.
        draws: joint labellings; the smallest p is 1 / (draws + 1).
        seed: seed of the labellings; fixed by default.

    Raises:
        EstimatorError: the sizes do not add up to N, or there is no axis.
        InsufficientSamples: an arm has fewer than two samples.
        NonFiniteSample: a distance is NaN or infinite.

    Two axes of which the second answers otherwise. Alone it reaches 2/70, twice that by Holm,
    and the node as a whole is clearer than that:

    >>> near, far = np.zeros((4, 4)), np.ones((4, 4))
    >>> distances = np.block([[near, near, far], [near, near, far], [far, far, near]])
    >>> found = joint_test(distances, 4, {"age": 4, "gender": 4})
    >>> found.worst.axis, found.p < 0.02, [round(axis.p_holm, 3) for axis in found.axes]
    ('gender', True, [1.0, 0.057])
    """
    sizes = tuple(arms.values())
    _check(len(distances), n_reference, sizes)
    results = _each_alone(distances, n_reference, sizes, seed)
    maxima = joint_maxima(distances, n_reference, sizes, draws=draws, seed=seed)
    adjusted = holm([result.p for result in results])
    return JointResult(
        p=upper_tail(maxima),
        statistic=float(maxima[0]),
        draws=draws,
        axes=tuple(
            AxisResult(axis=axis, alone=alone, p_holm=p)
            for axis, alone, p in zip(arms, results, adjusted, strict=True)
        ),
    )


def joint_maxima(
    distances: Floats,
    n_reference: int,
    sizes: tuple[int, ...],
    *,
    draws: int = JOINT_DRAWS,
    seed: int | None = None,
) -> Floats:
    """The largest delta over the axes for every joint labelling, the observed one first.

    Args:
        distances: as in `joint_test`.
        n_reference: as in `joint_test`.
        sizes: samples of each axis' arm.
        draws: as in `joint_test`.
        seed: as in `joint_test`.
    """
    members = _memberships(n_reference, sizes, draws, DEFAULT_SEED if seed is None else seed)
    spread = members @ distances
    within = np.vecdot(spread, members)
    counts = np.array([n_reference, *sizes], dtype=np.float64)
    means = (within / (counts * (counts - 1))).T
    across = (np.vecdot(spread[:, :1], members[:, 1:]) / (n_reference * counts[1:])).T
    deltas: Floats = across - (means[:1] + means[1:]) / 2
    if len(set(sizes)) > 1:
        deltas = standardised(deltas)
    largest: Floats = deltas.max(axis=0)
    return largest


def _check(total: int, n_reference: int, sizes: tuple[int, ...]) -> None:
    if not sizes:
        raise EstimatorError("no axis was given; a joint test needs at least one")
    if n_reference + sum(sizes) != total:
        raise EstimatorError(
            f"arms of {n_reference} and {sizes} samples do not add up to {total}; "
            "give the size of every arm"
        )


def _each_alone(
    distances: Floats, n_reference: int, sizes: tuple[int, ...], seed: int | None
) -> list[OrbitResult]:
    edges = pairwise(accumulate(sizes, initial=n_reference))
    chosen = [[*range(n_reference), *range(start, stop)] for start, stop in edges]
    return [orbit_test(distances[np.ix_(own, own)], n_reference, seed=seed) for own in chosen]


@lru_cache(maxsize=16)
def _memberships(n_reference: int, sizes: tuple[int, ...], draws: int, seed: int) -> Floats:
    """Labelling x arm x sample: 1 where the sample is in the arm."""
    arms = np.repeat(np.arange(len(sizes) + 1), [n_reference, *sizes])
    rows = np.tile(arms, (draws + 1, 1))
    rows[1:] = np.random.default_rng(seed).permuted(rows[1:], axis=1)
    members: NDArray[np.bool_] = rows[:, np.newaxis, :] == np.arange(len(sizes) + 1)[:, np.newaxis]
    indicator = members.astype(np.float64)
    indicator.setflags(write=False)
    return indicator
