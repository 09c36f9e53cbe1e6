"""What a probe came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from twinspan.instrumentation.joint import JointResult
from twinspan.instrumentation.probing.contrast import SCREEN
from twinspan.instrumentation.scoring import BiasScore

Coverage = Literal["probed", "screened", "budget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """What a probe set came to.

    Attributes:
        axis: label of the contrast: the axis, or `axis#proxy`, `axis#sham`, `screen`.
        outcome: `ok`, `partial` (some runs are missing), `no_op` (the axis does not occur in
            the payload: nothing was varied, which is not "no bias"), `timeout`, `budget` or
            `error`.
        score: the score; None where there is none, and `reason` says why.
        reason: why there is no score.
        round: round of adaptive probing, from 0.
    """

    axis: str
    outcome: str
    score: BiasScore | None = None
    reason: str | None = None
    round: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What the probe of one payload came to.

    Attributes:
        sets: the probe sets, in the order in which they were probed.
        calls: node runs that were spent, tries included.
        coverage: `probed`, `screened` (all axes swapped at once, so opposite effects may have
            cancelled) or `budget` (the calls left did not pay for a round).
        joint: all axes of a fixed round in one test; None where there is only one axis.
    """

    sets: tuple[SetResult, ...]
    calls: int
    coverage: Coverage = "probed"
    joint: JointResult | None = None

    @property
    def scores(self) -> tuple[BiasScore, ...]:
        """The scores there are."""
        return tuple(item.score for item in self.sets if item.score is not None)

    @property
    def failures(self) -> tuple[SetResult, ...]:
        """The sets without a score, each with its reason."""
        return tuple(item for item in self.sets if item.score is None)

    def wealth(self, axis: str) -> float:
        """The evidence on one axis: the product of its rounds' e-values and the screen's."""
        values = [s.score.e_value for s in self.sets if s.score and s.axis in (axis, SCREEN)]
        return float(np.prod(values)) if values else 1.0
