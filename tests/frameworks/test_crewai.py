"""CrewAI, real, on a stand-in model; it has an environment of its own (`make test-crewai`)."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
pytest.importorskip("crewai", reason="the extra crewai is not installed; run make test-crewai")

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool
from framework_contract import LETTER, FrameworkContract, calls_her_she
from sample_agents import SpansOnly, instrumented

from twinspan.instrumentation import conventions as c

pytestmark = pytest.mark.filterwarnings("default")


class StandIn(BaseLLM):  # type: ignore[misc]
    """A model that is a function of what it reads."""

    rule: Any = None

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        listed = [{"content": messages}] if isinstance(messages, str) else messages
        return self.rule(" ".join(str(message.get("content")) for message in listed))

    async def acall(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        return self.call(messages, *args, **kwargs)

    def supports_function_calling(self) -> bool:
        return False


def final(answer: str) -> str:
    return f"Thought: I now can give a great answer\nFinal Answer: {answer}"


class InACrew:
    """screener, then writer; the second task's context is the first one's output."""

    def __init__(self, *, biased: bool, how: str) -> None:
        self.readings: list[str] = []
        self._biased = biased
        self._how = how
        self._tools: list[Any] = []

    def _screen(self, text: str) -> str:
        if self._tools and "Observation" not in text.rpartition("Current Task")[2]:
            return 'Thought: I send\nAction: send_email\nAction Input: {"to": "x"}'
        return final("reject" if self._biased and calls_her_she(text) else "invite")

    def _write(self, text: str) -> str:
        self.readings.append(text)
        return final("no" if "reject" in text else "see you on Monday")

    def crew(self, letter: str) -> Any:
        screener = Agent(
            role="screener",
            goal="screens",
            backstory="b",
            llm=StandIn(model="stand-in", rule=self._screen),
            tools=self._tools,
        )
        writer = Agent(
            role="writer", goal="writes", backstory="b", llm=StandIn(model="w", rule=self._write)
        )
        first = Task(description=letter, expected_output="a word", agent=screener)
        second = Task(description="Write the answer", expected_output="a line", agent=writer)
        return Crew(agents=[screener, writer], tasks=[first, second], verbose=False)

    def run(self, letter: str) -> Any:
        crew = self.crew(letter)
        if self._how == "akickoff":
            return asyncio.run(crew.akickoff()).raw
        if self._how == "kickoff_async":
            return asyncio.run(crew.kickoff_async()).raw
        return crew.kickoff().raw

    def use_tool(self, letter: str, sent: list[str]) -> Any:
        def send_email(to: str) -> str:
            """Send an email."""
            sent.append(to)
            return "sent"

        self._tools = [tool("send_email")(send_email)]
        return self.run(letter)


class TestKickoff(FrameworkContract):
    """`crew.kickoff()`."""

    def program(self, *, biased: bool) -> InACrew:
        return InACrew(biased=biased, how="kickoff")


class TestAkickoff(FrameworkContract):
    """`await crew.akickoff()`."""

    def program(self, *, biased: bool) -> InACrew:
        return InACrew(biased=biased, how="akickoff")


def test_kickoff_in_a_thread_is_one_run() -> None:
    """`await crew.kickoff_async()`."""
    with instrumented(SpansOnly()) as collector:
        InACrew(biased=False, how="kickoff_async").run(LETTER)
    assert len(collector.spans.of("run")) == 1
    assert collector.spans.edges() == {("screener", "writer")}


def test_the_graph_of_a_crew_is_known_before_it_begins() -> None:
    """A task reads all earlier outputs unless its context says otherwise."""
    with instrumented(SpansOnly()) as collector:
        InACrew(biased=False, how="kickoff").run(LETTER)
    assert collector.spans.of("run")[0][c.GRAPH_EDGES] == ("screener->writer",)


def test_every_hook_is_removed() -> None:
    """The classes are their own again."""
    before = (Crew.kickoff, Agent.execute_task)
    with instrumented(SpansOnly()):
        assert Crew.kickoff is not before[0]
    assert (Crew.kickoff, Agent.execute_task) == before
