"""CrewAI's flows, real, on a stand-in model; run by `make test-crewai`."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
pytest.importorskip("crewai", reason="the extra crewai is not installed; run make test-crewai")

from biased_graph import GENDER, gate
from crewai import Agent, Crew, Task
from crewai.flow.async_feedback import HumanFeedbackPending
from crewai.flow.flow import Flow, and_, listen, or_, router, start
from crewai.flow.human_feedback import human_feedback
from crewai.flow.persistence import SQLiteFlowPersistence
from crewai_agents import StandIn, final
from framework_contract import LETTER, calls_her_she
from pydantic import Field
from sample_agents import Spans, SpansOnly, instrumented

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import BiasHalt

pytestmark = pytest.mark.filterwarnings("default")

OPTIONS: Any = {"axes": [GENDER], "nodes": ["*screener"], "estimator": "category"}


def crew_of(role: str, rule: Any, description: str) -> Any:
    """A crew of one agent with one task."""
    agent = Agent(role=role, goal=role, backstory="b", llm=StandIn(model=role, rule=rule))
    task = Task(description=description, expected_output="a word", agent=agent)
    return Crew(agents=[agent], tasks=[task], verbose=False)


class Hiring(Flow):  # type: ignore[misc]
    """A crew that screens a letter, and one that answers it."""

    biased: bool = False
    read: list[str] = Field(default_factory=list)

    @start()  # type: ignore[untyped-decorator]
    def screen(self) -> str:
        def rule(text: str) -> str:
            return final("reject" if self.biased and calls_her_she(text) else "invite")

        return str(crew_of("screener", rule, self.state["letter"]).kickoff().raw)

    @listen(screen)  # type: ignore[untyped-decorator]
    def write(self, verdict: str) -> str:
        def rule(text: str) -> str:
            self.read.append(text)
            return final("no" if "reject" in text else "see you on Monday")

        return str(crew_of("writer", rule, f"Write: {verdict}").kickoff().raw)


def hiring(*, biased: bool) -> Any:
    return Hiring(biased=biased)


def run(flow: Any, *, in_loop: bool) -> Any:
    inputs = {"letter": LETTER}
    return asyncio.run(flow.kickoff_async(inputs)) if in_loop else flow.kickoff(inputs)


@pytest.mark.parametrize("in_loop", [False, True])
def test_methods_and_their_agents_are_nodes_of_one_run(in_loop: bool) -> None:
    """One trace; what wakes a method is an edge; the answer is the application's own."""
    with instrumented(SpansOnly()) as collector:
        assert run(hiring(biased=False), in_loop=in_loop) == "see you on Monday"
    spans = collector.spans
    assert [node[c.NODE_ID] for node in spans.of("node")] == [
        *("screen/screener", "screen"),
        *("write/writer", "write"),
    ]
    assert spans.edges() == {("screen", "write")}
    assert len(spans.traces) == 1
    (root,) = spans.of("run")
    assert root[c.RUN_OUTCOME] == "completed"
    assert root[c.GRAPH_EDGES] == ("screen->write",)
    assert root[c.RUN_SPAN_COUNT] == len(spans.ended)
    assert all(tracer.open_count == 0 for tracer in collector.tracers)


@pytest.mark.parametrize("in_loop", [False, True])
def test_a_flow_is_halted_before_the_next_crew_reads(in_loop: bool) -> None:
    spans, flow = Spans(), hiring(biased=True)
    settings: Any = {**OPTIONS, "mode": "halt"}
    with instrumented(gate(spans, **settings), **settings), pytest.raises(BiasHalt) as halt:
        run(flow, in_loop=in_loop)
    assert halt.value.edge.startswith("screen/screener->")
    assert flow.read == []
    (root,) = spans.of("run")
    assert root[c.RUN_OUTCOME] == "halted"
    assert root[c.RUN_SPAN_COUNT] == len(spans.ended)


def test_a_repaired_answer_is_what_the_next_crew_reads() -> None:
    flow = hiring(biased=True)
    settings: Any = {**OPTIONS, "mode": "repair"}
    with instrumented(gate(Spans(), **settings), **settings):
        assert run(flow, in_loop=False) == "see you on Monday"
    assert all("reject" not in text for text in flow.read)


class Routed(Flow):  # type: ignore[misc]
    """Both begin; a router waits for both, and a label of its wakes the last one."""

    @start()  # type: ignore[untyped-decorator]
    def first(self) -> str:
        return "1"

    @start()  # type: ignore[untyped-decorator]
    async def second(self) -> str:
        return "2"

    @router(and_(first, second))  # type: ignore[untyped-decorator]
    def choose(self) -> str:
        return "good"

    @listen(or_("good", "bad"))  # type: ignore[untyped-decorator]
    def last(self) -> str:
        return "done"

    @listen("never")  # type: ignore[untyped-decorator]
    def unused(self) -> str:
        return "?"


def test_who_waited_for_whom_is_an_edge() -> None:
    """All of an `and_`; a router by its label; a method that was never woken has none."""
    with instrumented(SpansOnly()) as collector:
        assert Routed().kickoff() == "done"
    assert collector.spans.edges() == {
        ("first", "choose"),
        ("second", "choose"),
        ("choose", "last"),
    }


class Failing(Flow):  # type: ignore[misc]
    """Its second method raises."""

    @start()  # type: ignore[untyped-decorator]
    def fine(self) -> str:
        return "fine"

    @listen(fine)  # type: ignore[untyped-decorator]
    def broken(self) -> str:
        raise ValueError("broken")


def test_a_method_that_raises_is_an_error_of_its_own() -> None:
    """The application gets its exception, the record says whose it was."""
    with instrumented(SpansOnly()) as collector, pytest.raises(ValueError, match="broken"):
        Failing().kickoff()
    outcomes = {node[c.NODE_ID]: node[c.NODE_OUTCOME] for node in collector.spans.of("node")}
    assert outcomes == {"fine": "ok", "broken": "error"}
    assert collector.spans.of("run")[0][c.RUN_OUTCOME] == "failed"


class Asks:
    """Nobody answers yet: the flow waits for a person."""

    def request_feedback(self, context: Any, flow: Any) -> str:
        raise HumanFeedbackPending(context=context)


class Reviewed(Flow):  # type: ignore[misc]
    """A person looks at what the first method made."""

    @start()  # type: ignore[untyped-decorator]
    @human_feedback(message="Fine?", provider=Asks())  # type: ignore[untyped-decorator]
    def draft(self) -> str:
        return "a draft"

    @listen(draft)  # type: ignore[untyped-decorator]
    def send(self) -> str:
        return "sent"


def test_a_flow_that_waits_for_a_person_has_not_failed(tmp_path: Path) -> None:
    """It is interrupted; when the person has answered, the rest is a run of its own."""
    store = SQLiteFlowPersistence(str(tmp_path / "flows.db"))
    with instrumented(SpansOnly()) as collector:
        pending = Reviewed(persistence=store).kickoff()
        flow = Reviewed.from_pending(pending.context.flow_id, persistence=store)
        assert flow.resume("fine") == "sent"
    nodes = collector.spans.of("node")
    assert [(node[c.NODE_ID], node[c.NODE_OUTCOME]) for node in nodes] == [
        ("draft", "interrupted"),
        ("send", "ok"),
    ]
    outcomes = [root[c.RUN_OUTCOME] for root in collector.spans.of("run")]
    assert outcomes == ["interrupted", "completed"]


def test_the_hooks_are_removed() -> None:
    before = Flow.kickoff_async
    with instrumented(SpansOnly()):
        assert Flow.kickoff_async is not before
    assert Flow.kickoff_async is before
