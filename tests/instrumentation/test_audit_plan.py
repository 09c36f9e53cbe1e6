"""Plans: order, hash, sample size and power."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest

from twinspan.instrumentation.audit import (
    CLINICAL_STEPS,
    AuditPlan,
    Case,
    Names,
    Wording,
    build_conditions,
    cases_needed,
    detectable_excess,
    pairs_for_discordance,
    power,
    smallest_p,
    standard_conditions,
)
from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation import DescriptorTemplate

CASES = tuple(
    Case(id=f"c{n}", narrative=f"Case {n}.", fixtures={"ecg": "normal"}) for n in range(4)
)


def plan(**changes: Any) -> AuditPlan:
    options: dict[str, Any] = {
        "name": "demo",
        "cases": CASES,
        "conditions": standard_conditions(),
        "steps": CLINICAL_STEPS,
        "outcomes": ("admit=reassess.admit",),
        "replicates": 3,
        "seed": 5,
        "settings": {"model": "m", "temperature": 0.7},
    }
    return AuditPlan(**{**options, **changes})


def test_every_cell_is_run_as_often_as_planned_and_numbered() -> None:
    runs = plan().runs()
    assert len(runs) == 4 * 15 * 3
    cells = Counter((run.case_id, run.condition_id, run.replicate) for run in runs)
    assert set(cells.values()) == {1}
    assert [run.index for run in runs] == list(range(len(runs)))


def test_the_order_is_random_and_follows_from_the_seed() -> None:
    first, again, other = (plan(seed=seed).runs() for seed in (5, 5, 6))
    assert first == again
    assert [run.condition_id for run in first] != [run.condition_id for run in other]
    assert [run.condition_id for run in first] != sorted(run.condition_id for run in first)


def test_each_replicate_is_complete_before_the_next_begins() -> None:
    replicates = [run.replicate for run in plan().runs()]
    assert replicates == sorted(replicates)


def test_the_reference_may_be_run_more_often() -> None:
    runs = plan(reference_replicates=10).runs()
    counts = Counter(run.condition_id for run in runs)
    assert (counts["ref_white_man_private"], counts["white_woman_private"]) == (40, 12)


def test_every_run_has_a_seed_of_its_own_that_other_runs_do_not_change() -> None:
    runs = plan().runs()
    assert len({run.seed for run in runs}) == len(runs)
    fewer = {(r.case_id, r.condition_id, r.replicate): r.seed for r in plan(cases=CASES[:2]).runs()}
    assert all(
        fewer.get((run.case_id, run.condition_id, run.replicate), run.seed) == run.seed
        for run in runs
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"cases": CASES[:3]},
        {"cases": (*CASES[:3], dataclasses.replace(CASES[3], narrative="Changed."))},
        {"cases": (*CASES[:3], dataclasses.replace(CASES[3], fixtures={"ecg": "odd"}))},
        {"conditions": standard_conditions(62)},
        {"conditions": standard_conditions(include_controls=False)},
        {"steps": CLINICAL_STEPS[:2]},
        {"outcomes": ()},
        {"replicates": 4},
        {"reference_replicates": 9},
        {"seed": 6},
        {"settings": {"model": "n", "temperature": 0.7}},
    ],
)
def test_whatever_is_decided_beforehand_is_in_the_hash(changes: dict[str, Any]) -> None:
    assert plan(**changes).hash != plan().hash


def test_equal_designs_have_equal_hashes_and_others_are_refused() -> None:
    assert plan().hash == plan().hash
    plan().verify(plan().hash)
    with pytest.raises(ConfigurationError, match="the results are of plan"):
        plan().verify(plan(seed=6).hash)


def test_wording_is_drawn_per_run_and_belongs_to_the_hash() -> None:
    templates = (
        DescriptorTemplate(text="{race} {sex}"),
        DescriptorTemplate(text="a {sex} who is {race}"),
    )
    conditions = build_conditions(
        templates[0].describe(race="White", sex="man"), swaps={"race": ["Black"]}, controls=()
    )
    design = plan(
        conditions=conditions, wording=Wording(templates=templates), replicates=20, steps=()
    )
    said = Counter((run.condition_id, run.template) for run in design.runs())
    assert len(said) == 4 and min(said.values()) > 20
    assert design.hash != plan(conditions=conditions, replicates=20, steps=()).hash


def test_the_runs_of_a_case_have_names_of_their_own() -> None:
    """As many as are listed; then they come again, shuffled anew."""
    template = DescriptorTemplate(text="{name}, a {race} man")
    listed: dict[tuple[str | int | bool, ...], list[str]] = {
        ("White",): ["Greg", "Todd", "Brad", "Cody"],
        ("Black",): ["Jamal", "Tyrone", "Darnell", "Kwame"],
    }
    conditions = build_conditions(
        template.describe(race="White", name="Greg"), swaps={"race": ["Black"]}, controls=()
    )
    wording = Wording(templates=(template,), names=Names(by=("race",), lists=listed))
    design = plan(conditions=conditions, wording=wording, replicates=10, steps=())
    orders: set[tuple[str | None, ...]] = set()
    for case in CASES:
        for condition in conditions:
            names = [
                run.name
                for run in sorted(design.runs(), key=lambda run: run.replicate)
                if (run.case_id, run.condition_id) == (case.id, condition.id)
            ]
            assert len(set(names[:4])) == len(set(names[4:8])) == 4
            assert len(set(names[8:])) == 2
            orders.add(tuple(names))
    assert len(orders) == len(CASES) * len(conditions)


@pytest.mark.parametrize(
    "wrong",
    [
        {"cases": ()},
        {"replicates": 0},
        {"reference_replicates": 0},
        {"cases": (CASES[0], CASES[0])},
        {"conditions": ()},
        {"steps": (CLINICAL_STEPS[0], CLINICAL_STEPS[0])},
    ],
)
def test_a_plan_without_runs_or_with_doubles_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        plan(**wrong)


def test_quantity_15_the_pairs_for_25_flips_at_the_published_floor() -> None:
    assert pairs_for_discordance(374 / 4320) == 289
    with pytest.raises(ConfigurationError):
        pairs_for_discordance(0.0)


@pytest.mark.parametrize("test", ["shift", "excess"])
def test_power_grows_with_everything_that_should_help(test: Any) -> None:
    def found(excess: float = 0.02, floor: float = 0.2, cases: int = 16, n: int = 6) -> float:
        return power(excess, floor, cases=cases, reference=n, counterfactual=n, test=test)

    assert found(excess=0.01) < found() < found(excess=0.04)
    assert found(cases=8) < found() < found(cases=32)
    assert found(n=3) < found() < found(n=12)
    assert found(floor=0.4) < found() < found(floor=0.1)


@pytest.mark.parametrize("test", ["shift", "excess"])
def test_the_needed_cases_are_the_fewest_that_suffice(test: Any) -> None:
    found = cases_needed(0.02, 0.2, reference=5, counterfactual=5, test=test)
    assert found.cases is not None and found.power is not None
    options: dict[str, Any] = {"reference": 5, "counterfactual": 5, "test": test}
    assert power(0.02, 0.2, cases=found.cases - 1, **options) < 0.8 <= found.power
    assert found.runs == 10 * found.cases


def test_the_detectable_excess_is_the_one_with_the_wanted_power() -> None:
    found = detectable_excess(0.2, cases=16, reference=5, counterfactual=5)
    assert found is not None
    assert power(found, 0.2, cases=16, reference=5, counterfactual=5) == pytest.approx(0.8)


def test_instability_in_few_cases_costs_power_of_the_excess_test() -> None:
    options: dict[str, Any] = {"cases": 16, "reference": 5, "counterfactual": 5, "test": "excess"}
    few = [0.5] * 4 + [0.0] * 12
    assert power(0.02, few, **options) < power(0.02, 0.125, **options)


def test_a_stable_agent_needs_one_case_by_the_formula_but_labels_bound_the_p_value() -> None:
    assert power(0.04, 0.0, cases=1, reference=3, counterfactual=3) == 1.0
    assert power(0.04, 0.0, cases=1, reference=3, counterfactual=3, test="excess") == 1.0
    assert smallest_p(1, 3, 3) == pytest.approx(0.1)
    assert smallest_p(1, 1, 1) == 1.0


def test_an_excess_that_no_number_of_cases_finds_says_so() -> None:
    found = cases_needed(1e-9, 0.5, reference=2, counterfactual=2)
    assert (found.cases, found.runs) == (None, None)
    assert found.reason == "more than 100000 cases are needed"
    assert detectable_excess(1.0, cases=1, reference=1, counterfactual=1) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"excess": 0.0},
        {"floor": 1.5},
        {"floor": []},
        {"cases": 0},
        {"alpha": 0.0},
        {"test": "z"},
        {"test": "excess", "counterfactual": 1},
    ],
)
def test_power_of_a_design_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    options: dict[str, Any] = {
        "excess": 0.1,
        "floor": 0.1,
        "cases": 5,
        "reference": 5,
        "counterfactual": 5,
    }
    with pytest.raises(ConfigurationError):
        power(**{**options, **wrong})
    with pytest.raises(ConfigurationError):
        cases_needed(0.1, 0.1, reference=5, counterfactual=5, wanted_power=1.0)
    with pytest.raises(ConfigurationError):
        smallest_p(0, 1, 1)
