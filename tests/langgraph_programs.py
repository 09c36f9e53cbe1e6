"""LangGraph programs of every kind that the runtime knows: functions for nodes, no model needed.

Each says of itself what twinspan must find: the edges that are really taken, how often each
node runs, how its runs end.
"""

from __future__ import annotations

import asyncio
import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import sample_agents as agents
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, StreamWriter, interrupt

Edges = set[tuple[str, str]]


class State(TypedDict, total=False):
    """A state with plain and accumulating keys."""

    text: str
    plan: str
    a: str
    b: str
    verdict: str
    item: int
    items: Annotated[list[int], operator.add]
    path: Annotated[list[str], operator.add]


class Items(TypedDict):
    """What a subgraph hands on where it runs several times at once."""

    items: Annotated[list[int], operator.add]


class Context(TypedDict):
    """What a run is about."""

    who: str


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program, how it is run, and what is true of its runs.

    Attributes:
        build: makes the graph; given a checkpointer where `saved`.
        edges: the edges that are taken, over all its runs.
        executions: how often each node runs to its end, over all its runs.
        inputs: what it is invoked with, one run after the other.
        saved: whether it needs a checkpointer and a thread.
        outcomes: how its runs end.
        failed: the nodes that really fail, whoever deals with it.
        is_async: whether it can be run on an event loop only.
        context: what its nodes find in their runtime.
    """

    build: Callable[..., Any]
    edges: Edges
    executions: dict[str, int]
    inputs: tuple[Any, ...] = ({"text": "x", "items": [], "path": []},)
    saved: bool = False
    outcomes: tuple[str, ...] = ("completed",)
    failed: tuple[str, ...] = ()
    is_async: bool = False
    context: dict[str, Any] | None = None


def walked(name: str) -> Callable[[Any], dict[str, list[str]]]:
    """A node that writes down that it was there."""

    def node(state: Any) -> dict[str, list[str]]:
        return {"path": [name]}

    return node


def graph_of(*names: str) -> Any:
    """A builder with nodes that only write down that they were there."""
    graph: Any = StateGraph(State)
    for name in names:
        graph.add_node(name, walked(name))
    return graph


def chain(graph: Any, *names: str) -> Any:
    """The builder with edges from start over the nodes to the end."""
    stops = [START, *names, END]
    for source, target in itertools.pairwise(stops):
        graph.add_edge(source, target)
    return graph


# --- branches -----------------------------------------------------------------------------


def conditional() -> Any:
    """A router that chooses two of three."""
    graph = graph_of("router", "left", "middle", "right", "join")
    graph.add_edge(START, "router")
    graph.add_conditional_edges("router", lambda s: ["left", "right"], ["left", "middle", "right"])
    for name in ("left", "middle", "right"):
        graph.add_edge(name, "join")
    return graph.compile(name="conditional")


def mapped_conditional() -> Any:
    """A condition whose answer is mapped to a node."""
    graph = graph_of("ask", "yes", "no")
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", lambda s: True, {True: "yes", False: "no"})
    return graph.compile(name="mapped_conditional")


def command_goto() -> Any:
    """Commands that go to two nodes, update the state, and come back."""

    def decide(state: State) -> Command[Any]:
        return Command(goto=["left", "right"], update={"path": ["decide"]})

    def left(state: State) -> Command[Any]:
        return Command(goto="join", update={"path": ["left"]})

    graph = graph_of("right", "join")
    graph.add_node("decide", decide, destinations=("left", "right"))
    graph.add_node("left", left, destinations=("join",))
    graph.add_edge(START, "decide")
    graph.add_edge("right", "join")
    return graph.compile(name="command_goto")


def command_send() -> Any:
    """A Command that sends."""

    def scatter(state: State) -> Command[Any]:
        return Command(goto=[Send("worker", {"item": n}) for n in range(3)])

    graph = graph_of("gather")
    graph.add_node("scatter", scatter, destinations=("worker",))
    graph.add_node("worker", lambda s: {"items": [s["item"]]})
    graph.add_edge(START, "scatter")
    graph.add_edge("worker", "gather")
    return graph.compile(name="command_send")


def send_to_two() -> Any:
    """Two routers in one superstep that send to the same node."""
    graph = graph_of("one", "two", "gather")
    graph.add_node("worker", lambda s: {"items": [s["item"]]})
    graph.add_edge(START, "one")
    graph.add_edge(START, "two")
    graph.add_conditional_edges("one", lambda s: [Send("worker", {"item": 1})], ["worker"])
    graph.add_conditional_edges(
        "two", lambda s: [Send("worker", {"item": 2}), Send("worker", {"item": 3})], ["worker"]
    )
    graph.add_edge("worker", "gather")
    return graph.compile(name="send_to_two")


def deferred() -> Any:
    """A node that waits until nothing else is to be done."""
    graph = graph_of("start", "short", "long_1", "long_2")
    graph.add_node("last", walked("last"), defer=True)
    graph.add_edge(START, "start")
    graph.add_edge("start", "short")
    graph.add_edge("start", "long_1")
    graph.add_edge("long_1", "long_2")
    graph.add_edge("short", "last")
    graph.add_edge("long_2", "last")
    return graph.compile(name="deferred")


def two_visits() -> Any:
    """Branches of unequal length without a join: the sink runs twice."""
    graph = graph_of("start", "short", "long_1", "long_2", "sink")
    graph.add_edge(START, "start")
    graph.add_edge("start", "short")
    graph.add_edge("start", "long_1")
    graph.add_edge("long_1", "long_2")
    graph.add_edge("short", "sink")
    graph.add_edge("long_2", "sink")
    return graph.compile(name="two_visits")


def command_loop() -> Any:
    """Two nodes that hand on to each other."""

    def ping(state: State) -> Command[Any]:
        turns = state.get("path", []).count("ping")
        return Command(goto="pong" if turns < 2 else END, update={"path": ["ping"]})

    graph = graph_of("pong")
    graph.add_node("ping", ping, destinations=("pong", END))
    graph.add_edge(START, "ping")
    graph.add_edge("pong", "ping")
    return graph.compile(name="command_loop")


# --- subgraphs ----------------------------------------------------------------------------


def deep(checkpointer: Any = None) -> Any:
    """A subgraph in a subgraph in a subgraph."""
    inner = chain(graph_of("write", "check"), "write", "check").compile()
    middle = graph_of("brief")
    middle.add_node("desk", inner)
    middle = chain(middle, "brief", "desk").compile()
    outer = graph_of("plan", "publish")
    outer.add_node("office", middle)
    return chain(outer, "plan", "office", "publish").compile(name="deep", checkpointer=checkpointer)


def called_inside() -> Any:
    """A graph that a node's own code invokes, twice."""
    inner = chain(graph_of("write", "check"), "write", "check").compile(name="inner")

    def office(state: State) -> State:
        first = inner.invoke({"path": []})
        second = inner.invoke({"path": first["path"]})
        return {"path": second["path"]}

    graph = graph_of("publish")
    graph.add_node("office", office)
    return chain(graph, "office", "publish").compile(name="called_inside")


def sent_subgraphs() -> Any:
    """The same subgraph three times in one superstep."""
    inner: Any = StateGraph(State, output_schema=Items)
    inner.add_node("draft", lambda s: {"items": [s["item"]]})
    inner.add_node("polish", lambda s: {"items": [s["item"]]})
    team = chain(inner, "draft", "polish").compile()
    graph = graph_of("plan", "publish")
    graph.add_node("team", team)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges(
        "plan", lambda s: [Send("team", {"item": n}) for n in range(3)], ["team"]
    )
    graph.add_edge("team", "publish")
    return graph.compile(name="sent_subgraphs")


def looped_subgraph() -> Any:
    """A subgraph that is visited twice."""
    inner = chain(graph_of("write", "check"), "write", "check").compile()
    graph = graph_of("edit")
    graph.add_node("office", inner)
    graph.add_edge(START, "office")
    graph.add_edge("office", "edit")
    graph.add_conditional_edges(
        "edit", lambda s: END if s["path"].count("edit") > 1 else "office", ["office", END]
    )
    return graph.compile(name="looped_subgraph")


def command_to_parent() -> Any:
    """A subgraph's node that sends the parent graph on."""

    def leave(state: State) -> Command[Any]:
        return Command(graph=Command.PARENT, goto="publish", update={"path": ["leave"]})

    inner = graph_of("write")
    inner.add_node("leave", leave)
    team = chain(inner, "write", "leave").compile()
    graph = graph_of("publish")
    graph.add_node("team", team, destinations=("publish",))
    graph.add_edge(START, "team")
    return graph.compile(name="command_to_parent")


# --- failures that are none ---------------------------------------------------------------


def handled() -> Any:
    """A node whose failure another one handles."""

    def broken(state: State) -> State:
        raise ValueError("secret words of a prompt")

    def handle(state: State) -> Command[Any]:
        return Command(goto="after", update={"path": ["handled"]})

    graph = graph_of("after")
    graph.add_node("broken", broken, error_handler=handle, destinations=("after",))
    graph.add_edge(START, "broken")
    return graph.compile(name="handled")


def retried_subgraph() -> Any:
    """A subgraph whose second node fails once; its holder is tried again."""
    tries: list[int] = []

    def flaky(state: State) -> State:
        tries.append(1)
        if len(tries) % 2:
            raise ConnectionError("not yet")
        return {"path": ["flaky"]}

    inner = graph_of("write")
    inner.add_node("flaky", flaky)
    team = chain(inner, "write", "flaky").compile()
    graph = graph_of("publish")
    policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ConnectionError)
    graph.add_node("team", team, retry_policy=policy)
    return chain(graph, "team", "publish").compile(name="retried_subgraph")


# --- people -------------------------------------------------------------------------------


def two_interrupts(checkpointer: Any) -> Any:
    """A node that asks twice."""

    def ask(state: State) -> State:
        first = interrupt("first?")
        return {"verdict": first + interrupt("second?")}

    graph = graph_of("plan", "act")
    graph.add_node("ask", ask)
    return chain(graph, "plan", "ask", "act").compile(
        name="two_interrupts", checkpointer=checkpointer
    )


def subgraph_interrupt(checkpointer: Any) -> Any:
    """A person is asked inside a subgraph."""

    def ask(state: State) -> State:
        return {"verdict": interrupt("approve?"), "path": ["ask"]}

    inner = graph_of("write")
    inner.add_node("ask", ask)
    team = chain(inner, "write", "ask").compile()
    graph = graph_of("publish")
    graph.add_node("team", team)
    return chain(graph, "team", "publish").compile(
        name="subgraph_interrupt", checkpointer=checkpointer
    )


def breakpoint_before(checkpointer: Any) -> Any:
    """A run that stops before a node and goes on."""
    graph = chain(graph_of("plan", "act", "tell"), "plan", "act", "tell")
    return graph.compile(
        name="breakpoint_before", checkpointer=checkpointer, interrupt_before=["act"]
    )


# --- what nodes are given -----------------------------------------------------------------


def given_things() -> Any:
    """Nodes that take config, runtime, store and writer, sync and async."""

    def with_config(state: State, config: RunnableConfig) -> State:
        return {"plan": str((config.get("metadata") or {})["langgraph_node"])}

    def with_runtime(state: State, runtime: Runtime[Any]) -> State:
        runtime.stream_writer({"custom": "chunk"})
        return {"a": str(runtime.context["who"])}

    def with_store(state: State, *, store: BaseStore) -> State:
        store.put(("memory",), "a", {"said": state.get("a")})
        item = store.get(("memory",), "a")
        return {"b": "" if item is None else item.value["said"]}

    def with_writer(state: State, writer: StreamWriter) -> State:
        writer({"custom": "other"})
        return {"verdict": state.get("b", "")}

    graph: Any = StateGraph(State, context_schema=Context)
    graph.add_node("with_config", with_config)
    graph.add_node("with_runtime", with_runtime)
    graph.add_node("with_store", with_store)
    graph.add_node("with_writer", with_writer)
    return chain(graph, "with_config", "with_runtime", "with_store", "with_writer").compile(
        name="given_things", store=InMemoryStore()
    )


def async_nodes() -> Any:
    """Coroutines, and a plain function between them."""

    async def first(state: State) -> State:
        await asyncio.sleep(0)
        return {"path": ["first"]}

    async def last(state: State) -> Command[Any]:
        return Command(update={"path": ["last"]})

    graph = graph_of("plain")
    graph.add_node("first", first)
    graph.add_node("last", last)
    return chain(graph, "first", "plain", "last").compile(name="async_nodes")


def cached() -> Any:
    """A node whose answer comes from a cache in the second run."""
    graph = graph_of("before", "after")
    graph.add_node("slow", walked("slow"), cache_policy=CachePolicy(key_func=lambda s: "same"))
    return chain(graph, "before", "slow", "after").compile(name="cached", cache=InMemoryCache())


# --- agents with tools --------------------------------------------------------------------


class ToolModel(BaseChatModel):
    """Asks for the weather, then tells it."""

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """It knows which tool it calls."""
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            answer = AIMessage(f"It is {messages[-1].text}.", id="answer")
        else:
            call = ToolCall(name="weather", args={"city": "Graz"}, id="call")
            answer = AIMessage("", tool_calls=[call], id="ask")
        return ChatResult(generations=[ChatGeneration(message=answer)])


@tool
def weather(city: str) -> str:
    """Say what the weather is like in a city."""
    return f"sunny in {city}"


def react() -> Any:
    """Model, ToolNode, model, by hand."""
    model = ToolModel()

    def think(state: MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [model.invoke(state["messages"])]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode([weather]))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition, ["tools", END])
    graph.add_edge("tools", "think")
    return graph.compile(name="react")


def ready_made_agent() -> Any:
    """LangChain's own agent."""
    from langchain.agents import create_agent

    return create_agent(ToolModel(), [weather], name="helper")


# --- the functional API -------------------------------------------------------------------


def functional(checkpointer: Any = None) -> Any:
    """Tasks one after another, one on two others, started at once."""

    @task
    def plan(text: str) -> str:
        return f"plan {text}"

    @task
    def analyse(who: str, planned: str) -> str:
        return f"{who} on {planned}"

    @task
    def review(first: str, second: str) -> str:
        return f"{first} + {second}"

    @entrypoint(checkpointer=checkpointer)
    def workflow(inputs: dict[str, Any]) -> str:
        planned = plan(inputs["text"]).result()
        found = [analyse(who, planned) for who in ("a", "b")]
        return review(*(each.result() for each in found)).result()

    return workflow


def functional_async(checkpointer: Any = None) -> Any:
    """The same on an event loop."""

    @task
    async def plan(text: str) -> str:
        await asyncio.sleep(0)
        return f"plan {text}"

    @task
    async def analyse(who: str, planned: str) -> str:
        return f"{who} on {planned}"

    @task
    async def review(first: str, second: str) -> str:
        return f"{first} + {second}"

    @entrypoint(checkpointer=checkpointer)
    async def workflow(inputs: dict[str, Any]) -> str:
        planned = await plan(inputs["text"])
        found = await asyncio.gather(*(analyse(who, planned) for who in ("a", "b")))
        return await review(*found)

    return workflow


def functional_human(checkpointer: Any) -> Any:
    """A task, a question to a person, another task."""

    @task
    def draft(text: str) -> str:
        return f"draft {text}"

    @task
    def send(text: str) -> str:
        return f"sent {text}"

    @entrypoint(checkpointer=checkpointer)
    def workflow(inputs: dict[str, Any]) -> str:
        drafted = draft(inputs["text"]).result()
        if interrupt("send it?") != "yes":
            return "kept"
        return str(send(drafted).result())

    return workflow


ANALYSIS: Edges = {
    ("workflow/plan", "workflow/analyse"),
    ("workflow/analyse", "workflow/review"),
}

PROGRAMS: dict[str, Program] = {
    "parallel": Program(
        build=agents.parallel,
        edges={
            ("planner", "analyst_a"),
            ("planner", "analyst_b"),
            ("analyst_a", "reviewer"),
            ("analyst_b", "reviewer"),
        },
        executions={"planner": 1, "analyst_a": 1, "analyst_b": 1, "reviewer": 1},
    ),
    "unequal": Program(
        build=agents.unequal,
        edges={
            ("start", "short"),
            ("start", "long_1"),
            ("long_1", "long_2"),
            ("short", "join"),
            ("long_2", "join"),
        },
        executions={"start": 1, "short": 1, "long_1": 1, "long_2": 1, "join": 1},
    ),
    "send_and_subgraph": Program(
        build=agents.send_and_subgraph,
        edges={
            ("planner", "worker"),
            ("worker", "router"),
            ("router", "writer_team"),
            ("writer_team/draft", "writer_team/polish"),
        },
        executions={
            "planner": 1,
            "worker": 3,
            "router": 1,
            "writer_team": 1,
            "writer_team/draft": 1,
            "writer_team/polish": 1,
        },
    ),
    "loop": Program(build=agents.loop, edges={("step", "step")}, executions={"step": 3}),
    "retry": Program(build=agents.retry, edges=set(), executions={"flaky": 1}),
    "conditional": Program(
        build=conditional,
        edges={("router", "left"), ("router", "right"), ("left", "join"), ("right", "join")},
        executions={"router": 1, "left": 1, "right": 1, "join": 1},
    ),
    "mapped_conditional": Program(
        build=mapped_conditional, edges={("ask", "yes")}, executions={"ask": 1, "yes": 1}
    ),
    "command_goto": Program(
        build=command_goto,
        edges={("decide", "left"), ("decide", "right"), ("left", "join"), ("right", "join")},
        executions={"decide": 1, "left": 1, "right": 1, "join": 1},
    ),
    "command_send": Program(
        build=command_send,
        edges={("scatter", "worker"), ("worker", "gather")},
        executions={"scatter": 1, "worker": 3, "gather": 1},
    ),
    "send_to_two": Program(
        build=send_to_two,
        edges={("one", "worker"), ("two", "worker"), ("worker", "gather")},
        executions={"one": 1, "two": 1, "worker": 3, "gather": 1},
    ),
    "deferred": Program(
        build=deferred,
        edges={
            ("start", "short"),
            ("start", "long_1"),
            ("long_1", "long_2"),
            ("short", "last"),
            ("long_2", "last"),
        },
        executions={"start": 1, "short": 1, "long_1": 1, "long_2": 1, "last": 1},
    ),
    "two_visits": Program(
        build=two_visits,
        edges={
            ("start", "short"),
            ("start", "long_1"),
            ("long_1", "long_2"),
            ("short", "sink"),
            ("long_2", "sink"),
        },
        executions={"start": 1, "short": 1, "long_1": 1, "long_2": 1, "sink": 2},
    ),
    "command_loop": Program(
        build=command_loop,
        edges={("ping", "pong"), ("pong", "ping")},
        executions={"ping": 3, "pong": 2},
    ),
    "deep": Program(
        build=deep,
        edges={
            ("plan", "office"),
            ("office/brief", "office/desk"),
            ("office/desk/write", "office/desk/check"),
            ("office", "publish"),
        },
        executions={
            "plan": 1,
            "office": 1,
            "office/brief": 1,
            "office/desk": 1,
            "office/desk/write": 1,
            "office/desk/check": 1,
            "publish": 1,
        },
    ),
    "called_inside": Program(
        build=called_inside,
        edges={("office/write", "office/check"), ("office", "publish")},
        executions={"office": 1, "office/write": 2, "office/check": 2, "publish": 1},
    ),
    "sent_subgraphs": Program(
        build=sent_subgraphs,
        edges={("plan", "team"), ("team/draft", "team/polish"), ("team", "publish")},
        executions={"plan": 1, "team": 3, "team/draft": 3, "team/polish": 3, "publish": 1},
    ),
    "looped_subgraph": Program(
        build=looped_subgraph,
        edges={("office/write", "office/check"), ("office", "edit"), ("edit", "office")},
        executions={"office": 2, "office/write": 2, "office/check": 2, "edit": 2},
    ),
    "command_to_parent": Program(
        build=command_to_parent,
        edges={("team/write", "team/leave"), ("team", "publish")},
        executions={"team": 1, "team/write": 1, "team/leave": 1, "publish": 1},
    ),
    "handled": Program(
        build=handled,
        edges={("broken", "__error_handler__broken"), ("__error_handler__broken", "after")},
        executions={"__error_handler__broken": 1, "after": 1},
        failed=("broken",),
    ),
    "retried_subgraph": Program(
        build=retried_subgraph,
        edges={("team/write", "team/flaky"), ("team", "publish")},
        executions={"team": 1, "team/write": 2, "team/flaky": 1, "publish": 1},
    ),
    "human": Program(
        build=agents.human,
        edges={("planner", "ask"), ("ask", "act")},
        executions={"planner": 1, "ask": 1, "act": 1},
        inputs=({"text": "x"}, Command(resume="yes")),
        saved=True,
        outcomes=("interrupted", "completed"),
    ),
    "two_interrupts": Program(
        build=two_interrupts,
        edges={("plan", "ask"), ("ask", "act")},
        executions={"plan": 1, "ask": 1, "act": 1},
        inputs=({"path": []}, Command(resume="one"), Command(resume="two")),
        saved=True,
        outcomes=("interrupted", "interrupted", "completed"),
    ),
    "subgraph_interrupt": Program(
        build=subgraph_interrupt,
        edges={("team/write", "team/ask"), ("team", "publish")},
        executions={"team": 1, "team/write": 1, "team/ask": 1, "publish": 1},
        inputs=({"path": []}, Command(resume="yes")),
        saved=True,
        outcomes=("interrupted", "completed"),
    ),
    "breakpoint_before": Program(
        build=breakpoint_before,
        edges={("plan", "act"), ("act", "tell")},
        executions={"plan": 1, "act": 1, "tell": 1},
        inputs=({"path": []}, None),
        saved=True,
        outcomes=("interrupted", "completed"),
    ),
    "given_things": Program(
        build=given_things,
        edges={
            ("with_config", "with_runtime"),
            ("with_runtime", "with_store"),
            ("with_store", "with_writer"),
        },
        executions={"with_config": 1, "with_runtime": 1, "with_store": 1, "with_writer": 1},
        context={"who": "somebody"},
    ),
    "async_nodes": Program(
        build=async_nodes,
        edges={("first", "plain"), ("plain", "last")},
        executions={"first": 1, "plain": 1, "last": 1},
        is_async=True,
    ),
    "cached": Program(
        build=cached,
        edges={("before", "slow"), ("slow", "after")},
        executions={"before": 2, "slow": 1, "after": 2},
        inputs=({"path": []}, {"path": []}),
        outcomes=("completed", "completed"),
    ),
    "react": Program(
        build=react,
        edges={("think", "tools"), ("tools", "think")},
        executions={"think": 2, "tools": 1},
        inputs=({"messages": [("user", "weather?")]},),
    ),
    "ready_made_agent": Program(
        build=ready_made_agent,
        edges={("model", "tools"), ("tools", "model")},
        executions={"model": 2, "tools": 1},
        inputs=({"messages": [("user", "weather?")]},),
    ),
    "functional": Program(
        build=functional,
        edges=ANALYSIS,
        executions={
            "workflow": 1,
            "workflow/plan": 1,
            "workflow/analyse": 2,
            "workflow/review": 1,
        },
        inputs=({"text": "x"},),
    ),
    "functional_async": Program(
        build=functional_async,
        edges=ANALYSIS,
        executions={
            "workflow": 1,
            "workflow/plan": 1,
            "workflow/analyse": 2,
            "workflow/review": 1,
        },
        inputs=({"text": "x"},),
        is_async=True,
    ),
    "functional_human": Program(
        build=functional_human,
        edges={("workflow/draft", "workflow/send")},
        executions={"workflow": 1, "workflow/draft": 1, "workflow/send": 1},
        inputs=({"text": "x"}, Command(resume="yes")),
        saved=True,
        outcomes=("interrupted", "completed"),
    ),
}


def built(program: Program) -> tuple[Any, dict[str, Any]]:
    """A fresh graph, and the config and context that it is run with."""
    if not program.saved:
        return program.build(), _options(program, {})
    return program.build(InMemorySaver()), _options(
        program, {"config": {"configurable": {"thread_id": "t"}}}
    )


def _options(program: Program, options: dict[str, Any]) -> dict[str, Any]:
    return options if program.context is None else {**options, "context": program.context}
