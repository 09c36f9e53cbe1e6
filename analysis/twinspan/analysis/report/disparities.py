"""Outcomes of repeated runs: floors, and disparities against them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from twinspan.analysis.floors import FloorRow, floor_rows
from twinspan.analysis.inference.excess import excess_over_floor
from twinspan.analysis.inference.multiplicity import adjust
from twinspan.analysis.report.facts import Audit, Capped, Disparity
from twinspan.analysis.store import Store
from twinspan.instrumentation.errors import ConfigurationError

MOST: Final = 60
"""Rows that a table shows."""

ONE_CONDITION: Final = "only one condition was run; a disparity needs a second one"
NO_REFERENCE: Final = (
    "no condition is named as the reference, and none of the names begins with 'ref'; "
    "name it with --reference"
)

Arms = dict[str, dict[str, list[object]]]
"""Answers by case, by condition."""


def audit_of(store: Store, reference: str | None) -> Audit | None:
    """Floors and disparities of a store's outcomes; None if its runs have none.

    Args:
        store: opened spans.
        reference: the condition that others are compared with; found by its name if None.

    Raises:
        ConfigurationError: the reference is none of the conditions.
    """
    arms = _arms(store)
    conditions = tuple(sorted({name for each in arms.values() for name in each}))
    _check_reference(reference, conditions)
    if not arms:
        return None
    floors = floor_rows(store)
    chosen = reference or _likely_reference(conditions)
    found, reason = _compared(arms, chosen, conditions)
    return Audit(
        floors=_with_last(floors),
        reference=chosen,
        conditions=conditions,
        disparities=Capped(items=tuple(found[:MOST]), total=len(found)),
        reason=reason,
    )


def _with_last(floors: Sequence[FloorRow]) -> Capped[FloorRow]:
    """The first floors and the pooled one, which comes last."""
    shown = floors if len(floors) <= MOST else [*floors[: MOST - 1], floors[-1]]
    return Capped(items=tuple(shown), total=len(floors))


def _check_reference(reference: str | None, conditions: Sequence[str]) -> None:
    if reference is not None and reference not in conditions:
        known = ", ".join(map(repr, conditions[:5])) or "none"
        raise ConfigurationError(
            f"no run has the condition {reference!r}; the conditions begin with {known}"
        )


def _likely_reference(conditions: Sequence[str]) -> str | None:
    """The only condition whose name begins with `ref`.

    >>> _likely_reference(["black_woman", "ref_white_man"]), _likely_reference(["a", "b"])
    ('ref_white_man', None)
    """
    named = [name for name in conditions if name.lower().startswith("ref")]
    return named[0] if len(named) == 1 else None


def _arms(store: Store) -> dict[tuple[str | None, str], Arms]:
    """Answers by model and outcome, then condition, then case."""
    found: dict[tuple[str | None, str], Arms] = {}
    rows = store.table(
        "SELECT model, action, coalesce(condition_id, arm, ''), case_id, "
        "list(value ORDER BY replicate, run_id) FROM actions "
        "WHERE case_id IS NOT NULL AND value IS NOT NULL GROUP BY ALL ORDER BY ALL"
    ).rows
    for model, action, condition, case, values in rows:
        key = (None if model is None else str(model), str(action))
        arms = found.setdefault(key, {}).setdefault(str(condition), {})
        answers = [_answer(value) for value in cast("list[object]", values)]
        arms.setdefault(str(case), []).extend(answers)
    return found


def _answer(value: object) -> object:
    """Text that says a number or yes or no as what it says.

    >>> _answer("true"), _answer("2"), _answer("admit")
    (True, 2, 'admit')
    """
    try:
        read: object = json.loads(str(value))
    except ValueError:
        return value
    return read if isinstance(read, bool | int) else value


def _compared(
    arms: Mapping[tuple[str | None, str], Arms], reference: str | None, conditions: Sequence[str]
) -> tuple[list[Disparity], str | None]:
    if len(conditions) < 2:
        return [], ONE_CONDITION
    if reference is None:
        return [], NO_REFERENCE
    found = [
        _disparity(key, condition, each[reference], answers)
        for key, each in arms.items()
        if reference in each
        for condition, answers in each.items()
        if condition != reference
    ]
    adjusted = adjust([each.p_value for each in found]).adjusted
    told = [replace(each, p_adjusted=p) for each, p in zip(found, adjusted, strict=True)]
    return sorted(told, key=lambda each: (each.excess is None, -(each.excess or 0.0))), None


def _disparity(
    key: tuple[str | None, str],
    condition: str,
    reference: Mapping[str, list[object]],
    answers: Mapping[str, list[object]],
) -> Disparity:
    model, action = key
    excess = excess_over_floor(reference, answers)
    floors = [
        each for each in (excess.floor_reference, excess.floor_counterfactual) if each is not None
    ]
    return Disparity(
        model=model,
        condition=condition,
        action=action,
        flip_rate=excess.cross,
        floor=sum(floors) / len(floors) if floors else None,
        excess=excess.value,
        ci_low=excess.low,
        ci_high=excess.high,
        p_value=excess.p_value,
        p_adjusted=None,
        cases=excess.n_cases,
        reason=excess.reason,
    )
