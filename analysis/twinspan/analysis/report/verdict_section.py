"""First of all, the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from twinspan.analysis.report.facts import Counts, Report
from twinspan.analysis.report.markup import Html, listed, tag

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
        *(_control_tiles(counts) if counts.probe_sets or counts.decisions else ()),
        ("Runs", f"{counts.runs:,}"),
        ("Node executions", f"{counts.executions:,}"),
        ("Node runs made by probes", _calls(counts)),
        ("Spans read", f"{counts.spans:,}"),
    ]
    tiles = [tag("div", tag("dt", name), tag("dd", value)) for name, value in told]
    return tag("dl", *tiles, class_="tiles", aria_label="How much was recorded")


def _calls(counts: Counts) -> str:
    """Probe sets that do not say what they cost cost something all the same."""
    if not counts.probe_sets:
        return "none"
    return f"{counts.calls:,}" if counts.calls else "not told"


def _control_tiles(counts: Counts) -> Iterator[tuple[str, str]]:
    yield "Payloads stopped", f"{counts.enforced:,}"
    shadow = counts.breaches - counts.enforced
    if shadow:
        yield "Told only, in shadow mode", f"{shadow:,}"
    yield "Reactions beyond the floor", f"{counts.above_floor:,} of {counts.scored:,}"
    if counts.interventions:
        yield "Repairs cleared", f"{counts.cleared:,} of {counts.interventions:,}"
