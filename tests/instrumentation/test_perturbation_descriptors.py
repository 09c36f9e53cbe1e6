"""Descriptors change one attribute at a time and keep all others."""

from __future__ import annotations

from typing import Any

import pytest

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation import Descriptor, DescriptorTemplate, replay

CLINICAL = DescriptorTemplate(
    text="{age}-year-old {race} {sex}, {insurance} insurance, {lep} English proficiency.",
    words={"lep": {False: "full", True: "limited"}},
)


def person(**values: Any) -> Descriptor:
    base = {"age": 50, "race": "White", "sex": "man", "insurance": "private", "lep": False}
    return CLINICAL.describe(**{**base, **values})


@pytest.mark.parametrize(
    ("values", "surface"),
    [
        ({}, (67, 8)),
        ({"race": "Black"}, (67, 8)),
        ({"race": "Hispanic"}, (70, 8)),
        ({"race": "Asian"}, (67, 8)),
        ({"race": "Native American"}, (77, 9)),
        ({"sex": "woman"}, (69, 8)),
        ({"age": 34}, (67, 8)),
        ({"insurance": "Medicaid"}, (68, 8)),
        ({"lep": True}, (70, 8)),
        ({"race": "Black", "sex": "woman", "insurance": "Medicaid"}, (70, 8)),
        ({"race": "Hispanic", "insurance": "Medicaid", "lep": True}, (74, 8)),
    ],
)
def test_descriptors_of_different_people_are_of_much_the_same_size(
    values: dict[str, Any], surface: tuple[int, int]
) -> None:
    """Characters and words, by which conditions are compared."""
    assert person().swap(**values).surface == surface


def test_controls_are_of_much_the_same_size() -> None:
    """Byte-identical, a sham attribute, and an invented word, all in the race slot."""
    reference = person()
    assert reference.rerender().payload == reference.text
    assert len(reference.sham("race", "green-eyed").payload) == 72
    assert len(reference.rare_token("race", "Verrinese").payload) == 71


@pytest.mark.parametrize("age", [34, 50, 78])
def test_a_swap_of_race_never_changes_age(age: int) -> None:
    """Whatever the reference's age: no base age is assumed."""
    reference = person(age=age)
    twin = reference.swap(race="Black")
    assert dict(twin.values) == {**reference.values, "race": "Black"}
    rendering = reference.rendering(race="Black")
    assert rendering.payload.startswith(f"{age}-year-old Black man")
    assert rendering.edit_count == 1
    assert rendering.perturbation_id == "race:White>Black"


def test_a_rendering_knows_its_edits() -> None:
    """An intersection has one for each attribute, and names its axis by them."""
    reference = person()
    twin = reference.rendering(race="Black", insurance="Medicaid", lep=True)
    assert [edit.original for edit in twin.edits] == ["White", "private", "full"]
    assert (twin.axis, twin.kind) == ("race+insurance+lep", "attribute_swap")
    assert replay(reference.text, twin.edits) == twin.payload
    assert twin.payload == reference.swap(race="Black", insurance="Medicaid", lep=True).text


def test_a_swap_to_the_same_value_is_a_no_op() -> None:
    """It would compare a person with themself."""
    assert person().rendering(race="White").no_op


def test_controls_keep_the_persons_values() -> None:
    """A group-by over race must never yield a control word."""
    twin = person().sham("race")
    assert (twin.kind, twin.axis, twin.source, twin.target) == ("sham", "race", "White", "White")
    assert twin.edit_count == 1
    assert person().rare_token("race").kind == "rare_token"


def test_an_article_in_the_phrase_agrees_with_the_slot() -> None:
    """And its change is an edit of its own."""
    template = DescriptorTemplate(text="A {age} {race} {sex} has a {job}.")
    reference = template.describe(age="young", race="White", sex="man", job="dog")
    twin = reference.rendering(age="old", job="owl")
    assert twin.payload == "An old White man has an owl."
    assert replay(reference.text, twin.edits) == twin.payload
    assert twin.edit_count == 4


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("nobody", {}, "name each slot once"),
        ("{a} {a}", {}, "name each slot once"),
        ("{} {a}", {}, "name each slot once"),
        ("{a}", {"b": {1: "x"}}, "no slot of the descriptor"),
    ],
)
def test_a_template_that_means_nothing_is_refused(
    text: str, words: dict[str, Any], message: str
) -> None:
    """When it is defined."""
    with pytest.raises(ConfigurationError, match=message):
        DescriptorTemplate(text=text, words=words)


def test_a_person_has_a_value_for_every_slot_and_no_other() -> None:
    """Missing, unknown, or without words: each is refused by name."""
    with pytest.raises(ConfigurationError, match="lacks values for \\['race'"):
        CLINICAL.describe(age=50)
    with pytest.raises(ConfigurationError, match="unknown slots \\['hair'\\]"):
        person(hair="red")
    with pytest.raises(ConfigurationError, match="no words for 'some'"):
        person(lep="some")
    with pytest.raises(ConfigurationError, match="no attribute"):
        person().rendering()
    with pytest.raises(ConfigurationError, match="no slot 'hair'"):
        person().sham("hair")
