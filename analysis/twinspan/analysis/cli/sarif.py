"""`twinspan sarif`: findings for tools that collect findings."""

from __future__ import annotations

import json

import click

from twinspan.analysis.cli.outcome_options import given_rules, outcome_options
from twinspan.analysis.cli.output import note, tell_problems
from twinspan.analysis.findings import AuditQuestion
from twinspan.analysis.flip_judgement import read_judgement
from twinspan.analysis.gate_options import read_gate_options
from twinspan.analysis.sarif import sarif_log
from twinspan.analysis.store import open_store
from twinspan.instrumentation.audit.analysis_options import read_analysis
from twinspan.instrumentation.audit.config_section import Section


@click.command()
@click.argument("spans", type=click.Path())
@click.option(
    "--out", required=True, type=click.Path(allow_dash=True), help="The file; - for stdout."
)
@click.option("--run", "run_id", metavar="ID", help="One run; all of them if unset.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also list what was looked at and is no finding: scores within the floor, payloads "
    "that passed, probe sets without a score.",
)
@click.option(
    "--source-file",
    metavar="PATH",
    help="File that defines the graph, relative to its repository; code hosts show only results "
    "that have one.",
)
@click.option(
    "--config",
    type=click.Path(),
    metavar="FILE",
    help="Judge audited runs by the [analysis], [[band]], [contrasts] and [gate] tables of this "
    "TOML file.",
)
@click.option(
    "--reference",
    metavar="ID",
    help="The condition that others are compared with; the recorded one if unset.",
)
@outcome_options
def sarif(
    spans: str,
    out: str,
    run_id: str | None,
    everything: bool,
    source_file: str | None,
    config: str | None,
    reference: str | None,
    rules_file: str | None,
    rules: tuple[str, ...],
) -> None:
    """Write the findings of SPANS as SARIF 2.1.0.

    Rules are bias/AXIS for a node that reacts beyond its floor, breaker/ACTION for each warning
    and each stopped payload, intervention/STRATEGY for each repair; of an audit disparity/AXIS
    for each comparison above the floor and, with a gate, gate/REASON for each outcome that is
    held out. Breaches come first, the largest impact before the others, each with the way the
    bias took to the cut edge. A record with holes is told as such: no result then means nothing.
    """
    question = _question(config, reference)
    with open_store(spans, outcomes=given_rules(rules_file, rules)) as store:
        tell_problems(store)
        log = sarif_log(
            store, run_id=run_id, everything=everything, source_file=source_file, question=question
        )
    text = json.dumps(log, ensure_ascii=False, indent=2, allow_nan=False)
    with click.open_file(out, "w", encoding="utf-8") as file:
        file.write(f"{text}\n")
    if out != "-":
        note(f"{len(log['runs'][0]['results'])} result(s) in {out}")


def _question(config: str | None, reference: str | None) -> AuditQuestion:
    if config is None:
        return AuditQuestion(reference=reference)
    root = Section.read(config)
    return AuditQuestion(
        reference=reference,
        analysis=read_analysis(root),
        judgement=read_judgement(config),
        gate=read_gate_options(config) if "gate" in root else None,
    )
