"""`twinspan floor`: how often replicates of one case disagree."""

from __future__ import annotations

import click

from twinspan.analysis.batch_effect import batch_effect
from twinspan.analysis.cli.outcome_options import given_rules, outcome_options
from twinspan.analysis.cli.output import (
    format_option,
    note,
    print_table,
    tell_problems,
    told_reasons,
)
from twinspan.analysis.floor_diagnosis import comparison, diagnosis, replicate_tables
from twinspan.analysis.floors import floor_table
from twinspan.analysis.store import Store, open_store
from twinspan.analysis.tables import Table


@click.command()
@click.argument("spans", type=click.Path())
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Break down by a column of the view actions, like model; may be repeated.",
)
@click.option(
    "--majority",
    type=click.IntRange(min=1),
    metavar="G",
    help="Compare majority votes of G replicates instead of single ones; G is odd.",
)
@click.option(
    "--diagnose",
    is_flag=True,
    help="Base rates, what single cases and replicates do to a floor, and batch effects; of an "
    "audit, under its reference.",
)
@click.option(
    "--against",
    type=click.Path(),
    metavar="SPANS",
    help="Compare with the floors of another agent on the same cases.",
)
@outcome_options
@format_option()
def floor(
    spans: str,
    by: tuple[str, ...],
    majority: int | None,
    diagnose: bool,
    against: str | None,
    rules_file: str | None,
    rules: tuple[str, ...],
    form: str,
) -> None:
    """Instability floors of the outcomes in SPANS.

    A floor is the share of pairs of replicates of one case that disagree, with its interval for
    cases like these. A disparity between groups means nothing below it. Outcomes are the rules
    given here, else those recorded with the runs, else every scalar field of every action.
    """
    if sum([bool(by) or majority is not None, diagnose, against is not None]) > 1:
        raise click.UsageError("--diagnose and --against stand alone; leave the others out")
    outcomes = given_rules(rules_file, rules)
    with open_store(spans, outcomes=outcomes) as store:
        tell_problems(store)
        if diagnose:
            _print_diagnosis(store, form)
            return
        if against is not None:
            with open_store(against, outcomes=outcomes) as other:
                tell_problems(other)
                print_table(comparison(store, other), form)
            return
        table = floor_table(store, by=by, majority=majority)
        print_table(_for_people(table) if form == "table" else table, form)
        for line in told_reasons(table.column("reason")):
            note(line)


def _print_diagnosis(store: Store, form: str) -> None:
    for table in replicate_tables(store).values():
        warning = batch_effect(table).warning()
        if warning:
            note(warning)
    print_table(diagnosis(store), form)


def _for_people(table: Table) -> Table:
    """Without the reasons, where every row has its floor."""
    if any(table.column("reason")):
        return table
    place = table.columns.index("reason")
    return Table(
        columns=table.columns[:place] + table.columns[place + 1 :],
        rows=tuple(row[:place] + row[place + 1 :] for row in table.rows),
    )
