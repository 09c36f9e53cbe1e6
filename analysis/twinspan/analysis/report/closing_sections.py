"""Coverage, the record, limits, and how to check all of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from twinspan.analysis.report.facts import Capped, Coverage, Remark, Report, RunRow
from twinspan.analysis.report.markup import Html, columns, data_table, join, listed, tag
from twinspan.analysis.report.pieces import chip, identifier, trace_link
from twinspan.analysis.report.wording import NOTHING, many, number, percent, spoken

_AUDITED: Final = "What the audit says of their outcomes stands under floors and disparities."


def coverage_section(coverage: Capped[Coverage], *, audited: bool = False) -> Html:
    """What was probed, and why the rest was not.

    Args:
        coverage: by node.
        audited: whether conditions were compared from outside, which tells of what was not probed.
    """
    rows = coverage.items
    unprobed = [row.node for row in rows if not row.probed]
    blind = None
    if unprobed:
        blind = tag(
            "p",
            f"Never probed: {', '.join(unprobed[:12])}"
            f"{f' and {len(unprobed) - 12} more' if len(unprobed) > 12 else ''}. "
            f"{_AUDITED if audited else 'Nothing is known about bias there.'}",
        )
    return tag(
        "section",
        tag("h2", "Coverage", id="coverage-heading"),
        tag("p", "What was looked at. A node that was not probed is not a node without bias."),
        blind,
        data_table(
            "Executions of each node by what was done with them",
            columns(
                "node",
                "graph",
                "#blast radius",
                "#executions",
                "#probed",
                "#share",
                "#screened",
                "#sampled out",
                "#no budget",
                "#exempt",
                "#not told",
                "axes",
                "#scores",
            ),
            [_coverage_row(row) for row in rows],
            total=coverage.total,
        ),
        id="coverage",
        aria_labelledby="coverage-heading",
    )


def _coverage_row(row: Coverage) -> Sequence[object]:
    counts = (row.screened, row.sampled_out, row.budget, row.exempt, row.unknown)
    return (
        row.node,
        row.graph or NOTHING,
        number(row.weight, 2),
        f"{row.executions:,}",
        f"{row.probed:,}",
        percent(row.probed / row.executions) if row.executions else NOTHING,
        *(f"{count:,}" for count in counts),
        ", ".join(row.axes) or NOTHING,
        f"{row.scored:,}",
    )


# --- the record -----------------------------------------------------------------------------------


def runs_section(report: Report) -> Html:
    """Every run, whether its record holds, and where its trace is."""
    rows = report.runs.items
    stories = report.stories
    note = None
    if stories.left_out and stories.items:
        note = tag(
            "p",
            f"{many(len(stories.items), 'run')} of {stories.total:,} told in full above, the "
            "gravest first; name others with --run.",
            class_="note",
        )
    return tag(
        "section",
        tag("h2", "Runs and their record", id="runs-heading"),
        tag(
            "p",
            "Every score, weight, network score, monitor value and decision was computed again "
            "from the raw spans, and the hash chain of the decisions was followed. A run is "
            "verified only if all agree and no span is missing.",
        ),
        note,
        data_table(
            "Runs, the gravest first",
            columns(
                "run", "graph", "verdict", "record", "#breaches", "#peak B_fast", "#peak M", "trace"
            ),
            [_run_row(row, report.jaeger) for row in rows],
            total=report.runs.total,
        ),
        *(_holes(row) for row in rows if row.check.verdict != "verified"),
        id="runs",
        aria_labelledby="runs-heading",
    )


def _run_row(row: RunRow, jaeger: str | None) -> Sequence[object]:
    return (
        identifier(row.run_id),
        row.graph or NOTHING,
        chip(row.verdict),
        _record(row),
        f"{row.breaches:,}",
        number(row.peak_fast),
        number(row.peak_monitor),
        trace_link(row.trace_id, jaeger),
    )


def _record(row: RunRow) -> Html:
    """A record that states no number is whole, which is less than verified."""
    if row.check.verdict == "verified" and not row.check.checked:
        return tag("span", "complete, no scores", class_="chip")
    return join(chip(row.check.verdict), tag("small", f" {row.check.checked:,} numbers"))


def _holes(row: RunRow) -> Html:
    check = row.check
    table = None
    if check.mismatches.total:
        table = data_table(
            "Numbers that do not follow from the raw spans",
            columns("span", "what", "recorded", "computed again"),
            [(identifier(span), *rest) for span, *rest in check.mismatches.items],
            total=check.mismatches.total,
        )
    heading = tag("h3", "Run ", row.run_id, f": {spoken(check.verdict)}")
    return join(heading, listed([*check.reasons, *_chain_breaks(row)]), table)


def _chain_breaks(row: RunRow) -> list[str]:
    return [reason for reason in row.reasons if reason not in row.check.reasons]


# --- limits and commands --------------------------------------------------------------------------


def limits_section(limits: Sequence[Remark]) -> Html:
    """What the report does not say."""
    told = [join(tag("dt", each.title), tag("dd", each.text)) for each in limits]
    return tag(
        "section",
        tag("h2", "What this does not say", id="limits-heading"),
        tag("dl", *told, class_="remarks"),
        id="limits",
        aria_labelledby="limits-heading",
    )


def check_section(report: Report) -> Html:
    """Commands that give the same numbers."""
    source = shlex.quote(report.source)
    commands = [f"twinspan verify {source}", f"twinspan trail {source}"]
    commands += [f"twinspan floor {source}"] if report.audit is not None else []
    commands += [
        f'twinspan sql {source} "SELECT * FROM decisions"',
        f"twinspan sarif {source} --out -",
    ]
    return tag(
        "section",
        tag("h2", "Check it yourself", id="check-heading"),
        tag("p", "Every number above can be computed again from the spans."),
        tag("pre", tag("code", "\n".join(commands)), tabindex=0),
        id="check",
        aria_labelledby="check-heading",
    )
