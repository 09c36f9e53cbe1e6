"""What an intervention is about: one node, what it read, and what it wanted to hand on."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

from twinspan.instrumentation.hashing import canonical
from twinspan.instrumentation.perturbation import Axis
from twinspan.instrumentation.perturbation.tree import text_leaves

Procedure = Callable[[Any], Awaitable[Any]]
"""From what a node reads to what is handed on: the node alone, or the node and a repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One answer under suspicion.

    Attributes:
        node: who gave it, path-qualified.
        payload: what the node read.
        answer: what it wants to hand on.
        axes: the axes on which it was halted.
        rerun: runs the node again on a payload; None where it must not be.
    """

    node: str
    payload: Any = field(repr=False)
    answer: Any = field(repr=False)
    axes: tuple[Axis, ...] = ()
    rerun: Procedure | None = field(default=None, repr=False)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The axes by name."""
        return tuple(axis.name for axis in self.axes)

    def on(self, payload: Any, answer: Any) -> Self:
        """The same question about another payload, such as a twin's."""
        return replace(self, payload=payload, answer=answer)

    def blind(self, value: Any) -> Any:
        """A value without the axes' words, where the axes have neutral ones for them.

        >>> from twinspan.instrumentation.perturbation import builtin_axis
        >>> case = Case(node="a", payload="", answer="", axes=(builtin_axis("gender"),))
        >>> case.blind("She runs a shop.")
        'The person runs a shop.'
        """
        for axis in self.axes:
            value = axis.neutral(value).payload
        return value

    @property
    def shown_payload(self) -> str:
        """What the node read, as text for a reviewer, blind to the axes."""
        return as_text(self.blind(self.payload))

    @property
    def shown_answer(self) -> str:
        """What it answered, as text for a reviewer, blind to the axes."""
        return as_text(self.blind(self.answer))

    @property
    def sources(self) -> tuple[str, ...]:
        """Every text that a reviewer was shown, for checking what it quotes."""
        leaves = text_leaves((self.blind(self.payload), self.blind(self.answer)))
        return (self.shown_payload, self.shown_answer, *(text for _, text in leaves))

    def told(self) -> str:
        """The case as a reviewer's model is asked about it."""
        return (
            f"Agent: {self.node}\n"
            f"Suspected of depending on: {', '.join(self.axis_names) or 'a protected attribute'}\n"
            f"\nWhat the agent read:\n{self.shown_payload}\n"
            f"\nWhat the agent answered:\n{self.shown_answer}\n"
        )


def as_text(value: object) -> str:
    """A value as a reviewer reads it: text as it is, everything else as JSON.

    >>> as_text("approve"), as_text({"advice": "prüfen"})
    ('approve', '{"advice": "prüfen"}')
    """
    if isinstance(value, str):
        return value
    text = canonical(value)
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return text
