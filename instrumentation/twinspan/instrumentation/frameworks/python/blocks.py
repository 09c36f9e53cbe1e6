"""`step`: a node that is a block of code, not a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from twinspan.instrumentation.frameworks.place import current_place, is_unobserved
from twinspan.instrumentation.frameworks.python import active
from twinspan.instrumentation.frameworks.python.calls import snapshot
from twinspan.instrumentation.frameworks.python.nodes import name_of, parents_of
from twinspan.instrumentation.frameworks.stepwise import Step, run_of
from twinspan.instrumentation.gate import Topology
from twinspan.instrumentation.safety import harmless


class step:
    """A node that is a block, plain (`with`) or async (`async with`).

    The block sets `result`; after the block `result` is what may be handed on. A block cannot
    be run again, so it is probed only if `rerun` says how; it is observed and decided anyway.

    Args:
        name: the node's name.
        payload: what it reads.
        reads: nodes, or their names, whose answers it reads unseen.
        rerun: gives the answer to another payload; async for an `async with`.

    Attributes:
        result: what the block hands on.

    >>> with step("screen", "Dear all") as screening:
    ...     screening.result = "invite"
    >>> screening.result
    'invite'
    """

    def __init__(
        self,
        name: str,
        payload: Any = None,
        *,
        reads: Iterable[object] = (),
        rerun: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name = name
        self.result: Any = None
        self._payload = payload
        self._reads = tuple(name_of(each) for each in reads)
        self._rerun = rerun
        self._step: Step | None = None
        self._run = ExitStack()
        self._block = ExitStack()

    def __enter__(self) -> step:
        return self._enter(in_loop=False)

    async def __aenter__(self) -> step:
        return self._enter(in_loop=True)

    def _enter(self, *, in_loop: bool) -> step:
        engine = active.engine()
        if engine is None or is_unobserved():
            return self
        if current_place() is None:
            self._run.enter_context(run_of(engine, Topology(name=self.name, nodes=(self.name,))))
        place = current_place()
        if place is None:
            return self
        with harmless(engine.failures, "starting a node"):
            parents, observed = parents_of(place, self.name, self._payload, self._reads)
            self._step = Step.begin(
                place,
                self.name,
                snapshot(self._payload),
                parents=parents,
                observed=observed,
                rerun=self._rerun,
                in_loop=in_loop,
            )
        if self._step is not None:
            self._block.enter_context(self._step.running())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._run:
            self._block.__exit__(kind, error, traceback)
            if error is not None:
                raise error
            if self._step is not None:
                self.result = self._step.close(self.result, received=self._payload)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._run:
            self._block.__exit__(kind, error, traceback)
            if error is not None:
                raise error
            if self._step is not None:
                self.result = await self._step.aclose(self.result, received=self._payload)
