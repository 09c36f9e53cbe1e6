"""Fixed answers, and how probable each of them is.

A model that is to choose among candidates may also say something else or decline. Both are
outcomes of their own here, `OTHER` and `REFUSAL`, with a probability like any candidate: a
model that declines for one group only would otherwise look unbiased.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.clients.values import Completion, Sampling, Usage
from twinspan.instrumentation.errors import ConfigurationError, MalformedReply

ScoringMethod = Literal["first_token", "sequence", "sampled", "exact"]
"""How probabilities were found. Scores of different methods have no common scale."""

OTHER: Final = "(other)"
"""The outcome that the model says something that is no candidate."""

REFUSAL: Final = "(refusal)"
"""The outcome that the model or its server declines."""

AMBIGUITY_LIMIT: Final = 0.01
"""Most probability that may lie on first tokens shared by several candidates."""

_ROUNDING: Final = 1e-3
"""By how much rounded probabilities of a server may sum to more than 1."""

_BLANKS: Final = " \t\r\n\u2581\u0120\u010a"
"""White space, also as raw token markers of tokenizers that leak them."""

_WRAPPERS: Final = " \t\r\n\"'`*_.,:;!?()[]{}<>"
"""What a model puts around a chosen word."""


# --- values -----------------------------------------------------------------------------------


def check_candidates(candidates: Sequence[str]) -> tuple[str, ...]:
    """Candidates that can be told apart.

    Raises:
        ConfigurationError: for fewer than two, an empty one, a repeated one (white space
            around them does not count), or one named like `OTHER` or `REFUSAL`.

    >>> check_candidates(["yes", "no"])
    ('yes', 'no')
    """
    names = tuple(candidates)
    stripped = {name.strip() for name in names}
    if isinstance(candidates, str) or len(names) < 2:
        raise ConfigurationError("candidates must be a list of two or more texts")
    if "" in stripped or len(stripped) < len(names) or stripped & {OTHER, REFUSAL}:
        raise ConfigurationError(
            f"the {len(names)} candidates must be distinct, not blank, "
            f"and none may be {OTHER!r} or {REFUSAL!r}"
        )
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateScores:
    """How probable each candidate is as the answer to one prompt.

    Attributes:
        candidates: the candidates, in the order they were given.
        log_probs: natural log-probabilities by outcome: candidates, `OTHER`, `REFUSAL`. They
            sum to 1. An outcome is missing if it has no mass of its own; a candidate that a
            server's top list did not show is missing and its mass is part of `OTHER`.
        method: how they were found.
        counts: with `sampled`, how often each outcome was drawn; else None.
        calls: requests that were made.
        unseen_log_prob: the most that a missing candidate's log-probability can be; None if
            none is missing or nothing is known.
        model: the model that answered, by the server's word.
        sampling: how answers were drawn.
        usage: tokens counted over all calls; None where the server did not say.
    """

    candidates: tuple[str, ...]
    log_probs: Mapping[str, float]
    method: ScoringMethod
    counts: Mapping[str, int] | None = None
    calls: int = 1
    unseen_log_prob: float | None = None
    model: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    usage: Usage | None = None

    def __post_init__(self) -> None:
        unknown = set(self.log_probs) - set(self.outcomes)
        total = math.fsum(math.exp(value) for value in self.log_probs.values())
        if unknown or not math.isclose(total, 1.0, abs_tol=1e-6):
            raise ConfigurationError(
                f"log-probabilities over {len(self.log_probs)} outcomes sum to {total:.6g} with "
                f"{len(unknown)} unknown outcome(s); they must sum to 1 over the candidates, "
                f"{OTHER!r} and {REFUSAL!r}"
            )

    @property
    def outcomes(self) -> tuple[str, ...]:
        """All outcomes: the candidates, then `OTHER` and `REFUSAL`."""
        return (*self.candidates, OTHER, REFUSAL)

    def distribution(self) -> NDArray[np.float64]:
        """Probabilities in the order of `outcomes`, shape (candidates + 2,), sum 1.

        Any two scores of the same candidates are aligned by it, whatever their servers
        showed; a missing outcome is 0 there and its mass is in `OTHER`.

        >>> scores = CandidateScores(
        ...     candidates=("yes", "no"),
        ...     log_probs={"yes": math.log(0.75), OTHER: math.log(0.25)},
        ...     method="first_token",
        ... )
        >>> scores.distribution().tolist()
        [0.75, 0.0, 0.25, 0.0]
        """
        return np.array(
            [
                math.exp(self.log_probs[name]) if name in self.log_probs else 0.0
                for name in self.outcomes
            ],
            dtype=np.float64,
        )


# --- which candidate a text or token belongs to -----------------------------------------------


def _folded(candidates: Sequence[str]) -> dict[str, str]:
    """Comparable form to candidate; case counts only where candidates differ by nothing else."""
    folded = {name.strip().casefold(): name for name in candidates}
    if len(folded) == len(candidates):
        return folded
    return {name.strip(): name for name in candidates}


def _comparable(text: str, folded: Mapping[str, str]) -> str:
    """A text in the form the keys of `folded` have."""
    return text.casefold() if all(key == key.casefold() for key in folded) else text


def _ends_word(text: str, at: int) -> bool:
    return at >= len(text) or not (text[at].isalnum() or text[at] == "_")


def match_answer(text: str, candidates: Sequence[str]) -> str | None:
    """The candidate that an answer states, or None.

    The answer is a candidate, or begins with one as a whole word; the longest such counts.
    Quotes and punctuation around it are ignored, and case unless candidates differ only by
    it. A candidate somewhere inside a sentence does not count ("I would not approve").

    >>> match_answer("**Yes**, please.", ("yes", "no"))
    'yes'
    >>> match_answer("yesterday", ("yes", "no")) is None
    True
    """
    folded = _folded(candidates)
    said = _comparable(text, folded)
    for form in (said.strip(), said.lstrip(_WRAPPERS)):
        begun = [key for key in folded if form.startswith(key) and _ends_word(form, len(key))]
        if begun:
            return folded[max(begun, key=len)]
    return None


def token_owners(token: str, candidates: Sequence[str]) -> tuple[str, ...]:
    """The candidates that an answer beginning with this token may still become.

    >>> token_owners(" app", ("approve", "appeal", "deny"))
    ('approve', 'appeal')
    >>> token_owners("No.", ("yes", "no"))
    ('no',)
    """
    folded = _folded(candidates)
    head = _comparable(token.lstrip(_BLANKS), folded)
    begun = head.rstrip(_BLANKS)
    if not begun:
        return ()
    return tuple(
        name
        for key, name in folded.items()
        if key.startswith(begun) or (head.startswith(key) and _ends_word(head, len(key)))
    )


# --- from what a server shows to a distribution -----------------------------------------------


def spread(masses: Mapping[str, float]) -> Mapping[str, float]:
    """Log-probabilities of the candidates' masses, the rest going to `OTHER`.

    Raises:
        MalformedReply: if the masses sum to more than 1 by more than rounding.

    >>> {name: round(math.exp(value), 3) for name, value in spread({"yes": 0.75}).items()}
    {'yes': 0.75, '(other)': 0.25}
    """
    total = math.fsum(masses.values())
    if not total <= 1 + _ROUNDING:
        raise MalformedReply(
            f"the server's probabilities sum to {total:.6g}; use method='sampled' with it"
        )
    scale = max(total, 1.0)
    shares = {name: mass / scale for name, mass in masses.items()}
    rest = 1.0 - math.fsum(shares.values())
    if rest > 1e-12:
        shares[OTHER] = shares.get(OTHER, 0.0) + rest
    return as_log_probs(shares)


def as_log_probs(masses: Mapping[str, float]) -> Mapping[str, float]:
    """Normalised log-probabilities; outcomes without mass are left out."""
    total = math.fsum(masses.values())
    return MappingProxyType(
        {name: math.log(mass / total) for name, mass in masses.items() if mass > 0}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTokenMass:
    """What a top list of first tokens says about candidates.

    Attributes:
        by_candidate: probability by candidate, of those that were seen.
        ambiguous: probability on tokens that several candidates begin with.
        least: the smallest log-probability in the list; what is not in it has at most this.
    """

    by_candidate: Mapping[str, float]
    ambiguous: float
    least: float


def first_token_mass(top: Iterable[tuple[str, float]], candidates: Sequence[str]) -> FirstTokenMass:
    """Add up the first tokens that lead to each candidate.

    Several tokens may lead to one candidate (`Yes`, ` yes`); a token that may lead to
    several is counted as ambiguous and to none of them.

    >>> mass = first_token_mass([("Yes", math.log(0.5)), (" yes", math.log(0.25))], ("yes", "no"))
    >>> mass.by_candidate["yes"], mass.ambiguous
    (0.75, 0.0)
    """
    tokens = dict(top)
    masses: dict[str, float] = {}
    ambiguous = 0.0
    for token, log_prob in tokens.items():
        owners = token_owners(token, candidates)
        if len(owners) == 1:
            masses[owners[0]] = masses.get(owners[0], 0.0) + math.exp(log_prob)
        elif owners:
            ambiguous += math.exp(log_prob)
    return FirstTokenMass(
        by_candidate=masses, ambiguous=ambiguous, least=min(tokens.values(), default=0.0)
    )


def sequence_masses(log_probs: Mapping[str, float]) -> Mapping[str, float]:
    """Probabilities of exclusive outcomes from those of texts that may begin with each other.

    A text that continues another is part of its probability, so "yes" becomes "yes, but not
    yes please": the longest candidate that a continuation begins with is its outcome.

    >>> masses = sequence_masses({"yes": math.log(0.5), "yes please": math.log(0.125)})
    >>> masses["yes"], masses["yes please"]
    (0.375, 0.125)
    """
    exclusive = {name: math.exp(value) for name, value in log_probs.items()}
    for name in sorted(log_probs, key=len):
        longer = [other for other in log_probs if other != name and other.startswith(name)]
        nearest = [
            each
            for each in longer
            if not any(each != other and each.startswith(other) for other in longer)
        ]
        share = math.fsum(math.exp(log_probs[each]) for each in nearest)
        exclusive[name] = max(0.0, exclusive[name] - share)
    return exclusive


def count_outcomes(completions: Iterable[Completion], candidates: Sequence[str]) -> dict[str, int]:
    """How often each outcome was drawn, all of them named.

    >>> count_outcomes([Completion(text="Yes."), Completion(refusal="")], ("yes", "no"))
    {'yes': 1, 'no': 0, '(other)': 0, '(refusal)': 1}
    """
    counts = dict.fromkeys((*candidates, OTHER, REFUSAL), 0)
    for completion in completions:
        counts[_outcome_of(completion, candidates)] += 1
    return counts


def _outcome_of(completion: Completion, candidates: Sequence[str]) -> str:
    if completion.refused:
        return REFUSAL
    return match_answer(completion.text, candidates) or OTHER


def smoothed(counts: Mapping[str, int]) -> Mapping[str, float]:
    """Log-probabilities from counts, half an observation added to each outcome.

    That is the mean under Jeffreys' prior (Jeffreys 1946; Krichevsky & Trofimov 1981). Three
    answers out of three are not certainty: with four outcomes (3 + 1/2) / (3 + 4/2) = 0.7.

    >>> logs = smoothed({"yes": 3, "no": 0, OTHER: 0, REFUSAL: 0})
    >>> round(math.exp(logs["yes"]), 3), round(math.exp(logs["no"]), 3)
    (0.7, 0.1)
    """
    return as_log_probs({name: count + 0.5 for name, count in counts.items()})
