"""The OpenAI Agents SDK, real, on a stand-in model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

pytest.importorskip("agents", reason="the extra openai-agents is not installed")

from agents import (
    Agent,
    Model,
    ModelResponse,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from agents.run import AgentRunner
from agents.run_internal import run_loop
from agents.testing import assistant_message, function_call
from framework_contract import LETTER, FrameworkContract, calls_her_she, halting, reviewed
from openai.types.responses import Response, ResponseCompletedEvent
from pydantic import BaseModel
from sample_agents import SpansOnly, instrumented

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation import pipeline
from twinspan.instrumentation.errors import BiasHalt

set_tracing_disabled(True)

Rule = Callable[[list[dict[str, Any]]], list[Any]]


class StandIn(Model):
    """A model that is a function of what it reads."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        items = [{"role": "user", "content": input}] if isinstance(input, str) else list(input)
        return ModelResponse(output=self._rule(items), usage=Usage(), response_id=None)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        answer = await self.get_response(*args, **kwargs)
        response = Response(
            id="r",
            created_at=0,
            model="stand-in",
            object="response",
            output=answer.output,
            parallel_tool_calls=False,
            tool_choice="none",
            tools=[],
        )
        yield ResponseCompletedEvent(
            type="response.completed", sequence_number=0, response=response
        )


def words_of(items: list[dict[str, Any]]) -> str:
    return " ".join(str(i.get("content") or i.get("arguments") or i.get("output")) for i in items)


class Handoffs:
    """screener -> writer, by a handoff that carries the advice."""

    def __init__(self, *, biased: bool, streamed: bool = False) -> None:
        self.readings: list[str] = []
        self._biased = biased
        self._streamed = streamed
        self._tools: list[Any] = []

    def _screen(self, items: list[dict[str, Any]]) -> list[Any]:
        called = any(item.get("type") == "function_call" for item in items)
        if self._tools and not called:
            return [function_call("send_email", {"to": "x"}, call_id="c0")]
        rejects = self._biased and calls_her_she(words_of(items))
        advice = {"advice": "reject" if rejects else "invite"}
        return [function_call("transfer_to_writer", advice, call_id="c1")]

    def _write(self, items: list[dict[str, Any]]) -> list[Any]:
        text = words_of(items)
        self.readings.append(text)
        return [assistant_message("no" if "reject" in text else "see you on Monday")]

    def screener(self) -> Any:
        class Advice(BaseModel):
            advice: str

        async def take(context: Any, advice: Advice) -> None:
            pass

        writer: Any = Agent(name="writer", model=StandIn(self._write))
        to_writer = handoff(writer, on_handoff=take, input_type=Advice)
        return Agent(
            name="screener", model=StandIn(self._screen), handoffs=[to_writer], tools=self._tools
        )

    def run(self, letter: str) -> Any:
        return asyncio.run(self._streaming(letter) if self._streamed else self._whole(letter))

    async def _whole(self, letter: str) -> Any:
        return (await Runner.run(self.screener(), letter)).final_output

    async def _streaming(self, letter: str) -> Any:
        result = Runner.run_streamed(self.screener(), letter)
        async for _ in result.stream_events():
            pass
        return result.final_output

    def use_tool(self, letter: str, sent: list[str]) -> Any:
        def send_email(to: str) -> str:
            """Send an email."""
            sent.append(to)
            return "sent"

        self._tools = [function_tool(send_email)]
        return self.run(letter)


class TestRuns(FrameworkContract):
    """`Runner.run`."""

    def program(self, *, biased: bool) -> Handoffs:
        return Handoffs(biased=biased)


class TestStreams(FrameworkContract):
    """`Runner.run_streamed`, read to its end."""

    def program(self, *, biased: bool) -> Handoffs:
        return Handoffs(biased=biased, streamed=True)


class TwoRuns(Handoffs):
    """Two runs in a row within a pipeline; the second reads the first one's output."""

    def _screen(self, items: list[dict[str, Any]]) -> list[Any]:
        (called,) = super()._screen(items)
        return [called if called.name == "send_email" else assistant_message(called.arguments)]

    async def _whole(self, letter: str) -> Any:
        screener = Agent(name="screener", model=StandIn(self._screen), tools=self._tools)
        writer = Agent(name="writer", model=StandIn(self._write))
        with pipeline("hiring", nodes=["screener", "writer"], edges=[("screener", "writer")]):
            advice = await Runner.run(screener, letter)
            return (await Runner.run(writer, advice.final_output)).final_output


class TestRunsInAPipeline(FrameworkContract):
    """Agents that the application itself puts in a row are one run."""

    def program(self, *, biased: bool) -> TwoRuns:
        return TwoRuns(biased=biased)


@pytest.mark.parametrize("structured", [False, True])
def test_a_revised_answer_is_what_the_session_remembers(structured: bool) -> None:
    """No run of the agent gave it; it has the output's type."""

    class Advice(BaseModel):
        advice: str
        points: int

    def screen(items: list[dict[str, Any]]) -> list[Any]:
        word = "reject" if calls_her_she(words_of(items)) else "invite"
        said = Advice(advice=word, points=3).model_dump_json() if structured else word
        return [assistant_message(said)]

    agent: Any = Agent(
        name="screener", model=StandIn(screen), output_type=Advice if structured else None
    )
    session = SQLiteSession("s")

    async def run() -> Any:
        result = await Runner.run(agent, LETTER, session=session)
        return result.final_output, await session.get_items()

    with reviewed():
        output, items = asyncio.run(run())
    invited = "warmly invite"
    assert output == (Advice(advice=invited, points=3) if structured else invited)
    assert invited in str(items) and "reject" not in str(items)


def test_the_graph_is_known_from_the_handoffs() -> None:
    """Before the first agent has said a word."""
    with instrumented(SpansOnly()) as collector:
        Handoffs(biased=False).run(LETTER)
    (run,) = collector.spans.of("run")
    assert run[c.GRAPH_EDGES] == ("screener->writer",)


def test_an_agent_that_is_anothers_tool_belongs_to_it() -> None:
    """Its name is qualified, its span hangs under the agent that called it."""
    expert = Agent(name="expert", model=StandIn(lambda items: [assistant_message("fine")]))

    def ask(items: list[dict[str, Any]]) -> list[Any]:
        if any(item.get("type") == "function_call" for item in items):
            return [assistant_message("done")]
        return [function_call("ask_expert", {"input": "is it?"}, call_id="c0")]

    lead = Agent(
        name="lead",
        model=StandIn(ask),
        tools=[expert.as_tool(tool_name="ask_expert", tool_description="asks")],
    )
    with instrumented(SpansOnly()) as collector:
        asyncio.run(Runner.run(lead, "x"))
    assert {n[c.NODE_ID] for n in collector.spans.of("node")} == {"lead", "lead/expert"}
    assert len(collector.spans.traces) == 1
    assert collector.tracers[0].open_count == 0


def test_a_halt_within_an_agents_tool_reaches_the_caller() -> None:
    """The SDK tells the model of an error in a tool; a halt is none that a model may pass over."""

    def advise(items: list[dict[str, Any]]) -> list[Any]:
        return [assistant_message("reject" if calls_her_she(words_of(items)) else "invite")]

    def ask(items: list[dict[str, Any]]) -> list[Any]:
        if any(item.get("type") == "function_call" for item in items):
            return [assistant_message("done")]
        return [function_call("ask_screener", {"input": LETTER}, call_id="c0")]

    screener = Agent(name="screener", model=StandIn(advise))
    tool = screener.as_tool(tool_name="ask_screener", tool_description="asks")
    lead = Agent(name="lead", model=StandIn(ask), tools=[tool])
    with halting() as spans, pytest.raises(BiasHalt):
        asyncio.run(Runner.run(lead, "x"))
    assert spans.of("run")[0][c.RUN_OUTCOME] == "halted"


def test_a_run_that_fails_is_failed_and_its_agent_too() -> None:
    """Too many turns."""

    def forever(items: list[dict[str, Any]]) -> list[Any]:
        return [function_call("look", {}, call_id=f"c{len(items)}")]

    def look() -> str:
        """Look."""
        return "nothing"

    agent = Agent(name="a", model=StandIn(forever), tools=[function_tool(look)])
    with instrumented(SpansOnly()) as collector:
        with pytest.raises(Exception, match="turns"):
            asyncio.run(Runner.run(agent, "x", max_turns=2))
    (node,) = collector.spans.of("node")
    assert node[c.NODE_OUTCOME] == "error"
    assert collector.spans.of("run")[0][c.RUN_OUTCOME] == "failed"


def test_every_hook_is_removed() -> None:
    """The SDK's functions are its own again."""
    before = (AgentRunner.run, run_loop.get_model)
    with instrumented(SpansOnly()):
        assert AgentRunner.run is not before[0]
    assert (AgentRunner.run, run_loop.get_model) == before
