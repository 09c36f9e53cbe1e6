"""Runs an agent's part of a run again, up to its answer, and not a step further."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from agents import RunConfig

from twinspan.instrumentation.frameworks.openai_agents.answers import (
    answer_of,
    is_answer,
    tools_asked_for,
)
from twinspan.instrumentation.probing.guard import current_probe


class Answered(Exception):
    """An agent that was run again has answered; its run need not go on."""

    def __init__(self, answer: Any, response: Any) -> None:
        self.answer = answer
        self.response = response
        super().__init__("the agent has answered")


_is_rerun: ContextVar[bool] = ContextVar("twinspan_openai_rerun", default=False)


def is_rerun() -> bool:
    """Whether the running code is an agent that is run again."""
    return _is_rerun.get()


@contextmanager
def rerunning(value: bool) -> Generator[None]:
    """Whether the model calls of the block belong to an agent that is run again."""
    token = _is_rerun.set(value)
    try:
        yield
    finally:
        _is_rerun.reset(token)


def look(response: Any, handoffs: Sequence[Any]) -> Any:
    """Let a response pass that asks for tools which may run; end the run at the answer.

    Raises:
        Answered: if the response is the agent's answer.
        SideEffectBlocked: if it asks for a tool that is not marked safe, inside a probe.
    """
    frame = current_probe()
    for tool in tools_asked_for(response.output, handoffs):
        if frame is not None:
            frame.check_tool(tool)
    if is_answer(response.output, handoffs):
        raise Answered(answer_of(response.output, handoffs), response)
    return response


@dataclasses.dataclass(frozen=True, slots=True)
class Rerun:
    """How to run one agent's part of one run again.

    Attributes:
        run: the SDK's own runner, not wrapped.
        agent: the agent.
        options: the options of the run, as the application gave them.
        keep: takes the answer and the whole response, for a repair to put in place.
    """

    run: Callable[..., Any]
    agent: Any
    options: dict[str, Any]
    keep: Callable[[Any, Any], None]

    async def answer(self, payload: Any) -> Any:
        """The agent's answer to a payload: no session, guardrail, hook or trace of the run."""
        alone = self.agent.clone(hooks=None, input_guardrails=[], output_guardrails=[])
        kept = ("context", "max_turns", "previous_response_id")
        options = {key: self.options[key] for key in kept if key in self.options}
        config = self.options.get("run_config") or RunConfig()
        quiet = dataclasses.replace(
            config, tracing_disabled=True, input_guardrails=None, output_guardrails=None
        )
        with rerunning(True):
            try:
                result = await self.run(alone, copy.deepcopy(payload), run_config=quiet, **options)
            except Answered as answered:
                self.keep(answered.answer, answered.response)
                return answered.answer
        self.keep(result.final_output, None)
        return result.final_output
