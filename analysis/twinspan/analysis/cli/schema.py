"""`twinspan schema`: the views and their columns."""

from __future__ import annotations

import click

from twinspan.analysis.cli.output import format_option, print_table
from twinspan.analysis.described import described_columns
from twinspan.analysis.tables import Table
from twinspan.analysis.views import VIEWS, script


@click.command()
@click.argument("view", required=False, type=click.Choice(VIEWS))
@click.option(
    "--sql",
    "folder",
    metavar="SPANS",
    help="Print SQL that makes all views over this folder in any DuckDB shell instead.",
)
@format_option()
def schema(view: str | None, folder: str | None, form: str) -> None:
    """The views of `sql` and their columns; of one VIEW, or of all."""
    if folder is not None:
        click.echo(script(folder), nl=False)
        return
    columns = described_columns(view)
    print_table(
        Table(
            columns=("view", "column", "type", "unit", "attribute", "meaning"),
            rows=tuple(
                (each.view, each.column, each.type, each.unit, each.attribute, each.meaning)
                for each in columns
            ),
        ),
        form,
    )
