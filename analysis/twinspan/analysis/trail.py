"""The audit trail: what a run decided, and what each breach goes back to."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

from twinspan.analysis.chain import broken_links
from twinspan.analysis.store import Store, open_store
from twinspan.analysis.tables import Table
from twinspan.analysis.trail_records import (
    HALTING,
    Breach,
    Contribution,
    Decision,
    InterventionFact,
    RunTrail,
    Verdict,
)
from twinspan.instrumentation.errors import SourceError

Row = Mapping[str, Any]


class AuditTrail:
    """What happened in recorded runs, traced back to its causes.

    Append-only by nature: it reads spans, and a span once recorded is never changed.

    Args:
        store: opened spans.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    @classmethod
    def open(cls, source: str | os.PathLike[str]) -> Self:
        """The trail of spans that lie somewhere.

        Raises:
            SourceError: if they cannot be read.
        """
        return cls(open_store(source))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.store.close()

    def events(self, run_id: str) -> Table:
        """Every step of one run in the order in which it was recorded."""
        return self.store.table(
            "SELECT * FROM trail WHERE run_id = ? ORDER BY audit_writer, audit_seq", [run_id]
        )

    def runs(self) -> tuple[RunTrail, ...]:
        """The trail of every run, in the order of their beginning."""
        return self._trails(None)

    def run(self, run_id: str) -> RunTrail:
        """The trail of one run.

        Raises:
            SourceError: if there is no such run.
        """
        found = self._trails(run_id)
        if not found:
            known = self.store.run_ids()
            listed = ", ".join(repr(each) for each in known[:5]) or "none"
            raise SourceError(
                f"{self.store.source!r} has no run {run_id!r}; its runs begin with {listed}"
            )
        return found[0]

    def _trails(self, run_id: str | None) -> tuple[RunTrail, ...]:
        runs = _rows(self.store, "runs", run_id, "start_unix_nano, run_id")
        facts = _Facts(self.store, run_id)
        return tuple(_trail(run, facts) for run in runs)


class _Facts:
    """What the views say of the runs, by run."""

    def __init__(self, store: Store, run_id: str | None) -> None:
        self.decisions = _by_run(_rows(store, "decisions", run_id, "audit_writer, audit_seq"))
        self.interventions = _by_run(_rows(store, "interventions", run_id, "start_unix_nano"))
        self.reviews: defaultdict[str, list[str]] = defaultdict(list)
        self.attempts: defaultdict[str, list[tuple[str, float | None]]] = defaultdict(list)
        if self.interventions:
            for row in _rows(store, "reviews", run_id, "audit_writer, audit_seq"):
                self.reviews[str(row["intervention_id"])].append(str(row["stance"]))
            for row in _rows(store, "attempts", run_id, "audit_writer, audit_seq"):
                told = (str(row["candidate"]), row["delta"])
                self.attempts[str(row["intervention_id"])].append(told)
        self.scored: dict[str, int] = {
            str(run): int(cast(int, count))
            for run, count in store.table(
                "SELECT run_id, count(*) FROM probe_sets "
                f"WHERE delta IS NOT NULL {_where_run(run_id)} GROUP BY run_id",
                _parameters(run_id),
            ).rows
        }
        self.breaks: defaultdict[str, list[str]] = defaultdict(list)
        for broken in broken_links(store, run_id):
            self.breaks[broken.run_id].append(f"decision {broken.audit_seq}: {broken.reason}")
        halted = {
            str(row["run_id"])
            for rows in self.decisions.values()
            for row in rows
            if row["decision"] in HALTING
        }
        self.causes = _Causes(store, sorted(halted))


class _Causes:
    """Scores and perturbations of the runs that have a breach."""

    def __init__(self, store: Store, runs: Sequence[str]) -> None:
        self.network: dict[str, Row] = {}
        self.sets: dict[tuple[str, str], Row] = {}
        self.perturbations: dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]] = {}
        if not runs:
            return
        among = [list(runs)]
        for row in store.table(
            "SELECT span_id, contributions FROM network WHERE run_id IN (SELECT unnest(?))", among
        ).dicts():
            self.network[str(row["span_id"])] = row
        for row in store.table(
            "SELECT * FROM probe_sets WHERE run_id IN (SELECT unnest(?))", among
        ).dicts():
            self.sets[str(row["run_id"]), str(row["probe_set_id"])] = row
        for run, probe_set, ids, targets in store.table(
            "SELECT run_id, probe_set_id, list_sort(list(DISTINCT perturbation_id)), "
            "list_sort(list_distinct(flatten(list(perturbation_targets)))) "
            "FROM probes WHERE arm = 'counterfactual' AND run_id IN (SELECT unnest(?)) "
            "GROUP BY run_id, probe_set_id",
            among,
        ).rows:
            self.perturbations[str(run), str(probe_set)] = (_texts(ids), _texts(targets))


def _trail(run: Row, facts: _Facts) -> RunTrail:
    run_id = str(run["run_id"])
    rows = facts.decisions.get(run_id, [])
    decisions = [_decision(row) for row in rows]
    breaches = [
        _breach(row, decisions, facts)
        for row in rows
        if row["decision"] in HALTING and row["intervention_id"] is None
    ]
    verdict, reasons = _verdict(run, facts, breaches)
    return RunTrail(
        run_id=run_id,
        graph=run["graph"],
        verdict=verdict,
        reasons=reasons,
        outcome=run["outcome"],
        span_count=run["span_count"],
        decisions=tuple(decisions),
        breaches=tuple(breaches),
    )


def _verdict(
    run: Row, facts: _Facts, breaches: Sequence[Breach]
) -> tuple[Verdict, tuple[str, ...]]:
    run_id = str(run["run_id"])
    holes = [str(run["incomplete_reason"])] if run["completeness"] == "incomplete" else []
    holes += facts.breaks.get(run_id, [])
    told = [f"{len(breaches)} breach(es)"] if breaches else []
    if holes:
        return "incomplete", (*holes, *told)
    if breaches:
        return "flagged", tuple(told)
    if not facts.scored.get(run_id):
        return "inconclusive", ("no probe set has a score",)
    return "clear", ()


def _decision(row: Row) -> Decision:
    return Decision(
        audit_seq=row["audit_seq"],
        scope=row["scope"],
        superstep=row["superstep"],
        decision=row["decision"],
        reason=row["reason"],
        state_from=row["state_from"],
        state_to=row["state_to"],
        b_fast=row["b_fast"],
        b_slow=row["b_slow"],
        monitor=row["monitor"],
        edges=_texts(row["edges"] or ([row["edge"]] if row["edge"] else [])),
        enforced=row["enforced"],
        intervention_id=row["intervention_id"],
        span_id=row["span_id"],
    )


def _breach(row: Row, decisions: Sequence[Decision], facts: _Facts) -> Breach:
    decision = _decision(row)
    contributions = _contributions(row, facts.causes)
    worst = next(
        (each for each in contributions if each.node == row["node"] and each.axis == row["axis"]),
        contributions[0] if contributions else None,
    )
    interventions = [
        each
        for each in facts.interventions.get(str(row["run_id"]), [])
        if (each["scope"], each["superstep"]) == (row["scope"], row["superstep"])
    ]
    return Breach(
        decision=decision,
        node=row["node"] or (worst.node if worst else None),
        axis=row["axis"] or (worst.axis if worst else None),
        perturbations=worst.perturbations if worst else (),
        edges=decision.edges,
        contributions=contributions,
        interventions=tuple(_intervention(each, facts) for each in interventions),
        rechecks=tuple(
            each
            for each in decisions
            if each.intervention_id is not None
            and (each.scope, each.superstep) == (decision.scope, decision.superstep)
        ),
    )


def _contributions(row: Row, causes: _Causes) -> tuple[Contribution, ...]:
    """The probe sets behind a decision, the largest impact first."""
    run_id = str(row["run_id"])
    network = causes.network.get(str(row["span_id"]), {})
    reduced = cast("list[Row]", network.get("contributions") or [])
    impacts = {str(each["node"]): each for each in reduced}
    found: list[Contribution] = []
    for set_id in cast("list[str]", row["probe_sets"] or []):
        probe_set = causes.sets.get((run_id, set_id))
        if probe_set is not None:
            swapped = causes.perturbations.get((run_id, set_id), ((), ()))
            found.append(_contribution(probe_set, impacts, *swapped))
    return tuple(sorted(found, key=lambda each: (-(each.impact or 0), -(each.delta or 0))))


def _contribution(
    probe_set: Row,
    impacts: Mapping[str, Row],
    perturbations: tuple[str, ...],
    targets: tuple[str, ...],
) -> Contribution:
    node = str(probe_set["node"])
    impact = impacts.get(node, {})
    return Contribution(
        node=node,
        axis=str(probe_set["axis"]),
        weight=impact.get("weight", probe_set["weight"]),
        magnitude=impact.get("magnitude"),
        impact=impact.get("impact"),
        delta=probe_set["delta"],
        ci_low=probe_set["ci_low"],
        ci_high=probe_set["ci_high"],
        p_value=probe_set["p_value"],
        e_value=probe_set["e_value"],
        perturbations=perturbations,
        targets=targets,
        span_id=str(probe_set["span_id"]),
    )


def _intervention(row: Row, facts: _Facts) -> InterventionFact:
    own = str(row["intervention_id"])
    return InterventionFact(
        intervention_id=row["intervention_id"],
        strategy=row["strategy"],
        node=row["node"],
        round=row["round"],
        score_before=row["score_before"],
        score_after=row["score_after"],
        upper_after=row["upper_after"],
        outcome=row["outcome"],
        reason=row["reason"],
        edge=row["edge"],
        panel=row["panel_decision"],
        reviews=tuple(facts.reviews.get(own, ())),
        attempts=tuple(facts.attempts.get(own, ())),
        span_id=str(row["span_id"]),
    )


def _rows(store: Store, view: str, run_id: str | None, order: str) -> list[Row]:
    where = _where_run(run_id).replace("AND", "WHERE", 1)
    query = f"SELECT * FROM {view} {where} ORDER BY {order}"
    return list(store.table(query, _parameters(run_id)).dicts())


def _where_run(run_id: str | None) -> str:
    return "" if run_id is None else "AND run_id = ?"


def _parameters(run_id: str | None) -> list[object]:
    return [] if run_id is None else [run_id]


def _by_run(rows: Sequence[Row]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(str(row["run_id"]), []).append(row)
    return grouped


def _texts(values: object) -> tuple[str, ...]:
    listed = cast("list[object] | None", values) or []
    return tuple(str(value) for value in listed if value is not None)
