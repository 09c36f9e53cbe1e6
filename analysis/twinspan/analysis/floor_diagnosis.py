"""What stands behind a floor: base rates, what single cases and replicates do to it, batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from twinspan.analysis.batch_effect import batch_effect
from twinspan.analysis.flip_arms import answer_of
from twinspan.analysis.floor_comparison import FloorDifference, compare_floors, rank_agreement
from twinspan.analysis.floor_intervals import (
    base_rate,
    counts_by_case,
    floor_interval,
    floor_of,
    leave_one_out,
)
from twinspan.analysis.floors import POOLED
from twinspan.analysis.inference.bootstrap import Interval
from twinspan.analysis.replicate_table import ReplicateTable
from twinspan.analysis.store import Store
from twinspan.analysis.tables import Table
from twinspan.instrumentation.errors import ConfigurationError

DIAGNOSED: Final = (
    "action",
    "floor",
    "base_rate",
    "two_way_low",
    "two_way_high",
    "without_a_case_low",
    "without_a_case_high",
    "without_a_replicate_low",
    "without_a_replicate_high",
    "batch_ratio",
    "batch_p",
    "totals",
)
"""Columns of a diagnosis."""

COMPARED: Final = (
    "action",
    "floor",
    "other_floor",
    "difference",
    "ci_low",
    "ci_high",
    "p_value",
    "cases",
    "correlation",
)
"""Columns of a comparison."""

RANKS: Final = "ranks"
"""The row of a comparison that says whether both sides find the same outcomes noisy."""


def replicate_tables(store: Store) -> dict[str, ReplicateTable]:
    """Every outcome as cases by replicates; of an audit, under its reference.

    Raises:
        ConfigurationError: the store holds several models or arms, or several conditions of which
            none is the reference, whose runs are no replicates of each other; or runs without a
            number.
    """
    rows = store.table(
        "SELECT action, case_id, replicate, value, model, arm, condition_id FROM answers "
        "ORDER BY action, case_id, replicate"
    ).rows
    references = store.table("SELECT condition_id FROM conditions WHERE is_reference").column(
        "condition_id"
    )
    if len({row[6] for row in rows}) > 1 and len(references) == 1:
        rows = tuple(row for row in rows if row[6] == references[0])
    cells = {(row[4], row[5], row[6]) for row in rows}
    if len(cells) > 1:
        raise ConfigurationError(
            f"the runs are of {len(cells)} models, arms or conditions, which are no replicates of "
            "each other; name spans of one"
        )
    if any(row[2] is None for row in rows):
        raise ConfigurationError("a run has no replicate number; number the replicates of a case")
    tables: dict[str, list[tuple[str, object, object]]] = {}
    for action, case, replicate, value, *_ in rows:
        answer = None if value is None else answer_of(value)
        tables.setdefault(str(action), []).append((str(case), replicate, answer))
    return {action: ReplicateTable.of(told, action=action) for action, told in tables.items()}


def diagnosis(store: Store, *, seed: int = 0) -> Table:
    """What stands behind every floor, and the pooled one.

    Raises:
        ConfigurationError: as `replicate_tables`.
    """
    tables = replicate_tables(store)
    rows = [_diagnosed(action, [table], seed) for action, table in tables.items()]
    rows.sort(key=lambda row: (row[1] is None, row[1] or 0.0, row[0]))
    if tables:
        rows.append(_diagnosed(POOLED, list(tables.values()), seed))
    return Table(columns=DIAGNOSED, rows=tuple(rows))


def _diagnosed(
    action: str, tables: Sequence[ReplicateTable], seed: int
) -> tuple[str, float | None, *tuple[object, ...]]:
    interval: Interval = floor_interval(tables, seed=seed)
    cases = leave_one_out(tables, by="case")
    replicates = leave_one_out(tables, by="replicate")
    batch = batch_effect(tables[0], seed=seed) if len(tables) == 1 else None
    yes = base_rate(tables[0]).value if len(tables) == 1 else None
    return (
        action,
        floor_of(tables).rate,
        yes,
        *interval.ends,
        cases.low,
        cases.high,
        replicates.low,
        replicates.high,
        batch.ratio if batch else None,
        batch.p_value if batch else None,
        list(batch.totals) if batch else None,
    )


def comparison(first: Store, second: Store, *, seed: int = 0) -> Table:
    """The floors of two sources on the cases that both have, outcome by outcome.

    The last row has Spearman's rank correlation of the floors and its permutation p.

    Raises:
        ConfigurationError: as `replicate_tables`, for either source.
    """
    ours, others = replicate_tables(first), replicate_tables(second)
    rows: list[tuple[object, ...]] = []
    for action in [name for name in ours if name in others]:
        found = compare_floors(ours[action].counts, others[action].counts, seed=seed)
        rows.append((action, *_difference(found), found.p_value, found.cases, None))
    rows.sort(key=lambda row: (row[1] is None, cast(float, row[1] or 0.0)))
    if rows:
        shared = [str(row[0]) for row in rows]
        pooled = compare_floors(
            counts_by_case([ours[name] for name in shared]),
            counts_by_case([others[name] for name in shared]),
            seed=seed,
        )
        rows.append((POOLED, *_difference(pooled), pooled.p_value, pooled.cases, None))
        ranks = rank_agreement(_rates(ours, shared), _rates(others, shared), seed=seed)
        rows.append((RANKS, *[None] * 5, ranks.p_value, None, ranks.correlation))
    return Table(columns=COMPARED, rows=tuple(rows))


def _difference(found: FloorDifference) -> tuple[float | None, ...]:
    return found.first, found.second, found.value, found.low, found.high


def _rates(tables: dict[str, ReplicateTable], names: Sequence[str]) -> dict[str, float | None]:
    return {name: floor_of([tables[name]]).rate for name in names}
