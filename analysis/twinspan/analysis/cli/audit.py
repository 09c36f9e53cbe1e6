"""`twinspan audit`: runs a design against an agent, and says what it found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from twinspan.analysis.audit_session import AuditOutcome, Estimate, estimate, run_audit
from twinspan.analysis.cli.flips import print_flips
from twinspan.analysis.cli.output import note
from twinspan.analysis.flip_judgement import read_judgement
from twinspan.analysis.flips import flip_report
from twinspan.analysis.gate_options import GateOptions, read_gate_options
from twinspan.analysis.report import build_report, render_html
from twinspan.analysis.store import open_store
from twinspan.instrumentation.audit.config_section import Section
from twinspan.instrumentation.audit.configuration import AuditConfiguration, read_configuration
from twinspan.instrumentation.audit.lint import lint_cases

FINDING: Final = 1


@click.command()
@click.option(
    "--config",
    type=click.Path(),
    default="audit.toml",
    show_default=True,
    metavar="FILE",
    help="What to run, against whom, and what to count.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the record.")
@click.option("--report", type=click.Path(path_type=Path), help="End with this HTML report.")
@click.option(
    "--dry-run", is_flag=True, help="Say what would be run and what it costs; run nothing."
)
@click.option("--yes", is_flag=True, help="Do not ask before the first call.")
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Runs at once.")
def audit(
    config: str,
    out: Path | None,
    report: Path | None,
    dry_run: bool,
    yes: bool,
    concurrency: int | None,
) -> int:
    """Run cases by conditions by replicates against an agent, recording spans.

    The plan's hash is recorded before the first run. An audit that was stopped, or killed, goes
    on where it was when it is started again with the same file. Ends with 1 if a disparity is
    above the floor.
    """
    configuration = read_configuration(config)
    folder = out or configuration.out
    told = estimate(configuration, folder)
    for line in _lines(configuration, told, folder):
        click.echo(line, err=not dry_run)
    for finding in lint_cases(configuration.plan.cases, configuration.plan.conditions):
        note(f"case {finding.case_id}: {finding.message}")
    if dry_run:
        return 0
    if sys.stdin.isatty() and sys.stderr.isatty() and not yes and told.runs_left:
        click.confirm("Start?", abort=True, default=True, err=True)
    with _progress(told.runs_left) as advance:
        outcome = run_audit(configuration, folder, concurrency=concurrency, on_run=advance)
    return _close(configuration, folder, outcome, report or configuration.report)


def _close(
    configuration: AuditConfiguration, folder: Path, outcome: AuditOutcome, report: Path | None
) -> int:
    """Say what came of it, from the recorded files alone."""
    summary = outcome.summary
    again = f", {summary.already:,} recorded before" if summary.already else ""
    click.echo(
        f"{summary.completed:,} runs completed, {summary.failed:,} failed{again}; "
        f"{summary.calls:,} calls; recorded in {folder}",
        err=True,
    )
    for failure, count in summary.failures.items():
        note(f"{count:,} runs failed: {failure}")
    judgement = read_judgement(configuration.file)
    with open_store(folder) as store:
        analysis = configuration.analysis
        found = flip_report(
            store, alpha=analysis.alpha, judgement=judgement, procedure=analysis.adjust
        )
        if report is not None:
            report.parent.mkdir(parents=True, exist_ok=True)
            told = build_report(
                store,
                alpha=analysis.alpha,
                procedure=analysis.adjust,
                gate=_gate(configuration),
                judgement=judgement,
            )
            report.write_text(render_html(told), encoding="utf-8")
            note(f"report: {report}")
    print_flips(found, "table")
    return FINDING if found.findings else 0


def _gate(configuration: AuditConfiguration) -> GateOptions | None:
    """The gate's options, if the audit's own file has any."""
    has_gate = "gate" in Section.read(configuration.file)
    return read_gate_options(configuration.file) if has_gate else None


def _lines(configuration: AuditConfiguration, told: Estimate, folder: Path) -> Iterator[str]:
    plan = configuration.plan
    arms = f" x {len(plan.arms)} arms" if plan.arms else ""
    yield (
        f"{plan.name}: {len(plan.cases)} cases x {len(plan.conditions)} conditions x "
        f"{plan.replicates} replicates{arms} = {told.runs:,} runs against {configuration.target}"
    )
    yield f"plan {plan.hash}"
    left = f"{told.runs_left:,} runs to make" if told.runs_left != told.runs else "all to make"
    cost = "" if told.cost is None else f", about {told.cost:,.2f} {configuration.prices.currency}"
    yield (
        f"{left}, {told.calls:,} calls, about {told.input_tokens:,} tokens in and "
        f"{told.output_tokens:,} out{cost}, {configuration.concurrency} at once, into {folder}"
    )


@contextmanager
def _progress(total: int) -> Generator[Callable[[object], None]]:
    """A bar on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty() or not total:
        yield _quiet
        return
    with click.progressbar(length=total, label="runs", show_pos=True, file=sys.stderr) as bar:
        yield lambda _ended: bar.update(1)


def _quiet(_ended: object) -> None:
    """Say nothing of a run that ended."""
