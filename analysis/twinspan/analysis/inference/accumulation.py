"""Accumulation: whether the shifts of a trajectory's steps add up or cancel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NO_SHIFTS: Final = "no_shifts"
_BLOCK: Final = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulation:
    """Signed shifts summed along trajectories, against shifts with random signs.

    Attributes:
        mean_abs_composite: mean over cases of the distance from 0 of the summed shifts.
        null_mean_abs: the same if every shift went either way at random.
        reinforcement_ratio: the first over the second; None where the second is 0.
        p_value: share of random sign patterns that add up at least as far.
        concordance: of cases with two shifts or more, the share whose shifts all go one way.
        n_concordance_eligible: how many such cases there are.
        n_cases: cases with at least one step.
        n_steps: steps.
        n_missing: shifts that are not known.

    The steps of one trajectory read each other's results, so that agreement of signs may be
    passed on rather than made anew: no cause can be told from this, and `identified` is False.
    """

    mean_abs_composite: float | None
    null_mean_abs: float | None
    reinforcement_ratio: float | None
    p_value: float | None
    concordance: float | None
    n_concordance_eligible: int
    n_cases: int
    n_steps: int
    n_missing: int

    @property
    def identified(self) -> bool:
        """Always False: an association of signs is no cause."""
        return False

    @property
    def reason(self) -> str | None:
        """Why there is no result; None if there is one."""
        return NO_SHIFTS if self.mean_abs_composite is None else None

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names, ours added."""
        return {
            "mean_abs_composite": self.mean_abs_composite,
            "null_mean_abs": self.null_mean_abs,
            "reinforcement_ratio": self.reinforcement_ratio,
            "p_value": self.p_value,
            "concordance": self.concordance,
            "n_concordance_eligible": self.n_concordance_eligible,
            "n_vignettes": self.n_cases,
            "n_steps": self.n_steps,
            "n_missing": self.n_missing,
            "identified": self.identified,
            "reason": self.reason,
        }


def trajectory_accumulation(
    step_shifts: Mapping[str, Mapping[str, float | None]], *, draws: int = 2000, seed: int = 0
) -> Accumulation:
    """Whether signed shifts of several steps reinforce each other.

    Args:
        step_shifts: by step, then by case, counterfactual less reference on scales that may be
            added; None where not known.
        draws: random sign patterns.
        seed: of the sampling.

    >>> found = trajectory_accumulation({"triage": {"v1": 1, "v2": 1}, "admit": {"v1": 1, "v2": 1}})
    >>> found.mean_abs_composite, found.concordance
    (2.0, 1.0)
    >>> trajectory_accumulation({}).reason
    'no_shifts'
    """
    cases = list(dict.fromkeys(case for shifts in step_shifts.values() for case in shifts))
    told = [[shifts.get(case) for case in cases] for shifts in step_shifts.values()]
    missing = sum(value is None for row in told for value in row)
    if missing == len(cases) * len(told):
        return _nothing(len(cases), len(told), missing)
    table = np.array([[0.0 if value is None else value for value in row] for row in told])
    composite = float(np.abs(table.sum(axis=0)).mean())
    null = _composites(table, draws, seed)
    null_mean = float(null.mean())
    hits = int(np.sum(null >= composite - 1e-12))
    rising, falling = (table > 0).sum(axis=0), (table < 0).sum(axis=0)
    several = rising + falling >= 2
    agreeing = several & ((rising == 0) | (falling == 0))
    eligible = int(several.sum())
    return Accumulation(
        mean_abs_composite=composite,
        null_mean_abs=null_mean,
        reinforcement_ratio=composite / null_mean if null_mean > 0 else None,
        p_value=(hits + 1) / (draws + 1),
        concordance=int(agreeing.sum()) / eligible if eligible else None,
        n_concordance_eligible=eligible,
        n_cases=len(cases),
        n_steps=len(told),
        n_missing=missing,
    )


def _composites(table: Floats, draws: int, seed: int) -> Floats:
    """Mean distance from 0 of the composites, for random signs of every shift."""
    rng = np.random.default_rng(seed)
    size = max(1, _BLOCK // table.size)
    blocks = [min(size, draws - start) for start in range(0, draws, size)]
    means = [
        np.abs((rng.choice((1.0, -1.0), size=(count, *table.shape)) * table).sum(axis=1)).mean(
            axis=1
        )
        for count in blocks
    ]
    return np.concatenate(means)


def _nothing(cases: int, steps: int, missing: int) -> Accumulation:
    return Accumulation(
        mean_abs_composite=None,
        null_mean_abs=None,
        reinforcement_ratio=None,
        p_value=None,
        concordance=None,
        n_concordance_eligible=0,
        n_cases=cases,
        n_steps=steps,
        n_missing=missing,
    )
