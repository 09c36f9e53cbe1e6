"""`twinspan import`: any source into our Parquet."""

from __future__ import annotations

import click

from twinspan.analysis.cli.outcome_options import given_rules, outcome_options
from twinspan.analysis.cli.output import format_option, note, print_table
from twinspan.analysis.cli.progress import counted_spans
from twinspan.analysis.importing import Imported, import_spans
from twinspan.analysis.tables import Table


@click.command("import")
@click.argument("sources", nargs=-1, required=True, type=click.Path(), metavar="SOURCE...")
@click.option("--out", required=True, type=click.Path(), help="The folder to write to.")
@outcome_options
@format_option()
def import_command(
    sources: tuple[str, ...],
    out: str,
    rules_file: str | None,
    rules: tuple[str, ...],
    form: str,
) -> None:
    """Write any SOURCE into a folder of Parquet.

    Outcome rules that are given here are recorded with the runs. Spans that are in the folder
    already are left alone, so an import can be repeated.
    """
    outcomes = given_rules(rules_file, rules)
    done: list[Imported] = []
    with counted_spans("read", "written") as (read, written):
        for source in sources:
            done.append(
                import_spans(source, out, outcomes=outcomes, reading=read, progress=written)
            )
    for imported in done:
        for problem in imported.problems:
            note(str(problem))
    print_table(
        Table(
            columns=("source", "spans", "runs", "known"),
            rows=tuple((each.source, each.spans, each.runs, each.known) for each in done),
        ),
        form,
    )
