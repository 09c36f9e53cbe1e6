"""What an audit's file adds to its flips: bands, and contrasts that can be defended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Final

from twinspan.analysis.adjudicators import NOBODY, AdjudicatorRegistry
from twinspan.analysis.audit_gate import outcome_rules
from twinspan.analysis.bands import Band, membership_or_unknown
from twinspan.analysis.contrast_options import read_contrasts
from twinspan.analysis.contrasts import ContrastRegistry, classify_contrast
from twinspan.analysis.flip_rows import FlipRow
from twinspan.analysis.flip_verdicts import DEFENSIBLE, WITHOUT_A_RATE
from twinspan.analysis.gate_options import read_bands, read_registry
from twinspan.analysis.inference.excess import excess_over_floor
from twinspan.analysis.outcomes import OutcomeRule
from twinspan.analysis.pairing import pair_trajectories
from twinspan.analysis.rates import within_range_flip_rate
from twinspan.analysis.recorded_trajectories import recorded_trajectories
from twinspan.analysis.store import Store
from twinspan.instrumentation.audit.config_section import Section
from twinspan.instrumentation.audit.trajectories import Trajectory

SIGNS: Final[Mapping[str, int]] = {
    "more": 1,
    "longer": 1,
    "higher": 1,
    "less": -1,
    "fewer": -1,
    "shorter": -1,
    "lower": -1,
}
"""Directions that a shift's sign can be held against; others are not told from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What flips are judged by beside the floor and the controls.

    Attributes:
        bands: acceptable actions by field and case.
        registry: who may vouch for bands and contrasts.
        contrasts: differences that can be defended; None for none.
    """

    bands: Mapping[tuple[str, str], Band] = field(default_factory=dict[tuple[str, str], Band])
    registry: AdjudicatorRegistry = NOBODY
    contrasts: ContrastRegistry | None = None


def read_judgement(file: str | PathLike[str]) -> Judgement:
    """Bands, adjudicators and contrasts of an audit's file, as far as it has any.

    Raises:
        ConfigurationError: the file cannot be read, or something in it has no meaning.
    """
    root = Section.read(file)
    registry = read_registry(root)
    return Judgement(
        bands=read_bands(root, registry), registry=registry, contrasts=read_contrasts(root)
    )


def judge(store: Store, rows: Sequence[FlipRow], judgement: Judgement) -> list[FlipRow]:
    """The rows with their within-band rates and the family of their contrast.

    A disparity in a registered direction is described and no longer a finding.
    """
    rules = {rule.name: rule for rule in outcome_rules(store)}
    told = [_in_family(row, rules.get(row.action), judgement) for row in rows]
    return _with_bands(store, told, rules, judgement) if judgement.bands else told


def _in_family(row: FlipRow, rule: OutcomeRule | None, judgement: Judgement) -> FlipRow:
    registry = judgement.contrasts
    if registry is None or rule is None or row.axis is None or row.is_control:
        return row
    pair = registry.find(row.axis, rule.field)
    found = classify_contrast(
        row.axis,
        rule.field,
        None if pair is None else _direction(row.shift, pair.direction),
        registry=registry,
        adjudicators=judgement.registry,
    )
    told = replace(row, family=found.family)
    if row.is_finding and found.family == "descriptive":
        return replace(told, verdict="descriptive", reason=DEFENSIBLE)
    return told


def _direction(shift: float | None, registered: str) -> str | None:
    """The registered direction, or another word where the shift goes the other way.

    >>> _direction(-0.2, "shorter"), _direction(0.2, "shorter"), _direction(0.2, "away_from_nsaid")
    ('shorter', 'opposite', None)
    """
    sign = SIGNS.get(registered)
    if sign is None or not shift:
        return None
    return registered if shift * sign > 0 else "opposite"


def _with_bands(
    store: Store, rows: Sequence[FlipRow], rules: Mapping[str, OutcomeRule], judgement: Judgement
) -> list[FlipRow]:
    runs = recorded_trajectories(store)
    told: list[FlipRow] = []
    for row in rows:
        rule = rules.get(row.action)
        place = "" if rule is None else f"{rule.step}.{rule.field}"
        bands = {case: band for (where, case), band in judgement.bands.items() if where == place}
        if rule is None or not bands:
            told.append(row)
            continue
        of_row = [r for r in runs if r.model == row.model and r.details.get("arm") == row.arm]
        reference = _memberships(of_row, row.reference, rule, bands)
        other = _memberships(of_row, row.condition, rule, bands)
        pairs = pair_trajectories(
            of_row,
            rule,
            reference=row.reference,
            counterfactual=row.condition,
            bands=bands,
        ).pairs
        rate = within_range_flip_rate(pairs, list(bands.values()), registry=judgement.registry)
        counted = replace(
            row,
            n_in_band=rate.n_in_band,
            n_band_straddling=rate.n_band_straddling,
            ground_truth=rate.ground_truth,
        )
        if row.reason in WITHOUT_A_RATE:
            told.append(counted)
            continue
        told.append(
            replace(
                counted,
                in_band_reference=_share(reference),
                in_band=_share(other),
                p_in_band=excess_over_floor(reference, other).p_value,
                wcfr=rate.value,
                wcfr_all_in_band=rate.all_in_band,
            )
        )
    return told


def _memberships(
    runs: Sequence[Trajectory], condition: str, rule: OutcomeRule, bands: Mapping[str, Band]
) -> dict[str, list[object]]:
    """Whether each answer of a condition is acceptable, by case; None where it is not known."""
    found: dict[str, list[object]] = {}
    for run in runs:
        if run.condition_id == condition and run.case_id in bands:
            place = membership_or_unknown(bands[run.case_id], run.get(rule.step, rule.field))
            found.setdefault(run.case_id, []).append(None if place == "unknown" else place == "in")
    return found


def _share(memberships: Mapping[str, Sequence[object]]) -> float | None:
    known = [each is True for told in memberships.values() for each in told if each is not None]
    return sum(known) / len(known) if known else None
