"""`twinspan sql`: read-only SQL over the views."""

from __future__ import annotations

import sys

import click

from twinspan.analysis.cli.output import format_option, print_table, tell_problems
from twinspan.analysis.locked_sql import DEFAULT_TIMEOUT
from twinspan.analysis.store import open_store


@click.command()
@click.argument("spans", type=click.Path())
@click.argument("query")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_TIMEOUT,
    show_default=True,
    help="Seconds that the query may take.",
)
@format_option()
def sql(spans: str, query: str, timeout: float, form: str) -> None:
    """Ask QUERY over the views of SPANS.

    One SELECT over the views, which `twinspan schema` lists; - reads it from stdin. The query
    can read nothing but SPANS and can change nothing.
    """
    text = sys.stdin.read() if query == "-" else query
    with open_store(spans) as store:
        tell_problems(store)
        print_table(store.sql(text, timeout=timeout), form)
