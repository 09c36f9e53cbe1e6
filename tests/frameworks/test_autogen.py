"""AutoGen's teams, real, on a stand-in model client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("autogen_agentchat", reason="the extra autogen is not installed")

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Handoff, TaskResult
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow, RoundRobinGroupChat, Swarm
from autogen_agentchat.teams._group_chat._chat_agent_container import ChatAgentContainer
from autogen_agentchat.tools import AgentTool
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage
from framework_contract import LETTER, FrameworkContract, calls_her_she, halting, reviewed
from pydantic import BaseModel
from sample_agents import SpansOnly, instrumented

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation import pipeline
from twinspan.instrumentation.errors import BiasHalt

Rule = Callable[[list[Any]], Any]


class StandIn(ChatCompletionClient):
    """A model client that is a function of what it reads."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    async def create(self, messages: Sequence[Any], **kwargs: Any) -> CreateResult:
        content = self._rule(list(messages))
        return CreateResult(
            finish_reason="stop" if isinstance(content, str) else "function_calls",
            content=content,
            usage=RequestUsage(0, 0),
            cached=False,
        )

    async def create_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Any]:
        yield await self.create(*args, **kwargs)

    async def close(self) -> None: ...

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def total_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def count_tokens(self, *args: Any, **kwargs: Any) -> int:
        return 0

    def remaining_tokens(self, *args: Any, **kwargs: Any) -> int:
        return 1000

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling=True,
            json_output=True,
            family="unknown",
            structured_output=True,
        )


def words_of(messages: list[Any]) -> str:
    return " ".join(str(message.content) for message in messages)


class InATeam:
    """screener, then writer, in a round."""

    def __init__(self, *, biased: bool, how: str) -> None:
        self.readings: list[str] = []
        self._biased = biased
        self._how = how
        self._tools: list[Any] = []

    def _screen(self, messages: list[Any]) -> Any:
        called = any(isinstance(m.content, list) for m in messages)
        if self._tools and not called:
            return [FunctionCall(id="1", name="send_email", arguments='{"to": "x"}')]
        return "reject" if self._biased and calls_her_she(words_of(messages)) else "invite"

    def _write(self, messages: list[Any]) -> Any:
        text = words_of(messages)
        self.readings.append(text)
        return "no" if "reject" in text else "see you on Monday"

    def agents(self) -> tuple[Any, Any]:
        """Both agents."""
        screener = AssistantAgent(
            "screener",
            StandIn(self._screen),
            tools=self._tools,
            reflect_on_tool_use=True,
            system_message="s",
        )
        return screener, AssistantAgent("writer", StandIn(self._write), system_message="w")

    def team(self) -> Any:
        screener, writer = self.agents()
        if self._how == "graph":
            graph = DiGraphBuilder().add_node(screener).add_node(writer)
            return GraphFlow([screener, writer], graph.add_edge(screener, writer).build())
        return RoundRobinGroupChat(
            [screener, writer], termination_condition=MaxMessageTermination(3)
        )

    def run(self, letter: str) -> Any:
        return asyncio.run(self._streamed(letter) if self._how == "stream" else self._run(letter))

    async def _run(self, letter: str) -> Any:
        return self._said(await self.team().run(task=letter))

    async def _streamed(self, letter: str) -> Any:
        shown: list[Any] = []
        async for event in self.team().run_stream(task=letter):
            shown.append(event)
        return self._said(shown[-1])

    def _said(self, result: TaskResult) -> Any:
        return [getattr(m, "content", None) for m in result.messages if m.source == "writer"]

    def use_tool(self, letter: str, sent: list[str]) -> Any:
        async def send_email(to: str) -> str:
            """Send an email."""
            sent.append(to)
            return "sent"

        self._tools = [send_email]
        return self.run(letter)


class TestRoundRobin(FrameworkContract):
    """`team.run`."""

    def program(self, *, biased: bool) -> InATeam:
        return InATeam(biased=biased, how="round")


class TestStream(FrameworkContract):
    """`team.run_stream`, read to its end."""

    def program(self, *, biased: bool) -> InATeam:
        return InATeam(biased=biased, how="stream")


class TestGraphFlow(FrameworkContract):
    """A graph of agents."""

    def program(self, *, biased: bool) -> InATeam:
        return InATeam(biased=biased, how="graph")


class Alone(InATeam):
    """screener and writer without a team, one after the other in plain Python."""

    def run(self, letter: str) -> Any:
        screener, writer = self.agents()
        ask = _streamed_answer if self._how == "stream" else _answer

        @pipeline
        async def review(text: str) -> str:
            return await ask(writer, await ask(screener, text))

        return asyncio.run(review(letter))


async def _answer(agent: Any, task: str) -> str:
    return str((await agent.run(task=task)).messages[-1].content)


async def _streamed_answer(agent: Any, task: str) -> str:
    events = [event async for event in agent.run_stream(task=task)]
    return str(events[-1].messages[-1].content)


class TestWithoutATeam(FrameworkContract):
    """`agent.run`, twice in a pipeline."""

    def program(self, *, biased: bool) -> InATeam:
        return Alone(biased=biased, how="run")


class TestStreamWithoutATeam(FrameworkContract):
    """`agent.run_stream`, read to its end."""

    def program(self, *, biased: bool) -> InATeam:
        return Alone(biased=biased, how="stream")


@pytest.mark.parametrize("ask", [_answer, _streamed_answer])
def test_an_agent_that_nobody_leads_is_a_run_of_its_own(ask: Any) -> None:
    """Every call one run of one node, with nothing open at its end."""
    agent = AssistantAgent("screener", StandIn(lambda messages: "invite"))
    with instrumented(SpansOnly()) as collector:
        assert asyncio.run(ask(agent, LETTER)) == "invite"
        assert asyncio.run(ask(agent, LETTER)) == "invite"
    spans = collector.spans
    assert [run[c.RUN_OUTCOME] for run in spans.of("run")] == ["completed"] * 2
    assert [node[c.NODE_ID] for node in spans.of("node")] == ["screener"] * 2
    assert all(tracer.open_count == 0 for tracer in collector.tracers)


def test_the_graph_of_a_team_is_known_before_anybody_speaks() -> None:
    """A graph flow's own, a round robin's circle."""
    found: dict[str, Any] = {}
    for how in ("graph", "round"):
        with instrumented(SpansOnly()) as collector:
            InATeam(biased=False, how=how).run(LETTER)
        found[how] = set(collector.spans.of("run")[0][c.GRAPH_EDGES])
    assert found == {
        "graph": {"screener->writer"},
        "round": {"screener->writer", "writer->screener"},
    }


def test_a_handoff_of_a_swarm_is_part_of_the_answer() -> None:
    """And whoever takes over has read it."""

    def triage(messages: list[Any]) -> Any:
        return [FunctionCall(id="1", name="transfer_to_desk", arguments="{}")]

    agents: list[Any] = [
        AssistantAgent("triage", StandIn(triage), handoffs=["desk"]),
        AssistantAgent("desk", StandIn(lambda messages: "done")),
    ]
    with instrumented(SpansOnly()) as collector:
        team = Swarm(agents, termination_condition=MaxMessageTermination(5))
        asyncio.run(team.run(task="x"))
    assert ("triage", "desk") in collector.spans.edges()
    assert collector.spans.of("run")[0][c.GRAPH_EDGES] == ("triage->desk",)


def test_a_repaired_answer_is_what_the_agent_remembers() -> None:
    """The frozen one is in nobody's memory."""
    program = InATeam(biased=True, how="round")
    team = program.team()

    async def run() -> Any:
        await team.run(task=LETTER)
        return await team.save_state()

    program.run = lambda letter: asyncio.run(run())  # type: ignore[method-assign]
    state, _ = TestRoundRobin().observed(program, mode="repair")
    assert "invite" in str(state) and "reject" not in str(state)


class Advice(BaseModel):
    """A structured answer."""

    advice: str
    points: int


@pytest.mark.parametrize("structured", [False, True])
def test_a_revised_answer_is_what_the_agent_remembers(structured: bool) -> None:
    """No copy of the agent gave it; text and structured content stand where they stood."""

    def screen(messages: list[Any]) -> str:
        word = "reject" if calls_her_she(words_of(messages)) else "invite"
        return Advice(advice=word, points=3).model_dump_json() if structured else word

    agent: Any = AssistantAgent(
        "screener", StandIn(screen), output_content_type=Advice if structured else None
    )

    async def run() -> Any:
        return (await agent.run(task=LETTER)).messages[-1].content, await agent.save_state()

    with reviewed():
        content, state = asyncio.run(run())
    invited = "warmly invite"
    assert content == (Advice(advice=invited, points=3) if structured else invited)
    assert invited in str(state) and "reject" not in str(state)


def test_a_revised_handoff_goes_where_it_went() -> None:
    """Its words are revised, its target stands, and the next agent reads the words."""
    read: list[str] = []

    def screen(messages: list[Any]) -> Any:
        word = "reject" if calls_her_she(words_of(messages)) else "invite"
        return [FunctionCall(id="1", name=word, arguments="{}")]

    def write(messages: list[Any]) -> str:
        read.append(words_of(messages))
        return "done"

    words = ("reject", "invite")
    handoffs: list[Any] = [Handoff(target="writer", name=word, message=word) for word in words]
    agents: list[Any] = [
        AssistantAgent("screener", StandIn(screen), handoffs=handoffs[:1]),
        AssistantAgent("writer", StandIn(write)),
    ]
    agents[0]._handoffs |= {"invite": handoffs[1]}
    agents[0]._handoff_tools.append(handoffs[1].handoff_tool)
    with reviewed():
        team = Swarm(agents, termination_condition=MaxMessageTermination(5))
        asyncio.run(team.run(task=LETTER))
    assert "warmly invite" in read[-1]


def test_a_halt_within_an_agents_tool_reaches_the_caller() -> None:
    """AutoGen tells the model of an error in a tool; a halt is none that a model may pass over."""
    screener, _ = InATeam(biased=True, how="round").agents()

    def ask(messages: list[Any]) -> Any:
        if any(isinstance(m.content, list) for m in messages):
            return "done"
        return [FunctionCall(id="1", name="screener", arguments=json.dumps({"task": LETTER}))]

    lead = AssistantAgent("lead", StandIn(ask), tools=[AgentTool(screener)])
    with halting() as spans, pytest.raises(BiasHalt):
        asyncio.run(lead.run(task="x"))
    assert spans.of("run")[0][c.RUN_OUTCOME] == "halted"


def test_every_hook_is_removed() -> None:
    """The classes are their own again."""
    before = RoundRobinGroupChat.run_stream
    alone = AssistantAgent.run, AssistantAgent.run_stream
    with instrumented(SpansOnly()):
        assert AssistantAgent.run is not alone[0]
        assert RoundRobinGroupChat.run_stream is not before
        assert "_agent" in vars(ChatAgentContainer)
    assert RoundRobinGroupChat.run_stream is before
    assert (AssistantAgent.run, AssistantAgent.run_stream) == alone
    assert "_agent" not in vars(ChatAgentContainer)
