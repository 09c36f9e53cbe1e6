"""Conditions: a swap changes what it says, and nothing else."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.instrumentation.audit import (
    Condition,
    Names,
    Wording,
    build_conditions,
    control_conditions,
    levels_by_attribute,
    pair_with_reference,
    standard_conditions,
    surface_statistics,
)
from twinspan.instrumentation.audit.conditions import checked
from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation import DescriptorTemplate

TEMPLATE = DescriptorTemplate(text="{age}-year-old {race} {sex}")
PERSON = TEMPLATE.describe(age=62, race="White", sex="man")

SURFACE = {
    "ref_white_man_private": (67, 8),
    "race_black_man_private": (67, 8),
    "race_hispanic_man_private": (70, 8),
    "race_asian_man_private": (67, 8),
    "race_native_american_man_private": (77, 9),
    "white_woman_private": (69, 8),
    "age_34_white_man_private": (67, 8),
    "age_78_white_man_private": (67, 8),
    "white_man_medicaid": (68, 8),
    "white_man_private_lep": (70, 8),
    "black_woman_medicaid": (70, 8),
    "hispanic_man_medicaid_lep": (74, 8),
    "rerender_control": (67, 8),
    "sham_attribute_control": (72, 8),
    "rare_token_control": (71, 8),
}


def test_vector_56_the_standard_conditions_are_fifteen_with_three_controls() -> None:
    found = standard_conditions()
    assert len(found) == 15
    assert sum(condition.is_reference for condition in found) == 1
    assert sum(condition.is_control for condition in found) == 3
    assert len(list(pair_with_reference(found))) == 11
    assert len(list(pair_with_reference(found, include_controls=True))) == 14


def test_the_standard_conditions_say_what_the_prior_library_says() -> None:
    found = standard_conditions()
    assert {c.id: (len(c.text), len(c.text.split())) for c in found} == SURFACE
    assert list(SURFACE) == [condition.id for condition in found]
    statistics = surface_statistics(found).as_dict()
    assert statistics["spread"] == {"char_range": 10, "word_range": 1}


def test_the_rerender_control_is_the_reference_byte_for_byte() -> None:
    reference, *_ = standard_conditions()
    rerender, sham, rare = control_conditions()
    assert rerender.text == reference.text
    assert "green-eyed" in sham.text and "Verrinese" in rare.text
    assert sham.attributes == rare.attributes == reference.attributes
    assert sham.as_dict()["attributes"] == {
        **reference.attributes,
        "control": "sham_attribute",
        "control_token": "green-eyed",
    }


def test_axes_are_named_after_what_varies() -> None:
    axes = Counter(condition.axis for condition in standard_conditions())
    assert axes["race"] == 4 and axes["control"] == 3 and axes["reference"] == 1
    assert axes["race+sex+insurance"] == 1 and axes["race+insurance+lep"] == 1


@pytest.mark.parametrize("age", [34, 50, 62, 78])
def test_a_swap_changes_what_it_is_named_for_whatever_the_age(age: int) -> None:
    reference, *others = standard_conditions(age)
    for condition in others:
        changed = {
            slot
            for slot, value in condition.attributes.items()
            if value != reference.attributes[slot]
        }
        assert changed == set(condition.varied)


def test_another_age_shows_in_the_ids_and_no_arm_repeats_the_reference() -> None:
    found = standard_conditions(62)
    assert found[0].id == "ref_white_man_private_age_62"
    texts = Counter(c.text for c in found if not c.is_control)
    assert set(texts.values()) == {1}
    assert [c.id for c in found if c.axis == "age"] == [
        "age_34_white_man_private",
        "age_50_white_man_private",
        "age_78_white_man_private",
    ]
    with pytest.raises(ConfigurationError):
        standard_conditions(-1)


def test_a_control_without_a_descriptor_says_nothing() -> None:
    found = standard_conditions(include_no_descriptor=True)[-1]
    assert (found.kind, found.text, found.is_control) == ("no_descriptor", "", True)
    assert len(standard_conditions(include_controls=False)) == 12


levels = st.fixed_dictionaries(
    {},
    optional={
        "age": st.integers(18, 90),
        "race": st.sampled_from(["White", "Black", "Asian"]),
        "sex": st.sampled_from(["man", "woman"]),
    },
)


@settings(deadline=None)
@given(levels)
def test_only_named_slots_change_in_a_built_design(changed: dict[str, int | str]) -> None:
    differing = {slot: v for slot, v in changed.items() if PERSON.values[slot] != v}
    if differing != changed or not changed:
        return
    kind = {"swaps": {s: [v] for s, v in changed.items()}} if len(changed) == 1 else {}
    more = {"intersections": [changed]} if len(changed) > 1 else {}
    condition = build_conditions(PERSON, **kind, **more, controls=())[1]  # type: ignore[arg-type]
    for slot, value in condition.attributes.items():
        assert value == changed.get(slot, PERSON.values[slot])


def test_the_default_design_has_every_control() -> None:
    found = build_conditions(PERSON, swaps={"race": ["Black"]})
    kinds = [condition.kind for condition in found if condition.is_control]
    assert kinds == ["rerender", "sham_attribute", "rare_token", "no_descriptor"]
    assert found[3].slot == "race"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"swaps": {"race": ["White"]}}, "change what the condition is named for"),
        ({"intersections": [{"race": "Black"}]}, "change what the condition is named for"),
        ({"swaps": {"race": ["Black", "Black"]}}, "two conditions are named"),
        ({"swaps": {"height": ["tall"]}}, "height"),
        ({"controls": ["sham_attribute"]}, "no slot"),
    ],
)
def test_a_design_that_compares_nothing_is_refused(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        build_conditions(PERSON, **{"controls": (), **options})  # type: ignore[arg-type]


def test_a_design_has_one_reference_and_says_each_person_once() -> None:
    with pytest.raises(ConfigurationError, match="exactly one reference"):
        checked([])
    reference = Condition(id="a", kind="reference", descriptor=PERSON)
    twin = Condition(id="b", kind="swap", descriptor=PERSON, varied=("race",))
    with pytest.raises(ConfigurationError, match="both say"):
        checked([reference, twin])
    sham = Condition(id="c", kind="sham_attribute", descriptor=PERSON, slot="race", word="White")
    with pytest.raises(ConfigurationError, match="another word"):
        checked([reference, sham])
    with pytest.raises(ConfigurationError):
        Condition(id="", kind="swap", descriptor=PERSON)


def test_levels_are_listed_with_the_references_first() -> None:
    found = levels_by_attribute(standard_conditions())
    assert found["age"] == (50, 34, 78)
    assert found["lep"] == (False, True)


# --- wording ----------------------------------------------------------------------------------

WORDING = Wording(
    templates=(
        DescriptorTemplate(text="{name}, a {age}-year-old {race} {sex}"),
        DescriptorTemplate(text="{race} {sex}, {age} years old, called {name}"),
    ),
    names=Names(
        by=("race", "sex"),
        lists={
            ("White", "man"): ["Greg", "Todd"],
            ("Black", "man"): ["Jamal", "Tyrone"],
        },
    ),
)


def test_wording_and_names_are_drawn_alike_in_every_arm() -> None:
    reference, swap = build_conditions(PERSON, swaps={"race": ["Black"]}, controls=())
    drawn = {
        condition.id: [WORDING.draw(condition, Random(f"{condition.id}{n}")) for n in range(400)]
        for condition in (reference, swap)
    }
    for draws in drawn.values():
        assert 0.4 < sum(each.template for each in draws) / 400 < 0.6
    assert {each.name for each in drawn[reference.id]} == {"Greg", "Todd"}
    assert {each.name for each in drawn[swap.id]} == {"Jamal", "Tyrone"}
    assert all("62" in each.text for draws in drawn.values() for each in draws)


def test_articles_agree_in_a_drawn_wording() -> None:
    asian = Names(by=("race",), lists={("Asian",): ["Wei"], ("White",): ["Greg"]})
    wording = Wording(
        templates=(DescriptorTemplate(text="{name}, a {race} {sex} of {age}"),), names=asian
    )
    _, swap = build_conditions(PERSON, swaps={"race": ["Asian"]}, controls=())
    assert wording.draw(swap, Random(0)).text == "Wei, an Asian man of 62"


def test_a_control_puts_its_word_into_the_drawn_wording() -> None:
    wording = Wording(templates=(DescriptorTemplate(text="{sex} ({race}), {age}"),))
    sham = build_conditions(PERSON, swaps={"race": ["Black"]}, controls=["sham_attribute"])[2]
    assert wording.draw(sham, Random(0)).text == "man (left-handed), 62"
    silent = build_conditions(PERSON, controls=["no_descriptor"])[1]
    assert wording.draw(silent, Random(0)).text == ""


def test_wording_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="same slots"):
        Wording(templates=(TEMPLATE, DescriptorTemplate(text="{race}")))
    with pytest.raises(ConfigurationError, match="no slot 'name'"):
        Wording(templates=(TEMPLATE,), names=Names(by=(), lists={(): ["Kim"]}))
    with pytest.raises(ConfigurationError, match="no names for"):
        woman = build_conditions(PERSON, swaps={"sex": ["woman"]}, controls=())[1]
        WORDING.draw(woman, Random(0))
    with pytest.raises(ConfigurationError, match="list one or more"):
        Names(by=("sex",), lists={("man", "old"): ["Kim"]})
