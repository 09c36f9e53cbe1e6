"""What holds for every payload and every wording."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.instrumentation.perturbation import (
    Axis,
    Rendering,
    Slot,
    builtin_axis,
    neutral_edit,
    perturb,
    rare_token,
    replay,
    sham,
    text_leaves,
)

GENDER = builtin_axis("gender")
# Every word has one counterpart and is the counterpart of one.
PLAIN = Axis(
    name="plain",
    groups=("f", "m"),
    slots=(
        Slot(
            name="paired",
            forms={
                "f": ("she", "woman", "mother", "Ms.", "她"),
                "m": ("he", "man", "father", "Mr.", "他"),
            },
        ),
        Slot(name="name", free=True, forms={"f": ("Emily", "Zoë"), "m": ("James", "Óscar")}),
    ),
)

WORDS = st.sampled_from(
    [
        *("she", "he", "her", "his", "him", "hers", "Woman", "MAN", "mother", "Emily", "JAMES"),
        *("theme", "Rachel's", "a", "an", "didn't", "of", "the", "actress", "她", "İ", "e\u0301"),
    ]
)
TEXTS = st.lists(st.one_of(WORDS, st.text(max_size=4)), max_size=12).map(" ".join)
LEAVES = st.one_of(TEXTS, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False))
PAYLOADS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.lists(inner, max_size=3).map(deque),
        st.dictionaries(st.one_of(st.text(max_size=4), st.integers()), inner, max_size=4),
        st.frozensets(TEXTS, max_size=3),
    ),
    max_leaves=12,
)
SEEDS = st.one_of(st.none(), st.integers(0, 2**32))


def generator(seed: int | None) -> Random | None:
    return None if seed is None else Random(seed)


MAKERS: list[Callable[[Any, int | None], Rendering]] = [
    lambda payload, seed: GENDER.swap(payload, generator(seed)),
    lambda payload, seed: GENDER.reword(payload, generator(seed)),
    lambda payload, seed: GENDER.neutral(payload),
    lambda payload, seed: sham(payload, GENDER, generator(seed)),
    lambda payload, seed: rare_token(payload, GENDER, generator(seed)),
    lambda payload, seed: neutral_edit(payload, GENDER, generator(seed)),
    lambda payload, seed: PLAIN.swap(payload, generator(seed)),
]
MAKER = st.sampled_from(MAKERS)


def skeleton(payload: Any) -> Any:
    """Structure, keys and everything that is no text."""
    if isinstance(payload, str):
        return str
    if isinstance(payload, dict):
        return [(key, skeleton(value)) for key, value in payload.items()]
    if isinstance(payload, list | tuple | deque):
        return (type(payload), [skeleton(item) for item in payload])
    if isinstance(payload, frozenset):
        return frozenset
    return (type(payload), payload)


@given(PAYLOADS, SEEDS, MAKER)
@settings(max_examples=300, deadline=None)
def test_structure_and_everything_that_is_no_text_stay(
    payload: Any, seed: int | None, make: Callable[[Any, int | None], Rendering]
) -> None:
    """Types, keys, numbers, order and length."""
    assert skeleton(make(payload, seed).payload) == skeleton(payload)


@given(PAYLOADS, SEEDS, MAKER)
@settings(max_examples=300, deadline=None)
def test_the_input_is_never_changed_and_comes_back_when_nothing_is_edited(
    payload: Any, seed: int | None, make: Callable[[Any, int | None], Rendering]
) -> None:
    """A no-op is the very same object."""
    before = copy.deepcopy(payload)
    twin = make(payload, seed)
    assert payload == before
    assert twin.no_op == (twin.payload is payload)


@given(PAYLOADS, SEEDS, MAKER)
@settings(max_examples=300, deadline=None)
def test_edits_make_the_twin_again_and_their_pointers_resolve(
    payload: Any, seed: int | None, make: Callable[[Any, int | None], Rendering]
) -> None:
    """Each edit names what stood there, where it stood."""
    twin = make(payload, seed)
    assert replay(payload, twin.edits) == twin.payload
    texts = dict(text_leaves(payload))
    for edit in twin.edits:
        assert texts[edit.pointer][edit.start : edit.end] == edit.original
        assert edit.original != edit.replacement
    ends = [(edit.pointer, edit.start, edit.end) for edit in twin.edits]
    for (here, _, end), (there, start, _) in pairwise(ends):
        assert here != there or end <= start


@given(PAYLOADS, SEEDS, MAKER)
@settings(deadline=None)
def test_a_seed_decides_everything(
    payload: Any, seed: int | None, make: Callable[[Any, int | None], Rendering]
) -> None:
    """Payload, edits and names of the arm."""
    assert make(payload, seed) == make(payload, seed)


UNAMBIGUOUS = st.lists(
    st.sampled_from(
        [
            *("she", "He", "WOMAN", "man", "mother", "Father", "Mr.", "Ms.", "emily", "JAMES"),
            *("Zoë", "the", "theme", "她", "他", "met", ",", "\n", "x" * 9),
        ]
    ),
    max_size=14,
).map(" ".join)


@given(UNAMBIGUOUS)
@settings(max_examples=300, deadline=None)
def test_there_and_back_is_where_it_began(text: str) -> None:
    """For words with one counterpart, in "same input" mode."""
    there = PLAIN.swap(text)
    back = PLAIN.swap(there.payload, to=there.source)
    assert back.payload == text


@given(UNAMBIGUOUS, st.integers(0, 2**32))
@settings(deadline=None)
def test_a_drawn_twin_has_as_many_edits_as_a_fixed_one(text: str, seed: int) -> None:
    """Random wording changes which words come, not how many."""
    assert PLAIN.swap(text, Random(seed)).edit_count == PLAIN.swap(text).edit_count


@given(PAYLOADS, SEEDS)
@settings(deadline=None)
def test_a_twin_swapped_speaks_of_the_target(payload: Any, seed: int | None) -> None:
    """As often as the payload spoke of the source, and the other way round."""
    twin = PLAIN.swap(payload, generator(seed))
    if twin.no_op or any(isinstance(leaf, frozenset) for leaf in _inside(payload)):
        return
    before, after = PLAIN.read(payload).counts(), PLAIN.read(twin.payload).counts()
    other = {"f": "m", "m": "f"}
    assert {other[group]: count for group, count in before.items()} == after


def _inside(payload: Any) -> list[Any]:
    if isinstance(payload, dict):
        return [payload, *(leaf for item in payload.values() for leaf in _inside(item))]
    if isinstance(payload, list | tuple | deque):
        return [payload, *(leaf for item in payload for leaf in _inside(item))]
    return [payload]


@given(PAYLOADS)
@settings(deadline=None)
def test_perturb_gives_one_twin_per_axis_and_kind(payload: Any) -> None:
    """Whether or not anything could be swapped."""
    twins = perturb(payload, [GENDER, PLAIN, "race_ethnicity"])
    assert [(twin.axis, twin.kind) for twin in twins] == [
        ("gender", "attribute_swap"),
        ("plain", "attribute_swap"),
        ("race_ethnicity", "attribute_swap"),
        ("race_ethnicity", "proxy_swap"),
    ]
