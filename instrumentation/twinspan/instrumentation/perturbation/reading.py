"""What an axis found in a payload, and the payload said in other words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation.agreement import agreeing_article
from twinspan.instrumentation.perturbation.casing import capitalised, match_case
from twinspan.instrumentation.perturbation.deck import WordDeck
from twinspan.instrumentation.perturbation.rendering import (
    Edit,
    PerturbationKind,
    Rendering,
    SwapKind,
    splice,
    with_texts,
)
from twinspan.instrumentation.perturbation.vocabulary import Hit, Leaf, Slot

Choose = Callable[[Leaf, Hit], "str | None"]
"""Gives the listed word that takes a hit's place; ``None`` leaves the hit as it is."""

UNNAMED: Final = "unspecified"
"""Stands where a word was to be taken out and nothing follows that could close the gap."""

_AHEAD: Final = 40


class WordDraw:
    """Decides which word of a group stands for which word of the payload.

    One word of the payload gets one word throughout, and two words get two as long as the
    vocabulary lasts. With a generator the words are drawn uniformly and without replacement, with
    a deck besides they are dealt from it; without either, word k stands for word k.
    """

    __slots__ = ("_deck", "_given", "_rng")

    def __init__(self, rng: Random | None, deck: WordDeck | None = None) -> None:
        self._rng = rng
        self._deck = deck
        self._given: dict[tuple[Slot, str], dict[tuple[str, int], int]] = {}

    def index(self, hit: Hit, group: str) -> int:
        """Index, in a group's list, of the word that stands for a hit."""
        term = hit.term
        given = self._given.setdefault((term.slot, group), {})
        key = (term.group, term.rank)
        if key not in given:
            given[key] = self._pick(term.slot, group, term.rank, set(given.values()))
        return given[key]

    def _pick(self, slot: Slot, group: str, preferred: int, taken: set[int]) -> int:
        if self._rng is not None and self._deck is not None:
            return self._deck.deal(slot, group, taken)
        size = len(slot.forms[group])
        order = [(preferred + step) % size for step in range(size)]
        left = [index for index in order if index not in taken] or order
        return left[0] if self._rng is None else self._rng.choice(sorted(left))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """A payload as one axis reads it; made once, rendered as often as samples are drawn.

    Attributes:
        axis: name of the axis.
        groups: its groups in declared order.
        payload: the payload as given.
        leaves: its text leaves with the terms found in each.
        english: whether articles are made to agree.
    """

    axis: str
    groups: tuple[str, ...]
    payload: Any = field(repr=False)
    leaves: tuple[Leaf, ...] = field(repr=False)
    english: bool = True

    def counts(self, kind: SwapKind = "attribute_swap") -> dict[str, int]:
        """How often terms of a kind occur, per group; groups in order of first appearance."""
        found: dict[str, int] = {}
        for leaf in self.leaves:
            for hit in leaf.hits:
                if hit.term.slot.kind == kind:
                    found[hit.term.group] = found.get(hit.term.group, 0) + 1
        return found

    def source_group(self, kind: SwapKind = "attribute_swap") -> str | None:
        """The group whose terms of a kind occur most; the one met first among equals.

        ``None`` when no term of that kind occurs.
        """
        counts = self.counts(kind)
        return max(counts, key=counts.__getitem__) if counts else None

    def reword(self, rng: Random | None = None, *, deck: WordDeck | None = None) -> Rendering:
        """The payload in words of its own groups; see :meth:`Axis.reword`.

        Args:
            rng: source of the wording.
            deck: deals the words, for a sample that is to share none with the others.
        """
        source = self.source_group() or self.source_group("proxy_swap")
        draw = WordDraw(rng, deck)
        choose = _staying(draw) if rng is not None else _unchanged
        return self.render(
            choose, kind="identity", source=source, target=source, arm=source or "none"
        )

    def swap(
        self,
        rng: Random | None = None,
        *,
        to: str | None = None,
        kind: SwapKind = "attribute_swap",
        deck: WordDeck | None = None,
    ) -> Rendering:
        """The payload in another group's words; see :meth:`Axis.swap` and :meth:`reword`."""
        source = self.source_group(kind)
        target = self._target(source, to)
        exchange: dict[str, str] = {}
        if source is not None and target is not None and source != target:
            exchange = {source: target, target: source}
        moves = any(_moves(hit, exchange, kind) for leaf in self.leaves for hit in leaf.hits)
        # Without a move there is no twin: drawing other names would only look like one.
        choose = _moving(WordDraw(rng, deck), exchange, kind, rng) if moves else _unchanged
        arm = f"{source or 'none'}>{target or 'none'}"
        return self.render(
            choose,
            kind=kind,
            source=source,
            target=target,
            arm=arm if kind == "attribute_swap" else f"{arm}#proxy",
        )

    def neutral(self) -> Rendering:
        """The payload with the attribute taken out; see :meth:`Axis.neutral`."""
        source = self.source_group() or self.source_group("proxy_swap")
        return self.render(
            _neutralised(),
            kind="neutral",
            source=source,
            target="neutral",
            arm=f"{source or 'none'}>neutral",
        )

    def render(
        self,
        choose: Choose,
        *,
        kind: PerturbationKind,
        source: str | None,
        target: str | None,
        arm: str,
        also: Mapping[str, Sequence[Edit]] | None = None,
    ) -> Rendering:
        """Replace every hit by the word chosen for it, all at once.

        Args:
            choose: called for each hit in document order.
            kind: kind of the rendering.
            source: group the payload spoke of.
            target: group it is to speak of.
            arm: what follows the axis name in the perturbation id.
            also: further edits by pointer; those that touch a hit are dropped.

        Returns:
            The rendering; its payload is the payload itself if nothing was replaced.
        """
        edits: list[Edit] = []
        texts: dict[str, str] = {}
        for leaf in self.leaves:
            made = _leaf_edits(leaf, choose, self.english)
            made += clear_of(leaf, made, (also or {}).get(leaf.pointer, ()))
            if made:
                edits += sorted(made, key=lambda edit: (edit.start, edit.end))
                texts[leaf.pointer] = splice(leaf.text, made)
        return Rendering(
            payload=with_texts(self.payload, texts),
            edits=tuple(edits),
            kind=kind,
            axis=self.axis,
            source=source,
            target=target,
            perturbation_id=f"{self.axis}:{arm}" if self.axis else arm,
        )

    def _target(self, source: str | None, to: str | None) -> str | None:
        if to is not None:
            if to not in self.groups:
                listed = ", ".join(map(repr, self.groups))
                raise ConfigurationError(
                    f"axis {self.axis!r} has no group {to!r}; its groups: {listed}"
                )
            return to
        if source is None:
            return None
        return self.groups[(self.groups.index(source) + 1) % len(self.groups)]


def _unchanged(leaf: Leaf, hit: Hit) -> str | None:
    return None


def _staying(draw: WordDraw) -> Choose:
    """Words of free slots drawn anew within their own group."""

    def choose(leaf: Leaf, hit: Hit) -> str | None:
        term = hit.term
        if not term.slot.free:
            return None
        return term.slot.form(term.group, draw.index(hit, term.group), term.template)

    return choose


def _moving(draw: WordDraw, exchange: dict[str, str], kind: SwapKind, rng: Random | None) -> Choose:
    """Words of one kind moved between two groups; the rest stays in its group."""
    stay = _staying(draw) if rng is not None else _unchanged

    def choose(leaf: Leaf, hit: Hit) -> str | None:
        if not _moves(hit, exchange, kind):
            return stay(leaf, hit)
        term = hit.term
        group = exchange[term.group]
        index = draw.index(hit, group) if term.slot.free else term.rank
        return term.slot.form(group, index, term.template)

    return choose


def _moves(hit: Hit, exchange: dict[str, str], kind: SwapKind) -> bool:
    slot = hit.term.slot
    group = exchange.get(hit.term.group)
    return group is not None and slot.kind == kind and bool(slot.forms.get(group))


def _neutralised() -> Choose:
    """Each word replaced by its slot's neutral one, placeholders in order of appearance."""
    given: dict[tuple[str, ...], dict[str, int]] = {}

    def choose(leaf: Leaf, hit: Hit) -> str | None:
        slot, words = hit.term.slot, hit.term.slot.neutral
        if not words:
            return None
        if len(slot.templates) > 1:
            index = hit.term.template
        elif slot.free:
            seen = given.setdefault(words, {})
            index = seen.setdefault(hit.term.form, len(seen)) % len(words)
        else:
            index = hit.term.rank
        return words[index] if index < len(words) else words[0]

    return choose


def _leaf_edits(leaf: Leaf, choose: Choose, english: bool) -> list[Edit]:
    chosen = [(hit, word) for hit in leaf.hits if (word := choose(leaf, hit)) is not None]
    words = [_word_edit(leaf, hit, word) for hit, word in chosen]
    words = [edit for edit in words if edit.replacement != edit.original]
    return _with_articles(leaf, words) if english else words


def _with_articles(leaf: Leaf, words: Sequence[Edit]) -> list[Edit]:
    """The edits and those of the articles before them, which agree with what will follow."""
    text = leaf.text
    edits: list[Edit] = []
    next_start, next_words = len(text), ""
    for index in range(len(words) - 1, -1, -1):
        edit, free_from = words[index], words[index - 1].end if index else 0
        between = text[edit.end : min(next_start, edit.end + _AHEAD)]
        follows = (edit.replacement + between + next_words)[:_AHEAD]
        edits.append(edit)
        article = agreeing_article(
            text, edit.start, text[edit.start : edit.start + _AHEAD], follows
        )
        if article and free_from <= article[0]:
            start, end, word = article
            edits.append(Edit(leaf.pointer, start, end, text[start:end], word))
        next_start, next_words = edit.start, follows
    return edits[::-1]


def _word_edit(leaf: Leaf, hit: Hit, word: str) -> Edit:
    if not word:
        return _removal(leaf, hit)
    return Edit(
        leaf.pointer, hit.start, hit.end, hit.text, match_case(hit.text, hit.term.form, word)
    )


def _removal(leaf: Leaf, hit: Hit) -> Edit:
    """Takes a word out together with the gap after it."""
    text, end = leaf.text, hit.end
    while end < len(text) and text[end].isspace():
        end += 1
    if end == hit.end or end == len(text) or not text[end].isalnum():
        word = match_case(hit.text, hit.term.form.lower(), UNNAMED)
        return Edit(leaf.pointer, hit.start, hit.end, hit.text, word)
    if starts_sentence(text, hit.start) and all(other.start != end for other in leaf.hits):
        return Edit(
            leaf.pointer, hit.start, end + 1, text[hit.start : end + 1], capitalised(text[end])
        )
    return Edit(leaf.pointer, hit.start, end, text[hit.start : end], "")


def starts_sentence(text: str, start: int) -> bool:
    """Whether a sentence starts at a position.

    >>> [starts_sentence("Yes. Emily and Rachel", at) for at in (0, 5, 15)]
    [True, True, False]
    """
    before = text[max(0, start - 40) : start].rstrip(" \t\"\u201c'\u2018(*_")
    return not before or (before[-1] in ".!?\n:" and not follows_title(before))


def follows_title(before: str) -> bool:
    """Whether a text ends in a title, whose full stop ends no sentence.

    >>> follows_title("We met Dr."), follows_title("We met.")
    (True, False)
    """
    return _TITLE.search(before) is not None


_TITLE: Final = re.compile(r"\b(?:M[rsx]|Mrs|Miss|Dr|Prof|St|Rev|Hon|Sir|Madam)\.?\s*$")


def clear_of(leaf: Leaf, made: Sequence[Edit], more: Sequence[Edit]) -> list[Edit]:
    """Those further edits that touch neither a hit nor an edit already made."""
    if not more:
        return []
    closed = bytearray(len(leaf.text))
    for start, end in [(h.start, h.end) for h in leaf.hits] + [(e.start, e.end) for e in made]:
        closed[start:end] = b"\1" * (end - start)
    return [edit for edit in more if not any(closed[edit.start : edit.end])]
