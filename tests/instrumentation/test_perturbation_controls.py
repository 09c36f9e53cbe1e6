"""Control arms edit a payload as an axis would, and touch nothing that matters."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation import (
    BUILTIN_AXES,
    Axis,
    builtin_axis,
    neutral_edit,
    rare_token,
    replay,
    rerender,
    sham,
)
from twinspan.instrumentation.perturbation.controls import wording

GENDER = builtin_axis("gender")
RACE = builtin_axis("race_ethnicity")
CASE: dict[str, Any] = {
    "note": "Emily Chen, an Asian woman, said she wasn't at home. Emily left.",
    "id": "k-17",
    "turns": ["Her mother didn't call.", 3],
}


def test_a_rerender_is_the_payload_itself() -> None:
    """Byte for byte, and marked as the identity."""
    twin = rerender(CASE)
    assert twin.payload is CASE
    assert (twin.kind, twin.edits, twin.axis, twin.source) == ("identity", (), "", None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a woman", "a left-handed woman"),
        ("an aunt", "a left-handed aunt"),
        ("Women wait.", "Left-handed women wait."),
        ("WOMEN", "LEFT-HANDED WOMEN"),
        ("Emily waits.", "Left-handed Emily waits."),
        ("Then Emily waits for Emily.", "Then left-handed Emily waits for Emily."),
        ("Then Dr. Emily waits.", "Then Dr. Emily (left-handed) waits."),
        ("She took her coat.", "She (left-handed) took her coat."),
        ("Nobody waits.", "Nobody waits."),
    ],
)
def test_a_sham_attribute_stands_where_the_axis_has_its_words(text: str, expected: str) -> None:
    """Before a noun or a name, else in brackets, and once for each word."""
    assert sham(text, GENDER).payload == expected


def test_a_sham_attribute_takes_the_place_of_a_descriptor() -> None:
    """With the article it needs."""
    twin = sham("An Asian man and an Asian woman.", RACE)
    assert twin.payload == "A left-handed man and an Asian woman."
    assert (twin.kind, twin.perturbation_id) == ("sham", "race_ethnicity:sham")
    assert twin.source == twin.target == "asian"


def test_a_rare_token_stands_in_the_same_places() -> None:
    """Only the word differs from the sham attribute's."""
    for axis in (GENDER, RACE):
        one = sham(CASE, axis, words=["zork"])
        two = rare_token(CASE, axis, words=["zork"])
        assert one.edits == two.edits
        assert (one.kind, two.kind) == ("sham", "rare_token")
        assert one.edit_count >= 1


def test_a_word_that_only_hints_is_marked_only_where_no_word_says_it() -> None:
    """The control stands where the swap it controls would."""
    axis = builtin_axis("religion")
    assert sham("a Hindu man at church", axis).payload == "a left-handed man at church"
    assert sham("a man at church", axis).payload == "a man at left-handed church"


def test_a_name_is_marked_once_and_not_inside() -> None:
    """First name and surname are one person."""
    twin = sham("Emily Olson and Mr. Walsh", RACE)
    assert twin.payload == "Left-handed Emily Olson and Mr. Walsh"


def test_a_control_of_a_payload_that_names_nobody_is_a_no_op() -> None:
    """As the swap it is the control of."""
    for control in (sham, rare_token):
        assert control("Nobody is here.", GENDER, Random(1)).no_op


def test_a_control_draws_the_wording_as_every_arm_does() -> None:
    """Names change within their group, and the control word varies."""
    payloads = {sham("Then Emily met a woman.", GENDER, Random(seed)).payload for seed in range(60)}
    names = {text.split()[2] for text in payloads}
    words = {text.split()[1] for text in payloads}
    assert names <= set(GENDER.vocabulary("woman")["first name"])
    assert len(names) > 10
    assert words == set(wording().sham)


@pytest.mark.parametrize("words", [[], [""], ["x", " "]])
def test_a_control_without_words_is_refused(words: list[str]) -> None:
    """An empty edit controls nothing."""
    with pytest.raises(ConfigurationError, match="give one or more"):
        sham("she", GENDER, words=words)


@pytest.mark.parametrize("name", BUILTIN_AXES)
def test_control_words_speak_of_no_axis(name: str) -> None:
    """Neither the marks nor the rephrasings."""
    axis = builtin_axis(name)
    table = wording()
    for word in (*table.sham, *table.rare_token, *table.equals, *table.equals.values()):
        assert axis.read(word).counts() == {}, word
        assert axis.read(word).counts("proxy_swap") == {}, word


def test_a_neutral_edit_rephrases_around_the_axis() -> None:
    """Every place without a generator, no word of the axis ever."""
    twin = neutral_edit(CASE, GENDER)
    assert twin.payload == {
        "note": "Emily Chen, an Asian woman, said she was not at home. Emily left.",
        "id": "k-17",
        "turns": ["Her mother did not call.", 3],
    }
    assert (twin.kind, twin.perturbation_id) == ("neutral_edit", "gender:neutral_edit")
    assert twin.targets == ("/note", "/turns/0")
    assert neutral_edit(CASE).payload == twin.payload
    assert neutral_edit(CASE).perturbation_id == "neutral_edit"


def test_a_neutral_edit_leaves_a_word_alone_that_is_on_the_axis() -> None:
    """Even where it could be rephrased."""
    axis = Axis.from_mapping(
        {"name": "size", "groups": ["big", "small"], "paired": [{"big": "big", "small": "small"}]}
    )
    assert neutral_edit("a big dog didn't bark", axis).payload == "a big dog did not bark"


@pytest.mark.parametrize("seed", range(30))
def test_a_neutral_edit_always_edits(seed: int) -> None:
    """At random places, but at one at least, and the names are drawn as in every arm."""
    twin = neutral_edit(CASE, GENDER, Random(seed))
    assert "was not" in twin.payload["note"] or "did not" in twin.payload["turns"][0]
    assert replay(CASE, twin.edits) == twin.payload
    assert twin.payload["note"].split()[0] in GENDER.vocabulary("woman")["first name"]


def test_a_neutral_edit_finds_something_in_any_text() -> None:
    """A line break at the end of the longest text, never in an identifier."""
    twin = neutral_edit({"a": "Some text.", "b": "Some longer text.", "c": "an-identifier-" * 9})
    assert twin.targets == ("/b",)
    assert twin.payload["b"] == "Some longer text.\n"
    assert neutral_edit({"id": "k-17", "n": 3}).no_op


def test_rephrasings_are_undone_by_rephrasing() -> None:
    """The pairs are equals: there and back is where it began."""
    text = "Although I'm happy, it often isn't big; for example, don't buy it."
    there = neutral_edit(text).payload
    assert there != text
    assert neutral_edit(there).payload == text


def test_a_control_says_nothing_else() -> None:
    """Outside the marks the text is the text."""
    twin = rare_token(CASE, RACE)
    word = wording().rare_token[0]
    undone = re.sub(rf"\b{word} (?=Emily)", "", twin.payload["note"], flags=re.IGNORECASE)
    assert undone == CASE["note"].replace("an Asian", f"a {word}")
