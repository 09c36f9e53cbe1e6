"""Recorded runs as trajectories, for questions that need whole actions, and for files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from twinspan.analysis.store import Store
from twinspan.instrumentation.audit.trajectories import ResultsForm, Trajectory

_QUERY: Final = """
WITH told AS (
    SELECT run_id, node_id AS step, min(start_unix_nano) AS began,
           arg_max(action_fields, start_unix_nano) AS fields,
           count(*) FILTER (NOT coalesce(node_forced, false) AND node_kind = 'agent') AS calls,
           bool_or(coalesce(node_forced, false)) AS forced,
           bool_or(coalesce(node_descriptor_shown, false)) AS shown,
           any_value(order_unresolved) AS unresolved,
           any_value(order_ambiguities) AS ambiguities
    FROM spans
    WHERE span_type = 'node' AND run_id IS NOT NULL
      AND (node_outcome IS NULL OR node_outcome IN ('ok', 'halted', 'error', 'retried'))
    GROUP BY run_id, node_id
)
SELECT runs.run_id, any_value(case_id) AS case_id, any_value(condition_id) AS condition_id,
       any_value(arm) AS arm, any_value(replicate) AS replicate, any_value(model) AS model,
       any_value(outcome) AS outcome,
       list(struct_pack(step, fields, calls, forced, shown, unresolved, ambiguities)
            ORDER BY began, step)
           FILTER (step IS NOT NULL) AS steps
FROM counted_runs AS runs
LEFT JOIN told ON told.run_id = runs.run_id
WHERE case_id IS NOT NULL AND condition_id IS NOT NULL
GROUP BY runs.run_id
ORDER BY model, condition_id, case_id, replicate, runs.run_id
"""


def recorded_trajectories(store: Store) -> list[Trajectory]:
    """Every counted run with a case and a condition, its actions by step.

    A step without a valid answer has no action. Text that was not recorded is not there.
    """
    return [_trajectory(row) for row in store.table(_QUERY).dicts()]


def arms_of_runs(runs: Iterable[Trajectory]) -> dict[str | None, list[Trajectory]]:
    """Runs by the arm of an interventional audit, in the order of the arms' names."""
    arms: dict[str | None, list[Trajectory]] = {}
    for run in sorted(runs, key=lambda run: str(run.details.get("arm") or "")):
        arm = run.details.get("arm")
        arms.setdefault(None if arm is None else str(arm), []).append(run)
    return arms


def forced_steps(runs: Iterable[Trajectory]) -> set[str]:
    """The steps that any of the runs had forced."""
    found: set[str] = set()
    for run in runs:
        steps: Any = run.details.get("forced_steps", ())
        found.update(map(str, steps))
    return found


def unforced_runs(runs: Iterable[Trajectory]) -> list[Trajectory]:
    """The runs of the first arm that forced nothing; all runs of an audit without arms."""
    for each in arms_of_runs(runs).values():
        if not forced_steps(each):
            return each
    return []


def trajectories_document(
    trajectories: Sequence[Trajectory], source: str, *, results: ResultsForm = "flat"
) -> dict[str, object]:
    """Trajectories as a document of FairMedAgent's form, which its readers and ours understand."""
    models = sorted({str(each.model) for each in trajectories if each.model})
    return {
        "source": source,
        "model": models[0] if len(models) == 1 else None,
        "counts": {
            "cells": len(trajectories),
            "complete": sum(each.complete for each in trajectories),
            "model_calls": sum(each.model_calls or 0 for each in trajectories),
        },
        "trajectories": [each.as_dict(results=results) for each in trajectories],
    }


def _trajectory(row: Mapping[str, Any]) -> Trajectory:
    steps = cast("list[dict[str, Any]]", row["steps"] or [])
    details: dict[str, object] = {
        "forced_steps": [each["step"] for each in steps if each["forced"]],
        "descriptor_steps": [each["step"] for each in steps if each["shown"]],
        "run_id": row["run_id"],
    }
    for each in steps:
        if each["unresolved"] is not None:
            details["unresolved_orderables"] = each["unresolved"]
            listed = cast("list[str]", each["ambiguities"] or [])
            details["fixture_ambiguities"] = [json.loads(text) for text in listed]
    if row["arm"] is not None:
        details["arm"] = row["arm"]
    return Trajectory(
        case_id=str(row["case_id"]),
        condition_id=str(row["condition_id"]),
        actions={each["step"]: _action(each["fields"]) for each in steps if each["fields"]},
        replicate=row["replicate"],
        model=row["model"],
        complete=row["outcome"] in (None, "completed"),
        model_calls=sum(each["calls"] for each in steps),
        details=details,
    )


def _action(fields: Mapping[str, str]) -> dict[str, object]:
    return {name: json.loads(value) for name, value in fields.items()}
