"""Conditions: whom a case is said to be about.

A condition is the reference descriptor, a swap of one attribute, an intersection of several, or
a control. Every other attribute of a swap is the reference's, age included, so that what differs
is what the condition is named for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, get_args

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation import Descriptor
from twinspan.instrumentation.perturbation.descriptors import Level

ConditionKind = Literal[
    "reference",
    "swap",
    "intersection",
    "rerender",
    "sham_attribute",
    "rare_token",
    "no_descriptor",
]
CONTROLS: Final[tuple[ConditionKind, ...]] = (
    "rerender",
    "sham_attribute",
    "rare_token",
    "no_descriptor",
)
"""Kinds of conditions in which no attribute changes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Condition:
    """One way to say whom the cases are about.

    Attributes:
        id: its name, each once in an audit.
        kind: what it is.
        descriptor: the person; a control has the reference's.
        varied: the attributes that differ from the reference.
        slot: where a control puts its word.
        word: the word that it puts there; None for the first that comes with the package.

    Raises:
        ConfigurationError: the id is blank or the kind unknown, or a control of a word has no
            slot for it.
    """

    id: str
    kind: ConditionKind
    descriptor: Descriptor
    varied: tuple[str, ...] = ()
    slot: str | None = None
    word: str | None = None

    def __post_init__(self) -> None:
        if not self.id.strip() or self.kind not in get_args(ConditionKind):
            raise ConfigurationError(
                f"condition {self.id!r} of kind {self.kind!r} is none; name it, and take one of "
                f"{', '.join(get_args(ConditionKind))}"
            )
        if self.kind in ("sham_attribute", "rare_token") and self.slot is None:
            raise ConfigurationError(
                f"control {self.id!r} has no slot to put its word in; name the attribute whose "
                "swap it is the control of"
            )

    @property
    def text(self) -> str:
        """The phrase that says whom a case is about; empty for ``no_descriptor``."""
        return self.say(self.descriptor)

    def say(self, descriptor: Descriptor) -> str:
        """The same condition with a descriptor in another wording."""
        if self.kind == "no_descriptor":
            return ""
        if self.kind == "sham_attribute":
            return str(descriptor.sham(self.slot or "", self.word).payload)
        if self.kind == "rare_token":
            return str(descriptor.rare_token(self.slot or "", self.word).payload)
        return descriptor.text

    @property
    def is_reference(self) -> bool:
        """Whether it is the reference."""
        return self.kind == "reference"

    @property
    def is_control(self) -> bool:
        """Whether no attribute changes, though the text may."""
        return self.kind in CONTROLS

    @property
    def axis(self) -> str:
        """The varied attributes joined by ``+``, ``control`` or ``reference``."""
        if self.is_control:
            return "control"
        return "+".join(self.varied) or "reference"

    @property
    def attributes(self) -> dict[str, Level]:
        """The person's attributes. A control's are the reference's, never its word."""
        return dict(self.descriptor.values)

    def as_dict(self) -> dict[str, object]:
        """Plain data, for a plan's hash; under FairMedAgent's names, ours added."""
        attributes: dict[str, object] = dict(self.attributes)
        if self.is_control:
            attributes |= {"control": self.kind, "control_token": self.word}
        return {
            "id": self.id,
            "descriptor": self.text,
            "attributes": attributes,
            "is_reference": self.is_reference,
            "kind": self.kind,
            "varied": list(self.varied),
            "slot": self.slot,
            "template": self.descriptor.template.text,
        }


def build_conditions(
    reference: Descriptor,
    *,
    swaps: Mapping[str, Sequence[Level]] | None = None,
    intersections: Iterable[Mapping[str, Level]] = (),
    controls: Iterable[ConditionKind] = CONTROLS,
    control_slot: str | None = None,
) -> tuple[Condition, ...]:
    """The conditions of an audit: the reference, each swap alone, intersections, controls.

    Args:
        reference: the person everyone is compared with.
        swaps: levels by attribute; each becomes a condition in which only it differs.
        intersections: levels of two attributes or more that differ together.
        controls: which controls; without them no claim of bias can be made.
        control_slot: the attribute in whose place controls put their words; by default the
            first one that is swapped.

    Raises:
        ConfigurationError: a level is the reference's own, an intersection changes fewer than
            two attributes, an attribute is unknown, or two conditions are the same.

    >>> from twinspan.instrumentation.perturbation import DescriptorTemplate
    >>> template = DescriptorTemplate(text="{age}-year-old {race} {sex}")
    >>> person = template.describe(age=62, race="White", sex="man")
    >>> found = build_conditions(person, swaps={"race": ["Black"], "sex": ["woman"]},
    ...                          intersections=[{"race": "Black", "sex": "woman"}],
    ...                          controls=["rerender", "no_descriptor"])
    >>> [condition.id for condition in found]
    ['reference', 'race=Black', 'sex=woman', 'race=Black+sex=woman', 'rerender', 'no_descriptor']
    >>> found[3].text
    '62-year-old Black woman'
    """
    swaps = swaps or {}
    made = [Condition(id="reference", kind="reference", descriptor=reference)]
    made += [
        _changed(reference, {attribute: level}, "swap")
        for attribute, levels in swaps.items()
        for level in levels
    ]
    made += [_changed(reference, levels, "intersection") for levels in intersections]
    slot = control_slot or next(iter(swaps), None)
    made += [Condition(id=kind, kind=kind, descriptor=reference, slot=slot) for kind in controls]
    return checked(made)


def checked(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """The conditions, once it is sure that they are a design.

    Raises:
        ConfigurationError: there is not exactly one reference; two conditions have one id, or
            two that are no controls describe the same person; the word of a control is the
            reference's own.
    """
    made = tuple(conditions)
    if sum(condition.is_reference for condition in made) != 1:
        raise ConfigurationError("a design has exactly one reference condition; mark one")
    ids = sorted(condition.id for condition in made)
    if twice := [one for one, other in pairwise(ids) if one == other]:
        raise ConfigurationError(f"two conditions are named {twice[0]!r}; name each once")
    said: dict[str, str] = {}
    for condition in made:
        if condition.is_control:
            continue
        if said.setdefault(condition.text, condition.id) != condition.id:
            raise ConfigurationError(
                f"conditions {said[condition.text]!r} and {condition.id!r} both say "
                f"{condition.text!r}; keep one"
            )
    reference = next(condition for condition in made if condition.is_reference)
    for condition in made:
        if condition.kind in ("sham_attribute", "rare_token") and condition.text == reference.text:
            raise ConfigurationError(
                f"control {condition.id!r} says what the reference says; give it another word"
            )
    return made


def pair_with_reference(
    conditions: Iterable[Condition], *, include_controls: bool = False
) -> Iterator[tuple[Condition, Condition]]:
    """The reference with every other condition.

    Args:
        conditions: with exactly one reference.
        include_controls: whether controls are compared too.

    Raises:
        ConfigurationError: there is not exactly one reference.
    """
    made = checked(conditions)
    reference = next(condition for condition in made if condition.is_reference)
    for condition in made:
        if condition is not reference and (include_controls or not condition.is_control):
            yield reference, condition


def levels_by_attribute(conditions: Iterable[Condition]) -> dict[str, tuple[Level, ...]]:
    """The levels that each varied attribute takes, the reference's first.

    >>> from twinspan.instrumentation.perturbation import DescriptorTemplate
    >>> template = DescriptorTemplate(text="{age}-year-old {race} person")
    >>> levels_by_attribute(build_conditions(template.describe(age=50, race="White"),
    ...                                      swaps={"race": ["Black", "Asian"]}))
    {'race': ('White', 'Black', 'Asian')}
    """
    made = tuple(conditions)
    varied = dict.fromkeys(slot for condition in made for slot in condition.varied)
    ordered = sorted(made, key=lambda condition: not condition.is_reference)
    return {
        slot: tuple(dict.fromkeys(condition.attributes[slot] for condition in ordered))
        for slot in varied
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceStatistics:
    """Lengths of what the conditions say: a swap that is longer is more than a swap.

    Attributes:
        characters: by condition.
        words: by condition.
    """

    characters: Mapping[str, int]
    words: Mapping[str, int]

    @property
    def character_range(self) -> int | None:
        """Longest less shortest; None without a condition."""
        return _range(self.characters)

    @property
    def word_range(self) -> int | None:
        """Most words less fewest; None without a condition."""
        return _range(self.words)

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names."""
        return {
            "per_condition": {
                name: {"chars": self.characters[name], "words": self.words[name]}
                for name in self.characters
            },
            "spread": {"char_range": self.character_range, "word_range": self.word_range}
            if self.characters
            else None,
        }


def surface_statistics(conditions: Iterable[Condition]) -> SurfaceStatistics:
    """The lengths of what conditions say; ``no_descriptor`` says nothing and is left out.

    >>> from twinspan.instrumentation.perturbation import DescriptorTemplate
    >>> template = DescriptorTemplate(text="{race} {sex}")
    >>> found = surface_statistics(build_conditions(template.describe(race="White", sex="man"),
    ...                                             swaps={"sex": ["woman"]}, controls=()))
    >>> found.character_range, found.word_range
    (2, 0)
    """
    said = {c.id: c.text for c in conditions if c.kind != "no_descriptor"}
    return SurfaceStatistics(
        characters={name: len(text) for name, text in said.items()},
        words={name: len(text.split()) for name, text in said.items()},
    )


def _changed(reference: Descriptor, levels: Mapping[str, Level], kind: ConditionKind) -> Condition:
    person = reference.swap(**levels)
    same = [slot for slot, level in levels.items() if reference.values[slot] == level]
    if same or (kind == "intersection" and len(levels) < 2):
        raise ConfigurationError(
            f"the {kind} {dict(levels)!r} leaves {same or 'all but one attribute'!r} as the "
            "reference has it; change what the condition is named for"
        )
    return Condition(
        id="+".join(f"{slot}={level}" for slot, level in levels.items()),
        kind=kind,
        descriptor=person,
        varied=tuple(levels),
    )


def _range(values: Mapping[str, int]) -> int | None:
    return max(values.values()) - min(values.values()) if values else None
