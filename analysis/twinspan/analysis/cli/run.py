"""`twinspan run`: a program under instrumentation, unchanged."""

from __future__ import annotations

from pathlib import Path

import click

from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation.launching import run_module, run_script


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A twinspan.toml; otherwise the file that TWINSPAN_CONFIG names, if any.",
)
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m` does.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT] [ARGS]...")
def run(config: Path | None, module: str | None, command: tuple[str, ...]) -> int:
    """Run a Python program under instrumentation, as `python SCRIPT ARGS` would run it.

    What is probed, how it is decided and where it is recorded stands in the file that --config
    names and in TWINSPAN_... variables; `twinspan doctor` tells what that comes to. The
    program's arguments, output and exit code are its own.
    """
    if module is None and not command:
        raise click.UsageError("name a script to run, or a module with -m")
    TwinspanInstrumentor().instrument(config=config)
    if module is not None:
        return run_module(module, command)
    return run_script(command[0], command[1:])
