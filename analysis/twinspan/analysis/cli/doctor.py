"""`twinspan doctor`: what would be instrumented and probed, at what cost, and what is wrong."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from twinspan.analysis.cli.output import format_option, print_json, print_table
from twinspan.analysis.doctor import Report, examine
from twinspan.analysis.tables import Table
from twinspan.instrumentation.launching import run_script
from twinspan.instrumentation.settings import Settings


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A twinspan.toml; otherwise the file that TWINSPAN_CONFIG names, if any.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT] [ARGS]...")
@format_option(("table", "json"))
def doctor(config: Path | None, command: tuple[str, ...], form: str) -> None:
    """Tell what would be instrumented and probed, what not and why, and what is wrong.

    With a SCRIPT it runs it once, observed and not probed, with all its side effects, and tells
    of the nodes that ran: which are probed, on which axes, in how many calls. What the script
    prints goes to stderr.
    """
    settings = Settings.resolve(config=config)

    def program() -> object:
        with redirect_stdout(sys.stderr):
            return run_script(command[0], command[1:])

    report = examine(settings, program if command else None)
    if form == "json":
        print_json(dataclasses.asdict(report))
    else:
        _tell(report, bool(command))


def _tell(report: Report, ran: bool) -> None:
    click.echo("Frameworks")
    print_table(
        Table(
            columns=("package", "installed", "supported", "instrumented"),
            rows=tuple(
                (each.package, each.installed or "no", each.supported, each.usable)
                for each in report.frameworks
            ),
        ),
        "table",
    )
    if ran:
        click.echo("\nNodes that ran")
        print_table(
            Table(
                columns=("node", "kind", "ran", "decision", "why", "axes", "calls", "tokens"),
                rows=tuple(
                    (
                        each.node,
                        each.kind,
                        each.executions,
                        each.decision,
                        each.why,
                        ", ".join(each.axes),
                        each.calls,
                        each.tokens,
                    )
                    for each in report.nodes
                ),
            ),
            "table",
        )
        calls = sum(each.calls for each in report.nodes)
        tokens = sum(each.tokens for each in report.nodes)
        click.echo(f"\nProbing this run takes {calls} calls, about {tokens} tokens.")
    click.echo("\nTo know" if report.problems else "\nNothing is wrong.")
    for problem in report.problems:
        click.echo(f"- {problem}")
