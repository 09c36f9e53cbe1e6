"""The arms of an audit, read from the view `flips`: answers by case, beside the reference's."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from twinspan.analysis.store import Store

Answers = dict[str, list[object]]
"""Answers by case, one per run; None for a missing one."""

Key = tuple[str | None, str | None, str]
"""Model, arm of an interventional audit, and outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """The answers of one condition to one outcome.

    Attributes:
        condition: the condition.
        kind: what it is; None if not recorded.
        axis: the attributes that it changes.
        is_control: whether it changes none.
        reference: the reference's answers.
        answers: its own.
        reference_replicates: the numbers of the reference's runs, by case.
        flips: pairs of one run each that differ.
        cells: pairs compared.
    """

    condition: str
    kind: str | None
    axis: str | None
    is_control: bool
    reference: Answers
    answers: Answers
    reference_replicates: Mapping[str, list[object]]
    flips: int
    cells: int

    @property
    def n_shared_cases(self) -> int:
        """Cases with an answer in both arms."""
        return sum(
            any(x is not None for x in answers) and any(x is not None for x in self.answers[case])
            for case, answers in self.reference.items()
        )

    @property
    def smallest_p(self) -> float:
        """The smallest p that excess and shift together, by Holm, could have given.

        Were all answers of one arm different from all of the other, the excess would be the
        largest of all labellings.
        """
        labellings = 0.0
        for case, reference in self.reference.items():
            first, second = n_known(reference), n_known(self.answers[case])
            if first and second:
                labellings += math.log(math.comb(first + second, second))
        return min(1.0, 2.0 * math.exp(-labellings))


def n_known(answers: Sequence[object]) -> int:
    """How many answers there are.

    >>> n_known([True, None])
    1
    """
    return sum(value is not None for value in answers)


def read_arms(store: Store) -> dict[Key, list[Arm]]:
    """Every condition but the reference, by model, arm and outcome."""
    rows = store.table(
        "SELECT model, arm, action, condition_id, any_value(kind), any_value(axis), "
        "any_value(is_control), list(case_id ORDER BY case_id), "
        "list(reference_answers ORDER BY case_id), list(answers ORDER BY case_id), "
        "list(reference_replicates ORDER BY case_id), sum(flips)::BIGINT, sum(cells)::BIGINT "
        "FROM flips GROUP BY model, arm, action, condition_id ORDER BY ALL"
    ).rows
    groups: dict[Key, list[Arm]] = {}
    for row in rows:
        model, arm, action, condition, kind, axis, control, cases, first, second, numbers, f, n = (
            cast("tuple[Any, ...]", row)
        )
        groups.setdefault((model, arm, action), []).append(
            Arm(
                condition=condition,
                kind=kind,
                axis=axis,
                is_control=bool(control),
                reference=_by_case(cases, first),
                answers=_by_case(cases, second),
                reference_replicates=dict(zip(cases, numbers, strict=True)),
                flips=f,
                cells=n,
            )
        )
    return groups


def _by_case(cases: Sequence[str], told: Sequence[Sequence[object]]) -> Answers:
    return {
        case: [None if value is None else answer_of(value) for value in values]
        for case, values in zip(cases, told, strict=True)
    }


def answer_of(value: object) -> object:
    """Text that says a number or yes or no as what it says.

    >>> answer_of("true"), answer_of("2"), answer_of("0.5"), answer_of("admit")
    (True, 2, 0.5, 'admit')
    """
    try:
        read: object = json.loads(str(value))
    except ValueError:
        return value
    if isinstance(read, bool | int) or (isinstance(read, float) and math.isfinite(read)):
        return read
    return value
