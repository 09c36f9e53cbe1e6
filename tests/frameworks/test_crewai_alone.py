"""CrewAI's agents without a crew, real, on a stand-in model; run by `make test-crewai`."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
pytest.importorskip("crewai", reason="the extra crewai is not installed; run make test-crewai")

from biased_graph import GENDER, gate
from crewai import Agent, Crew, LLMGuardrail, Task
from crewai.events import crewai_event_bus
from crewai.events.types.agent_events import LiteAgentExecutionCompletedEvent
from crewai.events.types.llm_events import LLMStreamChunkEvent
from crewai.flow.flow import Flow, listen, start
from crewai.lite_agent import LiteAgent
from crewai.memory.unified_memory import Memory
from crewai.tools import tool
from crewai_agents import ScreenerAndWriter, StandIn, final
from framework_contract import LETTER, FrameworkContract, calls_her_she
from pydantic import BaseModel
from sample_agents import Spans, SpansOnly, instrumented

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation import pipeline
from twinspan.instrumentation.clients import ChatRequest, ScriptedClient
from twinspan.instrumentation.errors import BiasHalt

pytestmark = pytest.mark.filterwarnings("default")

SYNC = ("kickoff", "lite")
HOWS = (*SYNC, "kickoff_async", "akickoff", "in a loop", "lite async", "lite akickoff")
OPTIONS: Any = {"axes": [GENDER], "nodes": ["*screener"], "estimator": "category"}


def agent_of(how: str, role: str, rule: Callable[[str], Any], **options: Any) -> Any:
    """An agent of the kind that a way of asking needs."""
    model = options.pop("llm", None) or StandIn(model=role, rule=rule)
    told = {"role": role, "goal": role, "backstory": "b", "llm": model, **options}
    if not how.startswith("lite"):
        return Agent(**told)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return LiteAgent(**told)


def ask(how: str, agent: Any, messages: Any, **options: Any) -> Any:
    """The output of an agent."""
    if how in SYNC:
        return agent.kickoff(messages, **options)
    return asyncio.run(aask(how, agent, messages, **options))


async def aask(how: str, agent: Any, messages: Any, **options: Any) -> Any:
    """The same on an event loop."""
    if how.endswith("akickoff"):
        return await agent.akickoff(messages, **options)
    if how == "in a loop":  # CrewAI gives a coroutine where it finds a running loop
        return await agent.kickoff(messages, **options)
    return await agent.kickoff_async(messages, **options)


def screens(text: str) -> str:
    return final("reject" if calls_her_she(text) else "invite")


class Alone(ScreenerAndWriter):
    """screener, then writer, in plain Python."""

    question = LETTER[-20:]

    def run(self, letter: str) -> Any:
        how = self._how
        screener = agent_of(how, "screener", self._screen, tools=self._tools)
        writer = agent_of(how, "writer", self._write)

        if how in SYNC:

            @pipeline
            def review(text: str) -> str:
                return str(ask(how, writer, ask(how, screener, text).raw).raw)

            return review(letter)

        @pipeline
        async def areview(text: str) -> str:
            return str((await aask(how, writer, (await aask(how, screener, text)).raw)).raw)

        return asyncio.run(areview(letter))


class TestKickoff(FrameworkContract):
    """`agent.kickoff(...)`."""

    def program(self, *, biased: bool) -> Alone:
        return Alone(biased=biased, how="kickoff")


class TestKickoffAsync(FrameworkContract):
    """`await agent.kickoff_async(...)`."""

    def program(self, *, biased: bool) -> Alone:
        return Alone(biased=biased, how="kickoff_async")


class TestLiteAgent(FrameworkContract):
    """`LiteAgent(...).kickoff(...)`."""

    def program(self, *, biased: bool) -> Alone:
        return Alone(biased=biased, how="lite")


class TestLiteAgentAsync(FrameworkContract):
    """`await LiteAgent(...).kickoff_async(...)`."""

    def program(self, *, biased: bool) -> Alone:
        return Alone(biased=biased, how="lite async")


def test_a_pipeline_knows_its_agents_before_they_run() -> None:
    """By their roles, in its text."""
    with instrumented(SpansOnly()) as collector:
        Alone(biased=False, how="akickoff").run(LETTER)
    assert collector.spans.of("run")[0][c.GRAPH_EDGES] == ("screener->writer",)


# --- a run of its own -------------------------------------------------------------------------


@contextlib.contextmanager
def gated(mode: str | None, **options: Any) -> Generator[Spans]:
    """Screeners are probed in the block; nothing is instrumented if the mode is None."""
    spans = Spans()
    settings: Any = {**OPTIONS, "mode": mode, **options}
    with instrumented(gate(spans, **settings), **settings) if mode else contextlib.nullcontext():
        yield spans


def observed(how: str, agent: Any, messages: Any, *, mode: str, **options: Any) -> Any:
    """The agent's output, or the halt, and the spans."""
    with gated(mode) as spans:
        try:
            return ask(how, agent, messages, **options), spans
        except BiasHalt as halt:
            return halt, spans


def told(output: Any) -> Any:
    return output.model_dump()


@pytest.mark.parametrize("how", HOWS)
def test_every_call_is_one_run_of_one_node(how: str) -> None:
    """With nothing open at its end, and the output that CrewAI gives."""
    agent = agent_of(how, "screener", lambda text: final("invite"))
    plain = told(ask(how, agent_of(how, "screener", lambda text: final("invite")), LETTER))
    with instrumented(SpansOnly()) as collector:
        assert told(ask(how, agent, LETTER)) == plain
        assert told(ask(how, agent, LETTER)) == plain
    spans = collector.spans
    assert [run[c.RUN_OUTCOME] for run in spans.of("run")] == ["completed"] * 2
    assert [run[c.RUN_SPAN_COUNT] for run in spans.of("run")] == [2, 2]
    assert [node[c.NODE_ID] for node in spans.of("node")] == ["screener"] * 2
    assert len(spans.traces) == 2
    assert all(tracer.open_count == 0 for tracer in collector.tracers)


@pytest.mark.parametrize("how", HOWS)
def test_shadow_changes_nothing(how: str) -> None:
    """Probed to the full, and the caller's output is that of the uninstrumented run."""
    plain = ask(
        how, agent_of(how, "screener", screens, llm=Counted(model="counted", rule=screens)), LETTER
    )
    agent = agent_of(how, "screener", screens, llm=Counted(model="counted", rule=screens))
    output, spans = observed(how, agent, LETTER, mode="shadow")
    assert told(output) == told(plain)
    assert [probe[c.EFFECT_VALUE] for probe in spans.of("probe_set")] == [1.0]


@pytest.mark.parametrize("how", HOWS)
def test_a_halt_comes_instead_of_the_output(how: str) -> None:
    halt, spans = observed(how, agent_of(how, "screener", screens), LETTER, mode="halt")
    assert isinstance(halt, BiasHalt) and halt.edge.startswith("screener->")
    (run,) = spans.of("run")
    assert run[c.RUN_OUTCOME] == "halted"
    assert run[c.RUN_SPAN_COUNT] == len(spans.ended)


@pytest.mark.parametrize("how", HOWS)
def test_a_repaired_output_is_whole(how: str) -> None:
    """Not a word of the frozen one is in it."""
    agent = agent_of(how, "screener", screens)
    output, spans = observed(how, agent, LETTER, mode="repair")
    assert (output.raw, output.agent_role) == ("invite", "screener")
    assert "reject" not in str(told(output))
    if how.startswith("lite"):
        assert agent.messages and "reject" not in str(agent.messages)
    assert [each[c.INTERVENTION_OUTCOME] for each in spans.of("intervention")] == ["cleared"]


def reviewer(model: str) -> ScriptedClient:
    """A model that invites everybody, in the form of the answer that it reviews."""

    def reply(request: ChatRequest, rng: np.random.Generator) -> str:
        answer = request.messages[-1].content.partition("What the agent answered:\n")[2]
        structured = Verdict(verdict="please come", points=9).model_dump_json()
        revision = structured if answer.startswith("{") else "please come"
        return json.dumps({"verdict": "revise", "revision": revision})

    return ScriptedClient(reply, model=model)


PANEL: Any = {"repair": "skeptics", "skeptics": [reviewer("alpha"), reviewer("beta")]}


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("how", HOWS)
def test_an_answer_that_reviewers_revise_is_put_in_place(how: str, structured: bool) -> None:
    """No copy of the agent gave it, and yet the output is whole."""
    agent = agent_of(how, "screener", in_json if structured else screens)
    options: Any = {"response_format": Verdict} if structured else {}
    with gated("repair", **PANEL):
        output = ask(how, agent, LETTER, **options)
    assert output.pydantic == (Verdict(verdict="please come", points=9) if structured else None)
    assert (output.pydantic.model_dump_json() if structured else "please come") == output.raw
    assert "reject" not in str(told(output))
    if how.startswith("lite"):
        assert "please come" in str(agent.messages) and "reject" not in str(agent.messages)


def test_so_it_is_in_a_crew() -> None:
    agent = agent_of("crew", "screener", screens)
    task = Task(description=LETTER, expected_output="a word", agent=agent)
    with gated("repair", **PANEL):
        output = Crew(agents=[agent], tasks=[task]).kickoff()
    assert output.raw == "please come"
    assert "reject" not in str(output.model_dump())


@pytest.mark.parametrize("mode", ["shadow", "halt", "repair"])
@pytest.mark.parametrize("how", HOWS)
def test_a_conversation_is_probed_whole(how: str, mode: str) -> None:
    """Messages of any role are worded anew; the given list stays as it was."""
    messages = [
        {"role": "user", "content": "A letter has come."},
        {"role": "assistant", "content": "Show me what she wrote."},
        {"role": "user", "content": "I run a shop."},
    ]
    before = [dict(each) for each in messages]
    agent = agent_of(how, "screener", screens)
    output, spans = observed(how, agent, messages, mode=mode)
    assert spans.of("probe_set")[0][c.EFFECT_VALUE] == 1.0
    assert isinstance(output, BiasHalt) if mode == "halt" else output.raw in ("reject", "invite")
    assert messages == before


# --- what an agent is asked to give, and to keep to ------------------------------------------


class Verdict(BaseModel):
    """A structured answer."""

    verdict: str
    points: int


def in_json(text: str) -> str:
    verdict, points = ("reject", 1) if calls_her_she(text) else ("invite", 9)
    return final(Verdict(verdict=verdict, points=points).model_dump_json())


@pytest.mark.parametrize("mode", ["shadow", "halt", "repair"])
@pytest.mark.parametrize("how", HOWS)
def test_a_structured_output_stays_one(how: str, mode: str) -> None:
    """`response_format` is kept, in what replaces an output too."""
    options: Any = {"response_format": Verdict}
    plain = ask(how, agent_of(how, "screener", in_json), LETTER, **options)
    assert plain.pydantic == Verdict(verdict="reject", points=1)
    agent = agent_of(how, "screener", in_json)
    output, spans = observed(how, agent, LETTER, mode=mode, **options)
    assert spans.of("probe_set")[0][c.EFFECT_VALUE] == 1.0
    if mode == "shadow":
        assert told(output) == told(plain)
        assert isinstance(output.pydantic, Verdict)
    elif mode == "halt":
        assert isinstance(output, BiasHalt)
    else:
        assert output.pydantic == Verdict(verdict="invite", points=9)
        assert Verdict.model_validate_json(output.raw) == output.pydantic


def corrected(how: str, rule: Any, guardrail: Any) -> Any:
    """The plain output of a guarded agent; observed it is the same, and repaired it is guarded."""

    def fresh() -> Any:
        return agent_of(how, "screener", rule, guardrail=guardrail)

    plain = ask(how, fresh(), LETTER)
    output, spans = observed(how, fresh(), LETTER, mode="shadow")
    assert told(output) == told(plain)
    assert [probe[c.EFFECT_VALUE] for probe in spans.of("probe_set")] == [1.0]
    return plain.raw, observed(how, fresh(), LETTER, mode="repair")[0].raw


@pytest.mark.parametrize("how", HOWS)
def test_what_a_guardrail_corrects_is_decided(how: str) -> None:
    """By the probes too."""
    found = corrected(how, screens, lambda output: (True, output.raw.upper()))
    assert found == ("REJECT", "INVITE")


def test_an_agent_that_a_guardrail_sends_back_is_decided_once() -> None:
    """A second attempt belongs to the same node."""

    def screen(text: str) -> str:
        return screens(text) if "Say it" in text else final("?")

    def guardrail(output: Any) -> Any:
        return (False, "Say it") if output.raw == "?" else (True, output.raw)

    del guardrail.__annotations__["return"]  # CrewAI reads it, and not as text
    assert corrected("lite", screen, guardrail) == ("reject", "invite")


def valid(text: str) -> str:
    if "complies with the given guardrail" in text:
        return final('{"valid": true, "feedback": null}')
    return final("invite")


@pytest.mark.parametrize("how", [*HOWS, "crew"])
def test_the_agent_of_a_guardrail_in_words_is_no_node(how: str) -> None:
    """CrewAI's own; it belongs to whom it guards."""
    agent = agent_of(how, "screener", valid, **({} if how == "crew" else {"guardrail": "be kind"}))
    with instrumented(SpansOnly()) as collector:
        if how == "crew":
            task = Task(description=LETTER, expected_output="x", agent=agent, guardrail="be kind")
            Crew(agents=[agent], tasks=[task]).kickoff()
        else:
            ask(how, agent, LETTER)
    assert [node[c.NODE_ID] for node in collector.spans.of("node")] == ["screener"]
    assert len(collector.spans.of("run")) == 1


# --- tools --------------------------------------------------------------------------------------


class Native(StandIn):
    """A model that calls tools by its provider's interface."""

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        if "role': 'tool" in str(messages):
            return "invite"
        function = {"name": "send_email", "arguments": '{"to": "x"}'}
        return [{"id": "1", "type": "function", "function": function}]


@pytest.mark.parametrize(("safe", "outcome"), [([], "error"), (["send_*"], "ok")])
@pytest.mark.parametrize("how", [how for how in HOWS if not how.startswith("lite")])
def test_a_tool_that_the_provider_calls_is_watched_too(
    how: str, safe: list[str], outcome: str
) -> None:
    """The run's own call goes through either way."""
    sent: list[str] = []

    @tool("send_email")  # type: ignore[untyped-decorator]
    def send_email(to: str) -> str:
        """Send an email."""
        sent.append(to)
        return "sent"

    agent = agent_of(how, "screener", screens, llm=Native(model="n"), tools=[send_email])
    with gated("shadow", safe_tools=safe) as spans:
        assert ask(how, agent, LETTER).raw == "invite"
    assert len(sent) == (1 if not safe else 16)
    assert [probe[c.PROBE_OUTCOME] for probe in spans.of("probe_set")] == [outcome]


def chief_of(how: str, inner: Any) -> Any:
    """An agent with a tool that asks another one."""

    @tool("ask_screener")  # type: ignore[untyped-decorator]
    def ask_screener(letter: str) -> str:
        """Ask the screener."""
        return str(inner.kickoff(LETTER).raw)

    def lead(text: str) -> str:
        if "Observation" in text.rpartition("Screen it")[2]:
            return final("done")
        return 'Thought: I ask\nAction: ask_screener\nAction Input: {"letter": "x"}'

    return agent_of(how, "chief", lead, tools=[ask_screener])


@pytest.mark.parametrize("how", SYNC)
def test_an_agent_that_a_tool_asks_is_a_node_within(how: str) -> None:
    inner = agent_of("kickoff", "screener", lambda text: final("invite"))
    with instrumented(SpansOnly()) as collector:
        assert ask(how, chief_of(how, inner), "Screen it").raw == "done"
    assert [node[c.NODE_ID] for node in collector.spans.of("node")] == ["chief/screener", "chief"]
    assert len(collector.spans.of("run")) == 1


@pytest.mark.parametrize("how", [*SYNC, "crew"])
def test_its_halt_reaches_the_caller(how: str) -> None:
    """CrewAI tells a model what a tool raised; a halt is not for the model."""
    chief = chief_of(how, agent_of("kickoff", "screener", screens))
    task = Task(
        description="Screen it", expected_output="x", agent=chief if how == "crew" else None
    )
    with gated("halt") as spans, pytest.raises(BiasHalt):
        if how == "crew":
            Crew(agents=[chief], tasks=[task]).kickoff()
        else:
            ask(how, chief, "Screen it")
    outcomes = {node[c.NODE_ID]: node[c.NODE_OUTCOME] for node in spans.of("node")}
    assert outcomes["chief"] == "halted"
    assert [run[c.RUN_OUTCOME] for run in spans.of("run")] == ["halted"]
    assert spans.of("run")[0][c.RUN_SPAN_COUNT] == len(spans.ended)


# --- failures and company -----------------------------------------------------------------------


@pytest.mark.parametrize("how", HOWS)
def test_an_agent_that_raises_is_an_error_of_its_own(how: str) -> None:
    """The caller gets the agent's exception."""

    def broken(text: str) -> str:
        raise ValueError("broken")

    with instrumented(SpansOnly()) as collector, pytest.raises(ValueError, match="broken"):
        ask(how, agent_of(how, "screener", broken), LETTER)
    (node,), (run,) = collector.spans.of("node"), collector.spans.of("run")
    assert (node[c.NODE_OUTCOME], run[c.RUN_OUTCOME]) == ("error", "failed")
    assert all(tracer.open_count == 0 for tracer in collector.tracers)


@pytest.mark.parametrize("how", SYNC)
def test_two_at_once_in_threads_are_two_runs(how: str) -> None:
    """Each stopped for itself, or not."""
    rules = (screens, lambda text: final("invite"))
    agents = [agent_of(how, "screener", rule) for rule in rules]

    def attempt(agent: Any) -> str:
        try:
            return str(ask(how, agent, LETTER).raw)
        except BiasHalt:
            return "halted"

    with gated("halt") as spans, ThreadPoolExecutor(2) as pool:
        assert list(pool.map(attempt, agents)) == ["halted", "invite"]
    assert sorted(run[c.RUN_OUTCOME] for run in spans.of("run")) == ["completed", "halted"]
    assert len(spans.traces) == 2
    assert sum(run[c.RUN_SPAN_COUNT] for run in spans.of("run")) == len(spans.ended)


def test_two_at_once_on_a_loop_are_two_runs() -> None:
    agent = agent_of("kickoff", "screener", lambda text: final("invite"))

    async def both() -> Any:
        return await asyncio.gather(agent.akickoff(LETTER), agent.akickoff(LETTER))

    with instrumented(SpansOnly()) as collector:
        assert [output.raw for output in asyncio.run(both())] == ["invite", "invite"]
    assert len(collector.spans.traces) == 2
    assert [run[c.RUN_SPAN_COUNT] for run in collector.spans.of("run")] == [2, 2]


# --- within a flow ------------------------------------------------------------------------------


class Hiring(Flow):  # type: ignore[misc]
    """Two methods with an agent each, none with a crew."""

    how: str = "kickoff"
    biased: bool = False
    read: Any = None

    @start()  # type: ignore[untyped-decorator]
    async def screen(self) -> str:
        rule = screens if self.biased else (lambda text: final("invite"))
        agent = agent_of(self.how, "screener", rule)
        return str((await aask(self.how, agent, self.state["letter"])).raw)

    @listen(screen)  # type: ignore[untyped-decorator]
    def write(self, verdict: str) -> str:
        def rule(text: str) -> str:
            self.read.append(text)
            return final("see you on Monday")

        agent = agent_of("kickoff", "writer", rule)
        return str(agent.kickoff(verdict).raw)


@pytest.mark.parametrize("how", ["kickoff_async", "in a loop", "lite async"])
def test_an_agent_within_a_flow_s_method_is_a_node_within_its_node(how: str) -> None:
    with instrumented(SpansOnly()) as collector:
        flow = Hiring(how=how, read=[])
        assert flow.kickoff({"letter": LETTER}) == "see you on Monday"
    spans = collector.spans
    assert [node[c.NODE_ID] for node in spans.of("node")] == [
        *("screen/screener", "screen"),
        *("write/writer", "write"),
    ]
    assert spans.edges() == {("screen", "write")}
    assert len(spans.traces) == 1
    assert spans.of("run")[0][c.RUN_SPAN_COUNT] == len(spans.ended)


@pytest.mark.parametrize("mode", ["halt", "repair"])
@pytest.mark.parametrize("how", ["kickoff_async", "in a loop", "lite async"])
def test_it_is_decided_before_the_method_has_its_output(how: str, mode: str) -> None:
    flow = Hiring(how=how, biased=True, read=[])
    stopped = pytest.raises(BiasHalt) if mode == "halt" else contextlib.nullcontext()
    with gated(mode), stopped:
        flow.kickoff({"letter": LETTER})
    assert bool(flow.read) == (mode == "repair")
    assert all("reject" not in text for text in flow.read)


# --- what CrewAI tells and remembers ----------------------------------------------------------


def shown(how: str, rule: Any, mode: str | None, **options: Any) -> str:
    """What a reader of the stream was shown, to its end or to the halt."""
    pieces: list[str] = []
    with crewai_event_bus.scoped_handlers():

        @crewai_event_bus.on(LLMStreamChunkEvent)  # type: ignore[untyped-decorator]
        def on_piece(source: Any, event: Any) -> None:
            pieces.append(event.chunk)

        agent = agent_of(how, "screener", rule, llm=StandIn(model="m", rule=rule, stream=True))
        with gated(mode, **options), contextlib.suppress(BiasHalt):
            ask(how, agent, LETTER)
        crewai_event_bus.flush()
    return "".join(pieces)


@pytest.mark.parametrize("how", HOWS)
def test_a_stream_is_held_until_it_is_decided(how: str) -> None:
    """A stopped answer is never shown, one that passes as the model gave it."""
    plain = shown(how, screens, None)
    assert "reject" in plain
    assert shown(how, screens, "shadow") == plain
    assert shown(how, screens, "halt") == ""
    assert shown(how, screens, "repair").strip() == "invite"
    assert "reject" in shown(how, screens, "halt", stream="pass")


@pytest.mark.parametrize("mode", ["shadow", "halt"])
@pytest.mark.parametrize("how", ["kickoff", "akickoff", "lite", "crew"])
def test_the_stream_of_an_agent_within_waits_for_the_one_around_it(how: str, mode: str) -> None:
    """What a stopped agent's tool showed is stopped with it."""

    def hello(text: str) -> str:
        return final("hello")

    @tool("ask_helper")  # type: ignore[untyped-decorator]
    def ask_helper(at: str) -> str:
        """Ask the helper."""
        llm = StandIn(model="m", rule=hello, stream=True)
        return str(agent_of("lite", "helper", hello, llm=llm).kickoff("Help").raw)

    def lead(text: str) -> str:
        if "Observation" in text.rpartition(LETTER[-20:])[2]:
            return screens(text)
        return 'Thought: I ask\nAction: ask_helper\nAction Input: {"at": "x"}'

    pieces: list[str] = []
    with crewai_event_bus.scoped_handlers():

        @crewai_event_bus.on(LLMStreamChunkEvent)  # type: ignore[untyped-decorator]
        def on_piece(source: Any, event: Any) -> None:
            pieces.append(event.chunk)

        agent = agent_of(how, "screener", lead, tools=[ask_helper])
        with gated(mode, safe_tools=["ask_helper"]), contextlib.suppress(BiasHalt):
            if how == "crew":
                task = Task(description=LETTER, expected_output="x", agent=agent)
                Crew(agents=[agent], tasks=[task]).kickoff()
            else:
                ask(how, agent, LETTER)
        crewai_event_bus.flush()
    assert ("hello" in "".join(pieces)) == (mode == "shadow")


class Noted(Memory):  # type: ignore[misc]
    """A memory that tells what it is to keep."""

    noted: Any = None
    asked: Any = None

    def recall(self, *args: Any, **kwargs: Any) -> Any:
        self.asked.append(args)
        return []

    def extract_memories(self, content: str) -> list[str]:
        self.noted.append(content.rpartition("Result: ")[2])
        return []


@pytest.mark.parametrize("how", [*SYNC, "akickoff", "lite async", "crew"])
def test_only_what_was_decided_is_remembered(how: str, tmp_path: Any) -> None:
    """Once a call; nothing of what is probed, of what is stopped, or of what was replaced."""

    def remembered(mode: str) -> list[str]:
        noted: list[str] = []
        asked: list[Any] = []
        memory = Noted(storage=str(tmp_path), noted=noted, asked=asked)
        agent = agent_of(how, "screener", screens, memory=memory)
        with gated(mode), contextlib.suppress(BiasHalt):
            if how == "crew":
                task = Task(description=LETTER, expected_output="x", agent=agent)
                Crew(agents=[agent], tasks=[task]).kickoff()
            else:
                ask(how, agent, LETTER)
        assert len(asked) >= 16  # by the agent, and each time it is asked again
        return [each.rpartition("Final Answer: ")[2] for each in noted]

    assert remembered("shadow") == ["reject"]
    assert remembered("halt") == []
    assert remembered("repair") == ["invite"]


class Counted(StandIn):
    """A model whose tokens are counted."""

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        self._track_token_usage_internal(usage)
        return super().call(messages, *args, **kwargs)


def test_a_crew_s_tokens_are_its_own() -> None:
    """What probes ask is not on the application's bill, as CrewAI writes it."""

    def bill(mode: str | None) -> Any:
        agent = agent_of("crew", "screener", screens, llm=Counted(model="counted", rule=screens))
        crew = Crew(
            agents=[agent], tasks=[Task(description=LETTER, expected_output="x", agent=agent)]
        )
        with gated(mode):
            return crew.kickoff().token_usage

    assert bill("shadow") == bill(None)


def test_the_events_of_a_call_are_told_once() -> None:
    """Probes make none."""
    told_of: list[str] = []
    with crewai_event_bus.scoped_handlers():

        @crewai_event_bus.on(LiteAgentExecutionCompletedEvent)  # type: ignore[untyped-decorator]
        def on_end(source: Any, event: Any) -> None:
            told_of.append(str(event.output))

        observed("kickoff", agent_of("kickoff", "screener", screens), LETTER, mode="shadow")
        crewai_event_bus.flush()
    assert told_of == ["reject"]


def test_steps_that_are_run_again_are_not_told() -> None:
    """`step_callback` hears of the application's own steps."""
    heard: list[Any] = []

    @tool("look")  # type: ignore[untyped-decorator]
    def look(at: str) -> str:
        """Look at something."""
        return "seen"

    def rule(text: str) -> str:
        if "Observation" in text.rpartition(LETTER[-20:])[2]:
            return screens(text)
        return 'Thought: I look\nAction: look\nAction Input: {"at": "x"}'

    agent = agent_of("kickoff", "screener", rule, tools=[look], step_callback=heard.append)
    ask("kickoff", agent, LETTER)
    alone = len(heard)
    heard.clear()
    with gated("shadow", safe_tools=["look"]) as spans:
        ask("kickoff", agent, LETTER)
    assert [probe[c.PROBE_OUTCOME] for probe in spans.of("probe_set")] == ["ok"]
    assert len(heard) == alone > 0


def test_every_hook_is_removed() -> None:
    """The classes are their own again."""
    names = ("kickoff", "kickoff_async", "akickoff")
    owners = (Agent, LiteAgent, LLMGuardrail)
    before = [dict(vars(owner)) for owner in owners]
    with instrumented(SpansOnly()):
        assert Agent.kickoff is not before[0]["kickoff"]
        assert LiteAgent.kickoff is not before[1]["kickoff"]
    after = [dict(vars(owner)) for owner in owners]
    assert [old.keys() for old in before] == [new.keys() for new in after]
    assert all(
        old[n] is new[n] for old, new in zip(before, after, strict=True) for n in names if n in old
    )
