"""pydantic-ai, real, on a stand-in model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the extra pydantic-ai is not installed")

from framework_contract import LETTER, FrameworkContract, calls_her_she
from pydantic_ai import Agent, models
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from sample_agents import SpansOnly, instrumented

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation import pipeline

models.ALLOW_MODEL_REQUESTS = False


def words_of(messages: list[Any]) -> str:
    return " ".join(str(getattr(p, "content", "")) for m in messages for p in m.parts)


class InARow:
    """The application runs two agents in a row; the second reads the first one's output."""

    def __init__(self, *, biased: bool, plain: bool = False) -> None:
        self.readings: list[str] = []
        self._biased = biased
        self._plain = plain
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
        agent: Any = Agent(FunctionModel(self._screen), name="screener")
        if self._sent is not None:
            sent = self._sent

            def send_email(to: str) -> str:
                """Send an email."""
                sent.append(to)
                return "sent"

            agent.tool_plain(send_email)

        return agent

    def writer(self) -> Any:
        return Agent(FunctionModel(self._write), name="writer")

    def run(self, letter: str) -> Any:
        screener, writer = self.screener(), self.writer()
        with pipeline("hiring", nodes=["screener", "writer"], edges=[("screener", "writer")]):
            if self._plain:
                return writer.run_sync(screener.run_sync(letter).output).output
            return asyncio.run(self._arun(screener, writer, letter))

    async def _arun(self, screener: Any, writer: Any, letter: str) -> Any:
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


def test_a_history_that_is_handed_on_is_an_edge() -> None:
    """`message_history=result.new_messages()`."""
    program = InARow(biased=False)
    with instrumented(SpansOnly()) as collector, pipeline("history"):
        first = program.screener().run_sync(LETTER)
        program.writer().run_sync("and now?", message_history=first.new_messages())
    assert collector.spans.edges() == {("screener", "writer")}


def test_every_hook_is_removed() -> None:
    """The class is its own again."""
    before = Agent.iter
    with instrumented(SpansOnly()):
        assert Agent.iter is not before
    assert Agent.iter is before
