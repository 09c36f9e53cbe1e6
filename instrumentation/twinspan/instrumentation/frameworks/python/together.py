"""`parallel`: nodes that run at once and are one superstep."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.frameworks.place import current_place
from twinspan.instrumentation.frameworks.stepwise import Group, member_of


def parallel(*calls: Any) -> Any:
    """Run nodes at once; they are decided together, and nobody has an answer before.

    Async nodes are called (`await parallel(a(x), b(x))`), plain ones are to be called
    (`parallel(lambda: a(x), lambda: b(x))`) and run in threads. Answers come in order. Where one
    raises, the others are waited for and the first error is raised.

    Outside of `parallel` each node is a superstep of its own; that holds for `asyncio.gather` and
    for thread pools too.

    Raises:
        ConfigurationError: if plain and async calls are mixed.
        BiasHalt: if the run is halted here.

    >>> parallel(lambda: 1, lambda: 2)
    [1, 2]
    """
    if calls and all(inspect.isawaitable(call) for call in calls):
        return _on_loop(calls)
    if any(inspect.isawaitable(call) for call in calls):
        raise ConfigurationError(
            "parallel was given plain and async calls; wrap plain nodes with asyncio.to_thread"
        )
    return _in_threads(calls)


def _group() -> Group | None:
    place = current_place()
    return None if place is None else Group(place)


async def _on_loop(calls: Sequence[Awaitable[Any]]) -> list[Any]:
    group = _group()

    async def member(place: int, call: Awaitable[Any]) -> Any:
        with member_of(group, place):
            return await call

    work = (member(place, call) for place, call in enumerate(calls))
    answers = await asyncio.gather(*work, return_exceptions=True)
    _raise_first(answers, group)
    return answers if group is None else await group.aclose(answers)


def _in_threads(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    group = _group()

    def member(place: int, call: Callable[[], Any]) -> Any:
        try:
            with member_of(group, place):
                return call()
        except BaseException as error:
            return error

    if not calls:
        return []
    with ThreadPoolExecutor(len(calls), thread_name_prefix="twinspan-parallel") as pool:
        work = [pool.submit(member, place, call) for place, call in enumerate(calls)]
        answers = [each.result() for each in work]
    _raise_first(answers, group)
    return answers if group is None else group.close(answers)


def _raise_first(answers: Sequence[Any], group: Group | None) -> None:
    for answer in answers:
        if isinstance(answer, BaseException):
            if group is not None:
                group.abandon()
            raise answer
