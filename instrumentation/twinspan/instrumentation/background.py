"""An event loop in a thread of its own, on which plain code probes concurrently."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import Any, Final

CLOSING_SECONDS: Final = 2.0
"""How long closing waits for the loop's thread."""

WORKERS: Final = 32
"""Threads for plain nodes; each waits for a model most of the time."""


class BackgroundLoop:
    """Runs coroutines for threads that have no event loop.

    >>> async def answer() -> int:
    ...     return 42
    >>> loop = BackgroundLoop()
    >>> loop.submit(answer()).result()
    42
    >>> loop.close()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    def submit(
        self, coroutine: Coroutine[Any, Any, Any], context: Context | None = None
    ) -> Future[Any]:
        """Start a coroutine in a copy of the caller's context; its future can be cancelled."""
        loop = self._ensure_loop()
        outer: Future[Any] = Future()
        where = context if context is not None else copy_context()

        def start() -> None:
            task = loop.create_task(coroutine, context=where)
            outer.add_done_callback(
                lambda done: loop.call_soon_threadsafe(task.cancel) if done.cancelled() else None
            )
            task.add_done_callback(lambda done: _settle(outer, done))

        loop.call_soon_threadsafe(start)
        return outer

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        # Neither thread nor loop survives a fork.
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                loop = asyncio.new_event_loop()
                loop.set_default_executor(
                    ThreadPoolExecutor(WORKERS, thread_name_prefix="twinspan-probe")
                )
                self._thread = threading.Thread(
                    target=_serve, args=(loop,), name="twinspan-probes", daemon=True
                )
                self._thread.start()
                self._loop, self._pid = loop, os.getpid()
            return self._loop

    def close(self) -> None:
        """Stop the loop; what still runs on it is abandoned."""
        with self._lock:
            loop, thread, mine = self._loop, self._thread, self._pid == os.getpid()
            self._loop = self._thread = None
        if loop is not None and thread is not None and mine:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(timeout=CLOSING_SECONDS)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _settle(outer: Future[Any], task: asyncio.Task[Any]) -> None:
    if outer.cancelled():
        return
    if task.cancelled():
        outer.cancel()
        outer.set_running_or_notify_cancel()
        return
    error = task.exception()
    if error is not None:
        outer.set_exception(error)
    else:
        outer.set_result(task.result())
