"""What becomes of disparities along a trajectory, and which outcomes may be ranked."""

from __future__ import annotations

from collections.abc import Iterator

from twinspan.analysis.report.facts import Audit
from twinspan.analysis.report.markup import Html, columns, data_table, join, tag
from twinspan.analysis.report.pieces import chip
from twinspan.analysis.report.wording import NOTHING, number, percent, spoken


def gate_part(audit: Audit) -> Html | None:
    """The gate's decisions; None if nothing was judged."""
    if not audit.gate:
        return None
    return join(
        tag("h3", "Gate"),
        tag(
            "p",
            "The fairest score belongs to an agent that reads no case. An outcome is ranked by its "
            "within-band rate only if the agent is capable, decides, was given room to flip, and "
            "is stable; the first thing that is missing is named.",
        ),
        data_table(
            "Outcomes at the gate",
            columns(
                "outcome",
                "decision",
                "model",
                "#within-band rate",
                "#pairs that could flip",
                "#capability",
                "#entropy, bits",
                "#floor",
                "note",
            ),
            [
                (
                    row.action,
                    chip("eligible" if row.decision.eligible else row.decision.reason),
                    row.model or NOTHING,
                    percent(row.decision.wcfr),
                    number(row.rate.n_band_straddling),
                    number(row.capability),
                    number(row.entropy),
                    percent(row.floor),
                    row.decision.detail or row.rate.bands.note or NOTHING,
                )
                for row in audit.gate
            ],
        ),
    )


def paths_part(audit: Audit) -> Html | None:
    """Propagation, forced flips and accumulation, as far as there are any."""
    parts = [*_propagation(audit), *_forced(audit), *_accumulation(audit)]
    return join(*parts) if parts else None


def _propagation(audit: Audit) -> Iterator[Html]:
    if not audit.propagation.items:
        return
    yield tag("h3", "Propagation")
    yield tag(
        "p",
        "How often a later outcome flips where an earlier one has flipped, and where it has not, "
        "over all swaps. It is an association: a case that is hard early is often hard late too.",
    )
    yield data_table(
        "Later flips given earlier ones",
        columns(
            "earlier",
            "later",
            "model",
            "#where it flipped",
            "#where it did not",
            "#difference",
            "#re-render control",
            "#pairs",
        ),
        [
            (
                row.upstream,
                row.downstream,
                row.model or NOTHING,
                percent(row.found.given_flip.value),
                percent(row.found.given_stable.value),
                percent(row.found.value) if row.found.reason is None else spoken(row.found.reason),
                percent(row.found.baseline.value if row.found.baseline else None),
                f"{row.found.pooled.total:,}",
            )
            for row in audit.propagation.items
        ],
        total=audit.propagation.total,
    )


def _forced(audit: Audit) -> Iterator[Html]:
    if not audit.forced.items:
        return
    yield tag("h3", "Forced flips")
    yield tag(
        "p",
        "An earlier action was forced: in one arm alike for everybody, in the other otherwise for "
        "the swap. The difference of later flip rates is the effect of the earlier flip.",
    )
    yield data_table(
        "Later flips with the earlier action forced",
        columns(
            "outcome",
            "held in",
            "flipped in",
            "model",
            "#held",
            "#flipped",
            "#effect",
            "#p",
            "#cases",
        ),
        [
            (
                row.action,
                row.held,
                row.flipped,
                row.model or NOTHING,
                percent(row.found.held_arm.value),
                percent(row.found.flipped_arm.value),
                percent(row.found.value) if row.found.reason is None else row.found.reason,
                number(row.found.p_value),
                f"{row.found.paired_cases:,}",
            )
            for row in audit.forced.items
        ],
        total=audit.forced.total,
    )


def _accumulation(audit: Audit) -> Iterator[Html]:
    if not audit.accumulation.items:
        return
    yield tag("h3", "Accumulation")
    yield tag(
        "p",
        "Shifts of yes-or-no outcomes summed along the trajectory, beside what shifts of the same "
        "size and random signs would give; above 1 they reinforce each other. Up is towards yes.",
    )
    yield data_table(
        "Shifts along the trajectory",
        columns("condition", "model", "#mean sum", "#at random", "#ratio", "#p", "#cases"),
        [
            (
                row.condition,
                row.model or NOTHING,
                number(row.found.mean_abs_composite),
                number(row.found.null_mean_abs),
                number(row.found.reinforcement_ratio),
                number(row.found.p_value) if row.found.reason is None else spoken(row.found.reason),
                f"{row.found.n_cases:,}",
            )
            for row in audit.accumulation.items
        ],
        total=audit.accumulation.total,
    )
