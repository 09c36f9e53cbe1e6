"""The words of an axis: slots of counterparts, one list of words per group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation.agreement import Role
from twinspan.instrumentation.perturbation.rendering import SwapKind

Part = Literal["noun", "adjective", "name", "other"]
"""What a slot's words are in a sentence; a control needs it to find where its word may go."""

Case = Literal["any", "capitalised", "exact"]
"""Which spellings are meant: every one, those with a capital, or only the one listed."""

PLACEHOLDER: Final = "{}"
"""Where a slot's word goes in the slot's templates."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slot:
    """Words that can stand in for one another, listed group by group.

    A *paired* slot lists counterparts: word k of one group means word k of another (she/he,
    mother/father); a group with fewer words answers the rest with its first. A *free* slot
    lists vocabularies, such as first names, of which any word of the group will do.

    Attributes:
        name: what the slot holds; for messages only.
        forms: the words of each group; a group may be missing, and its counterpart with it.
        neutral: words that name no group. For a paired slot they answer word k (or all, if
            there is one); for a free slot they are placeholders, handed out in order of
            appearance; for a slot with several templates they answer template k. ``""``
            takes the word out.
        free: whether the slot is free.
        kind: ``attribute_swap`` for words that name the attribute, ``proxy_swap`` for words
            that hint at it, such as ZIP codes.
        role: which of its roles a word has here when the same word stands in two slots.
        part: what the words are in a sentence.
        case: which spellings are meant.
        templates: phrases around the words, ``{}`` standing for the word; all templates share
            one draw, so that "34-year-old" and "aged 34" stay the same age.

    Raises:
        ConfigurationError: there are no words, a word is empty or listed for a closed set of
            values that it is not in, or a template has no ``{}``.
    """

    name: str
    forms: Mapping[str, tuple[str, ...]]
    neutral: tuple[str, ...] = ()
    free: bool = False
    kind: SwapKind = "attribute_swap"
    role: Role | None = None
    part: Part = "other"
    case: Case = "any"
    templates: tuple[str, ...] = (PLACEHOLDER,)

    def __post_init__(self) -> None:
        if not any(self.forms.values()):
            raise ConfigurationError(f"slot {self.name!r} has no words; list some for each group")
        if not all(word.strip() for words in self.forms.values() for word in words):
            raise ConfigurationError(f"slot {self.name!r} lists an empty word; remove it")
        if not self.templates or any(PLACEHOLDER not in template for template in self.templates):
            raise ConfigurationError(
                f"slot {self.name!r} has a template without {PLACEHOLDER!r}; mark the word's place"
            )
        self._check("kind", self.kind, get_args(SwapKind))
        self._check("role", self.role, (None, *get_args(Role)))
        self._check("part", self.part, get_args(Part))
        self._check("case", self.case, get_args(Case))

    def _check(self, option: str, value: object, allowed: tuple[object, ...]) -> None:
        if value not in allowed:
            listed = ", ".join(repr(each) for each in allowed if each is not None)
            raise ConfigurationError(
                f"slot {self.name!r}: {option} is {value!r}; give one of {listed}"
            )

    def terms(self, group: str) -> Iterator[Term]:
        """Every word of a group in every template."""
        for rank, word in enumerate(self.forms.get(group, ())):
            for template, phrase in enumerate(self.templates):
                yield Term(self, group, rank, template, phrase.replace(PLACEHOLDER, word))

    def form(self, group: str, rank: int, template: int) -> str:
        """Word ``rank`` of a group, or its first word if it has fewer, in a template."""
        words = self.forms[group]
        word = words[rank] if rank < len(words) else words[0]
        return self.templates[template].replace(PLACEHOLDER, word)


class Term(NamedTuple):
    """One word of one group in one template, as listed; ``rank`` is its place in the list."""

    slot: Slot
    group: str
    rank: int
    template: int
    form: str

    def admits(self, found: str) -> bool:
        """Whether a spelling found in a text is one the slot means."""
        if self.slot.case == "exact":
            return found == self.form
        return self.slot.case == "any" or found[:1].isupper()


class Hit(NamedTuple):
    """A term found in a text, from ``start`` up to ``end``."""

    start: int
    end: int
    text: str
    term: Term


class Leaf(NamedTuple):
    """A text leaf of a payload with the terms found in it."""

    pointer: str
    text: str
    hits: tuple[Hit, ...]
