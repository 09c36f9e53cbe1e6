"""Reads a store into a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from typing import Any, Final, cast

from twinspan.analysis.findings import ABOVE_FLOOR
from twinspan.analysis.flip_judgement import Judgement
from twinspan.analysis.gate_options import GateOptions
from twinspan.analysis.json_values import finite_row, json_value
from twinspan.analysis.report.disparities import audit_of
from twinspan.analysis.report.facts import (
    Capped,
    Check,
    Counts,
    Coverage,
    Report,
    RunRow,
    Verdict,
)
from twinspan.analysis.report.limits import limits_of
from twinspan.analysis.report.stories import stories_of
from twinspan.analysis.report.summary import summary_of
from twinspan.analysis.store import Store
from twinspan.analysis.trail import AuditTrail
from twinspan.analysis.trail_records import RunTrail
from twinspan.analysis.verify import Verification, verify
from twinspan.instrumentation.audit.analysis_options import Procedure
from twinspan.instrumentation.errors import ConfigurationError, SourceError, TwinspanError

MOST_RUNS: Final = 50
MOST_STORIES: Final = 5
MOST_NODES: Final = 60
MOST_MISMATCHES: Final = 20

_GRAVITY: Final[tuple[Verdict, ...]] = ("flagged", "incomplete", "inconclusive", "clear")


def build_report(
    store: Store,
    *,
    runs: Sequence[str] = (),
    reference: str | None = None,
    jaeger: str | None = None,
    alpha: float = 0.05,
    gate: GateOptions | None = None,
    judgement: Judgement | None = None,
    procedure: Procedure = "holm",
    most_stories: int = MOST_STORIES,
) -> Report:
    """Everything that a report on a store says.

    Args:
        store: opened spans.
        runs: runs to tell in full; the gravest ones if none is named.
        reference: the condition that others are compared with, for disparities.
        jaeger: address of a Jaeger that has the traces, such as ``http://localhost:16686``.
        alpha: level of the tests of disparities.
        gate: thresholds and bands by which outcomes are judged; None to judge none.
        judgement: bands and contrasts by which disparities are judged beside floor and controls.
        procedure: what the p-values of disparities are adjusted by.
        most_stories: so many runs are told in full if none is named.

    Raises:
        ConfigurationError: the address is none, or no run has the reference condition.
        SourceError: a run that is named is not there.
    """
    address = _address(jaeger)
    trails = AuditTrail(store).runs()
    _check_runs(runs, trails, store)
    rows = _run_rows(store, trails)
    by_id = {trail.run_id: trail for trail in trails}
    told = _chosen(rows, runs, most_stories)
    counts = _counts(store, trails)
    audit = audit_of(
        store, reference, alpha=alpha, gate=gate, judgement=judgement, procedure=procedure
    )
    stories = stories_of(store, [(row, by_id[row.run_id]) for row in told])
    summary = summary_of(rows, counts, stories, audit)
    return Report(
        source=store.source,
        version=_version(),
        verdict=summary.verdict,
        headline=summary.headline,
        summary=summary.sentences,
        counts=counts,
        verdicts=dict(Counter(row.verdict for row in rows)),
        runs=Capped(items=tuple(rows[:MOST_RUNS]), total=len(rows)),
        stories=Capped(items=tuple(stories), total=len(rows)),
        coverage=_coverage(store),
        audit=audit,
        problems=tuple(str(problem) for problem in store.problems),
        limits=limits_of(store, audit),
        jaeger=address,
    )


def _version() -> str:
    try:
        return version("twinspan")
    except PackageNotFoundError:
        return "unknown"


def _address(jaeger: str | None) -> str | None:
    """An address that is safe to link to.

    >>> _address("http://localhost:16686/")
    'http://localhost:16686'
    """
    if jaeger is None:
        return None
    if not jaeger.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"{jaeger!r} is no address of a Jaeger; give one such as http://localhost:16686"
        )
    return jaeger.rstrip("/")


def _check_runs(named: Sequence[str], trails: Sequence[RunTrail], store: Store) -> None:
    known = [trail.run_id for trail in trails]
    for run in named:
        if run not in known:
            listed = ", ".join(map(repr, known[:5])) or "none"
            raise SourceError(f"{store.source!r} has no run {run!r}; its runs begin with {listed}")


def _chosen(rows: Sequence[RunRow], named: Sequence[str], most: int) -> list[RunRow]:
    """The runs to tell in full: those that are named, else the gravest that measured something."""
    if named:
        return [row for row in rows if row.run_id in named]
    measured = [row for row in rows if row.verdict != "inconclusive" or row.peak_fast is not None]
    return measured[:most]


# --- runs -----------------------------------------------------------------------------------------

_RUNS: Final = """
SELECT runs.run_id, trace_id, start_time, peaks.fast, peaks.monitor
FROM runs
LEFT JOIN (SELECT run_id, max(b_fast) AS fast, max(monitor) AS monitor
           FROM decisions GROUP BY run_id) AS peaks ON peaks.run_id = runs.run_id
"""


def _run_rows(store: Store, trails: Sequence[RunTrail]) -> list[RunRow]:
    """Every run in a line, the gravest first."""
    checks = {each.run_id: _check(each) for each in _verified(store, trails)}
    told = {str(row["run_id"]): finite_row(row) for row in store.table(_RUNS).dicts()}
    rows = [_run_row(trail, told[trail.run_id], checks[trail.run_id]) for trail in trails]
    return sorted(rows, key=_gravity)


def _verified(store: Store, trails: Sequence[RunTrail]) -> list[Verification]:
    """All runs verified at once; one by one where a record says what cannot be."""
    try:
        return verify(store)
    except TwinspanError:
        return [each for trail in trails for each in _verified_alone(store, trail.run_id)]


def _verified_alone(store: Store, run_id: str) -> list[Verification]:
    try:
        return verify(store, run_id)
    except TwinspanError as error:
        reason = f"it cannot be computed again: {error}"
        return [
            Verification(
                run_id=run_id, verdict="mismatch", checked=0, mismatches=(), reasons=(reason,)
            )
        ]


def _run_row(trail: RunTrail, told: dict[str, Any], check: Check) -> RunRow:
    impacts = [
        each.impact
        for breach in trail.breaches
        for each in breach.contributions
        if each.impact is not None and isfinite(each.impact)
    ]
    return RunRow(
        run_id=trail.run_id,
        graph=trail.graph,
        verdict="incomplete" if check.verdict != "verified" else trail.verdict,
        reasons=trail.reasons,
        outcome=trail.outcome,
        breaches=len(trail.breaches),
        impact=max(impacts, default=None),
        peak_fast=told["fast"],
        peak_monitor=told["monitor"],
        check=check,
        trace_id=told["trace_id"],
        start=json_value(told["start_time"]),
    )


def _check(found: Verification) -> Check:
    mismatches = [
        (each.span_id, each.what, each.recorded, each.recomputed) for each in found.mismatches
    ]
    return Check(
        verdict=found.verdict,
        checked=found.checked,
        mismatches=Capped(items=tuple(mismatches[:MOST_MISMATCHES]), total=len(mismatches)),
        reasons=found.reasons,
    )


def _gravity(row: RunRow) -> tuple[bool, int, float, str]:
    return not row.breaches, _GRAVITY.index(row.verdict), -(row.impact or 0.0), row.start or ""


# --- counts and coverage --------------------------------------------------------------------------


def _counts(store: Store, trails: Sequence[RunTrail]) -> Counts:
    spans, executions, first, last = store.table(
        "SELECT count(*), count(*) FILTER (span_type = 'node'), "
        "min(start_time) FILTER (span_type = 'run'), max(start_time) FILTER (span_type = 'run') "
        "FROM spans WHERE run_id IS NOT NULL"
    ).rows[0]
    sets, scored, above, calls = store.table(
        "SELECT count(*), count(delta), "
        f"count(*) FILTER ({ABOVE_FLOOR}), coalesce(sum(call_count), 0)::BIGINT FROM probe_sets"
    ).rows[0]
    tried, cleared = store.table(
        "SELECT count(*), count(*) FILTER (outcome = 'cleared') FROM interventions "
        "WHERE strategy IS DISTINCT FROM 'human'"
    ).rows[0]
    breaches = [breach for trail in trails for breach in trail.breaches]
    return Counts(
        runs=len(trails),
        spans=cast(int, spans),
        executions=cast(int, executions),
        probe_sets=cast(int, sets),
        scored=cast(int, scored),
        above_floor=cast(int, above),
        calls=cast(int, calls),
        decisions=sum(len(trail.decisions) for trail in trails),
        breaches=len(breaches),
        enforced=sum(breach.decision.enforced is not False for breach in breaches),
        interventions=cast(int, tried),
        cleared=cast(int, cleared),
        first=json_value(first),
        last=json_value(last),
    )


_COVERAGE: Final = """
SELECT graph, node, max(weight) AS weight,
       sum(executions)::BIGINT AS executions,
       sum(probed)::BIGINT AS probed,
       sum(screened)::BIGINT AS screened,
       sum(sampled_out)::BIGINT AS sampled_out,
       sum(budget)::BIGINT AS budget,
       sum(exempt)::BIGINT AS exempt,
       sum(unknown)::BIGINT AS unknown,
       list_sort(list_distinct(flatten(list(coalesce(axes, []))))) AS axes,
       sum(scored)::BIGINT AS scored,
       coalesce(sum(calls), 0)::BIGINT AS calls
FROM coverage
LEFT JOIN (SELECT run_id, graph FROM runs) USING (run_id)
WHERE node IS NOT NULL
GROUP BY graph, node
ORDER BY weight DESC NULLS LAST, executions DESC, graph, node
"""


def _coverage(store: Store) -> Capped[Coverage]:
    rows = cast("list[dict[str, Any]]", list(store.table(_COVERAGE).dicts()))
    shown = [_coverage_of(row) for row in rows[:MOST_NODES]]
    return Capped(items=tuple(shown), total=len(rows))


def _coverage_of(row: dict[str, Any]) -> Coverage:
    axes = tuple(str(axis) for axis in row.pop("axes") if axis is not None)
    return Coverage(**row, axes=axes)
