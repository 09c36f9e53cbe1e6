"""Orders: which fixture answers what an agent has ordered in its own words.

An order is compared with the fixtures by the words that matter, after synonyms: "Chest X-ray"
meets ``cxr``. Nothing is guessed. An order that could mean several fixtures meets none of them,
one that names several meets all of them, and a decision not to order meets nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, Literal

from twinspan.instrumentation.errors import ConfigurationError

PENDING: Final = "pending / not resulted"
"""What comes back for an order that meets no fixture."""

Match = Literal["exact", "more_specific", "broader", "several", "ambiguous", "none", "refused"]
"""How an order meets the fixtures; the last three meet none."""

_TOKEN: Final = re.compile(r"[a-z0-9]+")
_KEYS: Final = ("synonyms", "words", "implies", "qualifiers", "refusals", "allowed")

Words = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrderVocabulary:
    """How orders are said.

    Attributes:
        synonyms: names that mean the same, the first standing for all.
        words: words that are said in more than one way, likewise.
        implies: pairs; what has the first has the second as well.
        qualifiers: words about how, not what; left out of the comparison.
        refusals: words that make an order a decision not to order.
        allowed: phrases in which a word of refusal is none.

    Raises:
        ConfigurationError: a line has fewer than two names, or pairs are none.

    >>> vocabulary = clinical_vocabulary()
    >>> sorted(vocabulary.concepts("12-lead ECG")), sorted(vocabulary.concepts("X-ray, femur"))
    (['ecg'], ['femur', 'xray'])
    >>> vocabulary.concepts("Chest X-ray") == vocabulary.concepts("cxr")
    True
    """

    synonyms: Sequence[Sequence[str]] = ()
    words: Sequence[Sequence[str]] = ()
    implies: Sequence[Sequence[str]] = ()
    qualifiers: Sequence[str] = ()
    refusals: Sequence[str] = ()
    allowed: Sequence[str] = ()
    _rules: tuple[tuple[tuple[Words, Words], ...], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for row in (*self.synonyms, *self.words, *self.implies):
            if len(row) < 2 or not all(map(tokens, row)):
                raise ConfigurationError(
                    f"the names {list(row)!r} are no synonyms; list two or more with letters"
                )
        object.__setattr__(self, "_rules", (_rules(self.words), _rules(self.synonyms)))

    @classmethod
    def from_toml(cls, text: str) -> OrderVocabulary:
        """A vocabulary from a TOML document with the attributes as keys.

        Raises:
            ConfigurationError: the document cannot be read, or has other keys.
        """
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationError(f"the order vocabulary is no TOML ({error})") from error
        if unknown := sorted(set(table) - set(_KEYS)):
            raise ConfigurationError(
                f"the order vocabulary has the unknown key {unknown[0]!r}; known: {_KEYS!r}"
            )
        return cls(**table)

    def concepts(self, text: str) -> Words:
        """The words of an order or a fixture that matter, synonyms made one."""
        found = frozenset(tokens(text))
        for rules in self._rules:
            found = _applied(found, rules)
        for first, second in self.implies:
            if frozenset(tokens(first)) <= found:
                found |= frozenset(tokens(second))
        return found - frozenset(self.qualifiers) or found

    def refuses(self, text: str) -> bool:
        """Whether an order is a decision not to order.

        >>> clinical_vocabulary().refuses("CT head without contrast")
        False
        >>> clinical_vocabulary().refuses("No imaging indicated")
        True
        """
        said = " ".join(tokens(text))
        for phrase in sorted(self.allowed, key=len, reverse=True):
            said = said.replace(" ".join(tokens(phrase)), " ")
        return not set(self.refusals).isdisjoint(said.split())


@cache
def clinical_vocabulary() -> OrderVocabulary:
    """Common names of tests and images in English; an illustration that you may replace."""
    text = files("twinspan.instrumentation.audit").joinpath("orders.toml")
    return OrderVocabulary.from_toml(text.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOrder:
    """One order and what it met.

    Attributes:
        ordered: the agent's words.
        match: how it met the fixtures.
        fixtures: the fixtures that answer it; more than one for ``several``.
        candidates: the fixtures that it could have meant, for ``ambiguous``.
    """

    ordered: str
    match: Match
    fixtures: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderResults:
    """What comes back for a list of orders.

    Attributes:
        results: a text for each order, in the order in which they were made.
        orders: how each was resolved.
        n_duplicates: orders that were made twice in the same words.
    """

    results: Mapping[str, str]
    orders: tuple[ResolvedOrder, ...]
    n_duplicates: int

    @property
    def unresolved(self) -> tuple[str, ...]:
        """Orders that met no fixture."""
        return tuple(order.ordered for order in self.orders if not order.fixtures)

    @property
    def ambiguous(self) -> tuple[ResolvedOrder, ...]:
        """Orders that could have meant several fixtures."""
        return tuple(order for order in self.orders if order.match == "ambiguous")

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names; `resolved_to` is None, for no candidate is taken."""
        return {
            "results": dict(self.results),
            "unresolved_orderables": list(self.unresolved),
            "fixture_ambiguities": [
                {
                    "ordered": order.ordered,
                    "candidates": list(order.candidates),
                    "resolved_to": None,
                }
                for order in self.ambiguous
            ],
        }


def resolve_orders(
    ordered: Iterable[str],
    fixtures: Mapping[str, str],
    *,
    vocabulary: OrderVocabulary | None = None,
    pending: str = PENDING,
) -> OrderResults:
    """What comes back for orders in an agent's own words.

    Args:
        ordered: the orders.
        fixtures: results by what is to be ordered for them.
        vocabulary: synonyms; by default `clinical_vocabulary`.
        pending: what comes back where no fixture is met.

    >>> found = resolve_orders(["Chest X-ray", "CT", "Troponin (serial)"],
    ...     {"cxr": "clear", "ct_head": "normal", "ct_abdomen": "stone", "troponin": "0.01"})
    >>> found.results
    mappingproxy({'Chest X-ray': 'clear', 'CT': 'pending / not resulted', \
'Troponin (serial)': '0.01'})
    >>> found.ambiguous[0].candidates
    ('ct_abdomen', 'ct_head')
    """
    known = vocabulary if vocabulary is not None else clinical_vocabulary()
    listed = list(ordered)
    concepts = {key: known.concepts(key) for key in sorted(fixtures) if tokens(key)}
    orders = tuple(_resolved(order, concepts, known) for order in dict.fromkeys(listed))
    results = {
        order.ordered: "; ".join(fixtures[key] for key in order.fixtures) or pending
        for order in orders
    }
    return OrderResults(
        results=MappingProxyType(results), orders=orders, n_duplicates=len(listed) - len(orders)
    )


def tokens(text: str) -> list[str]:
    """Runs of letters and digits in lower case.

    >>> tokens("CT abdomen/pelvis (with_contrast)")
    ['ct', 'abdomen', 'pelvis', 'with', 'contrast']
    """
    return _TOKEN.findall(text.lower())


def _resolved(
    ordered: str, concepts: Mapping[str, Words], vocabulary: OrderVocabulary
) -> ResolvedOrder:
    if vocabulary.refuses(ordered):
        return ResolvedOrder(ordered=ordered, match="refused")
    wanted = vocabulary.concepts(ordered)
    if not wanted:
        return ResolvedOrder(ordered=ordered, match="none")
    exact = tuple(key for key, words in concepts.items() if words == wanted)
    named = _most_specific({key: words for key, words in concepts.items() if words < wanted})
    broader = tuple(key for key, words in concepts.items() if wanted < words)
    if exact or not named:
        return _one_of(ordered, exact or broader, "exact" if exact else "broader")
    match: Match = "more_specific" if len(named) == 1 else "several"
    return ResolvedOrder(ordered=ordered, match=match, fixtures=named)


def _one_of(ordered: str, candidates: tuple[str, ...], match: Match) -> ResolvedOrder:
    if len(candidates) > 1:
        return ResolvedOrder(ordered=ordered, match="ambiguous", candidates=candidates)
    return ResolvedOrder(
        ordered=ordered, match=match if candidates else "none", fixtures=candidates
    )


def _most_specific(concepts: Mapping[str, Words]) -> tuple[str, ...]:
    """Those that no other says more exactly."""
    return tuple(
        key
        for key, words in concepts.items()
        if not any(words < other for other in concepts.values())
    )


def _rules(groups: Sequence[Sequence[str]]) -> tuple[tuple[Words, Words], ...]:
    """What to look for and what stands for it, longest first."""
    rules = [
        (frozenset(tokens(name)), frozenset(tokens(group[0])))
        for group in groups
        for name in group[1:]
    ]
    return tuple(sorted(rules, key=lambda rule: (-len(rule[0]), sorted(rule[0]))))


def _applied(found: Words, rules: Sequence[tuple[Words, Words]]) -> Words:
    for looked_for, stands in rules:
        if looked_for <= found:
            found = (found - looked_for) | stands
    return found
