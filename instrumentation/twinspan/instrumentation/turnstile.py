"""One at a time, in order of arrival, threads and coroutines alike."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import asynccontextmanager


class Turnstile:
    """Lets the steps of a run through the gate one by one.

    A repair rolls the network score back to where it was before its superstep, so nobody else
    may be decided meanwhile. Steps end on threads and on event loops, hence neither a thread's
    lock nor a loop's would do.

    >>> turnstile = Turnstile()
    >>> with turnstile.turn(timeout=1):
    ...     turnstile.is_taken
    True
    >>> turnstile.is_taken
    False
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[Future[None]] = deque()

    @property
    def is_taken(self) -> bool:
        """Whether somebody is being let through."""
        return self._taken

    def _arrive(self) -> Future[None] | None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return None
            ticket: Future[None] = Future()
            self._waiting.append(ticket)
            return ticket

    def leave(self) -> None:
        """Let the next one through."""
        with self._lock:
            while self._waiting:
                ticket = self._waiting.popleft()
                if ticket.set_running_or_notify_cancel():
                    ticket.set_result(None)
                    return
            self._taken = False

    def turn(self, *, timeout: float) -> Turn:
        """Wait for one's turn in a thread.

        On the thread of an event loop nobody is waited for, since who is ahead may need that
        loop; and nobody is waited for longer than `timeout` seconds. A host that hangs is worse
        than a decision that was taken out of turn.
        """
        return Turn(self, timeout)

    def arrive(self, timeout: float) -> bool:
        """Wait for one's turn; returns whether it came, and has to be given back."""
        ticket = self._arrive()
        return ticket is None or self._waited(ticket, 0.0 if _on_a_loop() else timeout)

    @staticmethod
    def _waited(ticket: Future[None], timeout: float) -> bool:
        try:
            ticket.result(timeout)
        except TimeoutError:
            return not ticket.cancel()
        return True

    @asynccontextmanager
    async def aturn(self) -> AsyncGenerator[None]:
        """Wait for one's turn on an event loop."""
        ticket = self._arrive()
        if ticket is not None:
            try:
                await asyncio.wrap_future(ticket)
            except asyncio.CancelledError:
                if not ticket.cancelled():
                    self.leave()
                raise
        try:
            yield
        finally:
            self.leave()


class Turn:
    """One's turn, for a block.

    A class, since every superstep passes it: a generator would cost three times as much.
    """

    __slots__ = ("_mine", "_timeout", "_turnstile")

    def __init__(self, turnstile: Turnstile, timeout: float) -> None:
        self._turnstile = turnstile
        self._timeout = timeout

    def __enter__(self) -> None:
        self._mine = self._turnstile.arrive(self._timeout)

    def __exit__(self, *_: object) -> None:
        if self._mine:
            self._turnstile.leave()


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
