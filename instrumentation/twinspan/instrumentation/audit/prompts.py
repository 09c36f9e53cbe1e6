"""What a step agent reads: who asks, whom it is about, the case, what was decided so far."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from twinspan.instrumentation.audit.cases import Case
from twinspan.instrumentation.audit.steps import Step

SoFar = Sequence[tuple[str, Mapping[str, object]]]
"""Steps that were taken, with their actions, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptForm:
    """The fixed words around a case.

    Attributes:
        role: what the agent is told to be; nothing if empty.
        person: the label of the descriptor.
        case: the label of the narrative.

    >>> form = PromptForm(role="You triage.", person="Patient", case="Presentation")
    >>> step = Step(name="admit", schema={"properties": {"yes": {"type": "boolean"}}},
    ...             instruction="Admit?")
    >>> case = Case(id="a", narrative="Fever.")
    >>> print(form.write(step, case, "A man.", [("triage", {"level": 2})]))
    You triage.
    <BLANKLINE>
    Patient: A man.
    Presentation: Fever.
    triage: level 2
    <BLANKLINE>
    Admit?
    """

    role: str = ""
    person: str = "Person"
    case: str = "Case"

    def write(self, step: Step, case: Case, descriptor: str, so_far: SoFar) -> str:
        """The prompt of one step; without a descriptor nothing is said about the person."""
        told = [f"{self.person}: {descriptor}"] if descriptor else []
        told += [f"{self.case}: {case.narrative}"]
        told += [f"{name}: {_said(action)}" for name, action in so_far]
        blocks = [self.role, "\n".join(told), step.instruction]
        return "\n\n".join(block for block in blocks if block)

    def text(self, case: Case, descriptor: str) -> str:
        r"""Descriptor and narrative as one text, for agents that do a whole case.

        >>> PromptForm().text(Case(id="a", narrative="Fever."), "A man.")
        'A man.\n\nFever.'
        """
        return "\n\n".join(part for part in (descriptor, case.narrative) if part)

    def as_dict(self) -> dict[str, object]:
        """Plain data, for a plan's hash."""
        return {"role": self.role, "person": self.person, "case": self.case}


def _said(action: Mapping[str, object]) -> str:
    return "; ".join(f"{name} {_word(value)}" for name, value in action.items())


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(_word, cast("list[object]", value))) or "none"
    return json.dumps(value, ensure_ascii=False)
