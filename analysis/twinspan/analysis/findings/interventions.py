"""Repairs, and what became of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from twinspan.analysis.findings.records import Finding
from twinspan.analysis.findings.wording import named, short
from twinspan.analysis.json_values import finite_row
from twinspan.analysis.store import Store

Row = Mapping[str, Any]


def interventions(store: Store, graphs: Mapping[str, str | None]) -> Iterator[Finding]:
    """Every repair that was tried.

    Args:
        store: opened spans.
        graphs: name of each run's graph; other runs do not count.
    """
    rows = store.table("SELECT * FROM interventions ORDER BY run_id, audit_seq").dicts()
    for row in rows:
        if row["run_id"] in graphs:
            yield _intervention(finite_row(row), graphs)


def _intervention(row: Row, graphs: Mapping[str, str | None]) -> Finding:
    return Finding(
        rule=f"intervention/{row['strategy'] or 'unnamed'}",
        level="note" if row["outcome"] == "cleared" else "warning",
        kind="fail",
        text=_intervention_text(row),
        run_id=str(row["run_id"]),
        graph=graphs[str(row["run_id"])],
        nodes=named(row["node"]),
        edges=named(row["edge"]),
        trace_id=row["trace_id"],
        span_id=str(row["span_id"]),
        at=row["start_time"],
        numbers={
            "strategy": row["strategy"],
            "outcome": row["outcome"],
            "reason": row["reason"],
            "panelDecision": row["panel_decision"],
            "round": row["round"],
            "deltaBefore": row["score_before"],
            "deltaAfter": row["score_after"],
            "superstep": row["superstep"],
            "interventionId": row["intervention_id"],
            "errorType": row["error_type"],
            "causedBy": list(row["caused_by"] or ()) or None,
        },
    )


def _intervention_text(row: Row) -> str:
    strategy = str(row["strategy"] or "unnamed").replace("_", " ")
    node = f" on node '{row['node']}'" if row["node"] else ""
    if row["outcome"] == "escalated":
        return f"No repair{node} held; a person is asked."
    why = f" ({str(row['reason']).replace('_', ' ')})" if row["reason"] else ""
    outcome = f": {row['outcome']}{why}" if row["outcome"] else ": its outcome is not recorded"
    before, after = row["score_before"], row["score_after"]
    scores = ""
    if before is not None:
        now = "not measured again" if after is None else f"{short(after)} after"
        scores = f"; delta {short(before)} before, {now}"
    failed = f"; it failed with {row['error_type']}" if row["error_type"] else ""
    return f"Intervention {strategy}{node}{outcome}{scores}{failed}."
