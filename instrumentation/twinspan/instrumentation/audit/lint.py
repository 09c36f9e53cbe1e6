"""Lint of cases: what would make an audit measure something else than it says.

A narrative that opens "A 62-year-old" contradicts every descriptor of another age: the age axis
is unidentified there, and the floor is measured on prompts that contradict themselves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from string import Formatter
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from twinspan.instrumentation.audit.cases import Case
from twinspan.instrumentation.audit.conditions import Condition, levels_by_attribute
from twinspan.instrumentation.audit.orders import (
    OrderVocabulary,
    clinical_vocabulary,
    resolve_orders,
)
from twinspan.instrumentation.perturbation import Axis, DescriptorTemplate, builtin_axis
from twinspan.instrumentation.perturbation.descriptors import Level
from twinspan.instrumentation.perturbation.matching import Matcher

Code = Literal[
    "duplicate_id",
    "duplicate_narrative",
    "empty_narrative",
    "states_attribute",
    "contradicts_descriptor",
    "unreachable_fixture",
    "narrative_length",
]

_AGE: Final = re.compile(
    r"\b(\d{1,3})[\s-]*(?:years?|yrs?|y)(?:[\s-]*olds?\b|/o\b|o\b|[\s-]*of[\s-]*age\b)"
    r"|\baged?:?\s+(\d{1,3})\b",
    re.IGNORECASE,
)
_ILLUSTRATIONS: Final = {
    "sex": "gender",
    "gender": "gender",
    "race": "race_ethnicity",
    "ethnicity": "race_ethnicity",
    "religion": "religion",
}
NOT_OF_PEOPLE: Final = (
    "white blood cell",
    "white blood cells",
    "white blood count",
    "white cell",
    "white cells",
    "white count",
    "white matter",
    "black stool",
    "black stools",
    "black tarry",
    "black eye",
)
"""Phrases in which a word of an attribute speaks of nobody."""

_OUTLYING: Final = 5.0
"""Median absolute deviations from the median length at which a narrative is told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something to mend in the cases before an audit.

    Attributes:
        code: what it is.
        case_id: the case.
        where: ``narrative``, ``fixture`` and its name, or ``id``.
        found: the words, or the number, in question.
        attribute: the attribute that is stated.
        start: where the words begin; None where there are none.
        message: what is wrong and what to do.
    """

    code: Code
    case_id: str
    where: str
    found: str
    message: str
    attribute: str | None = None
    start: int | None = None


def lint_cases(
    cases: Sequence[Case],
    conditions: Sequence[Condition],
    *,
    axes: Mapping[str, Axis] | None = None,
    vocabulary: OrderVocabulary | None = None,
    ignore: Iterable[str] = NOT_OF_PEOPLE,
) -> tuple[Finding, ...]:
    """What is wrong with the cases of a design.

    Args:
        cases: all cases.
        conditions: the design; what it varies, no narrative and no fixture may state.
        axes: words by attribute. By default attributes named sex, gender, race, ethnicity and
            religion are read with the illustrative axes that come with the package.
        vocabulary: how orders are said; by default `clinical_vocabulary`.
        ignore: phrases in which no attribute is stated.

    >>> from twinspan.instrumentation.audit.clinical import standard_conditions
    >>> found = lint_cases([Case(id="a", narrative="A 62-year-old has chest pain. She is pale.")],
    ...                    standard_conditions())
    >>> [(each.code, each.attribute, each.found) for each in found]
    [('contradicts_descriptor', 'age', '62-year-old'), ('states_attribute', 'sex', 'She')]
    """
    known = vocabulary if vocabulary is not None else clinical_vocabulary()
    readers = _readers(conditions, axes)
    ignored = Matcher(ignore)
    found: list[Finding] = list(_twice(cases))
    for case in cases:
        if not case.narrative.strip():
            found.append(_finding("empty_narrative", case, "narrative", "", "write what is asked"))
        found += _stated(case, readers, ignored)
        found += _unreachable(case, known)
    return (*found, *_lengths(cases))


class _Statement(NamedTuple):
    """Words that state an attribute, and whether some condition says otherwise for sure."""

    start: int
    words: str
    contradicts: bool


class _Reader(NamedTuple):
    """Finds statements of one attribute in a text."""

    attribute: str
    levels: tuple[Level, ...]
    axis: Axis | None
    phrases: Matcher
    exact: frozenset[str]

    def find(self, text: str) -> Iterator[_Statement]:
        taken: set[int] = set()
        for statement in (*self._ages(text), *self._of_axis(text), *self._of_phrases(text)):
            if statement.start not in taken:
                taken.add(statement.start)
                yield statement

    def _ages(self, text: str) -> Iterator[_Statement]:
        if self.attribute != "age":
            return
        for match in _AGE.finditer(text):
            years = int(match[1] or match[2])
            others = any(level != years for level in self.levels)
            yield _Statement(match.start(), match[0], others)

    def _of_axis(self, text: str) -> Iterator[_Statement]:
        if self.axis is None:
            return
        for leaf in self.axis.read(text).leaves:
            for hit in leaf.hits:
                yield _Statement(hit.start, hit.text, False)

    def _of_phrases(self, text: str) -> Iterator[_Statement]:
        for start, end, _ in self.phrases.find(text):
            words = text[start:end]
            # "White" is said of people and "white" of coats: a capital in a level must be there.
            if words in self.exact or not any(words.lower() == each.lower() for each in self.exact):
                yield _Statement(start, words, False)


def _readers(
    conditions: Sequence[Condition], axes: Mapping[str, Axis] | None
) -> tuple[_Reader, ...]:
    varied = levels_by_attribute(conditions)
    templates = {id(c.descriptor.template): c.descriptor.template for c in conditions}
    readers: list[_Reader] = []
    for attribute, levels in varied.items():
        axis = axes.get(attribute) if axes is not None else _illustration(attribute)
        phrases = {
            phrase
            for template in templates.values()
            for level in levels
            if not (attribute == "age" and isinstance(level, int))
            for phrase in _phrases(template, attribute, level)
        }
        exact = frozenset(phrase for phrase in phrases if phrase != phrase.lower())
        readers.append(_Reader(attribute, levels, axis, Matcher(phrases), exact))
    return tuple(readers)


@cache
def _axis(name: str) -> Axis:
    return builtin_axis(name)


def _illustration(attribute: str) -> Axis | None:
    name = _ILLUSTRATIONS.get(attribute.lower())
    return _axis(name) if name else None


def _phrases(template: DescriptorTemplate, attribute: str, level: Level) -> Iterator[str]:
    """How a level would be stated: with the words that follow it in the template.

    "full" alone states nothing, "full English" does. A level with a capital, or one that the
    template says nothing more about, states itself.
    """
    word = template.word(attribute, level)
    pieces = list(Formatter().parse(template.text))
    for (_, slot, _, _), after in zip(pieces, [*pieces[1:], ("", None, None, None)], strict=True):
        if slot != attribute:
            continue
        following = re.match(r"[-\s]*([^\W\d_]+)", after[0] or "")
        if following:
            yield f"{word} {following[1]}"
        if not following or word != word.lower():
            yield word


def _stated(case: Case, readers: Iterable[_Reader], ignored: Matcher) -> Iterator[Finding]:
    texts = {"narrative": case.narrative}
    texts |= {f"fixture {name}": text for name, text in case.fixtures.items()}
    for where, text in texts.items():
        shielded = {start for start, _, _ in ignored.find(text)}
        stated = [
            (each, reader.attribute)
            for reader in readers
            for each in reader.find(text)
            if each.start not in shielded
        ]
        for statement, attribute in sorted(stated, key=lambda pair: pair[0].start):
            yield Finding(
                code="contradicts_descriptor" if statement.contradicts else "states_attribute",
                case_id=case.id,
                where=where,
                found=statement.words,
                attribute=attribute,
                start=statement.start,
                message=(
                    f"{statement.words!r} states {attribute}, which the design varies; leave it "
                    "to the descriptor"
                ),
            )


def _twice(cases: Sequence[Case]) -> Iterator[Finding]:
    ids = Counter(case.id for case in cases)
    texts = Counter(case.narrative.strip() for case in cases)
    for name, count in ids.items():
        if count > 1:
            message = f"{count} cases are named {name!r}; name each once"
            yield Finding(
                code="duplicate_id", case_id=name, where="id", found=name, message=message
            )
    for case in cases:
        text = case.narrative.strip()
        if text and texts[text] > 1:
            yield _finding(
                "duplicate_narrative", case, "narrative", text[:40], "tell each case once"
            )


def _unreachable(case: Case, vocabulary: OrderVocabulary) -> Iterator[Finding]:
    """Fixtures that not even their own name meets."""
    for name in case.fixtures:
        said = name.replace("_", " ")
        met = resolve_orders([said], case.fixtures, vocabulary=vocabulary).orders[0]
        if met.fixtures != (name,):
            others = ", ".join(map(repr, met.candidates or met.fixtures)) or "nothing"
            why = f"ordering {said!r} meets {others}; rename it"
            yield _finding("unreachable_fixture", case, f"fixture {name}", name, why)


def _lengths(cases: Sequence[Case]) -> Iterator[Finding]:
    words = {case.id: len(case.narrative.split()) for case in cases}
    if len(words) < 4:
        return
    centre = median(words.values())
    spread = median(abs(count - centre) for count in words.values())
    for case in cases:
        if abs(words[case.id] - centre) > _OUTLYING * max(spread, 0.1 * centre):
            yield _finding(
                "narrative_length",
                case,
                "narrative",
                str(words[case.id]),
                f"{words[case.id]} words where others have about {centre:g}; check that it is one",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStatistics:
    """Lengths of narratives, to see which cases differ on the surface.

    Attributes:
        characters: by case.
        words: by case.
        fixtures: number of fixtures by case.
    """

    characters: Mapping[str, int]
    words: Mapping[str, int]
    fixtures: Mapping[str, int]


def case_statistics(cases: Iterable[Case]) -> CaseStatistics:
    """The surface of the cases.

    >>> case_statistics([Case(id="a", narrative="Chest pain.")]).words["a"]
    2
    """
    listed = list(cases)
    return CaseStatistics(
        characters=MappingProxyType({case.id: len(case.narrative) for case in listed}),
        words=MappingProxyType({case.id: len(case.narrative.split()) for case in listed}),
        fixtures=MappingProxyType({case.id: len(case.fixtures) for case in listed}),
    )


def _finding(code: Code, case: Case, where: str, found: str, message: str) -> Finding:
    return Finding(code=code, case_id=case.id, where=where, found=found, message=message)
