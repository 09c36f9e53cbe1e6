"""Holds a streamed run back until its result is decided."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from pydantic_ai.result import StreamedRunResult

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.frameworks.place import is_unobserved


@dataclass(slots=True)
class Decided:
    """The result of a run, as it left the run's gate; None until then."""

    result: Any = None


_awaited: Final[ContextVar[Decided | None]] = ContextVar("twinspan_pydantic_ai_stream")


def awaited() -> Decided | None:
    """Where the run that begins now leaves its result, if its stream is held back."""
    return _awaited.get(None)


@contextmanager
def _awaiting(decided: Decided) -> Generator[None]:
    token = _awaited.set(decided)
    try:
        yield
    finally:
        _awaited.reset(token)


def run_stream(engine: Engine, wrapped: Any, args: Any, kwargs: Any) -> Any:
    """A streamed run: as it is where the breaker only tells, held back where it enforces.

    A handler of events is called while the agent runs, as callbacks are.
    """
    if is_unobserved() or not engine.holds_stream:
        return wrapped(*args, **kwargs)
    return _held(wrapped, args, kwargs)


@asynccontextmanager
async def _held(wrapped: Any, args: Any, kwargs: Any) -> AsyncGenerator[Any]:
    """The run is streamed to its end, and then shown: what was decided, in one piece."""
    decided = Decided()
    with _awaiting(decided):
        streaming = wrapped(*args, **kwargs)
        streamed = await streaming.__aenter__()
    try:
        await streamed.get_output()
    except BaseException as error:
        if not await streaming.__aexit__(type(error), error, error.__traceback__):
            raise
    else:
        await streaming.__aexit__(None, None, None)
    result = streamed.result if decided.result is None else decided.result
    index = len(result.all_messages()) - len(result.new_messages())
    yield StreamedRunResult(result.all_messages(), index, run_result=result)
