"""The network scores of many runs at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from twinspan.analysis.columnar.columns import Floats, Places


@lru_cache(maxsize=64)
def _masses(alpha: float, steps: int) -> Floats:
    """What a moving average has taken in after 0, 1, ... steps: 1 - (1 - alpha) ** step."""
    return np.array([1.0 - (1.0 - alpha) ** step for step in range(steps + 1)])


@dataclass(slots=True, kw_only=True, eq=False)
class MovingAverages:
    """One exponentially weighted average of each run; see `MovingAverage`.

    Attributes:
        alpha: smoothing factors.
        raw, raw_variance: by run; a variance that is not known is NaN.
        step: numbers of inputs.
    """

    alpha: Floats
    raw: Floats
    raw_variance: Floats
    step: Places

    @classmethod
    def begin(cls, alpha: Floats) -> MovingAverages:
        """All runs before their first input."""
        runs = len(alpha)
        return cls(
            alpha=alpha,
            raw=np.zeros(runs),
            raw_variance=np.zeros(runs),
            step=np.zeros(runs, dtype=np.intp),
        )

    def update(self, runs: Places, value: Floats, variance: Floats) -> None:
        """Take in one superstep of some runs, each once."""
        alpha = self.alpha[runs]
        keep = 1.0 - alpha
        self.raw[runs] = alpha * value + keep * self.raw[runs]
        self.raw_variance[runs] = alpha**2 * variance + keep**2 * self.raw_variance[runs]
        self.step[runs] += 1

    def keep(self, into: MovingAverages, runs: Places) -> None:
        """Copy the state of some runs into another one."""
        into.raw[runs] = self.raw[runs]
        into.raw_variance[runs] = self.raw_variance[runs]
        into.step[runs] = self.step[runs]

    def value(self, runs: Places) -> Floats:
        """The averages corrected for the start; NaN before the first input."""
        return self.raw[runs] / self._mass(runs)

    def deviation(self, runs: Places) -> Floats:
        """Their null standard deviations; NaN where these are not known."""
        return np.sqrt(self.raw_variance[runs] / self._mass(runs) ** 2)

    def _mass(self, runs: Places) -> Floats:
        alpha, step = self.alpha[runs], self.step[runs]
        found = np.full(len(runs), np.nan)
        for each in np.unique(alpha).tolist():
            mine = (alpha == each) & (step > 0)
            found[mine] = _masses(each, int(step.max(initial=0)))[step[mine]]
        return found
