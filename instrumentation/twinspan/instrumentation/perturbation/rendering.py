"""What a perturbation is once it is made: a payload, the edits that led to it, and its kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from twinspan.instrumentation.errors import PerturbationError
from twinspan.instrumentation.perturbation.tree import map_text, text_leaves

SwapKind = Literal["attribute_swap", "proxy_swap"]
"""The two ways a twin is made: by words that name the attribute, or by words that hint at it."""

PerturbationKind = Literal[
    "identity", "attribute_swap", "proxy_swap", "sham", "rare_token", "neutral", "neutral_edit"
]
"""What a rendering did to the attribute.

``identity`` leaves it as it is (the wording may be drawn anew), the two swaps exchange it,
``neutral`` takes it out, and the controls touch something else: ``sham`` an irrelevant
attribute, ``rare_token`` an invented word, ``neutral_edit`` the wording around it.
"""

SWAP_KINDS: Final[tuple[SwapKind, SwapKind]] = ("attribute_swap", "proxy_swap")
"""Both swap kinds in the order in which they are tried: what is explicit comes first."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One replaced stretch of one text leaf.

    Attributes:
        pointer: RFC 6901 JSON pointer of the leaf; ``""`` when the payload is the text.
        start: first code point that was replaced, in the leaf before the edit.
        end: one past the last; equal to ``start`` for an insertion.
        original: the words that stood there; ``""`` for an insertion.
        replacement: the words that stand there now; ``""`` for a deletion.
    """

    pointer: str
    start: int
    end: int
    original: str
    replacement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """A payload in one wording, with every edit that separates it from what was given.

    Neither the payload nor its edits show in the ``repr``, so that a rendering in a log line
    discloses nothing.

    Attributes:
        payload: the payload to run; the very object that was given when nothing changed.
        edits: in document order, offsets counted in the payload that was given.
        kind: what was done to the attribute.
        axis: name of the axis; ``""`` for a control that belongs to none.
        source: group the payload spoke of; ``None`` when it spoke of none.
        target: group it speaks of now; ``None`` when no group was aimed at.
        perturbation_id: names the arm and holds no content, such as ``gender:woman>man``.

    >>> twin = Rendering(
    ...     payload="he waits", edits=(Edit("", 0, 3, "she", "he"),), kind="attribute_swap",
    ...     axis="gender", source="woman", target="man", perturbation_id="gender:woman>man",
    ... )
    >>> twin.edit_count, twin.targets, twin.no_op
    (1, ('',), False)
    """

    payload: Any = field(repr=False)
    edits: tuple[Edit, ...] = field(repr=False)
    kind: PerturbationKind
    axis: str
    source: str | None
    target: str | None
    perturbation_id: str

    @property
    def no_op(self) -> bool:
        """Whether nothing was changed: such a twin says nothing, least of all "no bias"."""
        return not self.edits

    @property
    def outcome(self) -> Literal["ok", "no_op"]:
        """``no_op`` when nothing was changed, else ``ok``."""
        return "ok" if self.edits else "no_op"

    @property
    def edit_count(self) -> int:
        """How many stretches of text were replaced, articles that had to agree included."""
        return len(self.edits)

    @property
    def targets(self) -> tuple[str, ...]:
        """The JSON pointers of the leaves that changed, each once, in document order."""
        return tuple(dict.fromkeys(edit.pointer for edit in self.edits))


def replay(payload: object, edits: Iterable[Edit]) -> Any:
    """Make a set of edits again, on the payload they were made on.

    Args:
        payload: the payload before the edits; it is not changed.
        edits: edits whose offsets count in that payload, in any order.

    Returns:
        The payload after the edits.

    Raises:
        PerturbationError: a pointer leads to no text, two edits overlap, or the text at an
            edit is not what the edit says was there.

    >>> replay({"note": "she waits"}, [Edit("/note", 0, 3, "she", "he")])
    {'note': 'he waits'}
    """
    wanted: dict[str, list[Edit]] = {}
    for edit in edits:
        wanted.setdefault(edit.pointer, []).append(edit)
    texts = dict(text_leaves(payload))
    for pointer in wanted:
        if pointer not in texts:
            raise PerturbationError(
                f"the payload has no text at {pointer!r}; replay edits on the payload they "
                "were made on"
            )
    changed = {pointer: splice(texts[pointer], made) for pointer, made in wanted.items()}
    return with_texts(payload, changed)


def with_texts(payload: object, texts: dict[str, str]) -> Any:
    """The payload with some leaves replaced, by pointer; itself when there are none."""
    if not texts:
        return payload
    return map_text(payload, lambda pointer, text: texts.get(pointer, text))


def splice(text: str, edits: Sequence[Edit]) -> str:
    """One leaf's text with its edits made, all at once.

    Raises:
        PerturbationError: two edits overlap, or the text is not what an edit says it was.

    >>> splice("she met him", [Edit("", 0, 3, "she", "he"), Edit("", 8, 11, "him", "her")])
    'he met her'
    """
    parts: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        if edit.start < done or text[edit.start : edit.end] != edit.original:
            raise PerturbationError(
                f"the text at {edit.pointer!r}, {edit.start} to {edit.end}, is not what the edit "
                "was made on; replay edits on the unchanged payload"
            )
        parts += text[done : edit.start], edit.replacement
        done = edit.end
    parts.append(text[done:])
    return "".join(parts)
