"""`twinspan floor`: how often replicates of one case disagree."""

from __future__ import annotations

import click

from twinspan.analysis.cli.outcome_options import given_rules, outcome_options
from twinspan.analysis.cli.output import format_option, note, print_table, tell_problems
from twinspan.analysis.floors import floor_table
from twinspan.analysis.store import open_store


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
@outcome_options
@format_option()
def floor(
    spans: str,
    by: tuple[str, ...],
    majority: int | None,
    rules_file: str | None,
    rules: tuple[str, ...],
    form: str,
) -> None:
    """Instability floors of the outcomes in SPANS.

    A floor is the share of pairs of replicates of one case that disagree, with its interval for
    cases like these. A disparity between groups means nothing below it. Outcomes are the rules
    given here, else those recorded with the runs, else every scalar field of every action.
    """
    with open_store(spans, outcomes=given_rules(rules_file, rules)) as store:
        tell_problems(store)
        table = floor_table(store, by=by, majority=majority)
        if not any(table.column("cells")):
            note("no case has two replicates to compare; floors need repeated runs of a case")
        print_table(table, form)
