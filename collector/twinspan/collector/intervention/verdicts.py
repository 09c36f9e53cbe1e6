"""Reads a reviewer's verdict out of whatever its model wrote.

Only an unmistakable verdict counts: a JSON object with one, or a line that begins with one.
Everything else is an abstention with a reason, never agreement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from twinspan.instrumentation.narrowing import as_mapping, as_sequence

Stance = Literal["stands", "revise", "reject", "abstain"]
Form = Literal["json", "line", "none"]

_STANCES: Final[Mapping[str, Stance]] = {
    "stand": "stands",
    "stands": "stands",
    "revise": "revise",
    "revised": "revise",
    "reject": "reject",
    "rejected": "reject",
    "abstain": "abstain",
}
_WORDS: Final = "|".join(sorted(_STANCES, key=len, reverse=True))
_VERDICT_KEYS: Final = frozenset({"verdict", "stance", "decision"})

# Typographic quotes, dashes and the full-width colon, by number: they look like others.
_QUOTES: Final = "\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
_DASHES: Final = "\u2013\u2014-"
_COLONS: Final = ":\uff1a="
_DECORATION: Final = f" \t*_#>`~|\u2022{_QUOTES}{_DASHES}"

# A list number, then up to three words of any language and a colon or dash, all optional.
_LABEL: Final = (
    r"(?:\d+[.)]\s*)?"
    r"(?:[^\W\d_]+(?:[ '\u2019][^\W\d_]+){0,2}[*_ ]*"
    rf"(?:[{_COLONS}]|\s[{_DASHES}]\s)[\s*_`{_QUOTES}]*)?"
)
_LINE: Final = re.compile(
    rf"{_LABEL}(?P<word>{_WORDS})[*_`{_QUOTES}]*(?:\s*[.,;:!){_DASHES}].*)?", re.IGNORECASE
)
_ANY: Final = re.compile(rf"\b({_WORDS})\b", re.IGNORECASE)
_BULLET: Final = r"^[*_#>\s-]*"
_EVIDENCE: Final = re.compile(rf"{_BULLET}evidence[*_ ]*[{_COLONS}](?P<said>.*)$", re.I | re.M)
_QUOTED: Final = re.compile(
    r"[\"\u201c\u201e\u00ab]([^\"\u201c\u201d\u201e\u00ab\u00bb]+)[\"\u201c\u201d\u00bb]"
)
_CONFIDENCE: Final = re.compile(
    rf"{_BULLET}confidence[*_ ]*[{_COLONS}][*_ ]*(?P<number>\d+(?:\.\d+)?)\s*(?P<percent>%?)",
    re.I | re.M,
)
_RULE: Final = re.compile(r"^\s*-{3,}\s*$", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What one reviewer says of an answer.

    Attributes:
        stance: `stands`, `revise`, `reject`; `abstain` where no verdict could be read.
        confidence: what the reviewer says of its own certainty, 0 to 1; None if it does not.
        evidence: what it quotes.
        checked: those of the quotes that are really in what it was shown.
        revision: its revised answer as text, before it was fitted to the answer's form.
        form: how the verdict was read: from `json`, from a `line`, or `none`.
        why: why there is no verdict, from a closed list: `refused`, `empty`, `no_verdict`,
            `two_verdicts`, `unknown_verdict`, `timeout`, or `error:` and the kind of error.
        reasoning: its words; content, never exported unless content is.
    """

    stance: Stance
    confidence: float | None = None
    evidence: tuple[str, ...] = field(default=(), repr=False)
    checked: tuple[str, ...] = field(default=(), repr=False)
    revision: object = field(default=None, repr=False)
    form: Form = "none"
    why: str | None = None
    reasoning: str = field(default="", repr=False)

    @property
    def has_evidence(self) -> bool:
        """Whether anything it quotes is really there."""
        return bool(self.checked)


@dataclass(frozen=True, slots=True)
class _Found:
    """A JSON object in a text."""

    value: Mapping[Any, object]
    start: int
    end: int

    @property
    def verdict(self) -> object:
        return _under(self.value, _VERDICT_KEYS)


def read_review(text: str) -> Review:
    r"""The review in a reply; its evidence is not yet checked.

    >>> read_review('```json\n{"verdict": "revise", "confidence": 0.8}\n```').stance
    'revise'
    >>> read_review("Some thoughts first.\n\n**Verdict: REJECT**").stance
    'reject'
    >>> read_review("I would say that it stands to reason.").why
    'no_verdict'
    >>> read_review("STANDS, or rather REVISE").why
    'two_verdicts'
    """
    if not text.strip():
        return Review(stance="abstain", why="empty")
    objects = list(_objects(text))
    said = [each for each in objects if each.verdict is not None]
    stances: list[Stance | None] = [_stance(each.verdict) for each in said]
    lines, doubled = _line_stances(_without(text, objects))
    every: set[Stance] = {stance for stance in (*stances, *lines) if stance is not None}
    reason = _trouble(stances, every, doubled=doubled)
    if reason is not None:
        return Review(stance="abstain", why=reason, reasoning=text)
    (stance,) = every
    if stance == "abstain":
        return Review(stance="abstain", why="abstained", reasoning=text)
    if said:
        return _from_object(said[-1].value, stance, text)
    return _from_lines(text, stance, objects)


def _trouble(stances: list[Stance | None], every: set[Stance], *, doubled: bool) -> str | None:
    if doubled or len(every) > 1:
        return "two_verdicts"
    if None in stances:
        return "unknown_verdict"
    return None if every else "no_verdict"


# --- JSON -------------------------------------------------------------------------------------


def _objects(text: str) -> Iterator[_Found]:
    """The outermost JSON objects in a text, in order."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        found = as_mapping(value)
        if found is not None:
            yield _Found(found, at, end)
        at = text.find("{", end)


def _under(value: Mapping[Any, object], keys: frozenset[str]) -> object:
    for key, item in value.items():
        if str(key).strip().casefold() in keys:
            return item
    return None


def _stance(value: object) -> Stance | None:
    """The stance that a JSON value names; None for one that names none of ours."""
    word = str(value).strip().strip(_DECORATION + ".!").casefold()
    return _STANCES.get(word)


def _from_object(value: Mapping[Any, object], stance: Stance, text: str) -> Review:
    return Review(
        stance=stance,
        confidence=_as_confidence(_under(value, frozenset({"confidence"}))),
        evidence=_quotes(_under(value, frozenset({"evidence", "quotes"}))),
        revision=_under(value, frozenset({"revision", "revised_answer", "revised"})),
        form="json",
        reasoning=str(_under(value, frozenset({"reason", "reasoning"})) or text),
    )


def _quotes(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in as_sequence(value) or () if isinstance(item, str))


def _as_confidence(value: object) -> float | None:
    """A share, a percentage in words or digits, or nothing."""
    if isinstance(value, bool) or value is None:
        return None
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        return None
    number = number / 100 if text.endswith("%") or 1 < number <= 100 else number
    return number if 0 <= number <= 1 else None


# --- lines ------------------------------------------------------------------------------------


def _without(text: str, objects: list[_Found]) -> str:
    """The text with JSON objects blanked, and without the revision below a rule."""
    for found in objects:
        text = text[: found.start] + " " * (found.end - found.start) + text[found.end :]
    return _RULE.split(text, maxsplit=1)[0]


def _line_stances(text: str) -> tuple[list[Stance], bool]:
    """The verdicts that lines begin with; and whether one line names two."""
    found: list[Stance] = []
    doubled = False
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip(_DECORATION))
        if match is None:
            continue
        named = {_STANCES[word.casefold()] for word in _ANY.findall(line)}
        doubled = doubled or len(named) > 1
        found.append(_STANCES[match["word"].casefold()])
    return found, doubled


def _from_lines(text: str, stance: Stance, objects: list[_Found]) -> Review:
    said = " ".join(match["said"] for match in _EVIDENCE.finditer(text))
    confidence = _CONFIDENCE.search(text)
    parts = _RULE.split(text, maxsplit=1)
    revision: object = parts[1].strip() if len(parts) == 2 else None
    if revision is None and objects:
        revision = objects[-1].value
    return Review(
        stance=stance,
        confidence=(
            None
            if confidence is None
            else _as_confidence(confidence["number"] + confidence["percent"])
        ),
        evidence=tuple(_QUOTED.findall(said)),
        revision=revision or None,
        form="line",
        reasoning=text,
    )
