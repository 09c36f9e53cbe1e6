"""`twinspan compact`: fewer files for the same record, and an end to what is too old."""

from __future__ import annotations

import click

from twinspan.analysis.cli.output import format_option, print_table
from twinspan.analysis.compacting import compact
from twinspan.analysis.tables import Table


@click.command("compact")
@click.argument("spans", type=click.Path())
@click.option(
    "--keep-days",
    type=click.IntRange(min=1),
    metavar="N",
    help="Remove runs of which nothing is from the last N days, today included (UTC).",
)
@format_option()
def compact_command(spans: str, keep_days: int | None, form: str) -> None:
    """Merge the small files of the folder SPANS, day by day.

    The record stays whole whenever the command is stopped, and processes may go on recording.
    Nothing is removed unless --keep-days says so; a run is kept or removed as a whole.
    """
    done = compact(spans, keep_days=keep_days)
    columns = ("files_before", "files_after", "spans", "repeated", "expired_spans", "skipped")
    row = tuple(getattr(done, name) for name in columns)
    print_table(Table(columns=columns, rows=(row,)), form)
