"""Nodes that react to an attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from twinspan.analysis.findings.measured import ABOVE_FLOOR, SETS
from twinspan.analysis.findings.records import Finding, Kind
from twinspan.analysis.findings.wording import (
    arms,
    interval,
    named,
    or_unknown,
    product,
    short,
    suffix,
)
from twinspan.analysis.json_values import finite_row
from twinspan.analysis.store import Store

Row = Mapping[str, Any]


def reactions(
    store: Store, graphs: Mapping[str, str | None], *, everything: bool
) -> Iterator[Finding]:
    """The probe sets that say that a node reacts.

    Args:
        store: opened spans.
        graphs: name of each run's graph; other runs do not count.
        everything: also those that do not, and those without a score.
    """
    where = "" if everything else f"WHERE {ABOVE_FLOOR}"
    for row in store.table(f"{SETS} {where} ORDER BY run_id, audit_seq").dicts():
        if row["run_id"] in graphs:
            yield _reaction(finite_row(row), graphs)


def _reaction(row: Row, graphs: Mapping[str, str | None]) -> Finding:
    kind: Kind = "fail" if row["reacts"] else "open" if row["delta"] is None else "pass"
    return Finding(
        rule=f"bias/{row['axis'] or 'unnamed'}",
        level="warning" if kind == "fail" else "none",
        kind=kind,
        text=_reaction_text(row),
        run_id=str(row["run_id"]),
        graph=graphs[str(row["run_id"])],
        nodes=named(row["node"]),
        axis=row["axis"],
        impact=product(row["weight"], row["delta"]),
        trace_id=row["trace_id"],
        span_id=str(row["span_id"]),
        at=row["start_time"],
        numbers=_score_numbers(row),
    )


def _reaction_text(row: Row) -> str:
    where = f"node '{row['node']}' on {row['axis']}"
    counts = [or_unknown(row[f"{arm}_count"]) for arm in ("reference", "counterfactual")]
    arms = " runs against ".join(counts)
    again = " after the repair" if row["intervention_id"] else ""
    if row["delta"] is None:
        reason = str(row["undefined_reason"] or row["outcome"] or "no score").replace("_", " ")
        return f"No score for {where}{again}: {reason}."
    told = "reacts to the swap" if row["reacts"] else "shows no reaction beyond its own noise"
    return (
        f"{where[0].upper()}{where[1:]} {told}{again}: {_measured(row)}, {arms}"
        f"{suffix(', blast radius ', row['weight'])}."
    )


def _measured(row: Row) -> str:
    interval = ""
    if row["ci_low"] is not None and row["ci_high"] is not None:
        interval = f" ({short(row['ci_low'])} to {short(row['ci_high'])})"
    parts = [f"excess disagreement delta {short(row['delta'])}{interval}"]
    parts += [f"p {short(row['p_value'])}"] if row["p_value"] is not None else []
    parts += [f"e {short(row['e_value'])}"] if row["e_value"] is not None else []
    return ", ".join(parts)


def _score_numbers(row: Row) -> dict[str, object]:
    return {
        "delta": row["delta"],
        "interval": interval(row["ci_low"], row["ci_high"]),
        "intervalLevel": row["ci_level"],
        "p": row["p_value"],
        "e": row["e_value"],
        "n": arms(row["reference_count"], row["counterfactual_count"]),
        "estimator": row["estimator"],
        "effectSize": row["effect_size"],
        "floor": row["floor"],
        "cross": row["cross_mean"],
        "weight": row["weight"],
        "impact": product(row["weight"], row["delta"]),
        "wording": row["wording"],
        "undefinedReason": row["undefined_reason"],
        "superstep": row["superstep"],
        "interventionId": row["intervention_id"],
    }
