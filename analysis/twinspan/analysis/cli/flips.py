"""`twinspan flips`: conditions against the reference, net of the floor and of the controls."""

from __future__ import annotations

from typing import Final

import click

from twinspan.analysis.cli.outcome_options import given_rules, outcome_options
from twinspan.analysis.cli.output import (
    format_option,
    note,
    print_table,
    tell_problems,
    told_reasons,
)
from twinspan.analysis.flip_family import told_of_family
from twinspan.analysis.flip_judgement import read_judgement
from twinspan.analysis.flip_rows import FlipReport
from twinspan.analysis.flips import flip_report
from twinspan.analysis.store import open_store
from twinspan.analysis.tables import Table
from twinspan.instrumentation.audit.analysis_options import (
    PROCEDURES,
    AnalysisOptions,
    Procedure,
    read_analysis,
)
from twinspan.instrumentation.audit.config_section import Section

FINDING: Final = 1

SHOWN: Final = (
    "condition",
    "action",
    "flip_rate",
    "floor",
    "excess",
    "p_adjusted",
    "p_controls",
    "verdict",
)
"""Columns that a terminal has room for; the other formats have all, reasons included."""


@click.command()
@click.argument("spans", type=click.Path())
@click.option(
    "--reference",
    metavar="ID",
    help="The condition that others are compared with; the recorded one if unset.",
)
@click.option(
    "--alpha", type=float, help="Level of the tests; the one in the file's [analysis], or 0.05."
)
@click.option(
    "--adjust",
    type=click.Choice(PROCEDURES),
    help="How p is adjusted for all outcomes, axes and groups: holm keeps the chance of any false "
    "finding; bh, by and e-bh the share of false ones. The one in the file's [analysis], or holm.",
)
@click.option(
    "--config",
    type=click.Path(),
    metavar="FILE",
    help="Judge by the [analysis], [[band]] and [contrasts] tables of this TOML file.",
)
@outcome_options
@format_option()
def flips(
    spans: str,
    reference: str | None,
    alpha: float | None,
    adjust: Procedure | None,
    config: str | None,
    rules_file: str | None,
    rules: tuple[str, ...],
    form: str,
) -> int:
    """Flip rates of every condition and outcome in SPANS against the floor.

    A swap is above the floor if its answers differ from the reference's by more than repeated
    runs do (exact tests within cases, adjusted for all swaps and outcomes), and if it moves them
    farther than every control. Ends with 1 if one is.
    """
    judgement = None if config is None else read_judgement(config)
    analysis = AnalysisOptions() if config is None else read_analysis(Section.read(config))
    with open_store(spans, outcomes=given_rules(rules_file, rules)) as store:
        tell_problems(store)
        found = flip_report(
            store,
            reference=reference,
            alpha=analysis.alpha if alpha is None else alpha,
            judgement=judgement,
            procedure=adjust or analysis.adjust,
        )
    print_flips(found, form)
    return FINDING if found.findings else 0


def print_flips(found: FlipReport, form: str) -> None:
    """Print the rows, and on stderr what they come to."""
    whole = found.table()
    shown = _for_people(whole) if form == "table" else whole
    print_table(shown, form)
    for line in told(found):
        note(line)


def told(found: FlipReport) -> list[str]:
    """What the comparisons come to, in sentences."""
    if found.reason is not None:
        return [found.reason]
    swaps = [row for row in found.rows if not row.is_control]
    mute = sum(row.verdict == "inconclusive" for row in swaps)
    lines = [
        f"{len(found.findings)} of {len(swaps)} comparisons with {found.reference!r} are above "
        f"the floor at {found.alpha:g}" + (f"; {mute} cannot be judged" if mute else "")
    ]
    family = told_of_family(found.rows, found.procedure, found.alpha)
    lines += [] if family is None else [family]
    lines += told_reasons(row.reason for row in found.rows)
    beaten = [row for row in swaps if row.p_controls is not None]
    if beaten and not found.findings:
        nearest = min(beaten, key=lambda row: row.p_controls or 0.0)
        lines.append(
            f"nearest to clearing every control: {nearest.condition} on {nearest.action}, "
            f"p {nearest.p_controls:.3g} against {nearest.hardest_control}"
        )
    return [*lines, *found.warnings]


def _for_people(table: Table) -> Table:
    """The columns that a terminal has room for; counts where a row has nothing else to show."""
    counts = ("flips", "cells") if None in table.column("flip_rate") else ()
    names = [
        name
        for name in ("model", "arm", *SHOWN[:2], *counts, *SHOWN[2:], "family", "n_in_band", "wcfr")
        if name in SHOWN or name in counts or len(set(table.column(name))) > 1
    ]
    places = [table.columns.index(name) for name in names]
    return Table(
        columns=tuple(names),
        rows=tuple(tuple(row[place] for place in places) for row in table.rows),
    )
