"""Makes a span current for a block, in whatever task or thread the block ends."""

from __future__ import annotations

from collections import deque
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Final, cast

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context

REMEMBERED: Final = 64
"""Contexts of a run that are remembered; there is one for each context it is read from."""


class current:
    """Attach a context for the block.

    A coroutine that is thrown away while it waits ends its blocks wherever it is collected, which
    may be another context. There nothing is detached: it was never attached there.

    A class, since every node and probe passes it: a generator would cost three times as much.
    """

    __slots__ = ("_ours", "_token", "context")

    def __init__(self, context: Context) -> None:
        self.context = context

    def __enter__(self) -> None:
        self._token = otel_context.attach(self.context)
        self._ours = _innermost.set(self)

    def __exit__(self, *_: object) -> None:
        if _innermost.get() is self:
            _innermost.reset(self._ours)
            otel_context.detach(self._token)


_innermost: ContextVar[current | None] = ContextVar("twinspan_current", default=None)


def our_span() -> trace.Span:
    """The span of ours whose block we are in, whatever others attached within it."""
    attached = _innermost.get()
    return trace.INVALID_SPAN if attached is None else trace.get_current_span(attached.context)


class RunContext:
    """A run's span on top of whatever is current where the run is read.

    Another instrumentation may attach a context of its own while ours is current, and detach it
    when ours no longer is: what it restores is ours. So a context that we made says what stood
    there before the run, once the run is over.

    >>> run = RunContext(trace.INVALID_SPAN)
    >>> with run.current():
    ...     left_behind = otel_context.get_current()
    >>> run.close()
    >>> left_behind == otel_context.get_current()
    True
    """

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self._made: deque[tuple[Context, Context]] = deque(maxlen=REMEMBERED)

    def current(self) -> AbstractContextManager[None]:
        """Make the span current for a block."""
        return current(self._over(otel_context.get_current()))

    def close(self) -> None:
        """The run is over: nothing more may hang below it."""
        for before, made in self._made:
            content = cast("dict[str, object]", made)
            dict[str, object].clear(content)
            dict[str, object].update(content, before)

    def _over(self, before: Context) -> Context:
        for known, made in self._made:
            if known is before:
                return made
        made = trace.set_span_in_context(self._span, before)
        self._made.append((before, made))
        return made
