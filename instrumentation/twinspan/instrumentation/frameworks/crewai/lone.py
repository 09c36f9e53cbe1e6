"""An agent outside a crew: each call of its `kickoff` is a node, and a run where nobody leads."""

# CrewAI is not in the development environment, see the group `crewai-tests`.
# pyright: reportMissingImports=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from crewai.lite_agent import LiteAgent
from crewai.utilities.agent_utils import is_inside_event_loop

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.frameworks.crewai.copies import rewritten, twin_of
from twinspan.instrumentation.frameworks.crewai.session import (
    blocking,
    is_at_work,
    is_of_crewai,
    telling_halts,
)
from twinspan.instrumentation.frameworks.crewai.topology import name_of, topology_of_one
from twinspan.instrumentation.frameworks.crewai.waiting import working
from twinspan.instrumentation.frameworks.place import Place, current_place, flow_of, is_unobserved
from twinspan.instrumentation.frameworks.stepwise import Step, run_of
from twinspan.instrumentation.run import Parent
from twinspan.instrumentation.safety import harmless

_ARGUMENTS: Final = ("messages", "response_format", "input_files", "from_checkpoint")


def answer_of(output: Any) -> Any:
    """What an agent answered: the structured answer where it was asked for one."""
    return output.raw if output.pydantic is None else output.pydantic


class Call:
    """One call of an agent's `kickoff`, and how it is asked again.

    Args:
        kickoff: CrewAI's own `kickoff` or `kickoff_async`, not bound and not wrapped.
        agent: the agent.
        given: the arguments.
    """

    def __init__(self, kickoff: Any, agent: Any, given: dict[str, Any]) -> None:
        self._kickoff = kickoff
        self._agent = agent
        self._before = twin_of(agent)
        self.messages = _copied(given["messages"])
        self._options = {key: given[key] for key in _ARGUMENTS[1:3] if key in given}
        self._kept: dict[int, tuple[Any, Any, Any]] = {}

    def plain(self, messages: Any) -> Any:
        """The answer to other messages."""
        twin = twin_of(self._before)
        with blocking():
            output = self._kickoff(twin, _copied(messages), **self._options)
        return self._keep(output, twin)

    async def on_loop(self, messages: Any) -> Any:
        """The same on an event loop."""
        twin = twin_of(self._before)
        with blocking():
            output = await self._kickoff(twin, _copied(messages), **self._options)
        return self._keep(output, twin)

    def _keep(self, output: Any, twin: Any) -> Any:
        answer = answer_of(output)
        self._kept[id(answer)] = (answer, output, twin)
        return answer

    def handed(self, output: Any, answer: Any) -> Any:
        """The output whose answer was handed on; the agent keeps nothing of another one."""
        if answer is answer_of(output):
            return output
        if id(answer) not in self._kept:  # revised, and not given by a copy of the agent
            return self._left(_revised(output, answer))
        _, output, twin = self._kept[id(answer)]
        self._agent.tools_results = twin.tools_results
        return self._left(output)

    def _left(self, output: Any) -> Any:
        if isinstance(self._agent, LiteAgent):
            self._agent._messages = output.messages
        return output


def _revised(output: Any, answer: Any) -> Any:
    is_text = isinstance(answer, str)
    text = answer if is_text else answer.model_dump_json()
    messages = rewritten(output.messages, output.raw, text)
    pydantic = None if is_text else answer
    return output.model_copy(update={"raw": text, "pydantic": pydantic, "messages": messages})


def _copied(messages: Any) -> Any:
    return messages if isinstance(messages, str) else [dict(message) for message in messages]


def _parents(place: Place, name: str, messages: Any) -> tuple[tuple[Parent, ...], bool]:
    """Whose answers an agent reads, of those that run where it runs, and whether it was seen."""
    handed = flow_of(place.run).handed
    seen, certain = handed.parents_of(messages)
    parents = tuple(parent for parent in seen if parent.node.startswith(place.name("")))
    if parents:
        return parents, certain
    edges = place.run.topology.edges
    drawn = handed.latest([source for source, target in edges if target == place.name(name)])
    return drawn, not drawn


class LoneHooks:
    """The wrappers of `kickoff` and `kickoff_async`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def kickoff(self, wrapped: Any, agent: Any, args: Any, kwargs: Any) -> Any:
        """A call of an agent: its answer is decided before the caller has it."""
        given = dict(zip(_ARGUMENTS, args, strict=False)) | kwargs
        defers = is_inside_event_loop() and not isinstance(agent, LiteAgent)
        if defers or self._passes(agent, given):
            return wrapped(*args, **kwargs)
        with self._run(agent):
            begun = self._begin(wrapped, agent, given, in_loop=False)
            if begun is None:
                return wrapped(*args, **kwargs)
            call, step = begun
            with step.running(), working(agent, self._engine) as waits:
                output = wrapped(*args, **kwargs)
            answer = step.close(answer_of(output))
            handed = call.handed(output, answer)
            step.note_handed(answer, handed.raw, handed.pydantic)
            waits.settle(None if handed is output else handed.raw)
            return handed

    async def akickoff(self, wrapped: Any, agent: Any, args: Any, kwargs: Any) -> Any:
        """The same on an event loop."""
        given = dict(zip(_ARGUMENTS, args, strict=False)) | kwargs
        if self._passes(agent, given):
            return await wrapped(*args, **kwargs)
        with self._run(agent):
            begun = self._begin(wrapped, agent, given, in_loop=True)
            if begun is None:
                return await wrapped(*args, **kwargs)
            call, step = begun
            with step.running(), working(agent, self._engine) as waits:
                output = await wrapped(*args, **kwargs)
            answer = await step.aclose(answer_of(output))
            handed = call.handed(output, answer)
            step.note_handed(answer, handed.raw, handed.pydantic)
            waits.settle(None if handed is output else handed.raw)
            return handed

    @staticmethod
    def _passes(agent: Any, given: dict[str, Any]) -> bool:
        # An agent that is restored from a checkpoint is asked once more, from within.
        restores = getattr(given.get("from_checkpoint"), "restore_from", None) is not None
        return restores or is_unobserved() or is_of_crewai() or is_at_work(agent)

    @contextmanager
    def _run(self, agent: Any) -> Generator[None]:
        with ExitStack() as run:
            if current_place() is None:
                run.enter_context(run_of(self._engine, topology_of_one(agent)))
            run.enter_context(telling_halts())
            yield

    def _begin(
        self, wrapped: Any, agent: Any, given: dict[str, Any], *, in_loop: bool
    ) -> tuple[Call, Step] | None:
        place, begun = current_place(), list[tuple[Call, Step]]()
        if place is None:
            return None
        with harmless(self._engine.failures, "starting a node"):
            call = Call(wrapped.__func__, agent, given)
            parents, observed = _parents(place, name_of(agent), given["messages"])
            step = Step.begin(
                place,
                name_of(agent),
                call.messages,
                parents=parents,
                observed=observed,
                rerun=call.on_loop if in_loop else call.plain,
                in_loop=in_loop,
            )
            begun += [] if step is None else [(call, step)]
        return begun[0] if begun else None
