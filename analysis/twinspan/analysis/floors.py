"""The table of instability floors of an audit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from twinspan.analysis.disagreement import (
    PairCount,
    check_group,
    disagreement,
    kappa,
    korn_graubard,
    majority_disagreement,
    pooled,
)
from twinspan.analysis.flip_verdicts import (
    CONSTANT,
    NO_ANSWERS,
    ONE_CASE,
    ONE_REPLICATE,
    TOO_FEW_REPLICATES,
)
from twinspan.analysis.store import Store
from twinspan.analysis.tables import Table
from twinspan.instrumentation.errors import ConfigurationError

POOLED: Final = "pooled"
"""Name of the row in which all outcomes are counted together."""

COLUMNS: Final = (
    "action",
    "flips",
    "cells",
    "floor",
    "ci_low",
    "ci_high",
    "cases",
    "replicates",
    "kappa",
    "reason",
)

_CELL: Final = ("model", "arm", "condition_id", "case_id")
"""Runs that agree in these are replicates of each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorRow:
    """The floor of one outcome.

    Attributes:
        group: values of the columns that the table is broken down by.
        action: the outcome, or `pooled`.
        flips: pairs of replicates (of votes, with a majority) that disagree.
        cells: pairs compared.
        floor: flips / cells, 0 to 1; None with a `reason`.
        ci_low: lower end of the 95% interval for cases like these.
        ci_high: its upper end; both None without a floor.
        cases: cases with at least one pair.
        replicates: replicates of each case, the fewest where they differ.
        kappa: agreement beyond chance of single replicates; None for the pooled row, for votes
            and without a floor.
        reason: why there is no floor, from `flip_verdicts`; None if there is one. An outcome that
            never varies has none: 0 would be the best floor of any ranking.
    """

    group: tuple[object, ...]
    action: str
    flips: int
    cells: int
    floor: float | None
    ci_low: float | None
    ci_high: float | None
    cases: int
    replicates: int | None
    kappa: float | None
    reason: str | None = None


class _Cell(NamedTuple):
    """The answers of one case under one model, arm and condition."""

    case: str
    counts: tuple[int, ...]
    answers: Mapping[str, int]
    pairs: PairCount


def floor_rows(
    store: Store, *, by: Sequence[str] = (), majority: int | None = None
) -> list[FloorRow]:
    """The floors of a store's outcomes, smallest first, then all outcomes pooled.

    Args:
        store: opened spans.
        by: columns of the view `actions` to break the table down by.
        majority: compare majority votes of so many replicates instead of single ones; odd.

    Raises:
        ConfigurationError: for a column that `actions` does not have, or an even majority.
    """
    if majority is not None:
        check_group(majority)
    groups = _cells(store, by, majority)
    rows: list[FloorRow] = []
    for group, actions in groups.items():
        asked = _Asked(group, majority, by_case="case_id" in by)
        of_group = [_row(asked, action, cells) for action, cells in actions.items()]
        rows += sorted(of_group, key=lambda row: (row.floor is None, row.floor or 0, row.action))
        rows.append(_pooled_row(asked, actions))
    return rows or [_pooled_row(_Asked((), majority, by_case=False), {})]


def floor_table(store: Store, *, by: Sequence[str] = (), majority: int | None = None) -> Table:
    """The same as a table: the columns of `by`, then `COLUMNS`.

    Raises:
        ConfigurationError: for a column that `actions` does not have, or an even majority.
    """
    rows = floor_rows(store, by=by, majority=majority)
    return Table(
        columns=(*by, *COLUMNS),
        rows=tuple(
            (
                *(row.group or (None,) * len(by)),
                row.action,
                row.flips,
                row.cells,
                row.floor,
                row.ci_low,
                row.ci_high,
                row.cases,
                row.replicates,
                row.kappa,
                row.reason,
            )
            for row in rows
        ),
    )


_Groups = dict[tuple[object, ...], dict[str, list[_Cell]]]


def _cells(store: Store, by: Sequence[str], majority: int | None) -> _Groups:
    groups: _Groups = {}
    for row in _counted_answers(store, by):
        group = row[: len(by)]
        action, case, answers, counts = cast(
            "tuple[str, str, list[str], list[int]]", row[len(by) :]
        )
        pairs = (
            disagreement(counts) if majority is None else majority_disagreement(counts, majority)
        )
        cell = _Cell(case, tuple(counts), dict(zip(answers, counts, strict=True)), pairs)
        groups.setdefault(group, {}).setdefault(action, []).append(cell)
    return groups


def _counted_answers(store: Store, by: Sequence[str]) -> tuple[tuple[object, ...], ...]:
    """Group, outcome, case, its answers and how often each was given; one row per cell."""
    _check_columns(store, by)
    keys = ", ".join(f'"{column}"' for column in dict.fromkeys((*by, "action", *_CELL)))
    shown = "".join(f'"{column}", ' for column in by)
    return store.table(
        f"""
        WITH kinds AS (
            SELECT {keys}, value, count(*) AS n
            FROM actions
            WHERE value IS NOT NULL AND case_id IS NOT NULL
            GROUP BY ALL
        )
        SELECT {shown} action, case_id, list(value ORDER BY value), list(n ORDER BY value)
        FROM kinds
        GROUP BY {keys}
        ORDER BY {shown} action, case_id
        """
    ).rows


def _check_columns(store: Store, by: Sequence[str]) -> None:
    known = store.table("SELECT * FROM actions LIMIT 0").columns
    allowed = [column for column in known if column not in ("run_id", "value", "action")]
    for column in by:
        if column not in allowed:
            raise ConfigurationError(
                f"floors cannot be broken down by {column!r}; take one of {', '.join(allowed)}"
            )


class _Asked(NamedTuple):
    """What a row is about beside its outcome."""

    group: tuple[object, ...]
    majority: int | None
    by_case: bool


def _row(asked: _Asked, action: str, cells: Sequence[_Cell]) -> FloorRow:
    if asked.majority is not None:
        return _summary(asked, action, cells, None, constant=_is_constant(cells))
    totals: Counter[str] = Counter()
    for cell in cells:
        totals.update(cell.answers)
    # Agreement beyond chance is a property of single runs, not of votes.
    beyond = kappa(pooled([cell.pairs for cell in cells]), list(totals.values()))
    return _summary(asked, action, cells, beyond, constant=len(totals) < 2)


def _pooled_row(asked: _Asked, actions: Mapping[str, Sequence[_Cell]]) -> FloorRow:
    cells = [cell for cells in actions.values() for cell in cells]
    return _summary(asked, POOLED, cells, None, constant=all(map(_is_constant, actions.values())))


def _is_constant(cells: Sequence[_Cell]) -> bool:
    return len({answer for cell in cells for answer in cell.answers}) < 2


def _summary(
    asked: _Asked, action: str, cells: Sequence[_Cell], beyond: float | None, *, constant: bool
) -> FloorRow:
    by_case: defaultdict[str, list[PairCount]] = defaultdict(list)
    for cell in cells:
        by_case[cell.case].append(cell.pairs)
    cases = [case for case in map(pooled, by_case.values()) if case.cells]
    total = pooled(cases)
    reason = _why_not(asked, answered=len(by_case), compared=len(cases), constant=constant)
    interval = None if reason else korn_graubard(cases)
    replicates = [sum(cell.counts) for cell in cells if cell.pairs.cells]
    return FloorRow(
        group=asked.group,
        action=action,
        flips=total.flips,
        cells=total.cells,
        floor=None if reason else total.rate,
        ci_low=interval[0] if interval else None,
        ci_high=interval[1] if interval else None,
        cases=len(cases),
        replicates=min(replicates, default=None),
        kappa=None if reason else beyond,
        reason=reason,
    )


def _why_not(asked: _Asked, *, answered: int, compared: int, constant: bool) -> str | None:
    """Why there is no floor; a table by case asks about single cases on purpose."""
    if not answered:
        return NO_ANSWERS
    if not compared:
        return ONE_REPLICATE if asked.majority is None else TOO_FEW_REPLICATES
    if compared == 1:
        return None if asked.by_case else ONE_CASE
    return CONSTANT if constant else None
