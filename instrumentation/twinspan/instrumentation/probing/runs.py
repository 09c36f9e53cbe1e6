"""Runs a node on the samples of a probe: bounded, timed, tried again."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

from twinspan.instrumentation.current import current
from twinspan.instrumentation.divergence import Outcome
from twinspan.instrumentation.errors import SideEffectBlocked
from twinspan.instrumentation.probing.answers import outcome_of
from twinspan.instrumentation.probing.guard import inside_probe
from twinspan.instrumentation.probing.observation import Drawn, SetObserver, now
from twinspan.instrumentation.probing.setup import ProbeSetup


class NodeRuns:
    """The runs of one probe's node."""

    def __init__(self, setup: ProbeSetup) -> None:
        self._setup = setup
        self._limit = asyncio.Semaphore(setup.options.concurrency)

    async def draw(self, observer: SetObserver, label: str, item: Drawn) -> None:
        """Run the node on one rendering, in its turn, and note what came."""
        async with self._limit:
            context = observer.open_probe(label, item)
            try:
                with nullcontext() if context is None else current(context):
                    await self._attempt(observer, item)
            finally:
                item.ended = now()

    async def _attempt(self, observer: SetObserver, item: Drawn) -> None:
        options = self._setup.options
        for attempt in range(options.retries + 1):
            if attempt and not self._setup.budget.take(1):
                return
            item.calls += 1
            try:
                answer = await asyncio.wait_for(self._invoke(item), timeout=options.timeout)
                item.outcome = outcome_of(answer, options.outcome)
                item.output_hash = observer.hash(item.outcome)
                item.status, item.error = "ok", None
                return
            except TimeoutError as error:
                item.status, item.error = "timeout", error
            except Exception as error:
                item.status, item.error = "error", error
                item.outcome = Outcome.error(type(error).__qualname__)
                if isinstance(error, SideEffectBlocked):
                    return

    async def _invoke(self, item: Drawn) -> Any:
        setup = self._setup
        if setup.frame is None:
            return await self._call(item)
        frame = setup.frame.of_arm(item.sample.arm)
        with inside_probe(frame):
            answer = await self._call(item)
        if frame.blocked:
            # Whoever caught it went on without the tool: that is not what the node answers.
            raise SideEffectBlocked(frame.blocked[0])
        return answer

    async def _call(self, item: Drawn) -> Any:
        setup = self._setup
        if setup.is_async:
            return await setup.node(item.rendering.payload)
        return await asyncio.to_thread(setup.node, item.rendering.payload)
