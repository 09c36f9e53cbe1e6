"""`twinspan history`: how often each node was found biased."""

from __future__ import annotations

from pathlib import Path

import click

from twinspan.analysis.cli.output import format_option, note, print_table, tell_problems
from twinspan.analysis.history import history_table, recorded_history
from twinspan.analysis.store import open_store
from twinspan.collector.history import BetaPosterior
from twinspan.collector.history_file import write_history

_COUNT = click.FloatRange(0, min_open=True)


@click.command()
@click.argument("spans", type=click.Path())
@click.option(
    "--prior",
    nargs=2,
    type=_COUNT,
    default=(1.0, 1.0),
    show_default=True,
    metavar="BIASED CLEAR",
    help="Pseudo-counts of a node without runs; 1 and 1 favour nothing.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a file for the option `history` of live runs.",
)
@format_option()
def history(spans: str, prior: tuple[float, float], out: Path | None, form: str) -> None:
    """P(biased | history) of every node that was probed in SPANS, with a 95 % interval.

    A run counts once for a node, as biased where the node's own probes found it so. What other
    nodes answered plays no part. Live runs that are given the file record each node's composite
    risk, its share of the blast radius times this probability.
    """
    with open_store(spans) as store:
        tell_problems(store)
        found = recorded_history(store, BetaPosterior(biased=prior[0], clear=prior[1]))
    if not found.nodes:
        note("no node was probed with a score; record a run with axes and nodes")
    if out is not None:
        write_history(out, found)
    print_table(history_table(found), form)
