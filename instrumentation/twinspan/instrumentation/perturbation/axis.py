"""An axis: a demographic attribute, its groups, and the words that speak of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation.agreement import ROLE_PAIRS, Role, choose_role
from twinspan.instrumentation.perturbation.definition import parse_axis
from twinspan.instrumentation.perturbation.matching import Matcher, term_key
from twinspan.instrumentation.perturbation.reading import Reading
from twinspan.instrumentation.perturbation.rendering import SWAP_KINDS, Rendering, SwapKind
from twinspan.instrumentation.perturbation.tree import text_leaves
from twinspan.instrumentation.perturbation.vocabulary import Hit, Leaf, Slot, Term


@dataclass(frozen=True, slots=True)
class Substitution:
    """One literal pattern and what takes its place.

    Attributes:
        pattern: the words to find, as words of their own and in any case.
        replacement: the words to put there, in the case of what was found.
        kind: ``attribute_swap``, or ``proxy_swap`` for a pattern that only hints at the
            attribute.
    """

    pattern: str
    replacement: str
    kind: SwapKind = "attribute_swap"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axis:
    """A demographic attribute and its vocabulary, compiled once.

    Args:
        name: such as ``gender``; without ``:`` and ``>``, which structure perturbation ids.
        groups: two or more, such as ``("woman", "man")``.
        slots: the words of each group.
        ignore: phrases in which a term is none ("manhandle" needs no entry, "man-made" does).
        language: ``en`` makes "a" and "an" agree with the word after them; anything else
            leaves articles alone.
        one_way: look for words of the first group only.

    Raises:
        ConfigurationError: a name is missing or unusable, there are fewer than two groups or
            no slots, a slot speaks of an unknown group, or one spelling belongs to two groups,
            or to two slots that no pair of roles tells apart.

    A text may speak of several groups at once. Its *source group* is the one whose words occur
    most, the first one met among equals, and a swap exchanges source and target in both
    directions at once; words of third groups stay.

    >>> pronouns = Slot(name="pronoun", forms={"woman": ("she", "her"), "man": ("he", "him")})
    >>> axis = Axis(name="gender", groups=("woman", "man"), slots=(pronouns,))
    >>> twin = axis.swap({"note": "He met she."})
    >>> twin.payload, twin.perturbation_id, twin.edit_count
    ({'note': 'She met he.'}, 'gender:man>woman', 2)
    """

    name: str
    groups: tuple[str, ...]
    slots: tuple[Slot, ...] = field(repr=False)
    ignore: tuple[str, ...] = field(default=(), repr=False)
    language: str = "en"
    one_way: bool = False
    _terms: Mapping[str, tuple[Term, ...]] = field(init=False, repr=False)
    _matcher: Matcher = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._check()
        found: dict[str, list[Term]] = {}
        for slot in self.slots:
            for group in self.groups[:1] if self.one_way else self.groups:
                for term in slot.terms(group):
                    found.setdefault(term_key(term.form), []).append(term)
        terms = {key: self._told_apart(key, candidates) for key, candidates in found.items()}
        shielded: dict[str, tuple[Term, ...]] = {
            term_key(phrase): () for phrase in self.ignore if phrase.strip()
        }
        object.__setattr__(self, "_terms", {**shielded, **terms})
        object.__setattr__(self, "_matcher", Matcher(self._terms))

    def _check(self) -> None:
        if not self.name or {":", ">", "#"} & set("".join((self.name, *self.groups))):
            raise ConfigurationError(
                f"axis {self.name!r} needs a name, and no ':', '>' or '#' in it or in its groups"
            )
        if len(self.groups) < 2 or len(set(self.groups)) < len(self.groups) or "" in self.groups:
            raise ConfigurationError(
                f"axis {self.name!r} has the groups {self.groups!r}; name two or more, each once"
            )
        if not self.slots:
            raise ConfigurationError(f"axis {self.name!r} has no words; give it at least one slot")
        for slot in self.slots:
            if unknown := set(slot.forms) - set(self.groups):
                raise ConfigurationError(
                    f"slot {slot.name!r} speaks of {min(unknown)!r}, which is no group of axis "
                    f"{self.name!r}; its groups: {', '.join(map(repr, self.groups))}"
                )

    def _told_apart(self, key: str, candidates: list[Term]) -> tuple[Term, ...]:
        """The terms that share a spelling: one, or two that their roles tell apart."""
        per_slot: dict[Slot, Term] = {}
        for term in candidates:
            per_slot.setdefault(term.slot, term)
        terms = tuple(per_slot.values())
        if len({term.group for term in candidates}) > 1:
            raise ConfigurationError(
                f"{key!r} belongs to more than one group of axis {self.name!r}; "
                "a word tells groups apart or has no place on the axis"
            )
        if len(terms) > 1 and frozenset(term.slot.role for term in terms) not in ROLE_PAIRS:
            raise ConfigurationError(
                f"{key!r} stands in {len(terms)} slots of axis {self.name!r}; give each a role, "
                "such as determiner and object, or keep one"
            )
        return terms

    @property
    def kinds(self) -> tuple[SwapKind, ...]:
        """The swap kinds the axis has words for, explicit before proxy."""
        return tuple(kind for kind in SWAP_KINDS if any(slot.kind == kind for slot in self.slots))

    def vocabulary(self, group: str) -> dict[str, tuple[str, ...]]:
        """The words of a group, slot by slot.

        Raises:
            ConfigurationError: the axis has no such group.
        """
        if group not in self.groups:
            raise ConfigurationError(
                f"axis {self.name!r} has no group {group!r}; "
                f"its groups: {', '.join(map(repr, self.groups))}"
            )
        return {slot.name: slot.forms.get(group, ()) for slot in self.slots}

    def read(self, payload: object) -> Reading:
        """Find the axis's words in a payload, to render it more than once.

        Raises:
            PerturbationError: the payload contains itself or is nested too deep.
        """
        return Reading(
            axis=self.name,
            groups=self.groups,
            payload=payload,
            leaves=tuple(
                Leaf(pointer, text, self._hits(text)) for pointer, text in text_leaves(payload)
            ),
            english=self.language == "en",
        )

    def _hits(self, text: str) -> tuple[Hit, ...]:
        hits: list[Hit] = []
        for start, end, key in self._matcher.find(text):
            terms = self._terms[key]
            if not terms:
                continue
            term = terms[0] if len(terms) == 1 else _in_context(terms, text, start, end)
            found = text[start:end]
            if term.admits(found):
                hits.append(Hit(start, end, found, term))
        return tuple(hits)

    def source_group(self, payload: object) -> str | None:
        """The group that a payload speaks of most, by words that name the attribute.

        Words that only hint at it do not count. Among groups named equally often it is the
        one met first.

        Returns:
            The group, or ``None`` when none is named.
        """
        return self.read(payload).source_group()

    def reword(self, payload: object, rng: Random | None = None) -> Rendering:
        """The payload in another wording that speaks of the same groups.

        Words of free slots are drawn anew, uniformly from their own group's list and without
        replacement: one word gets one word throughout the payload, different words get
        different ones as long as the list lasts. Drawn in the reference arm and in the
        counterfactual arm alike, the wording is no systematic difference between them.

        Args:
            payload: any payload.
            rng: source of the wording; ``None`` gives the payload back as it is.

        Returns:
            A rendering of kind ``identity``, whose target is its source.
        """
        return self.read(payload).reword(rng)

    def swap(
        self,
        payload: object,
        rng: Random | None = None,
        *,
        to: str | None = None,
        kind: SwapKind = "attribute_swap",
    ) -> Rendering:
        """The payload in another group's words, all replaced in one pass.

        Words of the source group become the target's and the other way round. With a
        generator, words of free slots are drawn as :meth:`reword` draws them; without one,
        word k becomes word k, so that the same payload always gives the same twin.

        Args:
            payload: any payload.
            rng: source of the wording; ``None`` for the fixed counterparts.
            to: the target group; by default the group declared after the source, the first
                one after the last. Equal to the source, it makes the rendering a ``no_op``.
            kind: which words are swapped; those of the other kind stay in their group.

        Returns:
            A rendering without edits, hence ``no_op``, when no word could be swapped.

        Raises:
            ConfigurationError: ``to`` is no group of the axis.
        """
        return self.read(payload).swap(rng, to=to, kind=kind)

    def neutral(self, payload: object) -> Rendering:
        """The payload with the attribute taken out, for a run that is blind to it.

        Every word of every group, proxies included, is replaced by its slot's neutral
        counterpart; words whose slot has none stay.

        Returns:
            A rendering of kind ``neutral``; ``no_op`` when no word could be neutralised.
        """
        return self.read(payload).neutral()

    @classmethod
    def from_substitutions(
        cls, name: str, substitutions: Iterable[Substitution], *, language: str = ""
    ) -> Axis:
        """An axis from literal substitutions, for those who bring their own short list.

        All substitutions of a kind are made in one pass, so ``he -> she`` and ``she -> he``
        on one axis exchange the two.

        Args:
            name: name of the axis.
            substitutions: at least one; no pattern twice.
            language: ``en`` also makes articles agree; by default only patterns change.

        Raises:
            ConfigurationError: there are none, or a pattern or replacement is empty or given
                twice.

        >>> axis = Axis.from_substitutions(
        ...     "gender", [Substitution("he", "she"), Substitution("his", "her")]
        ... )
        >>> axis.swap("He and HIS dog").payload
        'She and HER dog'
        """
        given = tuple(substitutions)
        keys = [term_key(each.pattern) for each in given]
        for each, key in zip(given, keys, strict=True):
            if keys.count(key) > 1:
                raise ConfigurationError(
                    f"axis {name!r} substitutes {each.pattern!r} twice; keep one replacement"
                )
        slots = tuple(
            Slot(
                name=each.pattern,
                forms={"original": (each.pattern,), "substituted": (each.replacement,)},
                kind=each.kind,
            )
            for each in given
        )
        return cls(
            name=name,
            groups=("original", "substituted"),
            slots=slots,
            language=language,
            one_way=True,
        )

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Axis:
        """An axis from plain data, as one ``[[axis]]`` table of a TOML file holds it.

        Raises:
            ConfigurationError: a key is missing or unknown, or a value has the wrong type.

        >>> axis = Axis.from_mapping({
        ...     "name": "gender", "groups": ["woman", "man"],
        ...     "paired": [{"woman": ["she", "woman"], "man": ["he", "man"]}],
        ...     "free": [{"woman": ["Emily", "Rachel"], "man": ["James", "Omar"]}],
        ... })
        >>> axis.swap("She is Rachel.").payload
        'He is Omar.'
        """
        return cls(**parse_axis(mapping))


def _in_context(terms: tuple[Term, ...], text: str, start: int, end: int) -> Term:
    roles: list[Role | None] = [term.slot.role for term in terms]
    return terms[choose_role(roles, text[max(0, start - 80) : start], text[end : end + 80])]
