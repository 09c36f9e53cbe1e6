"""Turns async clients into blocking ones and blocking clients into async ones."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.clients.candidates import CandidateScores
from twinspan.instrumentation.clients.protocols import (
    BlockingCandidateScorer,
    BlockingChatClient,
    BlockingEmbedder,
    CandidateScorer,
    ChatClient,
    Embedder,
)
from twinspan.instrumentation.clients.values import ChatRequest, Completion, Prompt
from twinspan.instrumentation.errors import ConfigurationError

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Running:
    """An event loop in a thread of its own."""

    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    thread: threading.Thread
    process: int

    def end(self) -> None:
        if self.process == os.getpid() and self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.stop.set)
            self.thread.join()


class LoopThread:
    """An event loop in a thread, for code that has none; started on first use.

    Leaving the `with` block, or the interpreter, ends the loop in order: its tasks are
    cancelled and the connections that live on it are closed.

    >>> async def double(x: int) -> int:
    ...     return 2 * x
    >>> with LoopThread() as thread:
    ...     thread.run(double(21))
    42
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: _Running | None = None

    def run(self, call: Coroutine[Any, Any, _T]) -> _T:
        """The result of an async call; the calling thread waits, an interrupt cancels the call.

        Raises:
            ConfigurationError: if called from the loop's own thread, which would wait for ever.
        """
        running = self._started()
        if threading.current_thread() is running.thread:
            call.close()
            raise ConfigurationError("a blocking client cannot wait on its own loop; await instead")
        future = asyncio.run_coroutine_threadsafe(call, running.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the loop and wait for it; a later call starts a new one."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _started(self) -> _Running:
        with self._lock:
            # A forked child inherits the object but not the thread.
            if self._running is None or self._running.process != os.getpid():
                self._running = _start()
                weakref.finalize(self, self._running.end)
            return self._running


def _start() -> _Running:
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        ready.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()

    thread = threading.Thread(
        target=lambda: asyncio.run(serve()), name="twinspan-client", daemon=True
    )
    thread.start()
    loop, stop = ready.result()
    return _Running(loop=loop, stop=stop, thread=thread, process=os.getpid())


class Blocking:
    """The blocking face of an async client, with the same methods.

    Each call waits for its answer; calls from several threads run at once. A call from inside
    a running event loop blocks that loop: await the async client there.

    Args:
        client: a `ChatClient`, `CandidateScorer` or `Embedder`, or several in one.

    >>> from twinspan.instrumentation.clients import ChatRequest, ScriptedClient
    >>> with Blocking(ScriptedClient(lambda request, rng: "yes")) as client:
    ...     client.complete(ChatRequest.of("Admit?")).text
    'yes'
    """

    def __init__(self, client: object) -> None:
        self._client = client
        self._thread = LoopThread()

    def complete(self, request: ChatRequest, /) -> Completion:
        """As the client's own `complete`."""
        if not isinstance(self._client, ChatClient):
            raise _lacks(self._client, "complete")
        return self._thread.run(self._client.complete(request))

    def score(
        self, prompt: Prompt, candidates: Sequence[str], /, *, seed: int | None = None
    ) -> CandidateScores:
        """As the client's own `score`."""
        if not isinstance(self._client, CandidateScorer):
            raise _lacks(self._client, "score")
        return self._thread.run(self._client.score(prompt, candidates, seed=seed))

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """As the client's own `embed`."""
        if not isinstance(self._client, Embedder):
            raise _lacks(self._client, "embed")
        return self._thread.run(self._client.embed(texts))

    def close(self) -> None:
        """End the loop that the calls ran on, closing the client's connections there."""
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Threaded:
    """The async face of a blocking client, with the same methods; each call takes a thread.

    A cancelled call stops being waited for, but its thread ends only with the client's own
    call: give the blocking client a timeout.

    Args:
        client: a blocking chat client, scorer or embedder, or several in one.
        concurrency: calls at once.
    """

    def __init__(self, client: object, *, concurrency: int = 8) -> None:
        self._client = client
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="twinspan-client")

    async def complete(self, request: ChatRequest, /) -> Completion:
        """As the client's own `complete`."""
        if not isinstance(self._client, BlockingChatClient):
            raise _lacks(self._client, "complete")
        return await self._call(partial(self._client.complete, request))

    async def score(
        self, prompt: Prompt, candidates: Sequence[str], /, *, seed: int | None = None
    ) -> CandidateScores:
        """As the client's own `score`."""
        if not isinstance(self._client, BlockingCandidateScorer):
            raise _lacks(self._client, "score")
        return await self._call(partial(self._client.score, prompt, candidates, seed=seed))

    async def embed(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """As the client's own `embed`."""
        if not isinstance(self._client, BlockingEmbedder):
            raise _lacks(self._client, "embed")
        return await self._call(partial(self._client.embed, texts))

    async def aclose(self) -> None:
        """Start no further call; threads under way end with their calls."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _call(self, call: Callable[[], _T]) -> _T:
        # The caller's context goes along, so that a probe is still known in the thread.
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: context.run(call))


def _lacks(client: object, method: str) -> ConfigurationError:
    return ConfigurationError(
        f"{type(client).__name__} has no method {method!r}; give a client that has one"
    )
