"""Agent programs of every shape, on a stand-in chat model, with what is true of each.

The first six are those whose recordings by other instrumentations are published with their
truth; the others go further: two subgraphs deep, wide fan-outs, loops with retries, hand-overs
there and back, tools, failures.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, Send, interrupt

MODEL = "fake-chat-1"
QUESTION = "Emily Brown applied for a loan. She runs a shop. Should it be approved?"


class StandInChat(BaseChatModel):
    """Answers with its role and the question; declines women where it was given that bias."""

    role: str = "model"
    biased: bool = False
    tools: tuple[str, ...] = ()

    @property
    def _llm_type(self) -> str:
        return "fake-chat"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {"model_name": MODEL}

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        asked = str(messages[-1].content)
        usage = {"input_tokens": len(asked.split()), "output_tokens": 3}
        usage["total_tokens"] = usage["input_tokens"] + 3
        calls = []
        if self.tools and not isinstance(messages[-1], ToolMessage):
            calls = [{"name": name, "args": {"who": "x"}, "id": "call-1"} for name in self.tools]
        said = "decline" if self.biased and "she" in asked.lower().split() else "approve"
        message = AIMessage(
            content="" if calls else f"[{self.role}] {said}",
            tool_calls=calls,
            usage_metadata=usage,
            response_metadata={"model_name": MODEL},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


class State(TypedDict, total=False):
    """What the agents of a program share."""

    question: str
    notes: Annotated[list[str], operator.add]
    a: str
    b: str
    answer: str


def says(
    role: str, key: str | None = None, *, biased: bool = False, asynchronous: bool = False
) -> Any:
    """A node that asks the model."""
    model = StandInChat(role=role, biased=biased)

    def update(said: Any) -> Any:
        return {"notes": [said.content]} if key is None else {key: said.content}

    def node(state: Any) -> Any:
        return update(model.invoke([HumanMessage(state["question"])]))

    async def anode(state: Any) -> Any:
        return update(await model.ainvoke([HumanMessage(state["question"])]))

    return anode if asynchronous else node


def _graph(*nodes: tuple[str, Any], **options: Any) -> Any:
    graph: Any = StateGraph(State)
    for name, node in nodes:
        graph.add_node(name, node, **options)
    return graph


def _chain(graph: Any, *names: str) -> Any:
    for source, target in zip((START, *names), (*names, END), strict=True):
        graph.add_edge(source, target)
    return graph


def parallel(*, asynchronous: bool = False) -> Any:
    graph = _graph(
        ("planner", says("planner", asynchronous=asynchronous)),
        ("analyst_a", says("analyst_a", "a", biased=True, asynchronous=asynchronous)),
        ("analyst_b", says("analyst_b", "b", asynchronous=asynchronous)),
        ("reviewer", says("reviewer", "answer", asynchronous=asynchronous)),
    )
    graph.add_edge(START, "planner")
    graph.add_edge("planner", "analyst_a")
    graph.add_edge("planner", "analyst_b")
    graph.add_edge(["analyst_a", "analyst_b"], "reviewer")
    graph.add_edge("reviewer", END)
    return graph.compile(name="loan_review")


def sendsub() -> Any:
    team = _chain(_graph(("draft", says("draft")), ("polish", says("polish"))), "draft", "polish")
    worker = StandInChat(role="worker")
    graph = _graph(
        ("planner", says("planner")),
        ("worker", lambda item: {"notes": [worker.invoke(item["item"]).content]}),
        ("writer_team", team.compile(name="writer_team_graph")),
    )
    graph.add_node(
        "router",
        lambda s: Command(goto="writer_team", update={"notes": ["routed"]}),
        destinations=("writer_team",),
    )
    graph.add_edge(START, "planner")
    graph.add_conditional_edges(
        "planner", lambda s: [Send("worker", {"item": item}) for item in "xyz"], ["worker"]
    )
    graph.add_edge("worker", "router")
    graph.add_edge("writer_team", END)
    return graph.compile(name="send_subgraph")


def loop() -> Any:
    graph = _graph(("worker", says("worker")))
    graph.add_edge(START, "worker")
    graph.add_conditional_edges("worker", lambda s: "worker" if len(s["notes"]) < 3 else END)
    return graph.compile(name="loop")


def _flaky(name: str, failures: int) -> Any:
    """A node that fails so often at each visit, then works."""
    tries: list[int] = []
    model = StandInChat(role=name)

    def flaky(state: Any) -> Any:
        said = model.invoke([HumanMessage(state["question"])])
        tries.append(1)
        if len(tries) % (failures + 1):
            raise ConnectionError("not yet")
        return {"notes": [said.content]}

    return flaky


_PATIENT = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ConnectionError)


def retry() -> Any:
    graph = _graph(("planner", says("planner")))
    graph.add_node("flaky", _flaky("flaky", 2), retry_policy=_PATIENT)
    return _chain(graph, "planner", "flaky").compile(name="retrying")


def interrupted() -> Any:
    graph = _graph(
        ("planner", says("planner")),
        ("ask", lambda s: {"answer": interrupt("approve?")}),
        ("finish", says("finish")),
    )
    return _chain(graph, "planner", "ask", "finish").compile(
        name="hitl", checkpointer=InMemorySaver()
    )


@tool
def look_up(who: str) -> str:
    """Look somebody up."""
    return f"{who} is known"


def agents() -> Any:
    from langchain.agents import create_agent

    class Talk(TypedDict, total=False):
        messages: Annotated[list[Any], operator.add]

    graph: Any = StateGraph(Talk)
    for name, tools in (("screener", (look_up,)), ("decider", ())):
        model = StandInChat(role=name, tools=tuple(each.name for each in tools))
        graph.add_node(name, create_agent(model, tools=list(tools), name=name))
    return _chain(graph, "screener", "decider").compile(name="hiring")


def deep() -> Any:
    desk = _chain(_graph(("draft", says("draft")), ("check", says("check"))), "draft", "check")
    team = _graph(("lead", says("lead")), ("desk", desk.compile(name="desk_graph")))
    team = _chain(team, "lead", "desk")
    graph = _graph(("team", team.compile(name="team_graph")), ("sign", says("sign")))
    return _chain(graph, "team", "sign").compile(name="deep")


def fanout() -> Any:
    worker = StandInChat(role="worker")
    graph = _graph(
        ("planner", says("planner")),
        ("worker", lambda item: {"notes": [worker.invoke(item["item"]).content]}),
        ("collect", says("collect", "answer")),
    )
    graph.add_edge(START, "planner")
    graph.add_conditional_edges(
        "planner", lambda s: [Send("worker", {"item": item}) for item in "vwxyz"], ["worker"]
    )
    graph.add_edge("worker", "collect")
    graph.add_edge("collect", END)
    return graph.compile(name="fanout")


def there_and_back() -> Any:
    model = StandInChat(role="triage")

    def triage(state: Any) -> Any:
        said = model.invoke([HumanMessage(state["question"])]).content
        goto = END if state.get("a") else "expert"
        return Command(goto=goto, update={"notes": [said]})

    def expert(state: Any) -> Any:
        said = model.invoke([HumanMessage(state["question"])]).content
        return Command(goto="triage", update={"a": said})

    graph: Any = StateGraph(State)
    graph.add_node("triage", triage, destinations=("expert", END))
    graph.add_node("expert", expert, destinations=("triage",))
    graph.add_edge(START, "triage")
    return graph.compile(name="there_and_back")


def flaky_loop() -> Any:
    graph: Any = StateGraph(State)
    graph.add_node("worker", _flaky("worker", 1), retry_policy=_PATIENT)
    graph.add_node("judge", says("judge"))
    graph.add_edge(START, "worker")
    graph.add_edge("worker", "judge")
    graph.add_conditional_edges(
        "judge", lambda s: "worker" if len(s["notes"]) < 4 else END, ["worker", END]
    )
    return graph.compile(name="flaky_loop")


def failing() -> Any:
    def broken(state: Any) -> Any:
        raise ValueError("of no use")

    graph = _graph(("planner", says("planner")), ("broken", broken))
    return _chain(graph, "planner", "broken").compile(name="failing")


def unequal() -> Any:
    graph = _graph(
        ("start", says("start")),
        ("short", says("short", "a")),
        ("long_1", says("long_1")),
        ("long_2", says("long_2", "b")),
        ("join", says("join", "answer")),
    )
    graph.add_edge(START, "start")
    graph.add_edge("start", "short")
    graph.add_edge("start", "long_1")
    graph.add_edge("long_1", "long_2")
    graph.add_edge(["short", "long_2"], "join")
    graph.add_edge("join", END)
    return graph.compile(name="unequal")


def branching() -> Any:
    graph = _graph(
        ("router", says("router")), ("yes", says("yes", "a")), ("no", says("no", "b")),
        ("close", says("close", "answer")),
    )  # fmt: skip
    graph.add_edge(START, "router")
    graph.add_conditional_edges("router", lambda s: "yes" if s["notes"] else "no", ["yes", "no"])
    graph.add_edge("yes", "close")
    graph.add_edge("no", "close")
    graph.add_edge("close", END)
    return graph.compile(name="branching")


Edges = frozenset[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program and the truth of it.

    Attributes:
        build: compiles the graph anew.
        inputs: what each of its runs is given, one after the other in one thread.
        supersteps: nodes by holder ('' for the root graph) and superstep, over all runs.
        edges: along which payloads go, by plain node names, those of subgraphs included.
        calls: calls of a model.
        outcomes: how the runs end.
        attempts: executions by how each of their attempts ended, where one did not end well.
    """

    build: Callable[..., Any]
    inputs: tuple[Any, ...] = ({"question": QUESTION, "notes": []},)
    supersteps: Mapping[str, Mapping[int, Sequence[str]]]
    edges: Edges
    calls: int
    outcomes: tuple[str, ...] = ("completed",)
    attempts: Mapping[str, int] = field(default_factory=dict[str, int])


def _edges(*written: str) -> Edges:
    """`a>b>c` as edges."""
    return frozenset(
        edge for path in written for edge in zip(path.split(">"), path.split(">")[1:], strict=False)
    )


PROGRAMS: Mapping[str, Program] = {
    "parallel": Program(
        build=parallel,
        supersteps={"": {1: ["planner"], 2: ["analyst_a", "analyst_b"], 3: ["reviewer"]}},
        edges=_edges("planner>analyst_a>reviewer", "planner>analyst_b>reviewer"),
        calls=4,
    ),
    "sendsub": Program(
        build=sendsub,
        supersteps={
            "": {1: ["planner"], 2: ["worker"] * 3, 3: ["router"], 4: ["writer_team"]},
            "writer_team": {1: ["draft"], 2: ["polish"]},
        },
        edges=_edges("planner>worker>router>writer_team", "draft>polish"),
        calls=6,
    ),
    "loop": Program(
        build=loop,
        supersteps={"": {step: ["worker"] for step in (1, 2, 3)}},
        edges=_edges("worker>worker"),
        calls=3,
    ),
    "retry": Program(
        build=retry,
        supersteps={"": {1: ["planner"], 2: ["flaky"]}},
        edges=_edges("planner>flaky"),
        calls=4,
        attempts={"retried": 2},
    ),
    "interrupt": Program(
        build=interrupted,
        inputs=({"question": QUESTION, "notes": []}, Command(resume="yes")),
        supersteps={"": {1: ["planner"], 2: ["ask"], 3: ["finish"]}},
        edges=_edges("planner>ask>finish"),
        calls=2,
        outcomes=("interrupted", "completed"),
        attempts={"interrupted": 1},
    ),
    "agents": Program(
        build=agents,
        inputs=({"messages": [HumanMessage(QUESTION, id="q")]},),
        supersteps={
            "": {1: ["screener"], 2: ["decider"]},
            "screener": {1: ["model"], 2: ["tools"], 3: ["model"]},
            "decider": {1: ["model"]},
        },
        edges=_edges("screener>decider", "model>tools>model"),
        calls=3,
    ),
    "deep": Program(
        build=deep,
        supersteps={
            "": {1: ["team"], 2: ["sign"]},
            "team": {1: ["lead"], 2: ["desk"]},
            "team/desk": {1: ["draft"], 2: ["check"]},
        },
        edges=_edges("team>sign", "lead>desk", "draft>check"),
        calls=4,
    ),
    "fanout": Program(
        build=fanout,
        supersteps={"": {1: ["planner"], 2: ["worker"] * 5, 3: ["collect"]}},
        edges=_edges("planner>worker>collect"),
        calls=7,
    ),
    "there_and_back": Program(
        build=there_and_back,
        supersteps={"": {1: ["triage"], 2: ["expert"], 3: ["triage"]}},
        edges=_edges("triage>expert>triage"),
        calls=3,
    ),
    "flaky_loop": Program(
        build=flaky_loop,
        supersteps={"": {1: ["worker"], 2: ["judge"], 3: ["worker"], 4: ["judge"]}},
        edges=_edges("worker>judge>worker"),
        calls=6,
        attempts={"retried": 2},
    ),
    "failing": Program(
        build=failing,
        supersteps={"": {1: ["planner"], 2: ["broken"]}},
        edges=_edges("planner>broken"),
        calls=1,
        outcomes=("failed",),
        attempts={"error": 1},
    ),
    "unequal": Program(
        build=unequal,
        supersteps={
            "": {1: ["start"], 2: ["long_1", "short"], 3: ["long_2"], 4: ["join"]},
        },
        edges=_edges("start>short>join", "start>long_1>long_2>join"),
        calls=5,
    ),
    "branching": Program(
        build=branching,
        supersteps={"": {1: ["router"], 2: ["yes"], 3: ["close"]}},
        edges=_edges("router>yes>close"),
        calls=3,
    ),
}


def run(program: Program, app: Any) -> list[Any]:
    """What each run of a program answers, as plain values."""
    return [_plain(_kept(app.invoke, given)) for given in program.inputs]


async def arun(program: Program, app: Any) -> list[Any]:
    """The same on an event loop."""
    answers: list[Any] = []
    for given in program.inputs:
        try:
            answers.append(_plain(await app.ainvoke(given, _CONFIG)))
        except ValueError as error:
            answers.append(repr(error))
    return answers


_CONFIG = {"configurable": {"thread_id": "thread-1"}}


def _kept(invoke: Any, given: Any) -> Any:
    try:
        return invoke(given, _CONFIG)
    except ValueError as error:
        return repr(error)


def _plain(answer: Any) -> Any:
    """An answer without the random ids that LangChain and LangGraph give."""

    def plain(value: Any) -> Any:
        if isinstance(value, BaseMessage):
            return {"type": value.type, "content": value.content}
        return getattr(value, "value", repr(value))

    return json.loads(json.dumps(answer, default=plain, sort_keys=True))
