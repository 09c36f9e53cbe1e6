"""Contrast families, entropy of actions, and the gate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.analysis.adjudicators import Adjudicator, AdjudicatorRegistry
from twinspan.analysis.bands import Band
from twinspan.analysis.contrasts import (
    CLINICAL_CONTRASTS,
    ConfoundedPair,
    ContrastRegistry,
    classify_contrast,
    confounded_direction,
    is_confounded,
)
from twinspan.analysis.entropy import action_entropy, entropy_bits
from twinspan.analysis.gating import REASONS, capability_floor_gate
from twinspan.analysis.pairs import Pair
from twinspan.analysis.rates import within_range_flip_rate
from twinspan.instrumentation.errors import ConfigurationError, UnsuitableValue

# --- contrasts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("direction", "family"),
    [("shorter", "descriptive"), ("longer", "confirmatory"), (None, "indeterminate")],
)
def test_vector_54_the_direction_decides(direction: str | None, family: str) -> None:
    assert classify_contrast("lep", "followup_days", direction).family == family


@pytest.mark.parametrize(
    ("attribute", "sub_action", "direction", "reason", "has_rationale"),
    [
        ("insurance", "analgesia_tier", "less", "not_registered", True),
        ("lep", "stigmatizing_language_flags", "more", "sub_action_never_exempt", False),
        ("age", "esi_acuity", "higher", "not_registered", True),
        ("race", "esi_acuity", "lower", "not_registered", False),
    ],
)
def test_vector_55_what_is_not_registered_counts(
    attribute: str, sub_action: str, direction: str, reason: str, has_rationale: bool
) -> None:
    found = classify_contrast(attribute, sub_action, direction)
    assert (found.family, found.reason) == ("confirmatory", reason)
    assert (found.rationale is not None) is has_rationale


def test_the_contested_age_rationale_says_so() -> None:
    assert "contested" in str(classify_contrast("age", "esi_acuity", "higher").rationale)


def test_race_is_never_registered() -> None:
    assert all(pair.attribute != "race" for pair in CLINICAL_CONTRASTS.pairs)


@pytest.mark.parametrize(
    ("age", "family", "reason"),
    [
        (None, "indeterminate", "registered_pair_requires_an_age"),
        (11, "confirmatory", "outside_registered_ages"),
        (56, "confirmatory", "outside_registered_ages"),
        (12, "confirmatory", "matches_direction_that_awaits_adjudication"),
        (55, "confirmatory", "matches_direction_that_awaits_adjudication"),
    ],
)
def test_the_age_gate_is_enforced(age: int | None, family: str, reason: str) -> None:
    found = classify_contrast("sex", "orders", "more", age=age)
    assert (found.family, found.reason) == (family, reason)
    assert found.as_dict()["requires_adjudication"] is True


def test_an_adjudicated_pair_takes_effect_only_with_an_attested_adjudicator() -> None:
    signed = ContrastRegistry(
        pairs=(
            ConfoundedPair(
                attribute="age",
                sub_action="analgesia_tier",
                direction="away_from_nsaid",
                needs_adjudication=True,
                adjudicated_by=["a-1"],
            ),
        )
    )
    registry = AdjudicatorRegistry(
        adjudicators=(
            Adjudicator(pseudonym="a-1", specialty="pain medicine", attestation_on_file=True),
        )
    )
    question = ("age", "analgesia_tier", "away_from_nsaid")
    assert classify_contrast(*question, registry=signed).family == "confirmatory"
    found = classify_contrast(*question, registry=signed, adjudicators=registry)
    assert (found.family, found.requires_adjudication) == ("descriptive", False)


@settings(deadline=None)
@given(
    st.sampled_from(["lep", "sex", "age", "race", "insurance"]),
    st.sampled_from(["followup_days", "referral", "orders", "analgesia_tier", "esi_acuity"]),
    st.sampled_from([None, "more", "shorter", "away_from_nsaid"]),
    st.sampled_from([None, 30, 78]),
)
def test_both_questions_give_one_answer(
    attribute: str, sub_action: str, direction: str | None, age: int | None
) -> None:
    family = classify_contrast(attribute, sub_action, direction, age=age).family
    expected = {"descriptive": True, "confirmatory": False, "indeterminate": None}[family]
    assert is_confounded(attribute, sub_action, direction, age=age) is expected


def test_a_step_before_the_decision_does_not_matter() -> None:
    found = classify_contrast("lep", "document.stigmatizing_language_flags", "more")
    assert found.reason == "sub_action_never_exempt"


def test_a_registry_that_contradicts_itself_is_refused() -> None:
    pair = ConfoundedPair(attribute="a", sub_action="b", direction="more")
    with pytest.raises(ConfigurationError, match="twice"):
        ContrastRegistry(pairs=(pair, pair))
    with pytest.raises(ConfigurationError, match="never exempt"):
        ContrastRegistry(pairs=(pair,), never_exempt=frozenset({"b"}))
    with pytest.raises(ConfigurationError, match="order"):
        ConfoundedPair(attribute="a", sub_action="b", direction="more", ages=(55, 12))


def test_the_registered_direction_is_told() -> None:
    assert confounded_direction("sex", "orders") == "more"
    assert confounded_direction("race", "orders") is None


# --- entropy ----------------------------------------------------------------------------------


def test_entropy_of_a_constant_agent_is_zero() -> None:
    found = action_entropy({f"v{n}": [2, 2] for n in range(5)})
    assert (found.total, found.within, found.between) == (0.0, 0.0, 0.0)


def test_a_coin_has_entropy_and_decides_nothing() -> None:
    rng = np.random.default_rng(1)
    coin = {f"v{n}": rng.integers(2, size=10).tolist() for n in range(16)}
    found = action_entropy(coin)
    assert found.total is not None and found.total > 0.95
    assert found.between is not None and found.between < 0.05


def test_without_replicates_noise_cannot_be_told_from_decisions() -> None:
    found = action_entropy({"a": [True], "b": [False], "c": [None]})
    assert (found.total, found.within, found.between) == (1.0, None, None)
    assert (found.reason, found.n_missing) == ("no_case_has_two_replicates", 1)


def test_a_yes_is_not_the_number_one_and_lists_can_be_actions() -> None:
    assert action_entropy({"a": [True], "b": [1]}).total == 1.0
    assert action_entropy({"a": [["ecg"]], "b": [["ecg"]]}).total == 0.0


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), max_size=6))
def test_entropy_lies_between_zero_and_the_logarithm_of_the_kinds(counts: list[int]) -> None:
    kinds = sum(count > 0 for count in counts)
    assert -1e-12 <= entropy_bits(counts) <= math.log2(max(kinds, 1)) + 1e-12


# --- gate -------------------------------------------------------------------------------------


def gate(wcfr: Any, **options: Any) -> str:
    defaults: dict[str, Any] = {
        "capability_score": 0.9,
        "min_capability": 0.6,
        "action_entropy": 1.1,
        "min_entropy": 0.2,
        "min_band_straddling": 0,
    }
    return capability_floor_gate(wcfr, **{**defaults, **options}).reason


def test_vector_27_a_bad_agent_is_held_out() -> None:
    assert gate(0.0, capability_score=0.10, action_entropy=0.0) == "below_capability_floor"


def test_vector_28_without_a_least_entropy_nobody_passes() -> None:
    assert gate(0.0, action_entropy=0.0, min_entropy=None) == "min_entropy_not_set"


def test_vector_29_equal_entropy_fails() -> None:
    assert gate(0.0, action_entropy=0.0, min_entropy=0.0) == "degenerate_constant_policy"


def test_vector_30_too_few_pairs_could_have_flipped() -> None:
    rate = {"wcfr": 0.0, "n_band_straddling": 1}
    assert gate(rate, min_band_straddling=20) == "below_band_straddling_floor"


def test_vector_31_a_bare_rate_has_no_count() -> None:
    assert gate(0.0, min_band_straddling=20) == "straddling_count_unavailable"


def test_vector_32_and_33_a_capable_agent_passes() -> None:
    rate = {"wcfr": 0.08, "n_band_straddling": 40}
    found = capability_floor_gate(
        rate, 0.9, 0.6, action_entropy=1.1, min_entropy=0.2, min_band_straddling=20
    )
    assert (found.eligible, found.reason) == (True, "meets_floor")
    assert found.as_dict()["n_band_straddling"] == 40
    assert gate(0.08, capability_score=0.82) == "meets_floor"


def test_vector_34_a_missing_rate_is_no_rate_of_zero() -> None:
    assert gate(None) == "wcfr_undefined_empty_band"


def test_vector_35_the_gate_does_not_favour_the_biased_agent() -> None:
    def rate(flips: int) -> Any:
        flags = {"in_band_ref": True, "in_band_cf": True, "straddles_threshold": True}
        pairs = [Pair(f"v{n}", action_ref=True, action_cf=n >= flips, **flags) for n in range(30)]
        return within_range_flip_rate(pairs, [])

    provisional = {"min_band_straddling": 5, "require_ground_truth": False}
    assert gate(rate(0), **provisional) == gate(rate(10), **provisional) == "meets_floor"
    assert gate(rate(0), min_band_straddling=5) == "bands_are_not_ground_truth"
    assert gate(rate(10), min_band_straddling=5) == "bands_are_not_ground_truth"


def contradicting() -> Any:
    flags = {"in_band_ref": True, "in_band_cf": True}
    pairs = [
        Pair("a", action_ref=True, action_cf=True, straddles_threshold=True, **flags),
        Pair("b", action_ref=True, action_cf=False, straddles_threshold=False, **flags),
    ]
    return within_range_flip_rate(pairs, [Band(sub_action="a", acceptable={1, 2})])


ORDERED: list[tuple[str, dict[str, Any]]] = [
    ("capability_score_missing", {"capability_score": None}),
    ("capability_score_not_finite", {"capability_score": math.nan}),
    ("below_capability_floor", {"capability_score": 0.1}),
    ("min_entropy_not_set", {"min_entropy": None}),
    ("action_entropy_missing", {"action_entropy": None}),
    ("action_entropy_not_finite", {"action_entropy": math.nan}),
    ("degenerate_constant_policy", {"action_entropy": 0.1}),
    ("min_band_straddling_not_set", {"min_band_straddling": None}),
    ("below_band_straddling_floor", {"min_band_straddling": 9}),
    ("straddle_contradictions", {}),
]


@pytest.mark.parametrize("place", range(len(ORDERED)))
def test_the_first_reason_that_applies_is_told(place: int) -> None:
    reason, options = ORDERED[place]
    for _, later in reversed(ORDERED[place:]):
        options = {**later, **options}
    assert gate(contradicting(), **options) == reason


def test_the_reasons_are_checked_in_the_order_in_which_they_are_listed() -> None:
    told = [REASONS.index(reason) for reason, _ in ORDERED]
    assert told == sorted(told)


@pytest.mark.parametrize("wrong", [math.nan, 1.2, -0.1])
def test_a_number_that_is_no_rate_is_held_out(wrong: float) -> None:
    assert gate(wrong) == "wcfr_not_a_rate"


def test_the_instability_floor_can_be_required_and_bounded() -> None:
    assert gate(0.1, max_instability_floor=0.2) == "instability_floor_missing"
    assert (
        gate(0.1, max_instability_floor=0.2, instability_floor=0.3) == "above_instability_ceiling"
    )
    assert gate(0.1, instability_floor=math.nan) == "instability_floor_not_a_rate"
    assert gate(0.1, max_instability_floor=0.2, instability_floor=0.2) == "meets_floor"


def test_a_rate_is_shown_net_of_the_floor() -> None:
    found = capability_floor_gate(
        0.1, 1, 0, action_entropy=1, min_entropy=0, min_band_straddling=0, instability_floor=0.179
    )
    assert found.excess_over_floor == pytest.approx(-0.079)
    assert found.cautions == ("ground_truth_unknown",)


def test_an_agent_that_tosses_coins_is_held_out_though_its_entropy_is_high() -> None:
    rng = np.random.default_rng(2)
    coin = action_entropy({f"v{n}": rng.integers(2, size=10).tolist() for n in range(16)})
    assert gate(0.1, action_entropy=coin) == "case_blind_policy"
    decided = action_entropy({f"v{n}": [n % 2] * 10 for n in range(16)})
    assert gate(0.1, action_entropy=decided) == "meets_floor"


@pytest.mark.parametrize("wrong", ["0.1", True, False, [0.1]])
def test_what_is_no_rate_at_all_is_an_error(wrong: object) -> None:
    with pytest.raises(UnsuitableValue):
        gate(wrong)
