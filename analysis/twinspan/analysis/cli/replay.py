"""`twinspan replay` and `twinspan calibrate`: other thresholds on recorded runs."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, get_args

import click

from twinspan.analysis.calibration import Calibrated, calibrated, sweep
from twinspan.analysis.cli.output import format_option, print_json, print_table, tell_problems
from twinspan.analysis.recorded import RecordedRun, recorded_runs
from twinspan.analysis.replay import ReplaySummary
from twinspan.analysis.replay_summaries import summaries
from twinspan.analysis.store import open_store
from twinspan.analysis.tables import Table
from twinspan.instrumentation.errors import NoSpans
from twinspan.instrumentation.settings import Reduction, Trigger

_RATE = click.FloatRange(0, 1, min_open=True, max_open=True)
_SMOOTHING = click.FloatRange(0, 1, min_open=True)
_FAST = "Weight of the newest superstep in B_fast."
_SLOW = "Weight of the newest superstep in B_slow."
_REDUCTION = "How the scores of a superstep become one."


def _runs(spans: str) -> list[RecordedRun]:
    with open_store(spans) as store:
        tell_problems(store)
        runs = [run for run in recorded_runs(store) if run.supersteps]
    if not runs:
        raise _no_decisions(spans)
    return runs


def _no_decisions(spans: str) -> NoSpans:
    return NoSpans(spans, hint="no run in it has a decision; record one with axes and nodes")


@click.command()
@click.argument("spans", type=click.Path())
@click.option("--run", "run_id", metavar="ID", help="One run; all of them if unset.")
@click.option("--alpha", type=_RATE, help="Bound on false halts in a run.")
@click.option("--alpha-fast", "fast_alpha", type=_SMOOTHING, help=_FAST)
@click.option("--alpha-slow", "slow_alpha", type=_SMOOTHING, help=_SLOW)
@click.option("--tau-enter", type=float, help="B_fast that trips.")
@click.option("--tau-exit", type=float, help="B_fast below which an incident ends.")
@click.option("--trigger", type=click.Choice(get_args(Trigger)), help="What halts.")
@click.option("--reduction", type=click.Choice(get_args(Reduction)), help=_REDUCTION)
@format_option()
def replay(spans: str, run_id: str | None, form: str, **changes: Any) -> None:
    """What another configuration would have decided on the runs in SPANS.

    What is not given stays as it was recorded. What a run did after a halt is as recorded too.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    with open_store(spans) as store:
        tell_problems(store)
        found = summaries(store, given, run_id)
    if not found:
        raise _no_decisions(spans)
    columns = tuple(each.name for each in fields(ReplaySummary))
    rows = tuple(tuple(asdict(each).values()) for each in found)
    print_table(Table(columns=columns, rows=rows), form)


@click.command()
@click.argument("spans", type=click.Path())
@click.option("--target", type=_RATE, required=True, help="Share of unbiased runs that may halt.")
@click.option(
    "--exit-ratio", type=_RATE, default=0.7, show_default=True, help="tau_exit over tau_enter."
)
@click.option("--alpha-fast", "fast_alpha", type=_SMOOTHING, help=_FAST)
@click.option("--alpha-slow", "slow_alpha", type=_SMOOTHING, help=_SLOW)
@click.option("--reduction", type=click.Choice(get_args(Reduction)), help=_REDUCTION)
@click.option("--sweep", "swept", is_flag=True, help="Every reduction with several alphas.")
@format_option()
def calibrate(
    spans: str, target: float, exit_ratio: float, swept: bool, form: str, **changes: Any
) -> None:
    """Thresholds for B_fast and B_slow from control runs that are known to be unbiased.

    Of runs like those in SPANS at most the target share ever reaches tau_enter: it is taken from
    the largest B_fast of each run, not from single supersteps. So many runs leave that share open
    between rate_low and rate_high. Refuses where the runs are too few to show the target.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    if swept and given:
        raise click.UsageError("--sweep tries them all; leave the other options out")
    runs = _runs(spans)
    if swept:
        _print(list(sweep(runs, target, exit_ratio)), form)
        return
    found = calibrated(runs, target, exit_ratio, **given)
    if form == "json":
        print_json(asdict(found))
    else:
        _print([found], form)


def _print(found: list[Calibrated], form: str) -> None:
    columns = tuple(each.name for each in fields(Calibrated))
    rows = tuple(tuple(asdict(each).values()) for each in found)
    print_table(Table(columns=columns, rows=rows), form)
