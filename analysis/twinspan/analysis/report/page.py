"""The page: one file, no network, no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from string import Template
from typing import NamedTuple

from twinspan.analysis.report.audit_section import audit_section
from twinspan.analysis.report.closing_sections import (
    check_section,
    coverage_section,
    limits_section,
    runs_section,
)
from twinspan.analysis.report.facts import Report
from twinspan.analysis.report.markup import Html, listed, tag
from twinspan.analysis.report.run_section import run_section
from twinspan.analysis.report.verdict_section import verdict_section
from twinspan.analysis.report.wording import many, short_id


class Section(NamedTuple):
    """A part of the page: its anchor, its name in the contents, and what is in it."""

    anchor: str
    name: str
    body: Html


def render_html(report: Report) -> str:
    """The report as one HTML file.

    It loads nothing and runs nothing; a content security policy within it says so to the
    browser, which makes markup that somebody planted in a name inert even if it got through.
    """
    sections = list(_sections(report))
    style = _resource("style.css")
    return Template(_resource("page.html")).substitute(
        title=tag("x", f"{report.headline} \u2013 twinspan")[3:-4],
        style=style,
        style_hash=_hash(style),
        header=_header(report, sections),
        main=tag("main", *(section.body for section in sections), id="main"),
        footer=_footer(report),
    )


def _sections(report: Report) -> Iterator[Section]:
    yield Section("verdict", "Verdict", verdict_section(report))
    for place, story in enumerate(report.stories.items):
        name = f"Run {short_id(story.row.run_id)}"
        yield Section(f"run-{place}", name, run_section(story, f"run-{place}", report.jaeger))
    if report.audit is not None:
        yield Section("floors", "Floors and disparities", audit_section(report.audit))
    if report.coverage.total:
        yield Section(
            "coverage",
            "Coverage",
            coverage_section(
                report.coverage, audited=report.audit is not None and report.audit.reason is None
            ),
        )
    yield Section("runs", "Runs and record", runs_section(report))
    yield Section("limits", "What this does not say", limits_section(report.limits))
    yield Section("check", "Check it yourself", check_section(report))


def _header(report: Report, sections: Sequence[Section]) -> Html:
    counts = report.counts
    period = "" if counts.first is None else f", recorded {_period(counts.first, counts.last)}"
    links = [tag("a", section.name, href=f"#{section.anchor}") for section in sections]
    return tag(
        "header",
        tag("h1", "twinspan report"),
        tag("p", tag("code", report.source), f": {many(counts.runs, 'run')}{period}"),
        tag("nav", listed(links), aria_label="Contents"),
    )


def _period(first: str, last: str | None) -> str:
    """To the minute; the zone is UTC."""
    start, end = first[:16].replace("T", " "), (last or first)[:16].replace("T", " ")
    return f"{start} UTC" if start == end else f"{start} to {end} UTC"


def _footer(report: Report) -> Html:
    return tag(
        "footer",
        tag(
            "p",
            f"Made by twinspan {report.version} from the recorded spans alone. This file is "
            "self-contained: it loads nothing and runs no script.",
        ),
    )


def _resource(name: str) -> str:
    return files("twinspan.analysis.report").joinpath(name).read_text(encoding="utf-8")


def _hash(style: str) -> str:
    """The style sheet's hash, as a content security policy names it."""
    digest = hashlib.sha256(style.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
