"""The command line: a thin shell over the library.

Commands live in modules of their own and are imported when they are used, so that what a command
needs is paid for by that command alone.
"""

from __future__ import annotations

from typing import Final

import click

from twinspan.analysis.cli.group import LazyGroup

COMMANDS: Final = {
    "audit": "audit:audit",
    "calibrate": "replay:calibrate",
    "compact": "compact:compact_command",
    "dag": "dag:dag",
    "demo": "demo:demo",
    "doctor": "doctor:doctor",
    "flips": "flips:flips",
    "floor": "floor:floor",
    "gate": "gate:gate",
    "history": "history:history",
    "import": "import_spans:import_command",
    "jaeger": "jaeger:jaeger",
    "replay": "replay:replay",
    "report": "report:report",
    "reset": "reset:reset",
    "run": "run:run",
    "sarif": "sarif:sarif",
    "schema": "schema:schema",
    "sql": "sql:sql",
    "trail": "trail:trail",
    "trajectories": "trajectories:trajectories",
    "verify": "verify:verify",
    "watch": "deployment:watch",
}
"""Each command's module below this package, and its name in there."""


@click.group("twinspan", cls=LazyGroup, commands_at=COMMANDS, package=__name__)
@click.version_option(package_name="twinspan", message="%(prog)s %(version)s")
def main() -> None:
    """Demographic bias in multi-agent pipelines, from recorded spans.

    SPANS is a folder or file of recorded Parquet, OTLP JSON or protobuf, FairMedAgent
    trajectories or a DuckDB file. Commands end with 0; with 1 for a finding by a command that
    judges, 2 for wrong use, 3 for input that cannot be read.
    """
