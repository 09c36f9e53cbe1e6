"""What an agent remembers of its answer waits until the answer is decided."""

# CrewAI is not in the development environment, see the group `crewai-tests`.
# pyright: reportMissingImports=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from twinspan.instrumentation.frameworks.place import is_unobserved

Save = Callable[[str | None], None]
"""Remembers an answer: another one where a text is given."""


class Saves:
    """What one execution of an agent would remember, in its order."""

    def __init__(self) -> None:
        self._waiting: list[Save] = []

    def put(self, save: Save) -> None:
        """Have one wait."""
        self._waiting.append(save)

    def pass_on(self) -> None:
        """The answer stands."""
        waiting, self._waiting = self._waiting, []
        for save in waiting:
            save(None)

    def replace(self, answer: str) -> None:
        """Another answer stands: it is remembered, once, and no attempt before it."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            waiting[-1](answer)


_saves: ContextVar[Saves | None] = ContextVar("twinspan_crew_saves", default=None)


@contextmanager
def remembering(*, waits: bool) -> Generator[Saves]:
    """Have what is remembered in the block wait, or let it pass."""
    saves = Saves()
    token = _saves.set(saves if waits else None)
    try:
        yield saves
    finally:
        _saves.reset(token)


def _put(save: Save) -> None:
    """Now, later, or never where a node is run again."""
    if is_unobserved():
        return
    saves = _saves.get()
    if saves is None:
        save(None)
    else:
        saves.put(save)


def of_kickoff(wrapped: Any, _: Any, args: Any, kwargs: Any) -> None:
    """What an agent outside a crew remembers."""
    given = dict(zip(("messages", "output_text"), args, strict=False)) | kwargs

    def save(text: str | None) -> None:
        wrapped(**{**given, **({} if text is None else {"output_text": text})})

    _put(save)


def of_lite_agent(wrapped: Any, agent: Any, args: Any, kwargs: Any) -> None:
    """The same of a `LiteAgent`, which looks for the question in its messages."""
    given = [*args, *kwargs.values()][0]
    asked = agent.model_copy()
    asked._messages = list(agent._messages)

    def save(text: str | None) -> None:
        wrapped.__func__(asked, given if text is None else text)

    _put(save)


def of_task(wrapped: Any, _: Any, args: Any, kwargs: Any) -> None:
    """What an agent at a task remembers."""
    finish = [*args, *kwargs.values()][0]

    def save(text: str | None) -> None:
        wrapped(finish if text is None else replace(finish, output=text, text=text))

    _put(save)
