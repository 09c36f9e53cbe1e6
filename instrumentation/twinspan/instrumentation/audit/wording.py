"""Wording drawn at random: the same person said in different words and under different names.

A node that reacts to any edit, but not to the attribute, looks biased if each arm is always said
in the same words. With words drawn anew for every run of every arm, the attribute is the only
thing that differs systematically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType

from twinspan.instrumentation.audit.conditions import Condition
from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation import Descriptor, DescriptorTemplate
from twinspan.instrumentation.perturbation.descriptors import Level


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Names:
    """Names by the attributes that they speak of.

    Attributes:
        slot: where the name goes in a template.
        by: the attributes that a name speaks of, such as race and sex.
        lists: names by the levels of those attributes, in the order of `by`.

    Raises:
        ConfigurationError: a list is empty, or does not have a level for each attribute.

    >>> names = Names(by=("sex",), lists={("woman",): ["Emily"], ("man",): ["James"]})
    >>> names.draw({"sex": "man", "age": 50}, Random(1))
    'James'
    """

    by: tuple[str, ...]
    lists: Mapping[tuple[Level, ...], Sequence[str]]
    slot: str = "name"

    def __post_init__(self) -> None:
        for levels, names in self.lists.items():
            if len(levels) != len(self.by) or not names or not all(name.strip() for name in names):
                raise ConfigurationError(
                    f"names for {levels!r} are {list(names)!r}; list one or more for a level of "
                    f"each of {self.by!r}"
                )
        frozen = {levels: tuple(names) for levels, names in self.lists.items()}
        object.__setattr__(self, "lists", MappingProxyType(frozen))

    def draw(self, attributes: Mapping[str, Level], rng: Random) -> str:
        """A name of someone with these attributes.

        Raises:
            ConfigurationError: there are no names for them.
        """
        return rng.choice(self._of(attributes))

    def deal(self, attributes: Mapping[str, Level], seed: str, place: int) -> str:
        """The name at a place of the shuffled list: none comes again before all have come.

        A name that comes twice within a condition and never in another one would make its runs
        look more alike than runs of two conditions.

        Args:
            attributes: of the person.
            seed: of the order.
            place: from 0; behind the list's end it is shuffled anew.

        Raises:
            ConfigurationError: there are no names for them.

        >>> names = Names(by=(), lists={(): ["Kim", "Alex", "Sam"]})
        >>> sorted(names.deal({}, "7", place) for place in range(3))
        ['Alex', 'Kim', 'Sam']
        """
        listed = self._of(attributes)
        time, at = divmod(place, len(listed))
        return Random(f"{seed}/{time}").sample(listed, len(listed))[at]

    def _of(self, attributes: Mapping[str, Level]) -> list[str]:
        levels = tuple(attributes[name] for name in self.by)
        if levels not in self.lists:
            raise ConfigurationError(
                f"there are no names for {dict(zip(self.by, levels, strict=True))!r}; list some, "
                "or none for anyone"
            )
        return list(self.lists[levels])


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What one run says about the person.

    Attributes:
        text: the phrase.
        template: which of the templates it is made of, from 0.
        name: the name in it, if any.
    """

    text: str
    template: int
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wording:
    """The phrases and names that runs draw from.

    Attributes:
        templates: phrases with the same slots; one is drawn for each run, from the same list
            in every condition.
        names: names to draw from, if the templates have a slot for one.

    Raises:
        ConfigurationError: there is no template, or the templates differ in their slots.

    >>> wording = Wording(templates=(
    ...     DescriptorTemplate(text="{age}-year-old {sex}"),
    ...     DescriptorTemplate(text="a {sex} aged {age}")))
    >>> from twinspan.instrumentation.audit.conditions import build_conditions
    >>> person = wording.templates[0].describe(age=50, sex="man")
    >>> reference, swap = build_conditions(person, swaps={"sex": ["woman"]}, controls=())
    >>> sorted({wording.draw(swap, Random(seed)).text for seed in range(9)})
    ['50-year-old woman', 'a woman aged 50']
    """

    templates: tuple[DescriptorTemplate, ...]
    names: Names | None = None
    _slots: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        slots = {frozenset(template.slots) for template in self.templates}
        if len(slots) != 1:
            raise ConfigurationError(
                "a wording needs one or more templates with the same slots; give each attribute "
                "a place in every template"
            )
        found = slots.pop()
        if self.names is not None and self.names.slot not in found:
            raise ConfigurationError(
                f"the templates have no slot {self.names.slot!r} for a name; add it to each"
            )
        object.__setattr__(self, "_slots", found)

    def draw(
        self, condition: Condition, rng: Random, *, dealt: tuple[str, int] | None = None
    ) -> Drawn:
        """What a run of a condition says.

        Args:
            condition: the condition.
            rng: draws the phrase, and the name if none is dealt.
            dealt: seed and place of the name, see :meth:`Names.deal`.

        Raises:
            ConfigurationError: the condition's attributes are not those of the templates.
        """
        place = rng.randrange(len(self.templates))
        values: dict[str, Level] = {
            slot: level for slot, level in condition.attributes.items() if slot in self._slots
        }
        name = None
        if self.names is not None:
            given = condition.attributes
            name = self.names.deal(given, *dealt) if dealt else self.names.draw(given, rng)
        if self.names is not None and name is not None:
            values[self.names.slot] = name
        person = Descriptor(template=self.templates[place], values=values)
        return Drawn(text=condition.say(person), template=place, name=name)

    def as_dict(self) -> dict[str, object]:
        """Plain data, for a plan's hash."""
        return {
            "templates": [
                {
                    "text": template.text,
                    "words": {
                        slot: {str(level): word for level, word in words.items()}
                        for slot, words in template.words.items()
                    },
                }
                for template in self.templates
            ],
            "names": None
            if self.names is None
            else {
                "drawn": "dealt",
                "slot": self.names.slot,
                "by": list(self.names.by),
                "lists": [
                    [list(levels), list(names)] for levels, names in self.names.lists.items()
                ],
            },
        }
