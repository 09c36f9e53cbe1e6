"""Audits whose truth is known, for tests of coverage, size and power."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from twinspan.analysis.disagreement import PairCount, disagreement

Floats = NDArray[np.float64]
Shares = Callable[[np.random.Generator, int], Floats]
Truth = Literal["null", "all up", "mixed signs"]


def _coins(share: float) -> Shares:
    """Cases of which a share toss a fair coin and the others always do the same."""
    return lambda rng, cases: np.where(rng.random(cases) < share, 0.5, rng.integers(2, size=cases))


def _beta(a: float, b: float) -> Shares:
    return lambda rng, cases: rng.beta(a, b, cases)


FLOOR_LAWS: Final[Mapping[str, tuple[Shares, float]]] = {
    "sparse, floor .033": (_coins(1 / 15), 1 / 30),
    "sparse, floor .100": (_coins(1 / 5), 1 / 10),
    "beta .3 .7, floor .21": (_beta(0.3, 0.7), 0.21),
    "beta 2 2, floor .40": (_beta(2, 2), 0.4),
}
"""How the share of a yes varies over cases, and the floor that follows: mean of 2 p (1 - p)."""


def answers(rng: np.random.Generator, shares: Floats, replicates: int) -> NDArray[np.bool_]:
    """Answers of cases by replicates."""
    return rng.random((len(shares), replicates)) < shares[:, None]


def pair_counts(table: NDArray[np.bool_]) -> list[PairCount]:
    """Pairs of replicates of each case."""
    return [disagreement([int(ones), table.shape[1] - int(ones)]) for ones in table.sum(axis=1)]


def arms(
    rng: np.random.Generator,
    truth: Truth,
    *,
    cases: int = 16,
    reference: int = 10,
    counterfactual: int = 10,
    shift: float = 1.5,
) -> tuple[dict[str, list[object]], dict[str, list[object]]]:
    """Two arms of a yes or no, half of the cases deterministic under the reference.

    The counterfactual moves the logit of the other half up, in some cases down, or not at all.
    """
    logits = np.where(
        np.arange(cases) < cases // 2, rng.choice((-9.0, 9.0), cases), rng.normal(0, 1, cases)
    )
    signs = rng.choice((-1.0, 1.0), cases) if truth == "mixed signs" else np.ones(cases)
    moved = logits if truth == "null" else logits + shift * signs
    first = answers(rng, _share(logits), reference)
    second = answers(rng, _share(moved), counterfactual)
    return by_case(first), by_case(second)


def batch_arm(
    rng: np.random.Generator, *, cases: int, replicates: int, switch: float
) -> NDArray[np.bool_]:
    """Replicates of which each takes one policy for all its cases with probability `switch`."""
    policy = rng.random(replicates) < 0.5
    own = rng.random((cases, replicates)) < 0.5
    switched = rng.random(replicates) < switch
    return np.where(switched[None, :], policy[None, :], own)


def by_case(table: NDArray[np.bool_]) -> dict[str, list[object]]:
    """A table as answers by case."""
    return {f"v{number}": list(row) for number, row in enumerate(table.tolist())}


def _share(logits: Floats) -> Floats:
    shares: Floats = 1 / (1 + np.exp(-logits))
    return shares
