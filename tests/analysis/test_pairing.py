"""Pairs and answers made from trajectories."""

from __future__ import annotations

import json

import pytest
from shared_data import shared

from twinspan.analysis.bands import Band
from twinspan.analysis.outcomes import OutcomeRule
from twinspan.analysis.pairing import (
    answers_of,
    arms_of,
    decide,
    pair_trajectories,
    replicate_table,
)
from twinspan.analysis.rates import counterfactual_flip_rate, within_range_flip_rate
from twinspan.instrumentation.audit.trajectories import Trajectory, read_trajectories
from twinspan.instrumentation.errors import ConfigurationError

ACUITY = OutcomeRule.parse("high_acuity = triage.esi_acuity <= 2")


def run(case: str, condition: str, grade: object, replicate: int | None = 1) -> Trajectory:
    return Trajectory(
        case_id=case,
        condition_id=condition,
        replicate=replicate,
        actions={"triage": {"esi_acuity": grade, "urgency_score": 70}},
    )


@pytest.mark.parametrize(
    ("rule", "value", "outcome"),
    [
        ("x = a.b <= 2", 2, True),
        ("x = a.b < 2", 2, False),
        ("x = a.b >= 2", "2", True),
        ("x = a.b == ward", "ward", True),
        ("x = a.b != ward", "ward", False),
        ("x = a.b == true", True, True),
        ("x = a.b == 2", 2.0, True),
        ("x = a.b > 2", "many", None),
        ("x = a.b <= 2", True, None),
        ("x = a.b", [1], [1]),
        ("x = a.b <= 2", None, None),
    ],
)
def test_a_rule_decides_as_the_views_do(rule: str, value: object, outcome: object) -> None:
    assert decide(OutcomeRule.parse(rule), value) == outcome


def test_runs_of_one_case_and_replicate_are_paired() -> None:
    runs = [run("a", "ref", 2), run("a", "swap", 3), run("b", "ref", 2), run("a", "swap", 1, 2)]
    found = pair_trajectories(runs, ACUITY, reference="ref", counterfactual="swap")
    assert [(pair.case_id, pair.flipped) for pair in found.pairs] == [("a", True)]
    assert set(found.unmatched) == {("b", 1), ("a", 2)}


def test_the_band_is_asked_about_the_grade_and_straddles_the_rules_cut() -> None:
    runs = [run("a", "ref", 2), run("a", "swap", 3), run("b", "ref", 3), run("b", "swap", 4)]
    bands = {case: Band(sub_action="esi_acuity", acceptable={3, 4}) for case in "ab"}
    found = pair_trajectories(
        runs, ACUITY, reference="ref", counterfactual="swap", bands=bands
    ).pairs
    assert [pair.in_band for pair in found] == [False, True]
    assert [pair.straddles_threshold for pair in found] == [False, False]


def test_a_grade_of_a_wrong_kind_is_unknown_to_the_band() -> None:
    runs = [run("a", "ref", "two"), run("a", "swap", 3)]
    band = Band(sub_action="esi_acuity", acceptable={"min": 2, "max": 3})
    (pair,) = pair_trajectories(
        runs, ACUITY, reference="ref", counterfactual="swap", bands={"a": band}
    ).pairs
    assert (pair.in_band_ref, pair.in_band_cf, pair.action_ref) == (None, True, None)


def test_disputed_grades_and_scores_are_taken_along() -> None:
    runs = [run("a", "ref", 2), run("a", "swap", 4)]
    band = Band(sub_action="esi_acuity", acceptable={2, 3}, disputed_span={4})
    (pair,) = pair_trajectories(
        runs,
        ACUITY,
        reference="ref",
        counterfactual="swap",
        bands={"a": band},
        score=("triage", "urgency_score"),
    ).pairs
    assert (pair.disputed, pair.in_band_cf) == (True, False)
    assert (pair.score_ref, pair.score_difference) == (70.0, 0.0)


def test_an_outcome_without_a_cut_straddles_if_two_values_are_acceptable() -> None:
    rule = OutcomeRule.parse("acuity = triage.esi_acuity")
    runs = [run("a", "ref", 2), run("a", "swap", 2), run("b", "ref", 2), run("b", "swap", 2)]
    bands = {
        "a": Band(sub_action="esi_acuity", acceptable={2}),
        "b": Band(sub_action="esi_acuity", acceptable={2, 3}),
    }
    found = pair_trajectories(runs, rule, reference="ref", counterfactual="swap", bands=bands).pairs
    assert [pair.straddles_threshold for pair in found] == [False, True]


def test_two_runs_of_one_cell_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="twice"):
        pair_trajectories(
            [run("a", "ref", 2), run("a", "ref", 2)], ACUITY, reference="ref", counterfactual="x"
        )


def test_answers_of_numbered_runs_are_aligned_and_others_stand_as_they_come() -> None:
    runs = [run("a", "ref", 2, 1), run("a", "ref", 3, 2), run("b", "ref", 2, 2)]
    assert answers_of(runs, ACUITY, "ref") == {"a": [True, False], "b": [None, True]}
    loose = [run("a", "ref", 3, None), run("a", "ref", 2, None)]
    assert answers_of(loose, ACUITY, "ref") == {"a": [False, True]}
    with pytest.raises(ConfigurationError, match="number_replicates"):
        replicate_table(loose, ACUITY, "ref")


def test_a_score_that_is_no_number_is_missing() -> None:
    runs = [run("a", condition, 2) for condition in ("ref", "swap")]
    (pair,) = pair_trajectories(
        runs, ACUITY, reference="ref", counterfactual="swap", score=("triage", "nothing")
    ).pairs
    assert pair.score_ref is None
    assert decide(ACUITY, "nan") is None


def test_answers_come_in_the_order_of_the_replicates() -> None:
    runs = [run("a", "ref", 3, 2), run("a", "ref", 2, 1), run("a", "swap", 1)]
    assert answers_of(runs, ACUITY, "ref") == {"a": [True, False]}
    assert list(arms_of(runs, ACUITY)) == ["ref", "swap"]


def test_the_third_pilots_flips_are_counted_from_its_file() -> None:
    from twinspan.analysis.dialects.fairmedagent import default_rules

    document = json.loads(shared("fairmedagent/pilot/pilot3ctl.json").read_text("utf-8"))
    runs = read_trajectories(document)
    flips = {
        control: sum(
            counterfactual_flip_rate(
                pair_trajectories(
                    runs, rule, reference="ref_white_man_private", counterfactual=control
                ).pairs
            ).count
            for rule in default_rules()
        )
        for control in ("rerender_control", "sham_attribute_control", "rare_token_control")
    }
    assert flips == {"rerender_control": 5, "sham_attribute_control": 2, "rare_token_control": 1}


def test_a_rate_can_be_made_from_files_to_its_provenance() -> None:
    document = json.loads(shared("fairmedagent/pilot/pilot3.json").read_text("utf-8"))
    bands = {
        "draft_triage_01": Band(sub_action="triage.esi_acuity", acceptable={2}, source="draft"),
        "draft_ordering_01": Band(
            sub_action="triage.esi_acuity", acceptable={2, 3}, source="draft"
        ),
    }
    pairs = pair_trajectories(
        read_trajectories(document),
        ACUITY,
        reference="ref_white_man_private",
        counterfactual="black_woman_medicaid",
        bands=bands,
    ).pairs
    found = within_range_flip_rate(pairs, list(bands.values()))
    assert (len(pairs), found.n_unknown_band, found.ground_truth) == (4, 2, False)
