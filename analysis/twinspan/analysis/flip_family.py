"""Many comparisons at once: the family of outcomes, axes and groups, adjusted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from twinspan.analysis.flip_rows import FlipRow
from twinspan.analysis.inference.multiplicity import adjust
from twinspan.instrumentation.audit.analysis_options import Procedure

NAMES: Final[dict[str, str]] = {
    "holm": "Holm",
    "bh": "Benjamini-Hochberg",
    "by": "Benjamini-Yekutieli",
    "e-bh": "e-BH",
}

KEEPS: Final[dict[str, str]] = {
    "holm": "the chance of any false finding is at most {alpha:g}, whatever the dependence",
    "bh": "the share of false findings is at most {alpha:g} if comparisons are independent or "
    "positively dependent; these share a reference, which 'by' and 'e-bh' allow for",
    "by": "the share of false findings is at most {alpha:g} whatever the dependence, and "
    "comparisons that share a reference depend on each other",
    "e-bh": "the share of false findings is at most {alpha:g} whatever the dependence, by "
    "e-values that bet on the excess of each case",
}
"""What each procedure promises, and why one would take it."""


def adjusted_in_families(rows: Sequence[FlipRow], procedure: Procedure) -> list[FlipRow]:
    """The rows with their p adjusted, in the same order.

    A family is everything that one model was asked in one arm: all outcomes under all swaps and
    intersections. Controls are a family of their own, since they are no findings. A comparison
    that could not be tested is in none.

    Args:
        rows: with `p_value` (`e_value` for ``e-bh``) and the smallest p that each could have had.
        procedure: which.
    """
    families: dict[tuple[object, ...], list[int]] = {}
    for place, row in enumerate(rows):
        families.setdefault((row.model, row.arm, row.is_control), []).append(place)
    told = list(rows)
    for places in families.values():
        family = [rows[place] for place in places]
        found = _adjust([_evidence(row, procedure) for row in family], procedure)
        smallest = _adjust([row.p_smallest for row in family], procedure)
        tested = sum(value is not None for value in found)
        for place, row, p, least in zip(places, family, found, smallest, strict=True):
            told[place] = replace(
                row,
                p_adjusted=p,
                # Adjusted values rise with every p: all at their smallest give the smallest.
                p_smallest=None if p is None else least,
                adjusted_by=None if p is None else procedure,
                n_tests=None if p is None else tested,
            )
    return told


def _evidence(row: FlipRow, procedure: Procedure) -> float | None:
    """The p of a comparison; for e-BH what stands for it, the inverse of its e-value."""
    if procedure != "e-bh":
        return row.p_value
    if row.e_value is None:
        return None
    return min(1.0, 1.0 / row.e_value) if row.e_value > 0 else 1.0


def _adjust(values: Sequence[float | None], procedure: Procedure) -> tuple[float | None, ...]:
    # e-BH is BH of the inverse e-values (Wang & Ramdas 2022).
    return adjust(values, procedure="bh" if procedure == "e-bh" else procedure).adjusted


def told_of_family(rows: Sequence[FlipRow], procedure: Procedure, alpha: float) -> str | None:
    """Which procedure, over what, and what it promises; None where nothing was tested."""
    tested = [row for row in rows if row.p_adjusted is not None and not row.is_control]
    if not tested:
        return None
    outcomes = len({row.action for row in tested})
    conditions = len({row.condition for row in tested})
    axes = len({row.axis for row in tested} - {None})
    families = len({(row.model, row.arm) for row in tested})
    apart = f" in each of {families} families" if families > 1 else ""
    return (
        f"p_adjusted is by {NAMES[procedure]} over {_many(len(tested), 'comparison')}{apart} "
        f"({_many(outcomes, 'outcome')}, {_many(axes, 'axis', 'axes') + ', ' if axes else ''}"
        f"{_many(conditions, 'condition')}): {KEEPS[procedure].format(alpha=alpha)}"
    )


def _many(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or one + 's'}"
