"""`twinspan trail`: what runs decided, and what each breach goes back to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import click

from twinspan.analysis.cli.output import (
    format_option,
    plain,
    print_json,
    print_table,
    tell_problems,
)
from twinspan.analysis.store import open_store
from twinspan.analysis.tables import Table
from twinspan.analysis.trail import AuditTrail
from twinspan.analysis.trail_records import (
    Breach,
    Contribution,
    Decision,
    InterventionFact,
    RunTrail,
)


@click.command()
@click.argument("spans", type=click.Path())
@click.option("--run", "run_id", metavar="ID", help="One run; all of them if unset.")
@format_option()
def trail(spans: str, run_id: str | None, form: str) -> None:
    """What runs decided, and what each breach goes back to.

    Each run has a verdict: incomplete (spans are missing), flagged (a payload was stopped, or
    would have been), inconclusive (nothing was measured) or clear. Each breach is followed to
    its node, axis, perturbation and edge, with every node's share of the score.
    """
    with open_store(spans) as store:
        tell_problems(store)
        audit = AuditTrail(store)
        runs = audit.runs() if run_id is None else (audit.run(run_id),)
    if form == "json":
        print_json([_document(run) for run in runs])
    elif form == "table":
        for run in runs:
            click.echo("\n".join(lines_of(run)))
    else:
        _print_rows(runs, form)


def _document(run: RunTrail) -> dict[str, Any]:
    document = asdict(run)
    for breach, told in zip(run.breaches, document["breaches"], strict=True):
        told["path"] = list(breach.path)
    return document


def _print_rows(runs: Sequence[RunTrail], form: str) -> None:
    """One row per decision; a run without any has one row with its verdict."""
    columns = ("run_id", "verdict", *Decision.__dataclass_fields__)
    rows = [
        (run.run_id, run.verdict, *(plain(value) for value in asdict(decision).values()))
        for run in runs
        for decision in run.decisions
    ]
    bare = [run for run in runs if not run.decisions]
    rows += [(run.run_id, run.verdict, *[None] * (len(columns) - 2)) for run in bare]
    print_table(Table(columns=columns, rows=tuple(rows)), form)


def lines_of(run: RunTrail) -> Iterator[str]:
    """A run's trail as lines for people."""
    reasons = f": {'; '.join(run.reasons)}" if run.reasons else ""
    graph = f" ({run.graph})" if run.graph else ""
    yield f"run {run.run_id}{graph}: {run.verdict}{reasons}"
    for decision in run.decisions:
        yield f"  {_decision_line(decision)}"
    for breach in run.breaches:
        yield f"  breach: {' <- '.join(breach.path)}"
        yield from (f"    {line}" for line in _breach_lines(breach))


def _decision_line(decision: Decision) -> str:
    told = "" if decision.enforced is not False else " (shadow: told, not enforced)"
    judged = " after repair" if decision.intervention_id else ""
    numbers = ", ".join(
        f"{name} {value:.4g}"
        for name, value in (
            ("B_fast", decision.b_fast),
            ("B_slow", decision.b_slow),
            ("M", decision.monitor),
        )
        if value is not None
    )
    state = f"{decision.state_from} -> {decision.state_to}"
    edges = f" at {', '.join(decision.edges)}" if decision.edges else ""
    scope = f" in {decision.scope}" if decision.scope else ""
    return (
        f"#{decision.audit_seq} superstep {decision.superstep}{scope}{judged}: "
        f"{decision.decision}{edges}{told}; {decision.reason}; {state}"
        + (f"; {numbers}" if numbers else "")
    )


def _breach_lines(breach: Breach) -> Iterator[str]:
    for each in breach.contributions:
        yield _contribution_line(each)
    for fact in breach.interventions:
        yield from _intervention_lines(fact)


def _intervention_lines(fact: InterventionFact) -> Iterator[str]:
    if fact.reviews:
        stances = ", ".join(fact.reviews)
        yield f"reviews of {fact.node}: {stances}; the panel's vote: {fact.panel}"
    for candidate, delta in fact.attempts:
        yield f"candidate {candidate} for {fact.node}: delta {_number(delta)}"
    scores = f", delta {_number(fact.score_before)} -> {_number(fact.score_after)}"
    why = f" ({fact.reason})" if fact.reason and fact.outcome != "cleared" else ""
    edge = f", handed on at {fact.edge}" if fact.outcome == "cleared" and fact.edge else ""
    told = f"intervention {fact.strategy} on {fact.node}: {fact.outcome}{why}"
    yield told + ("" if fact.outcome == "escalated" else f"{scores}{edge}")


def _contribution_line(each: Contribution) -> str:
    interval = f" [{_number(each.ci_low)}, {_number(each.ci_high)}]"
    swapped = f"; {', '.join(each.perturbations)}" if each.perturbations else ""
    return (
        f"{each.node}|{each.axis}: w*B {_number(each.impact)} = {_number(each.weight)} * "
        f"{_number(each.magnitude)}; delta {_number(each.delta)}{interval}, "
        f"p {_number(each.p_value)}, e {_number(each.e_value)}{swapped}"
    )


def _number(value: float | None) -> str:
    return "(none)" if value is None else f"{value:.4g}"
