"""Cases and their lint."""

from __future__ import annotations

import dataclasses

import pytest

from twinspan.instrumentation.audit import Case, case_statistics, lint_cases, standard_conditions
from twinspan.instrumentation.audit.conditions import Condition, build_conditions
from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation import Axis, DescriptorTemplate, Slot

DESIGN = standard_conditions()


def codes(narrative: str, design: tuple[Condition, ...] = DESIGN) -> list[tuple[str, str | None]]:
    case = Case(id="a", narrative=narrative)
    return [(found.code, found.attribute) for found in lint_cases([case], design)]


def test_a_case_cannot_be_changed() -> None:
    case = Case(id="a", narrative="Fever.", fixtures={"cbc": "normal"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        case.narrative = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        case.fixtures["cbc"] = "x"  # type: ignore[index]


def test_a_case_is_read_under_the_names_of_the_prior_library() -> None:
    case = Case.from_mapping(
        {
            "id": "draft_triage_01",
            "domain": "triage",
            "clinical_core": "Chest pain.",
            "tool_results": {"ecg": "ST depression"},
            "acceptable": {},
            "canary": "x",
        }
    )
    assert (case.narrative, case.fixtures["ecg"], case.tags) == (
        "Chest pain.",
        "ST depression",
        ("triage",),
    )
    assert Case.from_mapping(case.as_dict()) == case


def test_any_domain_will_do() -> None:
    assert Case.from_mapping({"id": "a", "domain": "lending"}).tags == ("lending",)


@pytest.mark.parametrize(
    "wrong", [{}, {"id": 3}, {"id": "a", "story": "x"}, {"id": "a", "fixtures": []}]
)
def test_a_case_that_is_none_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        Case.from_mapping(wrong)
    with pytest.raises(ConfigurationError, match="blank"):
        Case(id=" ", narrative="x")


@pytest.mark.parametrize(
    "opening", ["A 62-year-old with", "62 yo with", "62 y/o with", "Aged 62, with", "62 years old,"]
)
def test_a_narrative_that_states_an_age_contradicts_every_other_one(opening: str) -> None:
    assert codes(f"{opening} chest pain.") == [("contradicts_descriptor", "age")]


@pytest.mark.parametrize(
    ("narrative", "attribute"),
    [
        ("A woman with chest pain.", "sex"),
        ("Pain since she fell.", "sex"),
        ("A Hispanic patient.", "race"),
        ("Native American patient.", "race"),
        ("Covered by Medicaid.", "insurance"),
        ("Has private insurance.", "insurance"),
        ("Has limited English.", "lep"),
    ],
)
def test_a_narrative_that_states_a_varied_attribute_is_found(
    narrative: str, attribute: str
) -> None:
    assert ("states_attribute", attribute) in codes(narrative)


@pytest.mark.parametrize(
    "narrative",
    [
        "Crushing chest pain for an hour, full range of motion.",
        "Seen in a private room; limited mobility.",
        "White blood cell count 14. Black stools since yesterday.",
        "Pain for 3 years, worse for 2 days.",
        "Temperature 38.5, 12 breaths a minute, aged bruises.",
    ],
)
def test_a_narrative_that_states_nobody_is_clean(narrative: str) -> None:
    assert codes(narrative) == []


def test_what_the_design_does_not_vary_may_be_stated() -> None:
    template = DescriptorTemplate(text="{race} {sex}")
    design = build_conditions(template.describe(race="White", sex="man"), swaps={"race": ["Black"]})
    assert codes("A 62-year-old woman.", design) == []


def test_fixtures_are_read_as_well() -> None:
    case = Case(id="a", narrative="Fall.", fixtures={"ct_head": "82-year-old male, no bleed"})
    found = lint_cases([case], DESIGN)
    assert [(each.where, each.found) for each in found] == [
        ("fixture ct_head", "82-year-old"),
        ("fixture ct_head", "male"),
    ]


def test_a_users_own_attribute_needs_a_users_own_words() -> None:
    template = DescriptorTemplate(text="a {religion} {role}")
    design = build_conditions(
        template.describe(religion="Baptist", role="clerk"), swaps={"role": ["nurse"]}
    )
    axis = Axis(
        name="role",
        groups=("clerk", "nurse"),
        slots=(Slot(name="role", forms={"clerk": ("clerk",), "nurse": ("nurse", "RN")}),),
    )
    case = Case(id="a", narrative="Asked the RN.")
    assert lint_cases([case], design) == ()
    assert [found.found for found in lint_cases([case], design, axes={"role": axis})] == ["RN"]


def test_duplicates_and_empty_narratives_are_found() -> None:
    cases = [
        Case(id="a", narrative="Fever."),
        Case(id="a", narrative="Cough."),
        Case(id="b", narrative=" Fever. "),
        Case(id="c", narrative=" "),
    ]
    found = [(each.code, each.case_id) for each in lint_cases(cases, DESIGN)]
    assert found == [
        ("duplicate_id", "a"),
        ("duplicate_narrative", "a"),
        ("duplicate_narrative", "b"),
        ("empty_narrative", "c"),
    ]


def test_a_fixture_that_nobody_can_order_is_found() -> None:
    fixtures = {"cxr": "clear", "chest_xray": "clear", "no_imaging": "-", "!": "?", "ecg": "normal"}
    found = lint_cases([Case(id="a", narrative="Cough.", fixtures=fixtures)], DESIGN)
    assert {each.found for each in found if each.code == "unreachable_fixture"} == {
        "cxr",
        "chest_xray",
        "no_imaging",
        "!",
    }


def test_a_narrative_of_another_length_stands_out() -> None:
    cases = [Case(id=str(n), narrative=f"Case {n} " + "word " * 20) for n in range(6)]
    long = Case(id="long", narrative="word " * 200)
    found = lint_cases([*cases, long], DESIGN)
    assert [(each.code, each.case_id) for each in found] == [("narrative_length", "long")]
    assert case_statistics([long]).words["long"] == 200
    assert case_statistics([long]).fixtures["long"] == 0
