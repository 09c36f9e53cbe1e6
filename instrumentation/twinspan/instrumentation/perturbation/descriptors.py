"""Descriptors: a person in one templated phrase, one attribute changed at a time.

An audit that writes its own cases can say who they are about in a phrase in which every
attribute has its place. Its axes are the slots of the phrase. What is not swapped keeps the
reference's value, so that a change of race is never a change of age as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter
from types import MappingProxyType

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation.agreement import article_for
from twinspan.instrumentation.perturbation.controls import wording
from twinspan.instrumentation.perturbation.rendering import Edit, PerturbationKind, Rendering

Level = str | int | bool
"""The value of one attribute, such as ``"Black"``, ``78`` or ``True``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DescriptorTemplate:
    """A phrase with a slot for each attribute.

    Attributes:
        text: the phrase, slots in braces; "a" before a slot becomes "an" where it has to.
        words: how the levels of a slot are worded, for slots whose levels are not their own
            words.

    Raises:
        ConfigurationError: the phrase has no slot, a slot twice, or braces without a name;
            or words are given for a slot that there is not.

    >>> template = DescriptorTemplate(
    ...     text="a {age}-year-old {race} {sex}, {lep} English proficiency",
    ...     words={"lep": {False: "full", True: "limited"}},
    ... )
    >>> person = template.describe(age=50, race="White", sex="man", lep=False)
    >>> person.text
    'a 50-year-old White man, full English proficiency'
    >>> person.swap(age=81).text
    'an 81-year-old White man, full English proficiency'
    """

    text: str
    words: Mapping[str, Mapping[Level, str]] = field(
        default_factory=dict[str, "Mapping[Level, str]"]
    )

    def __post_init__(self) -> None:
        slots = self.slots
        if not slots or "" in slots or len(set(slots)) < len(slots):
            raise ConfigurationError(
                f"descriptor template {self.text!r} has the slots {slots!r}; name each slot once"
            )
        if unknown := set(self.words) - set(slots):
            raise ConfigurationError(
                f"words are given for {min(unknown)!r}, which is no slot of the descriptor; "
                f"its slots: {', '.join(map(repr, slots))}"
            )

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots, in the order of the phrase."""
        return tuple(name for _, name, _, _ in Formatter().parse(self.text) if name is not None)

    def describe(self, **values: Level) -> Descriptor:
        """A person, by a value for every slot.

        Raises:
            ConfigurationError: a slot has no value or an unknown one, or there is no such slot.
        """
        return Descriptor(template=self, values=values)

    def word(self, slot: str, value: Level) -> str:
        """How a value is worded."""
        if slot not in self.words:
            return str(value)
        if value not in self.words[slot]:
            listed = ", ".join(map(repr, self.words[slot]))
            raise ConfigurationError(
                f"slot {slot!r} has no words for {value!r}; its levels: {listed}"
            )
        return self.words[slot][value]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Descriptor:
    """One person: a template and a value for each of its slots.

    Two people of one template are compared by ``values``.
    """

    template: DescriptorTemplate
    values: Mapping[str, Level]

    def __post_init__(self) -> None:
        slots = self.template.slots
        missing = [slot for slot in slots if slot not in self.values]
        unknown = [slot for slot in self.values if slot not in slots]
        if missing or unknown:
            raise ConfigurationError(
                f"a descriptor lacks values for {missing!r} and has values for the unknown slots "
                f"{unknown!r}; give one for each of {', '.join(map(repr, slots))}"
            )
        for slot, value in self.values.items():
            self.template.word(slot, value)
        ordered = {slot: self.values[slot] for slot in slots}
        object.__setattr__(self, "values", MappingProxyType(ordered))

    @property
    def text(self) -> str:
        """The phrase."""
        return "".join(text for _, text in self._pieces({}))

    @property
    def surface(self) -> tuple[int, int]:
        """Length of the phrase in characters and in words, to compare conditions by."""
        return len(self.text), len(self.text.split())

    def swap(self, **values: Level) -> Descriptor:
        """The same person but for the given attributes; all others keep their value."""
        return Descriptor(template=self.template, values={**self.values, **values})

    def rendering(self, **values: Level) -> Rendering:
        """The swap of one attribute, or of several at once, as a rendering of the phrase.

        The axis is the attribute; for an intersection its names are joined by ``+``.

        Raises:
            ConfigurationError: no attribute was given, or an unknown one.

        >>> template = DescriptorTemplate(text="{age}-year-old {race} {sex}")
        >>> twin = template.describe(age=50, race="White", sex="man").rendering(race="Black")
        >>> twin.payload, twin.perturbation_id, twin.edits[0].original
        ('50-year-old Black man', 'race:White>Black', 'White')
        """
        if not values:
            raise ConfigurationError("no attribute was given to swap; name one, such as race")
        changed = self.swap(**values)
        words = {slot: changed.template.word(slot, changed.values[slot]) for slot in values}
        axis = "+".join(values)
        source = "+".join(str(self.values[slot]) for slot in values)
        target = "+".join(str(value) for value in values.values())
        return self._rendering(words, "attribute_swap", axis, source, target, f"{source}>{target}")

    def sham(self, slot: str, word: str | None = None) -> Rendering:
        """The phrase with an irrelevant attribute in a slot; the values stay the person's."""
        return self._control(slot, word or wording().sham[0], "sham")

    def rare_token(self, slot: str, word: str | None = None) -> Rendering:
        """The phrase with an invented word in a slot; the values stay the person's."""
        return self._control(slot, word or wording().rare_token[0], "rare_token")

    def rerender(self) -> Rendering:
        """The same phrase, byte for byte."""
        return Rendering(
            payload=self.text,
            edits=(),
            kind="identity",
            axis="",
            source=None,
            target=None,
            perturbation_id="rerender",
        )

    def _control(self, slot: str, word: str, kind: PerturbationKind) -> Rendering:
        if slot not in self.values:
            listed = ", ".join(map(repr, self.values))
            raise ConfigurationError(f"the descriptor has no slot {slot!r}; its slots: {listed}")
        source = str(self.values[slot])
        return self._rendering({slot: word}, kind, slot, source, source, kind)

    def _rendering(
        self,
        words: Mapping[str, str],
        kind: PerturbationKind,
        axis: str,
        source: str,
        target: str,
        arm: str,
    ) -> Rendering:
        edits: list[Edit] = []
        at = 0
        new = self._pieces(words)
        for (_, old_text), (_, new_text) in zip(self._pieces({}), new, strict=True):
            if old_text != new_text:
                edits.append(Edit("", at, at + len(old_text), old_text, new_text))
            at += len(old_text)
        return Rendering(
            payload="".join(text for _, text in new),
            edits=tuple(edits),
            kind=kind,
            axis=axis,
            source=source,
            target=target,
            perturbation_id=f"{axis}:{arm}",
        )

    def _pieces(self, words: Mapping[str, str]) -> list[tuple[str | None, str]]:
        """The phrase in pieces: literal text, an article, or the word of a slot."""
        pieces: list[tuple[str | None, str]] = []
        for literal, slot, _, _ in Formatter().parse(self.template.text):
            if slot is None:
                pieces.append((None, literal))
                continue
            word = words.get(slot) or self.template.word(slot, self.values[slot])
            pieces += _with_article(literal, word)
            pieces.append((slot, word))
        return pieces


def _with_article(literal: str, word: str) -> list[tuple[str | None, str]]:
    """Literal text before a slot, its closing article a piece of its own that agrees."""
    head, _, article = literal.rstrip(" ").rpartition(" ")
    if not literal.endswith(" ") or article.lower() not in ("a", "an"):
        return [(None, literal)]
    agreed = article_for(word)
    start = f"{head} " if head or literal.startswith(" ") else ""
    return [(None, start), (None, agreed if article[0].islower() else agreed.title()), (None, " ")]
