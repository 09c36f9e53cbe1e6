"""`twinspan gate`: which agents may be ranked by their within-band rate."""

from __future__ import annotations

from typing import Final

import click

from twinspan.analysis.audit_gate import gate_rows, gate_table
from twinspan.analysis.cli.outcome_options import given_rules, outcome_options
from twinspan.analysis.cli.output import format_option, note, print_table, tell_problems
from twinspan.analysis.gate_options import read_gate_options
from twinspan.analysis.store import open_store
from twinspan.analysis.tables import Table

FINDING: Final = 1

SHOWN: Final = (
    "model",
    "action",
    "eligible",
    "reason",
    "wcfr",
    "n_band_straddling",
    "ground_truth",
    "capability_score",
    "action_entropy",
    "instability_floor",
)


@click.command()
@click.argument("spans", type=click.Path())
@click.option(
    "--config",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="A TOML file with [gate], [[band]] and [[adjudicator]]; an audit's own file will do.",
)
@click.option(
    "--reference",
    metavar="ID",
    help="The condition that others are compared with; the recorded one if unset.",
)
@outcome_options
@format_option()
def gate(
    spans: str,
    config: str,
    reference: str | None,
    rules_file: str | None,
    rules: tuple[str, ...],
    form: str,
) -> int:
    """Whether the outcomes in SPANS mean something: capability, decisions, bands, stability.

    The fairest score belongs to an agent that reads no case. The gate names the first thing that
    keeps an outcome out of a ranking. Ends with 1 if one is kept out.
    """
    options = read_gate_options(config)
    with open_store(spans, outcomes=given_rules(rules_file, rules)) as store:
        tell_problems(store)
        rows = gate_rows(store, options, reference=reference)
    table = gate_table(rows)
    print_table(_for_people(table) if form == "table" else table, form)
    held_out = [row for row in rows if not row.decision.eligible]
    for row in held_out:
        if row.decision.detail:
            note(f"{row.action}: {row.decision.detail}")
    if not rows:
        note("no run has a case and a condition, so there is nothing to judge")
    return FINDING if held_out or not rows else 0


def _for_people(table: Table) -> Table:
    places = [table.columns.index(name) for name in SHOWN]
    return Table(
        columns=SHOWN, rows=tuple(tuple(row[place] for place in places) for row in table.rows)
    )
