"""`twinspan watch`: whether the runs of a deployment have turned to bias."""

from __future__ import annotations

from dataclasses import astuple, fields

import click

from twinspan.analysis.cli.output import format_option, note, print_table, tell_problems
from twinspan.analysis.deployment import WatchedRun, watched_runs
from twinspan.analysis.store import open_store
from twinspan.analysis.tables import Table

FINDING = 1


@click.command()
@click.argument("spans", type=click.Path())
@click.option(
    "--average-run-length",
    "length",
    type=click.FloatRange(1, min_open=True),
    default=1000.0,
    show_default=True,
    metavar="RUNS",
    help="Runs to a false alarm, at least, on average.",
)
@format_option()
def watch(spans: str, length: float, form: str) -> int:
    """Watch the runs in SPANS, in the order in which they began, for a change towards bias.

    Many runs that each stay below their own limit can add up. R grows with every run's evidence
    and alarms at its limit. A deployment has no end, so a false alarm comes some day: without
    bias it takes RUNS runs at least, on average. After an alarm R begins afresh. Ends with 1 if
    there was an alarm.
    """
    with open_store(spans) as store:
        tell_problems(store)
        found = list(watched_runs(store, length))
    if not found:
        note("no run in it was monitored; record a run with axes and nodes")
    columns = tuple(each.name for each in fields(WatchedRun))
    print_table(Table(columns=columns, rows=tuple(astuple(each) for each in found)), form)
    return FINDING if any(each.alarm for each in found) else 0
