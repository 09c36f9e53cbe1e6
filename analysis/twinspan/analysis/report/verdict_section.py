"""First of all, the verdict."""

from __future__ import annotations

from typing import Final

from twinspan.analysis.report.facts import Counts, Report
from twinspan.analysis.report.markup import Html, join, listed, tag
from twinspan.analysis.report.wording import many

_WORDS: Final = {
    "flagged": "Flagged",
    "incomplete": "Incomplete record",
    "inconclusive": "Inconclusive",
    "clear": "Clear",
}


def verdict_section(report: Report) -> Html:
    """The verdict in words, and how much it rests on."""
    banner = tag(
        "div",
        tag("p", _WORDS[report.verdict], class_="word"),
        tag("h2", report.headline, id="verdict-heading"),
        listed(report.summary),
        class_=f"verdict {report.verdict}",
    )
    problems = None
    if report.problems:
        problems = tag(
            "div",
            tag("h3", "Not read"),
            listed(report.problems),
        )
    return tag(
        "section",
        banner,
        _tiles(report.counts),
        problems,
        id="verdict",
        aria_labelledby="verdict-heading",
    )


def _tiles(counts: Counts) -> Html:
    told = [
        ("Payloads stopped", f"{counts.enforced:,}"),
        ("Nodes' reactions beyond the floor", f"{counts.above_floor:,} of {counts.scored:,}"),
        ("Repairs cleared", f"{counts.cleared:,} of {counts.interventions:,}"),
        ("Node executions", f"{counts.executions:,}"),
        ("Runs made by probes", f"{counts.calls:,}"),
        ("Spans read", f"{counts.spans:,}"),
    ]
    shadow = counts.breaches - counts.enforced
    if shadow:
        told.insert(1, ("Told only, in shadow mode", f"{shadow:,}"))
    tiles = [tag("div", tag("dt", name), tag("dd", value)) for name, value in told]
    label = f"How much was recorded in {many(counts.runs, 'run')}"
    return join(tag("dl", *tiles, class_="tiles", aria_label=label))
