"""Plain code probes on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from contextvars import ContextVar, copy_context

import pytest

from twinspan.instrumentation.background import BackgroundLoop


@pytest.fixture
def loop() -> Generator[BackgroundLoop]:
    made = BackgroundLoop()
    yield made
    made.close()


mark: ContextVar[str] = ContextVar("mark", default="unset")


def test_work_runs_in_a_copy_of_the_callers_context(loop: BackgroundLoop) -> None:
    """A probe knows its run."""

    async def read() -> str:
        return mark.get()

    mark.set("here")
    assert loop.submit(read()).result() == "here"
    other = copy_context()
    other.run(mark.set, "there")
    assert loop.submit(read(), other).result() == "there"


def test_an_error_reaches_whoever_waits(loop: BackgroundLoop) -> None:
    """It is not lost in the loop."""

    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        loop.submit(fail()).result()


def test_cancelling_the_future_cancels_the_work(loop: BackgroundLoop) -> None:
    """A run that is abandoned stops its probes."""
    cancelled: list[bool] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    future = loop.submit(wait())
    loop.submit(asyncio.sleep(0)).result()
    future.cancel()
    loop.submit(asyncio.sleep(0.01)).result()
    assert cancelled == [True]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_starts_a_loop_of_its_own(loop: BackgroundLoop) -> None:
    """Threads do not survive a fork."""

    async def answer() -> int:
        return 7

    assert loop.submit(answer()).result() == 7
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if loop.submit(answer()).result(timeout=10) == 7 else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
