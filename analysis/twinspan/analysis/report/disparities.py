"""Outcomes of repeated runs: floors, disparities against them, and what becomes of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast

from twinspan.analysis.audit_gate import GateRow, gate_rows
from twinspan.analysis.audit_paths import AuditPaths, audit_paths
from twinspan.analysis.flip_judgement import Judgement
from twinspan.analysis.flips import flip_report
from twinspan.analysis.floors import FloorRow, floor_rows
from twinspan.analysis.gate_options import GateOptions
from twinspan.analysis.report.facts import Audit, Capped, SealedPlan
from twinspan.analysis.store import Store
from twinspan.instrumentation.audit.analysis_options import Procedure

T = TypeVar("T")

MOST: Final = 60
"""Rows that a table shows."""


def audit_of(
    store: Store,
    reference: str | None,
    *,
    alpha: float = 0.05,
    gate: GateOptions | None = None,
    judgement: Judgement | None = None,
    procedure: Procedure = "holm",
) -> Audit | None:
    """Floors, disparities, paths and gate of a store's outcomes; None if its runs have none.

    Args:
        store: opened spans.
        reference: the condition that others are compared with; the recorded one if None.
        alpha: level of the tests.
        gate: thresholds and bands; without them no outcome is judged.
        judgement: bands and contrasts that disparities are judged by as well.
        procedure: what p is adjusted by.

    Raises:
        ConfigurationError: the reference is none of the conditions.
    """
    found = flip_report(
        store, reference=reference, alpha=alpha, judgement=judgement, procedure=procedure
    )
    conditions = tuple(
        map(
            str,
            store.table("SELECT condition_id FROM conditions ORDER BY ALL").column("condition_id"),
        )
    )
    if not conditions:
        return None
    compared = found.reason is None
    # Where no flip can be told from noise, what becomes of flips cannot be told either.
    has_floor = any(row.floor is not None for row in found.rows)
    paths = audit_paths(store) if has_floor else AuditPaths()
    judged: Sequence[GateRow] = gate_rows(store, gate) if compared and gate is not None else ()
    return Audit(
        floors=_with_last(floor_rows(store)),
        reference=found.reference,
        conditions=conditions,
        disparities=Capped(items=tuple(found.rows), total=len(found.rows)),
        reason=found.reason,
        alpha=alpha,
        procedure=procedure,
        warnings=found.warnings,
        propagation=_capped(paths.propagation),
        forced=_capped(paths.forced),
        accumulation=_capped(paths.accumulation),
        gate=tuple(judged),
        plans=_plans(store),
    )


def _plans(store: Store) -> tuple[SealedPlan, ...]:
    rows = store.table(
        "SELECT name, plan_hash, sealed_before_results, expected_runs, observed_runs, wording "
        "FROM audits ORDER BY name, plan_hash"
    )
    return tuple(SealedPlan(**cast("dict[str, Any]", row)) for row in rows.dicts())


def _capped(rows: Sequence[T]) -> Capped[T]:
    return Capped(items=tuple(rows[:MOST]), total=len(rows))


def _with_last(floors: Sequence[FloorRow]) -> Capped[FloorRow]:
    """The first floors and the pooled one, which comes last."""
    shown = floors if len(floors) <= MOST else [*floors[: MOST - 1], floors[-1]]
    return Capped(items=tuple(shown), total=len(floors))
