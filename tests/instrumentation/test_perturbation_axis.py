"""Axes: their groups, what a payload speaks of, swaps between groups, and the neutral form."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from twinspan.instrumentation.errors import ConfigurationError, TwinspanError, UnknownAxis
from twinspan.instrumentation.perturbation import (
    BUILTIN_AXES,
    Axis,
    Slot,
    Substitution,
    builtin_axis,
    load_axes,
    parse_axes,
    perturb,
)

PAIRED = Slot(
    name="pronoun",
    forms={"a": ("she", "mom", "mommy"), "b": ("he", "dad"), "c": ("they", "parent")},
    neutral=("the person", "a parent"),
)
NAMES = Slot(
    name="name", free=True, forms={"a": ("Ann", "Amy", "Ada"), "b": ("Bob", "Ben"), "c": ("Cy",)}
)
PLACES = Slot(
    name="zip", free=True, kind="proxy_swap", forms={"a": ("11111", "11112"), "b": ("22222",)}
)
AXIS = Axis(name="kin", groups=("a", "b", "c"), slots=(PAIRED, NAMES, PLACES))


@pytest.mark.parametrize(
    ("payload", "group"),
    [
        ("she waits", "a"),
        ("He and they and he", "b"),
        ("they then she", "c"),  # as often as the other, but met first
        (["x", {"n": "Bob"}], "b"),
        ("nobody in 11111", None),  # a hint names nobody
        ("", None),
        (None, None),
    ],
)
def test_the_source_is_the_group_named_most(payload: Any, group: str | None) -> None:
    """Among equals, the one met first."""
    assert AXIS.source_group(payload) == group


def test_a_swap_goes_to_the_next_group_unless_told_otherwise() -> None:
    """In declared order, and from the last to the first."""
    assert AXIS.swap("she").payload == "he"
    assert AXIS.swap("he").payload == "they"
    assert AXIS.swap("they").payload == "she"
    twin = AXIS.swap("she", to="c")
    assert (twin.payload, twin.source, twin.target) == ("they", "a", "c")
    assert (twin.kind, twin.perturbation_id) == ("attribute_swap", "kin:a>c")


def test_source_and_target_change_places() -> None:
    """Words of a third group stay where they are."""
    assert AXIS.swap("she met he and they").payload == "he met she and they"


def test_a_group_with_fewer_words_answers_with_its_first() -> None:
    """Two mothers share one father."""
    slot = Slot(name="kin", forms={"a": ("mum", "mother", "mom", "mama"), "b": ("dad", "father")})
    axis = Axis(name="kin", groups=("a", "b"), slots=(slot,))
    assert axis.swap("mum mother mom mama").payload == "dad father dad dad"


def test_a_word_without_counterpart_stays() -> None:
    """And a payload of such words only is a no-op, not a clean bill."""
    slots = (PAIRED, Slot(name="only", forms={"a": ("aunt",)}))
    axis = Axis(name="kin", groups=("a", "b", "c"), slots=slots)
    assert axis.swap("she and aunt").payload == "he and aunt"
    twin = axis.swap("aunt")
    assert twin.no_op
    assert twin.outcome == "no_op"
    assert twin.source == "a"


@pytest.mark.parametrize("payload", ["nobody is here", {"n": 3}, [], None, "theme"])
def test_a_payload_that_names_nobody_gives_a_no_op(payload: Any) -> None:
    """Running it would compare the payload with itself and call the result clean."""
    twin = AXIS.swap(payload, Random(1))
    assert (twin.no_op, twin.outcome, twin.edit_count) == (True, "no_op", 0)
    assert twin.payload is payload
    assert twin.source is None
    assert twin.perturbation_id == "kin:none>none"


def test_a_swap_that_only_rewords_is_a_no_op() -> None:
    """Another name of the same group in a proxy arm is no proxy swap."""
    for seed in range(9):
        assert AXIS.swap("Ann waits", Random(seed), kind="proxy_swap").no_op
        assert AXIS.swap("she and Ann", Random(seed), to="a").no_op


def test_a_swap_into_the_own_group_is_a_no_op() -> None:
    """It would compare a group with itself."""
    assert AXIS.swap("she and Ann", Random(1), to="a").no_op


def test_a_group_that_there_is_not_is_refused() -> None:
    """With the groups there are."""
    with pytest.raises(ConfigurationError, match="no group 'd'; its groups: 'a', 'b', 'c'"):
        AXIS.swap("she", to="d")
    with pytest.raises(ConfigurationError, match="no group 'd'"):
        AXIS.vocabulary("d")
    assert AXIS.vocabulary("b") == {
        "pronoun": ("he", "dad"),
        "name": ("Bob", "Ben"),
        "zip": ("22222",),
    }


def test_a_proxy_swap_leaves_explicit_words_alone() -> None:
    """And the other way round."""
    text = "she lives at 11112"
    assert AXIS.swap(text).payload == "he lives at 11112"
    twin = AXIS.swap(text, kind="proxy_swap")
    assert (twin.payload, twin.kind) == ("she lives at 22222", "proxy_swap")
    assert twin.perturbation_id == "kin:a>b#proxy"


def test_the_neutral_form_names_nobody() -> None:
    """Words without a neutral counterpart stay, and nothing else is drawn."""
    twin = AXIS.neutral("She, mommy and Dad met Ann.")
    assert twin.payload == "The person, the person and A parent met Ann."
    assert (twin.kind, twin.target, twin.perturbation_id) == ("neutral", "neutral", "kin:a>neutral")
    assert AXIS.neutral("Ann").no_op


def test_neutral_placeholders_tell_people_apart() -> None:
    """One name, one placeholder, whatever the group."""
    axis = builtin_axis("gender")
    text = "Emily asked James whether Emily's form came. JAMES said no."
    assert axis.neutral(text).payload == (
        "Person A asked Person B whether Person A's form came. PERSON B said no."
    )


def test_the_neutral_form_of_a_gendered_text_speaks_of_a_person() -> None:
    """With verbs that still agree."""
    twin = builtin_axis("gender").neutral("She told Mrs Li that her mother knows her; hers is red.")
    assert twin.payload == (
        "The person told Mx Li that the person's parent knows the person; the person's is red."
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a Black man", "a man"),
        ("an Asian man", "a man"),
        ("a Hispanic engineer", "an engineer"),
        ("Black patients wait.", "Patients wait."),
        ("Yes. Black patients wait.", "Yes. Patients wait."),
        ("a White Asian engineer", "an engineer"),
        ("an Asian White man", "a man"),
        ("Black Olson waits.", "Doe waits."),
        ("Race: Black", "Race: Unspecified"),
        ("Race: Black (self-reported)", "Race: Unspecified (self-reported)"),
        ("Black.", "Unspecified."),
    ],
)
def test_a_descriptor_is_taken_out_with_the_gap_it_leaves(text: str, expected: str) -> None:
    """The article agrees with what comes next, the sentence keeps its capital."""
    assert builtin_axis("race_ethnicity").neutral(text).payload == expected


def test_a_neutral_age_fits_the_phrase_it_stands_in() -> None:
    """One neutral form for each template."""
    twin = builtin_axis("age").neutral("A 34-year-old man, aged 34, of the class of 2016.")
    assert twin.payload == "An adult man, of adult age, of the class."


def test_phrases_can_be_shielded() -> None:
    """A white house is not the White House."""
    axis = builtin_axis("race_ethnicity")
    assert axis.swap("The White House called.").no_op
    assert axis.swap("The White man left the White House.", to="black").payload == (
        "The Black man left the White House."
    )


def test_ages_in_one_text_stay_one_age() -> None:
    """However they are written, and with the article they need."""
    text = "A 34-year-old man, aged 34, age: 34, 34 years old; his son is a 22 yo."
    twin = builtin_axis("age").swap(text, Random(5))
    words = [edit.replacement for edit in twin.edits]
    first = words[0].removesuffix("-year-old")
    assert words[1:4] == [f"aged {first}", f"age: {first}", f"{first} years old"]
    assert words[4] != f"{first} yo"


@pytest.mark.parametrize("name", BUILTIN_AXES)
def test_the_illustrations_are_even_handed(name: str) -> None:
    """Free slots list as many words for each group, so that no group's wording varies more."""
    axis = builtin_axis(name)
    for slot in axis.slots:
        assert set(slot.forms) == set(axis.groups)
        if slot.free:
            sizes = {len(words) for words in slot.forms.values()}
            assert len(sizes) == 1, slot.name
            assert min(sizes) >= 6
    assert axis is builtin_axis(name)


@pytest.mark.parametrize("name", BUILTIN_AXES)
def test_every_word_of_the_illustrations_is_found_and_swapped(name: str) -> None:
    """A word that cannot be found has no place in the list."""
    axis = builtin_axis(name)
    for slot in axis.slots:
        for group in axis.groups:
            for term in slot.terms(group):
                twin = axis.swap(f"x {term.form} x", kind=slot.kind)
                assert twin.edit_count >= 1, term.form
                assert twin.source == group


@pytest.mark.parametrize("name", BUILTIN_AXES)
def test_every_word_of_the_illustrations_can_be_neutralised(name: str) -> None:
    """A blind run must not be left with one."""
    axis = builtin_axis(name)
    for slot in axis.slots:
        for group in axis.groups:
            for term in slot.terms(group):
                blind = axis.neutral(f"x {term.form} x").payload
                assert axis.neutral(blind).no_op, term.form


def test_an_unknown_axis_is_named_with_the_known_ones() -> None:
    """No name is guessed."""
    with pytest.raises(UnknownAxis, match="'gendr'") as caught:
        builtin_axis("gendr")
    assert caught.value.known == BUILTIN_AXES


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "needs a name"),
        ({"name": "a:b"}, "needs a name"),
        ({"groups": ("a",)}, "two or more"),
        ({"groups": ("a", "a")}, "two or more"),
        ({"slots": ()}, "no words"),
        ({"groups": ("a", "b")}, "no group of axis"),
        ({"slots": (PAIRED, Slot(name="x", forms={"b": ("Mom",)}))}, "more than one group"),
        ({"slots": (PAIRED, Slot(name="x", forms={"a": ("mom",)}))}, "give each a role"),
    ],
)
def test_an_axis_that_means_nothing_is_refused(fields: dict[str, Any], message: str) -> None:
    """When it is defined, not when it is used."""
    given: dict[str, Any] = {"name": "kin", "groups": ("a", "b", "c"), "slots": (PAIRED,)}
    with pytest.raises(ConfigurationError, match=message):
        Axis(**{**given, **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"forms": {}}, "no words"),
        ({"forms": {"a": ("x", " ")}}, "empty word"),
        ({"templates": ("old",)}, "without '{}'"),
        ({"kind": "sham"}, "kind is 'sham'"),
        ({"role": "subject"}, "role is 'subject'"),
        ({"part": "verb"}, "part is 'verb'"),
        ({"case": "lower"}, "case is 'lower'"),
    ],
)
def test_a_slot_that_means_nothing_is_refused(fields: dict[str, Any], message: str) -> None:
    """With the values there are."""
    given: dict[str, Any] = {"name": "x", "forms": {"a": ("x",)}, **fields}
    with pytest.raises(ConfigurationError, match=message):
        Slot(**given)


TOML = """
[[axis]]
name = "kin"
groups = ["a", "b"]
ignore = "she bear"
[[axis.paired]]
a = ["she", "mom"]
b = ["he", "dad"]
neutral = "someone"
[[axis.free]]
name = "zip"
proxy = true
a = ["11111"]
b = ["22222"]

[[axis]]
name = "tone"
groups = ["warm", "cool"]
[[axis.paired]]
warm = "hi"
cool = "hello"
"""


def test_axes_come_from_a_file(tmp_path: Path) -> None:
    """One table each, in the order of the file."""
    path = tmp_path / "axes.toml"
    path.write_text(TOML, encoding="utf-8")
    kin, tone = load_axes(path)
    assert (kin.name, tone.name) == ("kin", "tone")
    assert kin.kinds == ("attribute_swap", "proxy_swap")
    assert tone.kinds == ("attribute_swap",)
    assert kin.swap("She saw the she bear at 11111").payload == "He saw the she bear at 11111"
    assert kin.neutral("Mom").payload == "Someone"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("axis = [", "is no TOML"),
        ("", "holds no axis"),
        ("axis = []", "holds no axis"),
        ("axis = 3", "give a list of tables"),
        ("axis = [1, 2]", "give a list of tables"),
        ("[[axis]]\ngroups = ['a', 'b']", "the name of an axis is None"),
        ("[[axis]]\nname = 'x'", "groups is None"),
        ("[[axis]]\nname = 'x'\ngroups = [1, 2]", "groups is 1; give a string"),
        ("[[axis]]\nname = 'x'\ngroups = ['a', 'b']\ncolour = 1", "unknown key 'colour'"),
        ("[[axis]]\nname = 'x'\ngroups = ['a', 'neutral']", "rename the group"),
        ("[[axis]]\nname = 'x'\ngroups = ['a', 'b']\npaired = 3", "give a list of tables"),
        ("[[axis]]\nname = 'x'\ngroups = ['a', 'b']\n[[axis.free]]\nc = 'x'", "unknown key 'c'"),
        (
            "[[axis]]\nname = 'x'\ngroups = ['a', 'b']\n[[axis.free]]\na = 'x'\nproxy = 'yes'",
            "give true or false",
        ),
        (TOML + TOML, "'kin' twice"),
    ],
)
def test_a_file_that_means_nothing_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """The error names the file's fault and its cure."""
    path = tmp_path / "axes.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message):
        load_axes(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """By the error of a wrong option, not by the operating system's."""
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_axes(tmp_path / "none.toml")


def test_an_axis_given_as_data_is_the_axis_of_the_file() -> None:
    """The same keys, in a mapping."""
    data = {
        "name": "tone",
        "groups": ("warm", "cool"),
        "paired": [{"warm": "hi", "cool": "hello"}],
    }
    assert Axis.from_mapping(data).swap("hi").payload == "hello"
    assert parse_axes(TOML)[1].swap("hi").payload == "hello"


# --- perturb ----------------------------------------------------------------------------------

LITERAL = Axis.from_substitutions(
    "gender", [Substitution("him", "her"), Substitution("90210", "10453", "proxy_swap")]
)


def test_perturb_needs_an_axis() -> None:
    """There is no default list of attributes."""
    with pytest.raises(ConfigurationError, match="no axes"):
        perturb("he", [])
    with pytest.raises(ConfigurationError, match="no axes"):
        perturb("he", iter(()))


def test_perturb_makes_explicit_before_proxy_and_axes_in_order() -> None:
    """One axis with both kinds, and a second axis after it."""
    twins = perturb("call him at 90210", [LITERAL, AXIS])
    assert [twin.payload for twin in twins[:2]] == ["call her at 90210", "call him at 10453"]
    assert [(twin.axis, twin.kind) for twin in twins] == [
        ("gender", "attribute_swap"),
        ("gender", "proxy_swap"),
        ("kin", "attribute_swap"),
        ("kin", "proxy_swap"),
    ]
    assert [twin.outcome for twin in twins] == ["ok", "ok", "no_op", "no_op"]


def test_perturb_takes_names_of_illustrations() -> None:
    """One name, one axis, or several of both."""
    assert perturb("she", "gender")[0].payload == "he"
    assert perturb("she", AXIS)[0].payload == "he"
    assert [twin.axis for twin in perturb("she", ["gender", AXIS])] == ["gender", "kin", "kin"]
    with pytest.raises(UnknownAxis):
        perturb("she", ["gendr"])


def test_perturb_refuses_an_axis_twice_and_a_target_without_axis() -> None:
    """Neither has a meaning."""
    with pytest.raises(ConfigurationError, match="twice"):
        perturb("she", ["gender", "gender"])
    with pytest.raises(ConfigurationError, match="none of the axes"):
        perturb("she", ["gender"], to={"age": "older"})
    assert perturb("she", [AXIS], to={"kin": "c"})[0].payload == "they"


@pytest.mark.parametrize(
    "substitutions",
    [
        [],
        [Substitution("", "x")],
        [Substitution("x", "")],
        [Substitution("he", "she"), Substitution("He", "her")],
    ],
)
def test_substitutions_that_mean_nothing_are_refused(substitutions: list[Substitution]) -> None:
    """None, an empty one, or one pattern with two replacements."""
    with pytest.raises(TwinspanError):
        Axis.from_substitutions("x", substitutions)


def test_a_rendering_shows_no_content_when_it_is_printed() -> None:
    """A log line must not disclose what content capture keeps closed."""
    shown = repr(AXIS.swap("she met Ann"))
    assert "she" not in shown
    assert "Ann" not in shown
    assert "kin:a>b" in shown
    assert "Ann" not in repr(AXIS.read("Ann"))
    assert "Ann" not in repr(AXIS)


def test_an_axis_can_be_copied() -> None:
    """Options that hold axes are copied with them."""
    assert copy.deepcopy(AXIS).swap("she").payload == "he"


def test_importing_the_package_imports_no_framework() -> None:
    """Models and messages are told by their shape."""
    code = (
        "import sys, twinspan.instrumentation.perturbation as p;"
        "p.perturb({'a': 'she'}, 'gender');"
        "print([name for name in ('pydantic', 'langchain_core') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
