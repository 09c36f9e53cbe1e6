"""CrewAI, real, on a stand-in model; it has an environment of its own (`make test-crewai`)."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any

import pytest

os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
pytest.importorskip("crewai", reason="the extra crewai is not installed; run make test-crewai")

from crewai import Agent, Crew, Task
from crewai_agents import ScreenerAndWriter, StandIn
from framework_contract import LETTER, FrameworkContract
from sample_agents import SpansOnly, instrumented

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import BiasHalt

pytestmark = pytest.mark.filterwarnings("default")


class InACrew(ScreenerAndWriter):
    """screener, then writer; the second task's context is the first one's output."""

    question = "Current Task"

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


class TestKickoff(FrameworkContract):
    """`crew.kickoff()`."""

    def program(self, *, biased: bool) -> InACrew:
        return InACrew(biased=biased, how="kickoff")


class TestAkickoff(FrameworkContract):
    """`await crew.akickoff()`."""

    def program(self, *, biased: bool) -> InACrew:
        return InACrew(biased=biased, how="akickoff")


class StreamedCrew(InACrew):
    """The same, streamed: what a reader of the stream was shown."""

    def __init__(self, *, biased: bool, how: str = "kickoff") -> None:
        super().__init__(biased=biased, how=how)
        self.shown = ""

    def run(self, letter: str) -> Any:
        crew = self.crew(letter)
        crew.stream = True
        if self._how == "akickoff":
            return asyncio.run(self._read(crew)).raw
        streaming = crew.kickoff()
        for chunk in streaming:
            self.shown += chunk.content
        return streaming.result.raw

    async def _read(self, crew: Any) -> Any:
        streaming = await crew.akickoff()
        async for chunk in streaming:
            self.shown += chunk.content
        return streaming.result


class TestStreamedKickoff(FrameworkContract):
    """`Crew(stream=True).kickoff()`."""

    def program(self, *, biased: bool) -> InACrew:
        return StreamedCrew(biased=biased)


class TestStreamedAkickoff(FrameworkContract):
    """`await Crew(stream=True).akickoff()`."""

    def program(self, *, biased: bool) -> InACrew:
        return StreamedCrew(biased=biased, how="akickoff")


def shown(program: StreamedCrew, mode: str, **options: Any) -> str:
    """What the reader of a stream was shown, to its end or to the halt."""
    with contextlib.suppress(BiasHalt):
        FrameworkContract().observed(program, mode=mode, **options)
    return program.shown


@pytest.mark.parametrize("how", ["kickoff", "akickoff"])
def test_a_stream_is_held_until_it_is_decided(how: str) -> None:
    """A stopped answer is never shown; one that passes is shown as the model gave it."""
    plain = StreamedCrew(biased=True, how=how)
    plain.run(LETTER)
    assert "reject" in plain.shown
    assert shown(StreamedCrew(biased=True, how=how), "shadow") == plain.shown
    assert shown(StreamedCrew(biased=True, how=how), "halt") == ""

    unbiased = StreamedCrew(biased=False, how=how)
    unbiased.run(LETTER)
    assert shown(StreamedCrew(biased=False, how=how), "halt") == unbiased.shown


@pytest.mark.parametrize("how", ["kickoff", "akickoff"])
def test_a_repaired_answer_is_what_a_stream_shows(how: str) -> None:
    """In one piece, in the place of the stopped one; the writer's follows."""
    told = shown(StreamedCrew(biased=True, how=how), "repair")
    assert "reject" not in told
    assert told.startswith("invite") and told.rstrip().endswith("see you on Monday")


def test_a_stream_that_need_not_wait_is_shown_at_once() -> None:
    """`stream = "pass"` asks for it; the next agent is still kept from a stopped answer."""
    program = StreamedCrew(biased=True)
    assert "reject" in shown(program, "halt", stream="pass")
    assert program.readings == []


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
