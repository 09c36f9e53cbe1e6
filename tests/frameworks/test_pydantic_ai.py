"""pydantic-ai, real, on a stand-in model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the extra pydantic-ai is not installed")

from framework_contract import LETTER, FrameworkContract, calls_her_she, halting, reviewed
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, models
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from sample_agents import SpansOnly, instrumented

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation import pipeline
from twinspan.instrumentation.errors import BiasHalt

models.ALLOW_MODEL_REQUESTS = False


def words_of(messages: list[Any]) -> str:
    return " ".join(str(getattr(p, "content", "")) for m in messages for p in m.parts)


class InARow:
    """The application runs two agents in a row; the second reads the first one's output."""

    def __init__(self, *, biased: bool, plain: bool = False, streams: bool = False) -> None:
        self.readings: list[str] = []
        self._biased = biased
        self._plain = plain
        self._streams = streams
        self.shown: list[str] = []
        self._sent: list[str] | None = None

    def _screen(self, messages: list[Any], info: Any) -> ModelResponse:
        called = any(isinstance(p, ToolCallPart) for m in messages for p in m.parts)
        if self._sent is not None and not called:
            return ModelResponse(parts=[ToolCallPart("send_email", {"to": "x"})])
        rejects = self._biased and calls_her_she(words_of(messages))
        return ModelResponse(parts=[TextPart("reject" if rejects else "invite")])

    def _write(self, messages: list[Any], info: Any) -> ModelResponse:
        text = words_of(messages)
        self.readings.append(text)
        return ModelResponse(parts=[TextPart("no" if "reject" in text else "see you on Monday")])

    def screener(self) -> Any:
        agent: Any = Agent(self._model(self._screen), name="screener")
        if self._sent is not None:
            sent = self._sent

            def send_email(to: str) -> str:
                """Send an email."""
                sent.append(to)
                return "sent"

            agent.tool_plain(send_email)

        return agent

    def writer(self) -> Any:
        return Agent(self._model(self._write), name="writer")

    def _model(self, answer: Any) -> FunctionModel:
        """The same answers, whole or word by word."""

        async def stream(messages: list[Any], info: Any) -> AsyncGenerator[Any]:
            (part,) = answer(messages, info).parts
            if isinstance(part, ToolCallPart):
                yield {0: DeltaToolCall(part.tool_name, json.dumps(part.args), tool_call_id="1")}
                return
            for word in part.content.split():
                yield f"{word} "

        return FunctionModel(answer, stream_function=stream)

    def run(self, letter: str) -> Any:
        screener, writer = self.screener(), self.writer()
        with pipeline("hiring", nodes=["screener", "writer"], edges=[("screener", "writer")]):
            if self._plain:
                return writer.run_sync(screener.run_sync(letter).output).output
            return asyncio.run(self._arun(screener, writer, letter))

    async def _read(self, agent: Any, text: str) -> str:
        """What the application reads of a stream, piece by piece."""
        pieces: list[str] = []
        async with agent.run_stream(text) as streamed:
            async for piece in streamed.stream_text(delta=True, debounce_by=None):
                pieces.append(piece)
                self.shown.append(piece)
        return "".join(pieces).strip()

    async def _arun(self, screener: Any, writer: Any, letter: str) -> Any:
        if self._streams:
            return await self._read(writer, await self._read(screener, letter))
        return (await writer.run((await screener.run(letter)).output)).output

    def use_tool(self, letter: str, sent: list[str]) -> Any:
        self._sent = sent
        return self.run(letter)


class TestRun(FrameworkContract):
    """`await agent.run(...)`."""

    def program(self, *, biased: bool) -> InARow:
        return InARow(biased=biased)


class TestRunSync(FrameworkContract):
    """`agent.run_sync(...)`."""

    def program(self, *, biased: bool) -> InARow:
        return InARow(biased=biased, plain=True)


class TestRunStreamHeldBack(FrameworkContract):
    """`agent.run_stream(...)` where the breaker enforces: nothing is read before it is decided."""

    # What the application joins from pieces is a text of its own, which nobody is seen to hand on.
    test_the_writer_read_what_the_screener_handed_on = None  # type: ignore[assignment]
    test_agents_are_nodes_of_one_run_and_their_edge_was_observed = None  # type: ignore[assignment]

    def program(self, *, biased: bool) -> InARow:
        return InARow(biased=biased, streams=True)


def test_nothing_of_a_halted_stream_is_read() -> None:
    """The halt comes before the first piece; in shadow mode the pieces come as the model says."""
    program = InARow(biased=True, streams=True)
    with pytest.raises(BiasHalt):
        TestRun().observed(program, mode="halt")
    assert program.shown == []
    told = InARow(biased=True, streams=True)
    TestRun().observed(told, mode="shadow")
    assert told.shown[0].strip() == "reject"


def test_a_repaired_stream_shows_the_repaired_answer_alone() -> None:
    program = InARow(biased=True, streams=True)
    TestRun().observed(program, mode="repair")
    assert program.shown[0].strip() == "invite"
    assert "reject" not in " ".join(program.shown)


class Advice(BaseModel):
    """A structured output."""

    advice: str
    points: int


INVITED = "warmly invite"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param(str, INVITED, id="text"),
        pytest.param(Advice, Advice(advice=INVITED, points=3), id="tool"),
        pytest.param(NativeOutput(Advice), Advice(advice=INVITED, points=3), id="native"),
        pytest.param(list[str], [INVITED], id="no object"),
    ],
)
def test_a_revised_output_stands_in_the_messages_too(output: Any, expected: Any) -> None:
    """No run of the agent gave it; it has the output's type, and the history says nothing else."""

    def screen(messages: list[Any], info: Any) -> ModelResponse:
        word = "reject" if calls_her_she(words_of(messages)) else "invite"
        said = Advice(advice=word, points=3).model_dump()
        if info.output_tools:
            (tool,) = info.output_tools
            args = said if output is Advice else {"response": [word]}
            return ModelResponse(parts=[ThinkingPart("reject"), ToolCallPart(tool.name, args)])
        return ModelResponse(parts=[TextPart(word if output is str else json.dumps(said))])

    agent: Any = Agent(FunctionModel(screen), name="screener", output_type=output)
    with reviewed():
        result = agent.run_sync(LETTER)
    assert result.output == expected
    history = str(result.all_messages())
    assert INVITED in history and "reject" not in history
    assert INVITED in str(result.new_messages())


def test_a_held_stream_is_read_in_every_way() -> None:
    """Text, output, response, messages and usage are those of the run."""

    async def read(agent: Any) -> list[Any]:
        async with agent.run_stream("x", message_history=[]) as streamed:
            texts = [text async for text in streamed.stream_text()]
        async with agent.run_stream("x") as streamed:
            outputs = [output async for output in streamed.stream_output()]
        async with agent.run_stream("x") as streamed:
            found = [texts[-1].strip(), outputs[-1].strip(), (await streamed.get_output()).strip()]
            found += [streamed.is_complete, len(streamed.new_messages()), streamed.usage.requests]
            return [*found, streamed.response.parts[0].content.strip()]

    program = InARow(biased=False, streams=True)
    plain = asyncio.run(read(program.writer()))
    with instrumented(SpansOnly(), mode="halt"):
        assert asyncio.run(read(program.writer())) == plain


def test_a_failing_stream_fails_as_it_would(tmp_path: Path) -> None:
    async def broken(messages: list[Any], info: Any) -> AsyncGenerator[Any]:
        yield "so far "
        raise ConnectionError("gone")

    async def read() -> str:
        agent: Any = Agent(FunctionModel(stream_function=broken), name="broken")
        async with agent.run_stream("x") as streamed:
            return str(await streamed.get_output())

    with instrumented(SpansOnly(), mode="halt") as collector, pytest.raises(ConnectionError):
        asyncio.run(read())
    assert [run[c.RUN_OUTCOME] for run in collector.spans.of("run")] == ["failed"]
    assert all(tracer.open_count == 0 for tracer in collector.tracers)


def test_an_agent_that_another_calls_belongs_to_it() -> None:
    """Delegation by a tool: one trace, a qualified name."""
    expert: Any = Agent(
        FunctionModel(lambda m, i: ModelResponse([TextPart("fine")])), name="expert"
    )

    def ask(messages: list[Any], info: Any) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("ask_expert", {})])

    lead: Any = Agent(FunctionModel(ask), name="lead")

    async def ask_expert() -> str:
        """Ask."""
        return str((await expert.run("is it?")).output)

    lead.tool_plain(ask_expert)

    with instrumented(SpansOnly()) as collector:
        assert lead.run_sync("x").output == "done"
    assert {n[c.NODE_ID] for n in collector.spans.of("node")} == {"lead", "lead/expert"}
    assert len(collector.spans.traces) == 1
    assert collector.tracers[0].open_count == 0


def test_a_halt_within_an_agents_tool_reaches_the_caller() -> None:
    """The agent around it is not told that its tool failed."""
    screener = InARow(biased=True).screener()

    def ask(messages: list[Any], info: Any) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("ask_screener", {})])

    lead: Any = Agent(FunctionModel(ask), name="lead")

    async def ask_screener() -> str:
        """Ask."""
        return str((await screener.run(LETTER)).output)

    lead.tool_plain(ask_screener)
    with halting() as spans, pytest.raises(BiasHalt):
        lead.run_sync("x")
    assert spans.of("run")[0][c.RUN_OUTCOME] == "halted"


def test_a_history_that_is_handed_on_is_an_edge() -> None:
    """`message_history=result.new_messages()`."""
    program = InARow(biased=False)
    with instrumented(SpansOnly()) as collector, pipeline("history"):
        first = program.screener().run_sync(LETTER)
        program.writer().run_sync("and now?", message_history=first.new_messages())
    assert collector.spans.edges() == {("screener", "writer")}


def test_every_hook_is_removed() -> None:
    """The class is its own again."""
    before, streamed = Agent.iter, Agent.run_stream
    with instrumented(SpansOnly()):
        assert Agent.iter is not before
    assert Agent.iter is before and Agent.run_stream == streamed
