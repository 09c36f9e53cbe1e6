"""The arms of an audit, read from the view `flips`: answers by case, beside the reference's."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from twinspan.analysis.flip_verdicts import NO_ANSWERS, ONE_CASE, ONE_REPLICATE
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
        reuses_answers: whether one answer of the model stands in two of its or the reference's
            runs, by the response ids on record.
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
    reuses_answers: bool = False

    @property
    def n_shared_cases(self) -> int:
        """Cases with an answer in both arms."""
        return len(self._known)

    @property
    def untestable(self) -> str | None:
        """Why no rate of it can mean anything, from `flip_verdicts`; None where one can."""
        if not self._known:
            return NO_ANSWERS
        if len(self._known) == 1:
            return ONE_CASE
        return ONE_REPLICATE if all(max(counts) < 2 for counts in self._known) else None

    @property
    def smallest_p(self) -> float:
        """The smallest p that excess and shift together, by Holm, could have given.

        Were all answers of one arm different from all of the other, the excess would be the
        largest of all labellings.
        """
        labellings = sum(math.log(math.comb(sum(counts), counts[1])) for counts in self._known)
        return min(1.0, 2.0 * math.exp(-labellings))

    @property
    def _known(self) -> list[tuple[int, int]]:
        """Answers of the reference and of the condition, for each case that has both."""
        counts = [(n_known(told), n_known(self.answers[c])) for c, told in self.reference.items()]
        return [both for both in counts if min(both) > 0]


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
    reusing = _reusing(store)
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
                reuses_answers=(model, arm, condition) in reusing,
            )
        )
    return groups


_REUSED = """
WITH used AS (
    SELECT runs.model, runs.arm, runs.condition_id, is_reference,
           unnest(from_json(ids, '["VARCHAR"]')) AS id
    FROM (SELECT run_id, attr(attributes, 'fairmedagent.response_ids') AS ids FROM roots
          WHERE ids IS NOT NULL) AS told
    JOIN counted_runs AS runs ON runs.run_id = told.run_id
    JOIN conditions ON conditions.condition_id = runs.condition_id
),
compared AS (
    SELECT model, arm, condition_id, id FROM used WHERE NOT is_reference
    UNION ALL
    SELECT other.model, other.arm, other.condition_id, used.id
    FROM (SELECT DISTINCT model, arm, condition_id FROM used WHERE NOT is_reference) AS other
    JOIN used ON is_reference AND used.model IS NOT DISTINCT FROM other.model
             AND used.arm IS NOT DISTINCT FROM other.arm
)
SELECT DISTINCT model, arm, condition_id
FROM (SELECT model, arm, condition_id FROM compared
      GROUP BY model, arm, condition_id, id HAVING count(*) > 1)
"""
"""Conditions in whose comparison one response of the model is used more than once."""


def _reusing(store: Store) -> frozenset[tuple[object, ...]]:
    return frozenset(store.table(_REUSED).rows)


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
