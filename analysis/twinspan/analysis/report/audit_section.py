"""Floors of repeated runs, and disparities against them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from twinspan.analysis.flip_family import KEEPS, NAMES
from twinspan.analysis.flip_rows import FlipRow
from twinspan.analysis.flip_verdicts import MEANINGS
from twinspan.analysis.floors import POOLED, FloorRow
from twinspan.analysis.report.bars_svg import interval_bar
from twinspan.analysis.report.facts import Audit
from twinspan.analysis.report.markup import Html, columns, data_table, join, listed, tag
from twinspan.analysis.report.path_section import gate_part, paths_part
from twinspan.analysis.report.pieces import chip, identifier
from twinspan.analysis.report.wording import NOTHING, number, percent, spoken

MOST_SHOWN: Final = 60
"""Disparities that the table shows; the verdict in words counts all of them."""


def audit_section(audit: Audit) -> Html:
    """How often repeated runs disagree, what lies beyond that, and what becomes of it."""
    return tag(
        "section",
        tag("h2", "Floors and disparities", id="floors-heading"),
        tag(
            "p",
            "A floor is how often two runs of the same case disagree although nothing was "
            "changed. A difference between groups means something only beyond it.",
        ),
        _plans(audit),
        _floor_table(audit),
        tag("h3", "Disparities"),
        _disparities(audit),
        gate_part(audit),
        paths_part(audit),
        id="floors",
        aria_labelledby="floors-heading",
    )


def _plans(audit: Audit) -> Html | None:
    """The sealed plans, one sentence each."""
    return listed(
        [
            join(
                f"Audit {plan.name}: {plan.observed_runs:,} of {plan.expected_runs or 0:,} planned "
                "runs are recorded; its plan was "
                f"{'sealed before' if plan.sealed_before_results else 'not sealed before'} the "
                "first run as ",
                identifier(plan.plan_hash),
            )
            for plan in audit.plans
        ]
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
        spoken(row.reason)
        if row.reason is not None
        else interval_bar(row.floor, row.ci_low, row.ci_high, start=0.0, end=end, told=told),
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
    found = audit.disparities.items[:MOST_SHOWN]
    ends = [end for each in found for end in (each.excess, each.ci_low, each.ci_high)]
    known = [end for end in ends if end is not None]
    start, end = min([*known, 0.0]), max([*known, 0.0])
    reasons = dict.fromkeys(each.reason for each in found)
    models = list(dict.fromkeys(each.model for each in found))
    several = len(models) > 1
    model = f" Model: {models[0]}." if len(models) == 1 and models[0] else ""
    return join(
        tag(
            "p",
            "Flip rate is how often answers differ across the conditions, own noise how often "
            f"within them; the excess is what is left. Reference: {audit.reference}.{model} A swap "
            f"is above the floor if its p, adjusted by {NAMES[audit.procedure]} for all swaps and "
            f"outcomes, is at most {audit.alpha:g}, and if it moves answers farther than every "
            f"control. So {KEEPS[audit.procedure].format(alpha=audit.alpha)}.",
        ),
        data_table(
            "Conditions against the reference, the clearest first, controls last",
            columns(
                "condition",
                "outcome",
                "verdict",
                *(["model"] if several else []),
                "#flip rate",
                "#own noise",
                "#excess",
                "bar and interval",
                "#p adjusted",
                "#p controls",
                "#cases",
            ),
            [_disparity_row(each, start, end, several=several) for each in found],
            total=audit.disparities.total,
        ),
        listed(
            [join(chip(reason), " ", MEANINGS[reason]) for reason in reasons if reason in MEANINGS]
        ),
    )


def _disparity_row(row: FlipRow, start: float, end: float, *, several: bool) -> Sequence[object]:
    told = f"{percent(row.excess)}, interval {_between(row.ci_low, row.ci_high)}"
    bar = interval_bar(
        row.excess,
        row.ci_low,
        row.ci_high,
        start=start,
        end=end,
        told=told,
        look="over" if row.is_finding else "",
    )
    arm = "" if row.arm is None else f" ({row.arm})"
    return (
        f"{row.condition}{arm}",
        row.action,
        chip(row.verdict),
        *([row.model or NOTHING] if several else []),
        percent(row.flip_rate),
        percent(row.floor),
        percent(row.excess),
        spoken(row.reason) if row.excess is None else bar,
        number(row.p_adjusted),
        number(row.p_controls),
        f"{row.cases:,}",
    )
