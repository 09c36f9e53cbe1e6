"""Rates of pairs: what is counted, what is not, and why."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.analysis.bands import Band
from twinspan.analysis.pair_statistics import (
    FLIP_RATE,
    SIGNED_FLIP_RATE,
    ordinal_difference,
    signed_flip_value,
)
from twinspan.analysis.pairs import Pair, by_case
from twinspan.analysis.rates import (
    Rate,
    action_level_disparity,
    counterfactual_flip_rate,
    mean_absolute_score_difference,
    mean_score_difference,
    positive_rate,
    wcfr_statistic,
    within_range_flip_rate,
)
from twinspan.instrumentation.errors import (
    ConfigurationError,
    InvalidMeasurement,
    UnsuitableValue,
)

T, F = True, False


def pair(case: str, ref: object, cf: object, **flags: object) -> Pair:
    return Pair(case, action_ref=ref, action_cf=cf, **flags)  # type: ignore[arg-type]


def in_band(case: str, ref: object, cf: object, straddles: bool | None = None) -> Pair:
    return pair(case, ref, cf, in_band_ref=T, in_band_cf=T, straddles_threshold=straddles)


def test_vector_01_the_flip_rate_is_the_share_of_unequal_pairs() -> None:
    pairs = [pair("a", T, T), pair("b", T, F), pair("c", F, F), pair("d", F, T)]
    assert counterfactual_flip_rate(pairs).value == 0.5


def test_vector_01_no_pair_has_no_flip_rate_and_says_why() -> None:
    rate = counterfactual_flip_rate([])
    assert (rate.value, rate.reason) == (None, "nothing_to_compare")


def test_vector_02_the_mean_absolute_score_difference() -> None:
    scores = [(80, 70), (50, 50), (20, 35)]
    pairs = [Pair(f"v{n}", score_ref=a, score_cf=b) for n, (a, b) in enumerate(scores)]
    assert mean_absolute_score_difference(pairs).value == pytest.approx(25 / 3)
    assert mean_score_difference(pairs).value == pytest.approx(5 / 3)


def test_vector_03_positive_rates_and_their_difference() -> None:
    found = action_level_disparity([T, T, T, F], [T, F, F, F])
    assert (found.first.value, found.second.value, found.value) == (0.75, 0.25, 0.5)


def test_vector_20_the_headline_counts_in_band_pairs_of_straddling_bands() -> None:
    pairs = [
        in_band("v1", T, F, straddles=True),
        in_band("v2", T, T, straddles=False),
        pair("v3", F, T, in_band_ref=T, in_band_cf=F),
    ]
    found = within_range_flip_rate(pairs, []).as_dict()
    assert found["n_in_band"] == 2
    assert found["n_flips_in_band"] == 1
    assert found["n_excluded_out_of_band"] == 1
    assert found["wcfr_all_in_band"] == 0.5
    assert found["wcfr"] == 1.0
    assert counterfactual_flip_rate(pairs).value == pytest.approx(2 / 3)


def test_vector_21_a_pair_out_of_band_leaves_nothing_to_divide_by() -> None:
    found = within_range_flip_rate([pair("v", T, F, in_band_ref=F, in_band_cf=T)], [])
    assert (found.value, found.n_in_band, found.reason) == (None, 0, "no_in_band_pair")


def test_vector_22_a_missing_straddle_flag_makes_the_count_unknown() -> None:
    found = within_range_flip_rate([in_band(f"v{n}", T, T) for n in range(10)], [])
    assert found.n_band_straddling is None
    assert found.reason == "straddles_threshold_missing"


def test_vector_23_a_flip_in_a_band_without_room_for_one_is_a_contradiction() -> None:
    found = within_range_flip_rate([in_band("v", T, F, straddles=False)], [])
    assert (found.n_straddle_contradictions, found.value, found.all_in_band) == (1, None, 1.0)


def test_vector_24_bands_have_to_be_stated() -> None:
    with pytest.raises(TypeError, match="explicit bands"):
        within_range_flip_rate([])
    assert within_range_flip_rate([], []).ground_truth is False


def test_vector_25_an_author_derived_band_gives_a_number_that_is_provisional() -> None:
    band = Band(sub_action="triage.esi_acuity", acceptable={2, 3})
    found = within_range_flip_rate([in_band("v", T, F, straddles=True)], [band]).as_dict()
    assert (found["wcfr"], found["ground_truth"], found["n_provisional_bands"]) == (1.0, False, 1)
    assert "1 of 1 bands are unadjudicated" in str(found["provenance_note"])


def test_vector_26_without_straddle_flags_there_is_no_headline() -> None:
    pairs = [
        in_band("v1", T, F),
        in_band("v2", T, T),
        pair("v3", F, T, in_band_ref=T, in_band_cf=F),
    ]
    band = Band(sub_action="triage.esi_acuity", acceptable={2, 3}, provenance="author-derived")
    found = within_range_flip_rate(pairs, [band]).as_dict()
    assert counterfactual_flip_rate(pairs).value == pytest.approx(0.667, abs=5e-4)
    assert found["wcfr"] is None
    assert (found["wcfr_all_in_band"], found["n_in_band"]) == (0.5, 2)
    assert found["n_excluded_out_of_band"] == 1


def test_vector_53_signed_flips_cancel_where_the_flip_rate_does_not() -> None:
    up, down = pair("a", F, T), pair("b", T, F)
    assert [signed_flip_value(each) for each in (up, down, Pair("c"))] == [1, -1, None]
    assert (SIGNED_FLIP_RATE([up, down]), FLIP_RATE([up, down])) == (0.0, 1.0)


def test_an_unknown_flag_is_counted_as_unknown_and_not_as_out_of_band() -> None:
    found = within_range_flip_rate([pair("v", T, F, in_band_ref=T)], [])
    assert (found.n_unknown_band, found.n_excluded_out_of_band) == (1, 0)


def test_a_rate_tells_how_many_pairs_were_missing_an_action() -> None:
    found = counterfactual_flip_rate([pair("a", T, F), pair("b", None, T), Pair("c")])
    assert (found.count, found.total, found.n_missing) == (1, 1, 2)


def test_disputed_values_are_out_of_band_and_shown_apart() -> None:
    pairs = [
        in_band("a", T, T, straddles=True),
        pair("b", T, F, in_band_ref=T, in_band_cf=F, disputed=True),
    ]
    found = within_range_flip_rate(pairs, [])
    assert (found.n_disputed, found.n_flips_disputed) == (1, 1)
    assert (found.all_in_band, found.all_if_disputed_counted) == (0.0, 0.5)


def test_a_rate_near_the_ends_of_its_scale_or_of_few_is_marked() -> None:
    assert Rate(count=0, total=100, n_missing=0).cautions == ("near_floor",)
    assert Rate(count=99, total=100, n_missing=0).cautions == ("near_ceiling",)
    assert Rate(count=5, total=9, n_missing=0).cautions == ("small_cell",)


def test_the_truth_of_a_text_is_not_guessed() -> None:
    with pytest.raises(UnsuitableValue, match="'yes'"):
        positive_rate(["yes"])
    with pytest.raises(UnsuitableValue):
        signed_flip_value(pair("a", 2, 3))
    with pytest.raises(UnsuitableValue):
        ordinal_difference(pair("a", "low", "high"))


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_a_score_that_is_no_number_is_refused(score: float) -> None:
    with pytest.raises(InvalidMeasurement):
        Pair("v", score_ref=score)


def test_a_pair_is_read_under_both_names_and_refused_with_an_unknown_field() -> None:
    assert Pair.from_mapping({"vignette_id": "v", "action_ref": T}).case_id == "v"
    assert Pair.from_mapping(Pair("v", action_ref=T).as_dict()) == Pair("v", action_ref=T)
    with pytest.raises(ConfigurationError, match="acton"):
        Pair.from_mapping({"case_id": "v", "acton_ref": T})


flags = st.sampled_from([None, True, False])
pairs_of_any_kind = st.lists(
    st.builds(
        Pair,
        st.sampled_from("abc"),
        action_ref=flags,
        action_cf=flags,
        in_band_ref=flags,
        in_band_cf=flags,
        straddles_threshold=flags,
        disputed=st.booleans(),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(pairs_of_any_kind)
def test_every_pair_is_counted_exactly_once(pairs: list[Pair]) -> None:
    found = within_range_flip_rate(pairs, [])
    counted = found.n_in_band + found.n_excluded_out_of_band + found.n_unknown_band
    assert counted + found.n_missing == len(pairs)


@settings(deadline=None)
@given(pairs_of_any_kind)
def test_the_headline_is_a_rate_and_the_same_as_its_statistic(pairs: list[Pair]) -> None:
    found = within_range_flip_rate(pairs, [])
    assert found.value is None or 0.0 <= found.value <= 1.0
    assert found.value == wcfr_statistic(pairs)


@settings(deadline=None)
@given(pairs_of_any_kind)
def test_swapping_the_sides_leaves_every_rate_of_flips_as_it_is(pairs: list[Pair]) -> None:
    swapped = [each.swapped() for each in pairs]
    assert within_range_flip_rate(swapped, []) == within_range_flip_rate(pairs, [])
    signed = SIGNED_FLIP_RATE(pairs)
    assert SIGNED_FLIP_RATE(swapped) == (None if signed is None else -signed)


@settings(deadline=None)
@given(pairs_of_any_kind)
def test_grouping_by_case_loses_nothing(pairs: list[Pair]) -> None:
    grouped = by_case(pairs)
    assert sum(map(len, grouped.values())) == len(pairs)
    assert list(grouped) == list(dict.fromkeys(each.case_id for each in pairs))
