"""A flow: its methods are nodes, and what they run are nodes within them."""

# CrewAI is not in the development environment, see the group `crewai-tests`.
# pyright: reportMissingImports=false, reportUnknownVariableType=false

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final

from crewai.flow.async_feedback import HumanFeedbackPending

from twinspan.instrumentation.frameworks.place import Place
from twinspan.instrumentation.frameworks.stepwise import Step
from twinspan.instrumentation.gate import Topology
from twinspan.instrumentation.narrowing import as_mapping, as_sequence
from twinspan.instrumentation.run import Parent

PAUSES: Final[tuple[type[BaseException], ...]] = (HumanFeedbackPending,)
"""What a method raises that waits for a person: control flow, no failure."""


def is_own(flow: Any) -> bool:
    """Whether a flow is a part of CrewAI, as an agent's executor is one."""
    return type(flow).__module__.startswith("crewai.")


class FlowSession:
    """The methods of one flow's run: who wakes whom, and who ran last."""

    def __init__(self, flow: Any) -> None:
        self._methods: Mapping[str, Any] = flow._definition.methods
        self._made: dict[str, tuple[int, Parent]] = {}
        self._ended = itertools.count(1)

    def topology(self, name: str) -> Topology:
        """The methods, and who may wake whom."""
        edges = [
            (source, method)
            for method in self._methods
            for event in _events(self._condition(method))
            for source in self._sources(event)
        ]
        return Topology(name=name, nodes=tuple(self._methods), edges=tuple(dict.fromkeys(edges)))

    def parents_of(self, method: str) -> tuple[Parent, ...]:
        """The executions that woke a method: of alternatives the one that ended last."""
        found = self._woken(self._condition(method))
        return tuple(parent for _, parent in sorted(found, key=lambda each: each[0]))

    def made(self, method: str, step: Step) -> None:
        """A method's execution has ended."""
        if step.handed is not None:
            self._made[method] = (next(self._ended), step.handed)

    def _condition(self, method: str) -> Any:
        told = self._methods[method]
        return told.listen if told.listen is not None else told.start

    def _sources(self, event: str) -> list[str]:
        """The method of that name, or the routers that may answer it."""
        if event in self._methods:
            return [event]
        routers = [name for name, told in self._methods.items() if told.router]
        return [name for name in routers if event in (self._methods[name].emit or [event])]

    def _woken(self, condition: Any) -> list[tuple[int, Parent]]:
        if isinstance(condition, str):
            ended = [self._made[name] for name in self._sources(condition) if name in self._made]
            return [max(ended, key=lambda each: each[0])] if ended else []
        told = as_mapping(condition)
        if told is None:
            return []
        branches = [self._woken(branch) for branch in _branches(told)]
        if "and" in told:
            return [each for branch in branches for each in branch]
        return max(branches, key=lambda branch: max([at for at, _ in branch], default=0))


def _branches(condition: Mapping[Any, object]) -> list[Any]:
    return [each for found in condition.values() for each in (as_sequence(found) or ())]


def _events(condition: Any) -> Iterator[str]:
    if isinstance(condition, str):
        yield condition
    for branch in _branches(as_mapping(condition) or {}):
        yield from _events(branch)


current_flow: ContextVar[FlowSession | None] = ContextVar("twinspan_flow", default=None)


def begin_method(
    place: Place, flow: Any, session: FlowSession, method: str, arguments: Mapping[str, Any]
) -> Step | None:
    """The step of a method; it changes the flow's state, and so is never run again."""
    return Step.begin(
        place,
        method,
        {"state": _plain(flow.state), **arguments},
        parents=session.parents_of(method),
        kind="function",
        in_loop=True,
    )


def _plain(state: Any) -> Any:
    return state.model_dump() if hasattr(state, "model_dump") else dict(state)
