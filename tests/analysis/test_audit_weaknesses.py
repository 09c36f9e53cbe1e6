"""What earlier audits got wrong, one test for each, numbered as in docs/audit-differences.md."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from audit_world import arms, batch_arm, by_case
from shared_data import shared

import twinspan.analysis.inference as inference
import twinspan.instrumentation.audit as audit
from twinspan.analysis.adjudicators import Adjudicator, AdjudicatorRegistry
from twinspan.analysis.bands import Band, band_straddles, ground_truth, in_band
from twinspan.analysis.batch_effect import batch_effect
from twinspan.analysis.contrasts import classify_contrast, is_confounded
from twinspan.analysis.dialects.fairmedagent import default_rules
from twinspan.analysis.entropy import action_entropy
from twinspan.analysis.floor_comparison import compare_floors, rank_agreement
from twinspan.analysis.floor_intervals import base_rate, floor_interval, floor_of
from twinspan.analysis.gating import capability_floor_gate
from twinspan.analysis.outcomes import OutcomeRule
from twinspan.analysis.pair_statistics import FLIP_RATE, SIGNED_FLIP_RATE
from twinspan.analysis.pairing import arms_of, pair_trajectories
from twinspan.analysis.pairs import Pair
from twinspan.analysis.rates import positive_rate, within_range_flip_rate
from twinspan.analysis.replicate_table import ReplicateTable
from twinspan.instrumentation.errors import ConfigurationError

T, F = True, False
FLAGS = {"in_band_ref": True, "in_band_cf": True}

ROOT = Path(__file__).parents[2]


def test_weakness_01_a_name_on_a_band_is_no_ground_truth() -> None:
    named = Band(sub_action="esi_acuity", acceptable={2}, adjudicated_by=["Dr. Nobody"])
    assert ground_truth([named]).holds is False
    registered = AdjudicatorRegistry(
        adjudicators=(Adjudicator(pseudonym="Dr. Nobody", specialty="emergency"),)
    )
    assert ground_truth([named], registered).holds is False
    with pytest.raises(dataclasses.FrozenInstanceError):
        named.adjudicated_by = ()  # type: ignore[misc]


def test_weakness_02_the_gate_reads_what_the_rate_says_about_itself() -> None:
    flip = Pair("a", action_ref=T, action_cf=F, straddles_threshold=T, **FLAGS)
    contradiction = Pair("b", action_ref=T, action_cf=F, straddles_threshold=F, **FLAGS)
    rate = within_range_flip_rate([flip, contradiction], [])
    assert rate.value == 1.0  # and never above 1
    options = {"action_entropy": 1.0, "min_entropy": 0.1, "min_band_straddling": 0}
    assert capability_floor_gate(rate, 1, 0, **options).reason == "straddle_contradictions"  # type: ignore[arg-type]
    assert capability_floor_gate(1.5, 1, 0, **options).reason == "wcfr_not_a_rate"  # type: ignore[arg-type]
    assert capability_floor_gate(0.1, float("nan"), 0, **options).eligible is False  # type: ignore[arg-type]
    assert action_entropy({"a": [1], "b": [2]}).total == 1.0


def test_weakness_03_a_disparity_is_compared_with_its_floor_and_its_controls() -> None:
    rng = np.random.default_rng(3)
    reference, swap = arms(rng, "all up")
    found = inference.excess_over_floor(reference, swap)
    assert found.value is not None and found.floor_reference is not None
    verdict = inference.excess_over_controls(
        reference, swap, {"rerender": dict(reference)}, draws=499
    )
    assert verdict.hardest == "rerender"


def test_weakness_04_nothing_vanishes_into_excluded() -> None:
    with pytest.raises(ConfigurationError):
        in_band(3, (1, 5))
    with pytest.raises(ConfigurationError):
        in_band(3, {"from": 1, "to": 5})
    unknown = Pair("a", action_ref=T, action_cf=F, in_band_ref=T)
    found = within_range_flip_rate([unknown], [])
    assert (found.n_unknown_band, found.n_excluded_out_of_band) == (1, 0)


def test_weakness_05_age_gate_and_adjudication_are_enforced_in_one_place() -> None:
    for age in (None, 30, 78):
        family = classify_contrast("sex", "orders", "more", age=age).family
        assert family != "descriptive"
        assert (is_confounded("sex", "orders", "more", age=age) is None) == (age is None)


def test_weakness_06_a_swap_keeps_the_references_age() -> None:
    reference, *others = audit.standard_conditions(62)
    assert reference.attributes["age"] == 62
    for condition in others:
        assert condition.attributes["age"] == 62 or condition.axis == "age"


def test_weakness_07_answers_are_validated() -> None:
    triage = audit.CLINICAL_STEPS[0]
    for wrong in ({"esi_acuity": 9, "urgency_score": 1}, {"esi_acuity": T, "urgency_score": 1}):
        assert not audit.check_answer(triage, wrong).valid
    assert not audit.check_answer(triage, {"esi_acuity": 2}).valid


def test_weakness_08_both_shapes_of_results_are_one() -> None:
    entry = {"vignette_id": "v", "condition_id": "ref"}
    flat = audit.Trajectory.from_mapping({**entry, "actions": {"results": {"ECG": "x"}}})
    deep = audit.Trajectory.from_mapping(
        {**entry, "actions": {"results": {"results": {"ECG": "x"}}}}
    )
    assert flat == deep


def test_weakness_09_orders_have_synonyms_and_one_word_is_not_the_first_key() -> None:
    fixtures = {"cxr": "a", "xray_femur": "b", "bmp": "c", "lft": "d"}
    ordered = ["Chest X-ray", "X-ray femur", "Basic metabolic panel", "Liver function tests"]
    assert list(audit.resolve_orders(ordered, fixtures).results.values()) == ["a", "b", "c", "d"]
    assert audit.resolve_orders(["CT"], {"ct_abdomen": "a", "ct_head": "b"}).unresolved == ("CT",)


def test_weakness_10_replicates_are_joined_by_number_and_exchanged_by_case() -> None:
    up = [Pair("v", action_ref=T, action_cf=n == 1, replicate=n) for n in (1, 2)]
    down = [Pair("v", action_ref=T, action_cf=n == 1, replicate=n) for n in (1, 2)]
    assert inference.disparity_propagation(up, down).value == 1.0
    with pytest.raises(ConfigurationError, match="number the replicates"):
        inference.disparity_propagation([Pair("v"), Pair("v")], down)
    often = [Pair(f"v{n}", action_ref=T, action_cf=F) for n in range(5)] * 10
    assert inference.paired_permutation_test(often, SIGNED_FLIP_RATE).p_value == 2 / 32


def test_weakness_10_a_refusal_is_part_of_the_result() -> None:
    refused = inference.cluster_bootstrap([], FLIP_RATE)
    inference.cluster_bootstrap([Pair("a"), Pair("b", action_ref=T, action_cf=T)], FLIP_RATE)
    assert refused.reason == "no_pairs"


@pytest.mark.parametrize("package", [audit, inference])
def test_weakness_11_every_listed_name_exists(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]
    assert len(set(names)) == len(names)
    assert all(hasattr(package, name) for name in names)


def test_weakness_12_no_test_stands_behind_a_main_block() -> None:
    tests = Path(__file__).parents[1].rglob("test_*.py")
    marker = "if __name__ == " + '"__main__"'
    assert [file.name for file in tests if marker in file.read_text("utf-8")] == []


def test_weakness_13_replicates_that_decide_for_all_cases_at_once_are_seen() -> None:
    rng = np.random.default_rng(13)
    table = batch_arm(rng, cases=16, replicates=6, switch=1.0)
    found = batch_effect(
        ReplicateTable(
            cases=tuple(f"v{n}" for n in range(16)),
            replicates=tuple(range(6)),
            answers=tuple(map(tuple, table.tolist())),
        )
    )
    assert found.warning() is not None


def test_weakness_13_the_interval_for_shared_replicates_resamples_both() -> None:
    rng = np.random.default_rng(14)
    array = batch_arm(rng, cases=16, replicates=6, switch=0.7)
    table = ReplicateTable(
        cases=tuple(f"v{n}" for n in range(16)),
        replicates=tuple(range(6)),
        answers=tuple(map(tuple, array.tolist())),
    )
    low, high = floor_interval([table], draws=2000).ends
    narrow = floor_interval([table], resample="cases", draws=2000).ends
    assert low is not None and high is not None
    assert high - low > (narrow[1] or 0) - (narrow[0] or 0)


def test_weakness_14_an_age_in_a_narrative_is_found() -> None:
    case = audit.Case(id="a", narrative="A 62-year-old presents with chest pain.")
    (found,) = audit.lint_cases([case], audit.standard_conditions())
    assert (found.code, found.found) == ("contradicts_descriptor", "62-year-old")


def test_weakness_15_base_rates_and_agreement_beyond_chance_stand_beside_floors() -> None:
    rare = ReplicateTable(cases=("a",), replicates=(1, 2, 3, 4), answers=((T, F, F, F),))
    assert (base_rate(rare).value, floor_of([rare]).rate) == (0.25, 0.5)


def test_weakness_16_bands_without_room_for_a_flip_say_so() -> None:
    stable = Pair("a", action_ref=T, action_cf=T, straddles_threshold=F, **FLAGS)
    found = within_range_flip_rate([stable], [])
    assert (found.value, found.reason) == (None, "no_in_band_pair_of_a_straddling_band")
    assert band_straddles({2}, lambda grade: grade <= 2) is False


def test_weakness_17_every_field_is_defined_and_required() -> None:
    prescribe = next(step for step in audit.CLINICAL_STEPS if step.name == "prescribe")
    assert prescribe.schema is not None
    assert "controlled_substance_caution" in prescribe.schema["required"]
    assert "controlled substances" in prescribe.instruction


def test_weakness_18_every_outcome_is_counted_not_one_per_domain() -> None:
    document = json.loads(shared("fairmedagent/pilot/pilot2.json").read_text("utf-8"))
    runs = audit.read_trajectories(document)
    admit = OutcomeRule.parse("admit = reassess.admit")
    flips = [
        pair.case_id
        for pair in pair_trajectories(
            runs,
            admit,
            reference="ref_white_man_private",
            counterfactual="age_78_white_man_private",
        ).pairs
        if pair.flipped
    ]
    assert flips == ["draft_documentation_01"]
    tiers = [rule.text for rule in default_rules() if rule.field == "analgesia_tier"]
    assert tiers == ["any_opioid=prescribe.analgesia_tier >= 2"]


def test_weakness_19_what_a_plan_promises_exists() -> None:
    conditions = audit.standard_conditions(include_no_descriptor=True)
    assert conditions[-1].kind == "no_descriptor"
    flips = [Pair(f"v{n}", action_ref=T, action_cf=F) for n in range(5)]
    assert inference.mcnemar_exact(flips).p_mid == pytest.approx(0.03125)
    assert inference.adjust([0.01, 0.02], procedure="holm").adjusted == (0.02, 0.02)
    varied = [Pair(f"v{n}", action_ref=T, action_cf=n < 7) for n in range(9)]
    skewed = inference.cluster_bootstrap(varied, FLIP_RATE, method="bca")
    assert (skewed.method, skewed.draws) == ("bca", 10_000)
    assert positive_rate([F] * 9).cautions == ("small_cell", "near_floor")
    names = audit.Names(by=("sex",), lists={("man",): ["Greg", "Todd"]})
    assert names.draw({"sex": "man"}, Random(1)) in {"Greg", "Todd"}


@pytest.mark.parametrize(
    "changes",
    [
        {"provenance": "clinician-adjudicated"},
        {"adjudicated_by": ["adjudicator-01"]},
        {"source": "a guideline"},
        {"notes": "adjudicated"},
    ],
)
def test_weakness_20_no_single_field_fakes_an_adjudication(changes: dict[str, object]) -> None:
    band = Band(sub_action="followup_days", acceptable={"min": 1, "max": 14}, disputed_span=[30])
    try:
        changed = dataclasses.replace(band, **changes)  # type: ignore[arg-type]
    except ConfigurationError:
        return
    assert ground_truth([changed]).holds is False


def test_weakness_21_sample_size_and_models_can_be_compared() -> None:
    found = audit.cases_needed(0.04, 0.087, reference=10, counterfactual=5)
    assert found.cases is not None and found.power is not None and found.power >= 0.8
    first = {"a": 0.1, "b": 0.2, "c": 0.3}
    assert rank_agreement(first, first).correlation == 1.0
    table = ReplicateTable(cases=("a", "b"), replicates=(1, 2), answers=((T, F), (T, T)))
    assert compare_floors(table.counts, table.counts).value == 0.0


def test_released_files_go_from_trajectories_to_a_test_against_controls() -> None:
    document = json.loads(shared("fairmedagent/pilot/pilot3ctl.json").read_text("utf-8"))
    rule = OutcomeRule.parse("admit = reassess.admit")
    answers = arms_of(audit.read_trajectories(document), rule)
    found = inference.excess_over_floor(
        answers["ref_white_man_private"], answers["rerender_control"]
    )
    assert (found.n_cases, found.value, found.reason) == (
        4,
        None,
        "no_case_has_two_answers_in_both_arms",
    )


def test_answers_by_case_keep_every_replicate() -> None:
    assert by_case(np.array([[True, False]])) == {"v0": [True, False]}


# --- each is findable by its number -----------------------------------------------------------

_NUMBERED = re.compile(r"def test_(vector|weakness)_((?:\d+_(?:and_|to_)?)+)")


def _numbers(kind: str) -> set[int]:
    found: set[int] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        if not re.search("audit|bands|rates|bootstrap|excess", path.name):
            continue
        for of, told in _NUMBERED.findall(path.read_text("utf-8")):
            numbers = [int(number) for number in re.findall(r"\d+", told)]
            between = range(numbers[0], numbers[-1] + 1) if "_to_" in told else numbers
            found.update(between if of == kind else ())
    return found


@pytest.mark.parametrize(("kind", "last"), [("vector", 66), ("weakness", 21)])
def test_every_vector_and_every_weakness_has_a_test_by_its_number(kind: str, last: int) -> None:
    assert _numbers(kind) == set(range(1, last + 1))
