"""The capability that observes one agent run."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pydantic_ai.capabilities import AbstractCapability

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.frameworks.place import (
    Place,
    current_place,
    flow_of,
    is_unobserved,
)
from twinspan.instrumentation.frameworks.pydantic_ai.revised import revised
from twinspan.instrumentation.frameworks.pydantic_ai.streams import Decided
from twinspan.instrumentation.frameworks.stepwise import Step, run_of
from twinspan.instrumentation.gate import ANYONE, Topology
from twinspan.instrumentation.probing.guard import current_probe
from twinspan.instrumentation.safety import harmless

_OF_ONE_RUN: Final = frozenset(
    {
        *("user_prompt", "message_history", "conversation", "conversation_id", "run_id"),
        *("cancellation_token", "usage", "event_stream_handler", "capabilities", "infer_name"),
    }
)
"""Options that belong to one run and not to another one of the same agent."""


@dataclass
class Observing(AbstractCapability[Any]):
    """Observes one run of an agent, and guards the tools of one that is run again.

    Attributes:
        engine: what decides.
        agent: the agent.
        options: how it was called.
        decided: where the result is left for a stream that is held back; None for other runs.
    """

    engine: Engine
    agent: Any
    options: dict[str, Any]
    decided: Decided | None = None

    async def wrap_run(self, ctx: Any, *, handler: Callable[[], Any]) -> Any:
        """The run as a node: its result leaves it through the gate."""
        result = await self._observed(handler)
        if self.decided is not None:
            self.decided.result = result
        return result

    async def _observed(self, handler: Callable[[], Any]) -> Any:
        if is_unobserved():
            return await handler()
        with self._place() as (place, is_root):
            kept: dict[int, tuple[Any, Any]] = {}
            step = None if place is None else self._begin(place, kept)
            if step is None:
                return await handler()
            with step.running():
                result = await handler()
            answer = result.output
            handed = await step.aclose(answer, targets=() if is_root else None)
            if handed is not answer:
                found = kept.get(id(handed))
                result = revised(result, handed) if found is None else found[1]
            step.note_handed(handed, result, result.output, result.new_messages())
            return result

    async def wrap_tool_execute(
        self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Callable[..., Any]
    ) -> Any:
        """A tool call; inside a probe only safe tools pass."""
        frame = current_probe()
        if frame is not None:
            frame.check_tool(call.tool_name)
        return await handler(args)

    @property
    def _name(self) -> str:
        return str(self.agent.name or "agent")

    @contextmanager
    def _place(self) -> Generator[tuple[Place | None, bool]]:
        """Where the run takes place, and whether it is one of its own."""
        place = current_place()
        if place is not None:
            yield place, False
            return
        has_tools = bool(getattr(getattr(self.agent, "_function_toolset", None), "tools", None))
        nodes = (self._name, ANYONE) if has_tools else (self._name,)
        with run_of(self.engine, Topology(name=self._name, nodes=nodes)) as place:
            yield place, True

    def _begin(self, place: Place, kept: dict[int, tuple[Any, Any]]) -> Step | None:
        step: Step | None = None
        with harmless(self.engine.failures, "starting a node"):
            given = {key: self.options.get(key) for key in ("user_prompt", "message_history")}
            parents, observed = flow_of(place.run).handed.parents_of(given)
            if not parents:
                drawn = [a for a, b in place.run.topology.edges if b == place.name(self._name)]
                parents = flow_of(place.run).handed.latest(drawn)
                observed = not parents
            step = Step.begin(
                place,
                self._name,
                {key: value for key, value in given.items() if value},
                parents=parents,
                observed=observed,
                rerun=None if self.options.get("conversation") else self._rerunner(kept),
                in_loop=True,
            )
        return step

    def _rerunner(self, kept: dict[int, tuple[Any, Any]]) -> Callable[[Any], Any]:
        options = {key: value for key, value in self.options.items() if key not in _OF_ONE_RUN}

        async def rerun(payload: dict[str, Any]) -> Any:
            result = await self.agent.run(**payload, **options)
            kept[id(result.output)] = (result.output, result)
            return result.output

        return rerun
