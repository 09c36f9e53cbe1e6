"""What an audited agent is asked, and the two forms in which it may answer.

A *step agent* answers one step at a time: a prompt and a schema in, one action out. The runner
keeps the case's state and asks each step in a context of its own. A *run agent* does a whole
case by itself, by whatever loop or graph it has, and tells what it did step by step.

Neither is told the condition's name, the arm or the replicate: an agent that knew could not be
audited.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast, runtime_checkable

from twinspan.instrumentation.audit.schemas import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest:
    """One step of one run, as a step agent is asked.

    Attributes:
        step: the step's name.
        prompt: everything there is to read.
        schema: what the answer has to look like.
        seed: for the model's sampling; differs between steps, runs and tries.
    """

    step: str
    prompt: str = field(repr=False)
    schema: Schema = field(repr=False)
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRequest:
    """One case, as a run agent is asked.

    Attributes:
        case_id: the case.
        text: descriptor and narrative, as one text.
        descriptor: whom the case is about; empty where nothing is said.
        narrative: the case.
        fixtures: what tools would answer.
        seed: for the model's sampling; differs between runs and tries.
    """

    case_id: str
    text: str = field(repr=False)
    descriptor: str = field(repr=False)
    narrative: str = field(repr=False)
    fixtures: Mapping[str, str] = field(repr=False)
    seed: int

    def fill(self, template: object) -> object:
        """A template with ``{text}``, ``{descriptor}``, ``{narrative}`` and the like filled in.

        >>> request = CaseRequest(case_id="a", text="A man. Fever.", descriptor="A man.",
        ...                       narrative="Fever.", fixtures={}, seed=1)
        >>> request.fill({"messages": [["user", "{text}"]], "n": 2})
        {'messages': [['user', 'A man. Fever.']], 'n': 2}
        """
        if isinstance(template, str):
            for name in ("text", "descriptor", "narrative", "case_id", "seed"):
                template = template.replace(f"{{{name}}}", str(getattr(self, name)))
            return template
        if isinstance(template, Mapping):
            items = cast("Mapping[str, object]", template).items()
            return {key: self.fill(value) for key, value in items}
        if isinstance(template, list):
            return [self.fill(value) for value in cast("list[object]", template)]
        return template


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneStep:
    """One step that a run agent has taken.

    Attributes:
        name: the step, a node of its graph.
        action: what it did; None if it gave nothing that can be read.
        kind: ``agent``, ``function``, ``tool`` and the like.
        parents: steps whose result it read; None if that is not known.
        superstep: when, in the agent's own count; None if it has none.
        started: nanoseconds since 1970; None if not known.
        ended: likewise.
    """

    name: str
    action: object
    kind: str = "agent"
    parents: tuple[str, ...] | None = None
    superstep: int | None = None
    started: int | None = None
    ended: int | None = None


@runtime_checkable
class StepAgent(Protocol):
    """Answers one step."""

    def answer(self, request: StepRequest, /) -> object:
        """The action: a mapping, or JSON text of one. Whatever it raises is a failed try."""
        ...


@runtime_checkable
class RunAgent(Protocol):
    """Does a whole case."""

    def act(self, request: CaseRequest, /) -> Iterable[DoneStep]:
        """The steps that were taken, in their order. Whatever it raises is a failed try."""
        ...


def read_answer(answer: object) -> object:
    """An answer as a value: JSON text is read, also within a fence; other text stays text.

    >>> read_answer('{"a": 1}'), read_answer("no idea"), read_answer({"a": 2})
    ({'a': 1}, 'no idea', {'a': 2})
    """
    dump: Any = getattr(answer, "model_dump", None)
    if callable(dump):
        return dump()
    if not isinstance(answer, str):
        return answer
    text = answer.strip()
    if text.startswith("```"):
        text = text.strip("`").removeprefix("json").strip()
    try:
        return json.loads(text)
    except ValueError:
        return answer


def steps_of(answer: object, single: str) -> tuple[DoneStep, ...]:
    """The steps that a run agent's plain answer tells of.

    A mapping of mappings has an action by step; any other mapping is the action of one step.

    Args:
        answer: what the agent returned.
        single: the name of that one step.

    >>> [step.name for step in steps_of({"triage": {"level": 2}, "admit": {"yes": True}}, "do")]
    ['triage', 'admit']
    >>> steps_of({"approve": True}, "decision")[0].action
    {'approve': True}
    """
    read = read_answer(answer)
    if isinstance(read, Mapping) and read:
        by_step = dict(cast("Mapping[str, object]", read))
        if all(isinstance(action, Mapping) for action in by_step.values()):
            steps = list(by_step)
            return tuple(
                DoneStep(
                    name=str(name), action=by_step[name], parents=tuple(steps[place - 1 : place])
                )
                for place, name in enumerate(steps)
            )
    return (DoneStep(name=single, action=read_answer(answer), parents=()),)
