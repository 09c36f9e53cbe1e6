"""Control arms: renderings that edit a payload and leave the attribute alone.

A swap that moves a model's answer shows bias only if edits of the same size that mean nothing
move it less. ``rerender`` edits nothing, ``sham`` and ``rare_token`` put an irrelevant and an
invented word where the axis has its words, ``neutral_edit`` rephrases what is around them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from random import Random
from typing import Final, NamedTuple

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation.axis import Axis
from twinspan.instrumentation.perturbation.casing import capitalised, match_case
from twinspan.instrumentation.perturbation.deck import WordDeck
from twinspan.instrumentation.perturbation.matching import Matcher, term_key
from twinspan.instrumentation.perturbation.reading import (
    Choose,
    Reading,
    WordDraw,
    clear_of,
    follows_title,
    starts_sentence,
)
from twinspan.instrumentation.perturbation.rendering import Edit, PerturbationKind, Rendering
from twinspan.instrumentation.perturbation.tree import text_leaves
from twinspan.instrumentation.perturbation.vocabulary import Hit, Leaf

SURFACE: Final = "\n"
"""What a neutral edit adds to a text in which it finds nothing to rephrase."""


class Wording(NamedTuple):
    """The words of the controls: irrelevant ones, invented ones, and pairs of equals."""

    sham: tuple[str, ...]
    rare_token: tuple[str, ...]
    equals: dict[str, str]
    matcher: Matcher


@cache
def wording() -> Wording:
    """The control words that come with the package."""
    text = (
        files("twinspan.instrumentation.perturbation")
        .joinpath("data", "controls.toml")
        .read_text(encoding="utf-8")
    )
    table = tomllib.loads(text)
    equals = {
        term_key(one): other for pair in table["equals"] for one, other in (pair, reversed(pair))
    }
    return Wording(tuple(table["sham"]), tuple(table["rare_token"]), equals, Matcher(equals))


def rerender(payload: object) -> Rendering:
    """The payload again, the very same object: what the node's own sampling noise looks like.

    >>> twin = rerender({"note": "she waits"})
    >>> twin.kind, twin.edit_count, twin.perturbation_id
    ('identity', 0, 'rerender')
    """
    return Rendering(
        payload=payload,
        edits=(),
        kind="identity",
        axis="",
        source=None,
        target=None,
        perturbation_id="rerender",
    )


def sham(
    payload: object,
    axis: Axis,
    rng: Random | None = None,
    *,
    words: Sequence[str] | None = None,
    deck: WordDeck | None = None,
) -> Rendering:
    """The payload with an attribute that means nothing, where the axis has its words.

    Each word of the axis is marked where it first occurs: a descriptor is replaced, a noun or
    a name gets the sham attribute before it. A payload that speaks of the axis in words that
    can take no attribute, such as pronouns, gets it in brackets after the first of them.

    Args:
        payload: any payload.
        axis: the axis whose swap this is the control of.
        rng: draws the attribute and, as in every arm, the wording; ``None`` takes the first
            attribute and keeps the wording.
        words: attributes to choose from instead of those that come with the package.
        deck: deals the wording, as in every arm of a probe.

    Returns:
        A rendering of kind ``sham``; ``no_op`` when the payload does not speak of the axis.

    Raises:
        ConfigurationError: ``words`` is empty or holds an empty word.

    >>> from twinspan.instrumentation.perturbation.loading import builtin_axis
    >>> sham("a White man", builtin_axis("race_ethnicity"), words=["eager"]).payload
    'an eager man'
    """
    return _marked(payload, axis, rng, words or wording().sham, "sham", words, deck)


def rare_token(
    payload: object,
    axis: Axis,
    rng: Random | None = None,
    *,
    words: Sequence[str] | None = None,
    deck: WordDeck | None = None,
) -> Rendering:
    """The payload with an invented word, where the axis has its words.

    As :func:`sham`, with words that no model has a meaning for: what a rare token does to the
    model whatever it stands for.

    >>> from twinspan.instrumentation.perturbation.loading import builtin_axis
    >>> rare_token("She saw an old woman.", builtin_axis("gender"), words=["Velmoric"]).payload
    'She saw an old Velmoric woman.'
    """
    return _marked(payload, axis, rng, words or wording().rare_token, "rare_token", words, deck)


def neutral_edit(
    payload: object,
    axis: Axis | None = None,
    rng: Random | None = None,
    *,
    deck: WordDeck | None = None,
) -> Rendering:
    """The payload rephrased where the axis has no words: what any edit does to the model.

    Contractions are written out or drawn together and a few words are exchanged for equals.
    A payload in which there is nothing of the kind gets a line break at the end of its
    longest text. Texts without a space, such as identifiers, are left alone.

    Args:
        payload: any payload.
        axis: the axis whose words are left alone; with a generator they are drawn anew within
            their own group, as in every arm.
        rng: decides for each place whether it is rephrased, with probability one half, and
            then rephrases at least one; ``None`` rephrases every place.
        deck: deals the axis's words, as in every arm of a probe.

    Returns:
        A rendering of kind ``neutral_edit``; ``no_op`` when no text of the payload has a space.

    >>> neutral_edit("I'm sure she cannot begin.").payload
    "I am sure she can't start."
    """
    reading = axis.read(payload) if axis else _plain(payload)
    source = reading.source_group() or reading.source_group("proxy_swap")
    return reading.render(
        _rewording(rng, deck),
        kind="neutral_edit",
        source=source,
        target=source,
        arm="neutral_edit",
        also=_rephrasings(reading, rng),
    )


def _plain(payload: object) -> Reading:
    leaves = tuple(Leaf(pointer, text, ()) for pointer, text in text_leaves(payload))
    return Reading(axis="", groups=(), payload=payload, leaves=leaves, english=False)


def _rewording(rng: Random | None, deck: WordDeck | None) -> Choose:
    draw = WordDraw(rng, deck)

    def choose(leaf: Leaf, hit: Hit) -> str | None:
        term = hit.term
        if rng is None or not term.slot.free:
            return None
        return term.slot.form(term.group, draw.index(hit, term.group), term.template)

    return choose


def _rephrasings(reading: Reading, rng: Random | None) -> dict[str, list[Edit]]:
    places = [
        edit
        for leaf in reading.leaves
        if " " in leaf.text
        for edit in clear_of(leaf, (), _places(leaf))
    ]
    chosen = [edit for edit in places if rng is None or rng.random() < 0.5]
    if places and not chosen and rng is not None:
        chosen = [rng.choice(places)]
    found: dict[str, list[Edit]] = {}
    for edit in chosen or _surface(reading):
        found.setdefault(edit.pointer, []).append(edit)
    return found


def _places(leaf: Leaf) -> list[Edit]:
    words = wording()
    return [
        Edit(leaf.pointer, start, end, found := leaf.text[start:end], _equal(found, key))
        for start, end, key in words.matcher.find(leaf.text)
    ]


def _equal(found: str, key: str) -> str:
    return match_case(found, key, wording().equals[key])


def _surface(reading: Reading) -> list[Edit]:
    texts = [leaf for leaf in reading.leaves if " " in leaf.text]
    if not texts:
        return []
    longest = max(texts, key=lambda leaf: len(leaf.text))
    end = len(longest.text)
    return [Edit(longest.pointer, end, end, "", SURFACE)]


def _marked(
    payload: object,
    axis: Axis,
    rng: Random | None,
    table: Sequence[str],
    kind: PerturbationKind,
    given: Sequence[str] | None,
    deck: WordDeck | None,
) -> Rendering:
    if given is not None and (not given or not all(word.strip() for word in given)):
        raise ConfigurationError(f"{kind} was given the words {given!r}; give one or more")
    reading = axis.read(payload)
    word = table[0] if rng is None else rng.choice(list(table))
    source = reading.source_group() or reading.source_group("proxy_swap")
    return reading.render(
        _marking(reading, word, _rewording(rng, deck)),
        kind=kind,
        source=source,
        target=source,
        arm=kind,
    )


def _marking(reading: Reading, word: str, otherwise: Choose) -> Choose:
    marked = _places_to_mark(reading)

    def choose(leaf: Leaf, hit: Hit) -> str | None:
        reworded = otherwise(leaf, hit)
        before = marked.get((leaf.pointer, hit.start))
        if before is None:
            return reworded
        listed = reworded or hit.term.form
        part = hit.term.slot.part
        if part == "adjective":
            return word
        if not before:
            return f"{listed} ({word})"
        # A name keeps its capital wherever it stands, so the sentence's goes to the new word.
        first = part == "name" and starts_sentence(leaf.text, hit.start)
        return f"{capitalised(word) if first else word} {listed}"

    return choose


def _places_to_mark(reading: Reading) -> dict[tuple[str, int], bool]:
    """Where each word of the axis first occurs and can take an attribute before it.

    Words that only hint at the attribute count when there are no others. When no word can take
    an attribute before it, the first one is marked ``False``: it takes it in brackets.
    """
    found = [(leaf, hit) for leaf in reading.leaves for hit in leaf.hits]
    explicit = [each for each in found if each[1].term.slot.kind == "attribute_swap"] or found
    names = {(leaf.pointer, hit.end) for leaf, hit in found if hit.term.slot.part == "name"}
    able = [(leaf, hit) for leaf, hit in explicit if _takes_attribute(leaf, hit, names)]
    first: dict[tuple[object, ...], tuple[str, int]] = {}
    for leaf, hit in able or explicit[:1]:
        first.setdefault((hit.term.slot, hit.term.group, hit.term.rank), (leaf.pointer, hit.start))
    return dict.fromkeys(first.values(), bool(able))


def _takes_attribute(leaf: Leaf, hit: Hit, names: set[tuple[str, int]]) -> bool:
    """Whether an attribute can stand before a word; not inside "Emily Chen" or "Dr. Chen"."""
    if hit.term.slot.part != "name":
        return hit.term.slot.part != "other"
    before = leaf.text[max(0, hit.start - 12) : hit.start]
    gap = len(before) - len(before.rstrip())
    return not follows_title(before) and (leaf.pointer, hit.start - gap) not in names
