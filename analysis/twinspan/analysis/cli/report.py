"""`twinspan report`: what was recorded, for people who were not there."""

from __future__ import annotations

import json

import click

from twinspan.analysis.cli.outcome_options import given_rules, outcome_options
from twinspan.analysis.cli.output import note, tell_problems
from twinspan.analysis.flip_judgement import read_judgement
from twinspan.analysis.gate_options import read_gate_options
from twinspan.analysis.report import build_report, render_html, report_document
from twinspan.analysis.store import open_store
from twinspan.instrumentation.audit.analysis_options import AnalysisOptions, read_analysis
from twinspan.instrumentation.audit.config_section import Section


@click.command()
@click.argument("spans", type=click.Path())
@click.option("--out", type=click.Path(allow_dash=True), help="The HTML file; - for stdout.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="The same facts as JSON; - for stdout.",
)
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="ID",
    help="A run to tell in full; may be repeated. The gravest ones if unset.",
)
@click.option(
    "--reference",
    metavar="ID",
    help="The condition that others are compared with; the one that begins with 'ref' if unset.",
)
@click.option(
    "--jaeger", metavar="URL", help="Link traces to this Jaeger, like http://localhost:16686."
)
@click.option(
    "--gate",
    "gate_file",
    type=click.Path(),
    metavar="FILE",
    help="Judge by the [gate], [[band]], [contrasts] and [analysis] tables of this TOML file.",
)
@outcome_options
def report(
    spans: str,
    out: str | None,
    json_file: str | None,
    runs: tuple[str, ...],
    reference: str | None,
    jaeger: str | None,
    gate_file: str | None,
    rules_file: str | None,
    rules: tuple[str, ...],
) -> None:
    """Write a report on SPANS as one HTML file that loads nothing.

    It begins with the verdict in plain words: what reacted to which attribute, what was stopped,
    what the repair achieved. Then the graph, the evidence over time, floors and disparities,
    coverage, whether the record holds, and what the report does not say.
    """
    if out is None and json_file is None:
        raise click.UsageError("name a file with --out FILE.html, or --json FILE, or both")
    if out == "-" and json_file == "-":
        raise click.UsageError("only one of --out and --json can be -; give the other a file")
    gate = None if gate_file is None else read_gate_options(gate_file)
    judgement = None if gate_file is None else read_judgement(gate_file)
    analysis = AnalysisOptions() if gate_file is None else read_analysis(Section.read(gate_file))
    with open_store(spans, outcomes=given_rules(rules_file, rules)) as store:
        tell_problems(store)
        found = build_report(
            store,
            runs=runs,
            reference=reference,
            jaeger=jaeger,
            alpha=analysis.alpha,
            procedure=analysis.adjust,
            gate=gate,
            judgement=judgement,
        )
    if json_file is not None:
        document = report_document(found)
        _write(json_file, json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False))
    if out is not None:
        _write(out, render_html(found))
    note(found.headline)


def _write(place: str, text: str) -> None:
    with click.open_file(place, "w", encoding="utf-8") as file:
        file.write(text if text.endswith("\n") else f"{text}\n")
