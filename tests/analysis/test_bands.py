"""Bands: sets and ranges apart, provenance, and what counts as ground truth."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.analysis.adjudicators import Adjudicator, AdjudicatorRegistry
from twinspan.analysis.bands import (
    PROVENANCE,
    Band,
    Between,
    OneOf,
    acceptable,
    as_acceptable_map,
    band_straddles,
    ground_truth,
    in_band,
    rater_counts,
    unadjudicated,
)
from twinspan.instrumentation.errors import ConfigurationError, UnsuitableValue

ATTESTED = Adjudicator(pseudonym="er-1", specialty="Emergency Medicine", attestation_on_file=True)
REGISTRY = AdjudicatorRegistry(
    adjudicators=(
        ATTESTED,
        Adjudicator(pseudonym="adjudicator-01", specialty="geriatrics", jurisdiction="Australia"),
        Adjudicator(pseudonym="eye-1", specialty="ophthalmology", attestation_on_file=True),
    )
)


def adjudicated(*names: str, sub_action: str = "triage.esi_acuity") -> Band:
    return Band(
        sub_action=sub_action,
        acceptable={2, 3},
        provenance="clinician-adjudicated",
        adjudicated_by=names,
        registry=REGISTRY,
    )


def test_vector_14_a_set_lists_its_members() -> None:
    assert in_band(2, {1, 2, 3}) is True
    assert in_band(5, {1, 2, 3}) is False


@pytest.mark.parametrize("pair", [(1, 5), [1, 5], (0.5, 2)])
def test_vector_15_a_pair_that_looks_like_a_range_is_refused_with_both_ways_to_write_it(
    pair: tuple[float, float],
) -> None:
    with pytest.raises(ConfigurationError, match=r'write \{.*\} for the two, or \{"min": .*\}'):
        in_band(3, pair)


@pytest.mark.parametrize("values", [(5, 1), ("ward", "icu"), (1, 3, 5), (True, False)])
def test_vector_15_tuples_that_cannot_be_ranges_are_sets(values: tuple[object, ...]) -> None:
    assert acceptable(values) == OneOf(values)


def test_vector_16_a_range_is_written_with_its_ends_or_as_a_range() -> None:
    assert in_band(3, {"min": 1, "max": 5}) is True
    assert in_band(6, {"min": 1, "max": 5}) is False
    assert in_band(2, range(1, 4)) is True


def test_vector_17_the_unknown_is_unknown() -> None:
    assert in_band(None, {1, 2}) is None
    assert in_band(2, None) is None
    assert in_band(True, None) is None


def test_vector_18_a_yes_or_no_is_not_held_against_grades() -> None:
    with pytest.raises(TypeError, match="bool"):
        in_band(True, {1, 2})
    with pytest.raises(TypeError, match="bool"):
        in_band(1, {True})
    assert in_band(True, {True}) is True


def test_vector_19_a_band_straddles_if_it_allows_both_sides() -> None:
    assert band_straddles({2, 3}, lambda grade: grade <= 2) is True
    assert band_straddles({1, 2}, lambda grade: grade <= 2) is False
    assert band_straddles({"min": 1, "max": 30}, lambda days: days <= 14) is True
    assert band_straddles(None, lambda days: days <= 14) is None
    assert band_straddles({1, 2}, None) is None


def test_a_range_between_halves_does_not_ask_about_numbers_outside_it() -> None:
    assert band_straddles({"min": 1.5, "max": 2.5}, lambda grade: grade <= 1) is False
    assert list(Between(1.5, 2.5).each()) == [1.5, 2, 2.5]
    assert list(Between(2, 2).each()) == [2]
    assert list(Between(2.2, 2.8).each()) == [2.2, 2.8]
    assert list(Between(2.5, 2.5).each()) == [2.5]


@pytest.mark.parametrize(
    "wrong",
    [{}, {"min": 1}, {"min": 5, "max": 1}, {"min": 1, "max": None}, {"min": 1, "max": 5, "by": 1}],
)
def test_a_mapping_that_is_no_range_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        acceptable(wrong)


@pytest.mark.parametrize("wrong", ["123", 3, [[1]], {"min": "a", "max": "b"}])
def test_what_cannot_be_a_band_is_refused(wrong: object) -> None:
    with pytest.raises(UnsuitableValue):
        acceptable(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [set(), {1, False}, {"min": 0, "max": float("inf")}])
def test_what_accepts_nothing_or_everything_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigurationError):
        acceptable(wrong)  # type: ignore[arg-type]


def test_a_text_against_a_range_is_an_error_of_ours() -> None:
    with pytest.raises(UnsuitableValue, match="a range is of numbers"):
        in_band("two", {"min": 1, "max": 5})


@settings(deadline=None)
@given(st.integers(-50, 50), st.integers(-20, 20), st.integers(0, 20))
def test_a_range_and_the_set_of_its_numbers_hold_the_same(value: int, low: int, width: int) -> None:
    as_range = in_band(value, {"min": low, "max": low + width})
    assert as_range == in_band(value, set(range(low, low + width + 1)))


@settings(deadline=None)
@given(st.sets(st.integers(0, 9), min_size=1), st.integers(0, 9))
def test_a_band_straddles_a_cut_exactly_if_it_has_values_on_both_sides(
    values: set[int], cut: int
) -> None:
    expected = min(values) <= cut < max(values)
    assert band_straddles(values, lambda value: value <= cut) is expected


def test_vector_63_a_band_without_its_ground_is_refused() -> None:
    with pytest.raises(ValueError, match="without a source"):
        Band(sub_action="a", acceptable={1}, provenance="guideline-derived")
    with pytest.raises(ValueError, match="by nobody"):
        Band(sub_action="a", acceptable={1}, provenance="clinician-adjudicated")
    with pytest.raises(ValueError, match="'vibes'"):
        Band(sub_action="a", acceptable={1}, provenance="vibes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no attestation on file"):
        adjudicated("adjudicator-01")
    with pytest.raises(ValueError, match="not a registered adjudicator"):
        Band(
            sub_action="a",
            acceptable={1},
            provenance="clinician-adjudicated",
            adjudicated_by=["adjudicator-01"],
        )


def test_vector_63_every_adjudicator_who_cannot_be_named_is_listed() -> None:
    with pytest.raises(ValueError, match=r"'adjudicator-01' has no .*; 'nobody' is not"):
        adjudicated("adjudicator-01", "er-1", "nobody")


def test_vector_64_an_attested_adjudicator_makes_a_band_acceptable() -> None:
    band = adjudicated("er-1")
    assert (band.n_raters, band.is_adjudicated) == (1, True)
    assert ground_truth([band], REGISTRY).holds is True


def test_a_band_cannot_be_changed() -> None:
    band = Band(sub_action="a", acceptable=[1, 2, 3], adjudicated_by=["x"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        band.provenance = "clinician-adjudicated"  # type: ignore[misc]
    assert isinstance(band.adjudicated_by, tuple)
    assert isinstance(band.acceptable, OneOf)


def test_replacing_the_provenance_runs_the_checks_again() -> None:
    band = Band(sub_action="a", acceptable={1}, adjudicated_by=["x"])
    with pytest.raises(ValueError, match="not a registered adjudicator"):
        dataclasses.replace(band, provenance="clinician-adjudicated")


def test_ground_truth_needs_a_registry_that_vouches_now() -> None:
    band = adjudicated("er-1")
    assert ground_truth([band]).holds is False
    withdrawn = AdjudicatorRegistry(
        adjudicators=(dataclasses.replace(ATTESTED, attestation_on_file=False),)
    )
    assert ground_truth([band], withdrawn).holds is False


def test_ground_truth_needs_one_rater_of_the_field() -> None:
    assert ground_truth([adjudicated("eye-1")], REGISTRY).holds is False
    assert ground_truth([adjudicated("eye-1", "er-1")], REGISTRY).holds is True
    assert ground_truth([adjudicated("eye-1", sub_action="glasses")], REGISTRY).holds is True


def test_one_provisional_band_makes_all_of_them_provisional() -> None:
    author = Band(sub_action="b", acceptable={1})
    found = ground_truth([adjudicated("er-1"), author], REGISTRY)
    assert (found.holds, found.n_bands, found.doubts) == (False, 2, ("b: author-derived",))


def test_summaries_of_bands() -> None:
    bands = [adjudicated("er-1"), Band(sub_action="b", acceptable={1})]
    assert unadjudicated(bands) == bands[1:]
    assert rater_counts(bands) == {0: 1, 1: 1}
    assert list(as_acceptable_map(bands)) == ["triage.esi_acuity", "b"]
    with pytest.raises(ConfigurationError, match="two bands"):
        as_acceptable_map([bands[1], bands[1]])


def test_the_vocabulary_of_provenance_is_ordered() -> None:
    assert PROVENANCE == ("author-derived", "guideline-derived", "clinician-adjudicated")


def test_vector_65_scope_is_warned_about() -> None:
    assert REGISTRY.scope_warning("emergency medicine", "esi_acuity") is None
    assert "second rater" in str(REGISTRY.scope_warning("emergency medicine", "followup_days"))
    assert REGISTRY.scope_warning(None, "esi_acuity") is not None
    assert REGISTRY.scope_warning("anything", "unheard_of") is None


@pytest.mark.parametrize(
    ("specialty", "sub_action"),
    [
        ("Paediatric Emergency Medicine", "triage.esi_acuity"),
        ("Anaesthesiology", "analgesia_tier"),
        ("Endocrinology and Diabetes", "followup_days"),
        ("Geriatrics", "referral"),
    ],
)
def test_specialties_are_recognised_by_their_beginnings(specialty: str, sub_action: str) -> None:
    assert REGISTRY.scope_warning(specialty, sub_action) is None


def test_attribution_problems_are_told_apart() -> None:
    blank = Adjudicator(pseudonym="none-1", attestation_on_file=True)
    registry = REGISTRY.registering(blank)
    problems = registry.attribution_problems([3, "  ", "x", "adjudicator-01", "none-1", "er-1"])
    assert [name for name, _ in problems] == [3, "  ", "x", "adjudicator-01", "none-1"]
    assert "no specialty" in problems[-1][1]
    assert registry.attribution_problems(None) == []


def test_registering_leaves_the_old_registry_as_it_was() -> None:
    larger = REGISTRY.registering(Adjudicator(pseudonym="new"))
    assert (REGISTRY.find("new"), larger.find("new") is not None) == (None, True)
    with pytest.raises(ConfigurationError, match="stands twice"):
        larger.registering(Adjudicator(pseudonym="new"))


def test_a_credential_line_never_names_the_person() -> None:
    line = REGISTRY.adjudicators[1].credential_line
    assert line == "geriatrics, licensed in Australia"
    assert Adjudicator(pseudonym="p").credential_line == "specialty not recorded"


def test_a_scope_report_lists_warnings_by_adjudicator() -> None:
    report = REGISTRY.scope_report({"er-1": ["esi_acuity", "followup_days"], "eye-1": []})
    assert (len(report["er-1"]), report["eye-1"]) == (1, [])
