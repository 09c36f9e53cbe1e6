"""`twinspan reset`: a person lets a stopped run go on."""

from __future__ import annotations

import click

from twinspan.collector import reset_run


@click.command()
@click.argument("spans", type=click.Path(exists=True, file_okay=False))
@click.argument("run_id", metavar="RUN")
@click.option("--by", required=True, metavar="NAME", help="Who decides it; it is recorded.")
def reset(spans: str, run_id: str, by: str) -> None:
    """Let RUN, which was halted or escalated, go on; SPANS is the folder it is recorded in.

    The reset is written to SPANS as the run's next decision. Whoever executes the run again goes
    on from there: what was halted is executed and probed again.
    """
    decision = reset_run(spans, run_id, by=by)
    click.echo(f"run {run_id}: {decision.state_from} -> {decision.state_to}, reset by {by}")
