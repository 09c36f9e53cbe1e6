"""Floors of repeated runs, and disparities against them."""

from __future__ import annotations

from collections.abc import Sequence

from twinspan.analysis.floors import POOLED, FloorRow
from twinspan.analysis.report.bars_svg import interval_bar
from twinspan.analysis.report.facts import Audit, Disparity
from twinspan.analysis.report.markup import Html, columns, data_table, join, tag
from twinspan.analysis.report.wording import NOTHING, number, percent, spoken


def audit_section(audit: Audit) -> Html:
    """How often repeated runs disagree, and what lies beyond that."""
    return tag(
        "section",
        tag("h2", "Floors and disparities", id="floors-heading"),
        tag(
            "p",
            "A floor is how often two runs of the same case disagree although nothing was "
            "changed. A difference between groups means something only beyond it.",
        ),
        _floor_table(audit),
        tag("h3", "Disparities"),
        _disparities(audit),
        id="floors",
        aria_labelledby="floors-heading",
    )


def _floor_table(audit: Audit) -> Html:
    rows = audit.floors.items
    end = max((row.ci_high or row.floor or 0.0 for row in rows), default=0.0) or 1.0
    return data_table(
        "Instability floors with their 95% intervals for cases like these",
        columns(
            "outcome",
            "#floor",
            "interval",
            "bar and interval",
            "#disagree",
            "#compared",
            "#cases",
            "#kappa",
        ),
        [_floor_row(row, end) for row in rows],
        total=audit.floors.total,
    )


def _floor_row(row: FloorRow, end: float) -> Sequence[object]:
    between = _between(row.ci_low, row.ci_high)
    told = f"{percent(row.floor)}, interval {between}"
    name = tag("b", "all outcomes pooled") if row.action == POOLED else row.action
    return (
        name,
        percent(row.floor),
        between,
        interval_bar(row.floor, row.ci_low, row.ci_high, start=0.0, end=end, told=told),
        f"{row.flips:,}",
        f"{row.cells:,}",
        f"{row.cases:,}",
        number(row.kappa, 2),
    )


def _between(low: float | None, high: float | None) -> str:
    return NOTHING if low is None or high is None else f"{percent(low)} to {percent(high)}"


def _disparities(audit: Audit) -> Html:
    if audit.reason is not None:
        return tag("p", f"Not computed: {audit.reason}.")
    found = audit.disparities.items
    ends = [end for each in found for end in (each.excess, each.ci_low, each.ci_high)]
    known = [end for end in ends if end is not None]
    start, end = min([*known, 0.0]), max([*known, 0.0])
    return join(
        tag(
            "p",
            "Flip rate is how often answers differ across the conditions, own noise how often "
            f"within them; the excess is what is left. Reference: {audit.reference}.",
        ),
        data_table(
            "Conditions against the reference, largest excess first",
            columns(
                "condition",
                "outcome",
                "model",
                "#flip rate",
                "#own noise",
                "#excess",
                "bar and interval",
                "#p",
                "#p adjusted",
                "#cases",
            ),
            [_disparity_row(each, start, end) for each in found],
            total=audit.disparities.total,
        ),
    )


def _disparity_row(each: Disparity, start: float, end: float) -> Sequence[object]:
    over = each.p_adjusted is not None and each.p_adjusted <= 0.05
    told = f"{percent(each.excess)}, interval {_between(each.ci_low, each.ci_high)}"
    bar = interval_bar(
        each.excess,
        each.ci_low,
        each.ci_high,
        start=start,
        end=end,
        told=told,
        look="over" if over else "",
    )
    return (
        each.condition,
        each.action,
        each.model or NOTHING,
        percent(each.flip_rate),
        percent(each.floor),
        percent(each.excess),
        spoken(each.reason) if each.reason else bar,
        number(each.p_value),
        number(each.p_adjusted),
        f"{each.cases:,}",
    )
