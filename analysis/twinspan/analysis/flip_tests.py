"""Tests of every arm of one outcome: over the floor, and against every control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from twinspan.analysis.batch_effect import batch_effect
from twinspan.analysis.flip_arms import Answers, Arm, Key, n_known
from twinspan.analysis.flip_rows import FlipRow
from twinspan.analysis.flip_verdicts import CONSTANT, NO_ANSWERS, REUSED
from twinspan.analysis.inference.controls import ControlVerdict, excess_over_controls
from twinspan.analysis.inference.excess import Excess, excess_over_floor
from twinspan.analysis.inference.excess_bets import excess_bets
from twinspan.analysis.replicate_table import ReplicateTable

CONTROL_DRAWS: Final = 1_999
BATCH_ALPHA: Final = 0.01
"""Level at which replicates are said to vary together."""


def rows_of(
    key: Key, reference: str, arms: Sequence[Arm], *, seed: int, bets: bool = False
) -> list[FlipRow]:
    """Every arm of one outcome, tested; what is adjusted over outcomes is left open.

    Where every answer of every arm is the same there is nothing to test, and no rate: a policy
    that never varies is no sign of fairness. Nor is there one for a single case, or where no
    case was run twice: without a floor a flip rate proves nothing.

    Args:
        key: model, arm and outcome.
        reference: the condition that they are compared with.
        arms: all other conditions.
        seed: of what is sampled.
        bets: also find e-values, and the smallest p that they could have stood for.
    """
    controls = {arm.condition: arm for arm in arms if arm.is_control}
    values = {
        repr(value)
        for arm in arms
        for answers in (arm.reference, arm.answers)
        for told in answers.values()
        for value in told
        if value is not None
    }
    if len(values) <= 1:
        reason = CONSTANT if values else NO_ANSWERS
        return [_row(key, reference, arm, None, None, None, reason) for arm in arms]
    ratio = _batch_ratio(key[2], arms, seed)
    rows: list[FlipRow] = []
    for arm in arms:
        if arm.untestable is not None:
            rows.append(_row(key, reference, arm, None, None, None, arm.untestable))
            continue
        excess = excess_over_floor(arm.reference, arm.answers, seed=seed)
        if arm.reuses_answers:
            rows.append(_row(key, reference, arm, _untested(excess), None, None, REUSED))
            continue
        against = None
        if controls and not arm.is_control and excess.p_value is not None:
            against = excess_over_controls(
                arm.reference,
                arm.answers,
                {name: control.answers for name, control in controls.items()},
                draws=CONTROL_DRAWS,
                seed=seed,
            )
        row = _row(key, reference, arm, excess, against, ratio, "")
        rows.append(_with_bets(row, arm) if bets else row)
    return rows


def _untested(found: Excess) -> Excess:
    """The rates of a comparison whose answers are not independent, without interval and p."""
    return replace(found, low=None, high=None, p_excess=None, p_shift=None)


def _with_bets(row: FlipRow, arm: Arm) -> FlipRow:
    found = excess_bets(arm.reference, arm.answers)
    if found is None:
        return replace(row, p_smallest=None)
    return replace(row, e_value=found.e_value, p_smallest=1.0 / found.largest)


def _batch_ratio(action: str, arms: Sequence[Arm], seed: int) -> float | None:
    """Whether replicates of the reference decide for all cases at once; the ratio if so."""
    arm = max(arms, key=lambda each: len(each.reference))
    cells = [
        (case, number, answer)
        for case, answers in arm.reference.items()
        for number, answer in zip(arm.reference_replicates[case], answers, strict=True)
        if number is not None
    ]
    if len({(case, number) for case, number, _ in cells}) < len(cells) or not cells:
        return None
    found = batch_effect(ReplicateTable.of(cells, action=action), draws=CONTROL_DRAWS, seed=seed)
    return found.ratio if found.p_value is not None and found.p_value <= BATCH_ALPHA else None


def _row(
    key: Key,
    reference: str,
    arm: Arm,
    excess: Excess | None,
    against: ControlVerdict | None,
    ratio: float | None,
    reason: str,
) -> FlipRow:
    model, of_arm, action = key
    told = _Numbers.of(excess)
    return FlipRow(
        model=model,
        arm=of_arm,
        action=action,
        condition=arm.condition,
        kind=arm.kind,
        axis=arm.axis,
        reference=reference,
        cases=excess.n_cases if excess else arm.n_shared_cases,
        runs_reference=sum(map(len, arm.reference.values())),
        runs=sum(map(len, arm.answers.values())),
        missing_reference=_missing(arm.reference),
        missing=_missing(arm.answers),
        flips=arm.flips,
        cells=arm.cells,
        **told.as_dict(),
        e_value=None,
        p_adjusted=None,
        adjusted_by=None,
        n_tests=None,
        p_smallest=arm.smallest_p if excess and excess.p_value is not None else None,
        hardest_control=against.hardest if against else None,
        p_controls=against.p_value if against else None,
        batch_ratio=ratio,
        verdict="control" if arm.is_control else "inconclusive",
        reason=reason or (NO_ANSWERS if excess is None or excess.p_value is None else ""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbers:
    """What is taken over from the test; nothing where there was none."""

    flip_rate: float | None = None
    floor_reference: float | None = None
    floor_counterfactual: float | None = None
    floor: float | None = None
    excess: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    shift: float | None = None
    p_excess: float | None = None
    p_shift: float | None = None
    p_value: float | None = None

    @classmethod
    def of(cls, found: Excess | None) -> _Numbers:
        if found is None:
            return cls()
        known = [x for x in (found.floor_reference, found.floor_counterfactual) if x is not None]
        return cls(
            flip_rate=found.cross,
            floor_reference=found.floor_reference,
            floor_counterfactual=found.floor_counterfactual,
            floor=sum(known) / len(known) if known else None,
            excess=found.value,
            ci_low=found.low,
            ci_high=found.high,
            shift=None if found.shift is None else round(found.shift, 12) + 0.0,
            p_excess=found.p_excess,
            p_shift=found.p_shift,
            p_value=found.p_value,
        )

    def as_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _missing(answers: Answers) -> int:
    return sum(len(told) - n_known(told) for told in answers.values())
