"""Excess over control arms: whether a swap moves answers more than edits that mean nothing.

A swap must beat every control. That is an intersection-union test: each control is tested at
the full level and nothing is paid for their number, because the claim falls with any of them
(Berger 1982). Comparing the swap with the largest control's estimate instead would be biased.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from twinspan.analysis.inference.answers import Answers, Distance, Pooled, distances, shared_cases
from twinspan.analysis.inference.excess import DRAWS
from twinspan.analysis.inference.labels import block_rows, label_rows, tail_share
from twinspan.analysis.inference.multiplicity import adjust
from twinspan.instrumentation.errors import ConfigurationError

Floats = NDArray[np.float64]

NO_CONTROLS: Final = "no_controls"
NO_SHARED_CASE: Final = "no_case_has_answers_in_all_three_arms"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlComparison:
    """A counterfactual arm against one control arm, seen from the reference.

    Attributes:
        control: the control's name.
        value: mean over cases of the swap's excess over the floor less the control's.
        shift: distance from 0 of the swap's mean shift less that of the control's; None for
            answers without an order.
        p_excess: of `value`, one-sided: the swap is farther from the reference.
        p_shift: of `shift`, one-sided: it moves farther in one direction.
        n_cases: cases with answers in all three arms.
        reason: why there is no test; None if there is one.
    """

    control: str
    value: float | None
    shift: float | None
    p_excess: float | None
    p_shift: float | None
    n_cases: int
    reason: str | None

    @property
    def p_value(self) -> float | None:
        """The smaller of both, adjusted by Holm for there being two."""
        adjusted = adjust([self.p_excess, self.p_shift]).adjusted
        return min((p for p in adjusted if p is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlVerdict:
    """A counterfactual arm against all controls.

    Attributes:
        by_control: one comparison for each.
    """

    by_control: Mapping[str, ControlComparison]

    @property
    def p_value(self) -> float | None:
        """The largest p-value: what the weakest of the comparisons says. None if one has none."""
        values = [each.p_value for each in self.by_control.values()]
        known = [value for value in values if value is not None]
        return max(known) if known and len(known) == len(values) else None

    @property
    def hardest(self) -> str | None:
        """The control that is beaten least clearly; None where not all could be tested."""
        if self.p_value is None:
            return None
        return max(self.by_control, key=lambda name: self.by_control[name].p_value or 0.0)

    @property
    def reason(self) -> str | None:
        """Why there is no p-value; None if there is one."""
        if not self.by_control:
            return NO_CONTROLS
        return next((each.reason for each in self.by_control.values() if each.reason), None)

    def beats_every_control(self, alpha: float = 0.05) -> bool | None:
        """Whether every comparison rejects at alpha; None where one could not be made."""
        return None if self.p_value is None else self.p_value <= alpha


def excess_over_controls(
    reference: Answers,
    counterfactual: Answers,
    controls: Mapping[str, Answers],
    *,
    distance: Distance = "flip",
    shared_replicates: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
) -> ControlVerdict:
    """Test a counterfactual arm against every control arm.

    If a swap did no more than a control's edit, their answers would be exchangeable within a
    case, whatever the reference answers. The statistics say how much farther from the reference
    the swap is, once without and once with regard to direction.

    Args:
        reference: answers by case, one per replicate.
        counterfactual: under the swap.
        controls: under each control, by its name.
        distance: as in `excess_over_floor`.
        shared_replicates: as in `excess_over_floor`, for the swap and the control.
        draws: labellings to sample.
        seed: of the sampling.

    Raises:
        ConfigurationError: shared replicates were asked for and cases differ in number.

    >>> reference = {f"v{n}": [False] * 10 for n in range(4)}
    >>> swap = {f"v{n}": [True] * 9 + [False] for n in range(4)}
    >>> sham = {f"v{n}": [True] + [False] * 9 for n in range(4)}
    >>> verdict = excess_over_controls(reference, swap, {"sham": sham, "rerender": reference})
    >>> verdict.hardest, verdict.beats_every_control(0.01)
    ('sham', True)
    >>> excess_over_controls(reference, swap, {}).reason
    'no_controls'
    """
    compared = {
        name: _comparison(
            name, reference, counterfactual, answers, distance, shared_replicates, draws, seed
        )
        for name, answers in controls.items()
    }
    return ControlVerdict(by_control=MappingProxyType(compared))


def _comparison(
    name: str,
    reference: Answers,
    counterfactual: Answers,
    control: Answers,
    distance: Distance,
    shared_replicates: bool,
    draws: int,
    seed: int,
) -> ControlComparison:
    shared = shared_cases([reference, control, counterfactual])
    pooled = list(shared.cases.values())
    if not pooled:
        return ControlComparison(
            control=name,
            value=None,
            shift=None,
            p_excess=None,
            p_shift=None,
            n_cases=0,
            reason=NO_SHARED_CASE,
        )
    if shared_replicates and (shared.n_missing or len({case.sizes for case in pooled}) > 1):
        raise ConfigurationError(
            "replicates that cases share need an answer of every case in every replicate; leave "
            "out the cases or replicates with gaps"
        )
    excess, moved = _statistics(pooled, distance, shared_replicates, draws, seed)
    return ControlComparison(
        control=name,
        value=float(excess[0]) / len(pooled),
        shift=None if moved is None else float(moved[0]) / len(pooled),
        p_excess=tail_share(excess),
        p_shift=None if moved is None else tail_share(moved),
        n_cases=len(pooled),
        reason=None,
    )


def _statistics(
    pooled: list[Pooled], distance: Distance, shared_replicates: bool, draws: int, seed: int
) -> tuple[Floats, Floats | None]:
    """Both statistics for all labellings of control and swap, the observed one first."""
    rng = np.random.default_rng(seed)
    _, control, swap = pooled[0].sizes
    block = block_rows(control, swap, draws, rng)[0] if shared_replicates else None
    ordered = all(case.numeric for case in pooled)
    excess: Floats | float = 0.0
    of_swap: Floats | float = 0.0
    of_control: Floats | float = 0.0
    for case in pooled:
        anchors, control, swap = case.sizes
        rows = block if block is not None else label_rows(control, swap, draws, rng)
        table = distances(case, distance)
        excess = excess + _farther(rows, table, anchors)
        if ordered:
            shifts = _signed_shifts(rows, case)
            of_control, of_swap = of_control + shifts[0], of_swap + shifts[1]
    moved = np.abs(of_swap) - np.abs(of_control) if ordered else None
    return np.asarray(excess), None if moved is None else np.asarray(moved)


def _farther(rows: Floats, table: Floats, anchors: int) -> Floats:
    """How much farther the second arm is from the reference than the first, net of own noise.

    The reference's own noise is in both excesses and cancels.
    """
    to_reference = table[anchors:, :anchors].mean(axis=1)
    others = table[anchors:, anchors:]
    farther: Floats = _mean_along(rows, to_reference) - _mean_along(1 - rows, to_reference)
    if min(rows[0].sum(), (1 - rows[0]).sum()) < 2:
        return farther
    return farther - (_within(rows, others) - _within(1 - rows, others)) / 2


def _mean_along(rows: Floats, values: Floats) -> Floats:
    means: Floats = rows @ values / rows[0].sum()
    return means


def _within(rows: Floats, table: Floats) -> Floats:
    size = rows[0].sum()
    within: Floats = np.einsum("ij,ij->i", rows @ table, rows) / (size * (size - 1))
    return within


def _signed_shifts(rows: Floats, case: Pooled) -> tuple[Floats, Floats]:
    """Shift from the reference of the first and of the second arm, per labelling."""
    flat = np.array([float(v) for arm in case.values for v in arm])  # type: ignore[arg-type]
    anchors = case.sizes[0]
    centre, others = flat[:anchors].mean(), flat[anchors:]
    return _mean_along(1 - rows, others) - centre, _mean_along(rows, others) - centre
