"""`twinspan trajectories`: recorded runs as trajectories, for other tools."""

from __future__ import annotations

import json

import click

from twinspan.analysis.cli.outcome_options import given_rules, outcome_options
from twinspan.analysis.cli.output import note, tell_problems
from twinspan.analysis.recorded_trajectories import recorded_trajectories, trajectories_document
from twinspan.analysis.store import open_store


@click.command()
@click.argument("spans", type=click.Path())
@click.option(
    "--out", type=click.Path(allow_dash=True), default="-", help="The JSON file; - for stdout."
)
@click.option(
    "--nested", is_flag=True, help="Keep results one level deeper, as FairMedAgent's library does."
)
@outcome_options
def trajectories(
    spans: str, out: str, nested: bool, rules_file: str | None, rules: tuple[str, ...]
) -> None:
    """Write the runs of SPANS as FairMedAgent trajectories.

    Every run with a case and a condition becomes one: its actions by step, its replicate, its
    forced steps. Free text is there only if it was recorded.
    """
    with open_store(spans, outcomes=given_rules(rules_file, rules)) as store:
        tell_problems(store)
        found = recorded_trajectories(store)
    document = trajectories_document(found, spans, results="nested" if nested else "flat")
    with click.open_file(out, "w", encoding="utf-8") as file:
        file.write(json.dumps(document, ensure_ascii=False, indent=1) + "\n")
    note(f"{len(found):,} trajectories")
