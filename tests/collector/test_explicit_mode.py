"""Breaker nodes in a LangGraph graph: a biased payload takes a way of its own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from biased_graph import GENDER, TEXT, State, gate, says
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy
from sample_agents import Spans, instrumented

from twinspan.collector.langgraph import guard
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.clients import ScriptedClient
from twinspan.instrumentation.errors import BiasHalt, ConfigurationError

THREAD: Any = {"configurable": {"thread_id": "t"}}
CLEAN = "An applicant runs a shop."


def builder(read: list[Any] | None = None, judge: Any = None) -> Any:
    """planner -> (analyst_a, analyst_b) -> reviewer, joined; analyst_a declines women."""

    def declines(state: Any) -> State:
        return {"a": "decline" if says(state["text"], "she") else "approve"}

    def review(state: Any) -> State:
        if read is not None:
            read.append(state["a"])
        return {"verdict": state["a"]}

    graph: Any = StateGraph(State)
    graph.add_node("planner", lambda s: {"plan": "look at it"})
    graph.add_node("analyst_a", judge or declines)
    graph.add_node("analyst_b", lambda s: {"b": "approve"})
    graph.add_node("reviewer", review)
    graph.add_edge(START, "planner")
    graph.add_edge("planner", "analyst_a")
    graph.add_edge("planner", "analyst_b")
    graph.add_edge(["analyst_a", "analyst_b"], "reviewer")
    graph.add_edge("reviewer", END)
    return graph


def run(
    graph: Any, *given: Any, way: str = "invoke", spans: Spans | None = None, **options: Any
) -> Any:
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], "mode": "repair", **options}
    result: Any = None
    with instrumented(gate(spans, **settings), **settings):
        for each in given:
            if way == "invoke":
                result = graph.invoke(each, THREAD)
            else:
                result = asyncio.run(graph.ainvoke(each, THREAD))
    return result


def unrepairable() -> Any:
    """A builder whose analyst cannot be run blind, so that a person has to decide."""

    def judge(state: Any) -> State:
        if not says(state["text"], "she", "he"):
            raise RuntimeError("cannot be blind")
        return {"a": "decline" if says(state["text"], "she") else "approve"}

    return builder(judge=judge)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_frozen_payload_is_rerouted_repaired_and_goes_on(way: str) -> None:
    """The join still waits for both branches, and its reader sees the repaired payload once."""
    read: list[Any] = []
    spans = Spans()
    graph = guard(builder(read), ["analyst_*"]).compile()
    result = run(graph, {"text": TEXT}, way=way, spans=spans, nodes=["analyst_*"])
    assert (read, result["verdict"], result["b"]) == (["approve"], "approve", "approve")
    assert {"bias_incidents", "bias_frozen"}.isdisjoint(result)
    assert spans.edges() >= {
        ("analyst_a.breaker", "bias.router"),
        ("bias.router", "bias.repair"),
        ("bias.repair", "analyst_a.release"),
        ("analyst_b.breaker", "analyst_b.release"),
        ("analyst_a.release", "reviewer"),
        ("analyst_b.release", "reviewer"),
    }
    decided = [(d[c.BREAKER_DECISION], d.get(c.BREAKER_NODE)) for d in spans.of("network")]
    assert [each for each in decided if each[0] != "proceed"] == [("halt", "analyst_a")]


def test_a_clean_run_passes_every_breaker() -> None:
    """No incident, no mitigation, the result of the graph without breakers."""
    spans = Spans()
    result = run(guard(builder(), ["analyst_*"]).compile(), {"text": CLEAN}, spans=spans)
    assert result == builder().compile().invoke({"text": CLEAN})
    assert not any(n[c.NODE_ID].startswith("bias.") for n in spans.of("node"))


def test_breakers_without_twinspan_let_everything_pass() -> None:
    """A guarded graph is an ordinary graph."""
    assert guard(builder(), ["*"]).compile().invoke({"text": TEXT})["verdict"] == "decline"


def test_breaker_nodes_weigh_nothing_and_are_not_probed() -> None:
    """Weights and static edges are those of the agents."""
    spans = Spans()
    run(guard(builder(), ["analyst_*"]).compile(), {"text": TEXT}, spans=spans)
    (root,) = spans.of("run")
    assert set(root[c.GRAPH_EDGES]) == {
        "planner->analyst_a",
        "planner->analyst_b",
        "analyst_a->reviewer",
        "analyst_b->reviewer",
    }
    ours = [n for n in spans.of("node") if "." in n[c.NODE_ID]]
    assert ours
    assert {(n[c.NODE_KIND], n[c.PROBE_DECISION]) for n in ours} == {("router", "exempt")}


def test_conditions_and_loops_begin_at_the_release() -> None:
    """What decided on a node's payload decides on the one that is handed on."""
    graph: Any = StateGraph(State)
    graph.add_node("judge", lambda s: {"a": "no" if says(s["text"], "she") else "yes"})
    graph.add_node("yes", lambda s: {"verdict": "in"})
    graph.add_node("no", lambda s: {"verdict": "out"})
    graph.add_edge(START, "judge")
    graph.add_conditional_edges("judge", lambda s: s["a"], ["yes", "no"])
    spans = Spans()
    assert run(guard(graph, ["judge"]).compile(), {"text": TEXT}, spans=spans)["verdict"] == "in"
    assert ("judge.release", "yes") in spans.edges()


# --- a person ------------------------------------------------------------------------------------


def asked(graph: Any, **options: Any) -> Any:
    result = run(graph, {"text": TEXT}, **options)
    (question,) = result["__interrupt__"]
    return question.value


@pytest.mark.parametrize("mode", ["halt", "repair"])
def test_a_person_is_asked_where_nothing_repairs(mode: str) -> None:
    """By LangGraph's interrupt, with what was frozen; the frozen payload is in the state."""
    graph = guard(unrepairable(), ["analyst_*"]).compile(checkpointer=InMemorySaver())
    question = asked(graph, mode=mode)
    assert (question["node"], question["frozen"]) == ("analyst_a", {"a": "decline"})
    assert bool(question["tried"]) is (mode == "repair")
    state = graph.get_state(THREAD).values
    assert state["bias_frozen"] == {"analyst_a": {"a": "decline"}}
    assert "a" not in state


@pytest.mark.parametrize(
    ("answer", "verdict", "outcome"),
    [
        ("release", "decline", "released"),
        ({"payload": {"a": "refer"}, "by": "Kim"}, "refer", "replaced"),
    ],
)
def test_a_persons_answer_lets_the_run_go_on(answer: Any, verdict: str, outcome: str) -> None:
    """With the frozen payload or another one, which leaves the frozen one behind."""
    graph = guard(unrepairable(), ["analyst_*"]).compile(checkpointer=InMemorySaver())
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["analyst_a"], "mode": "repair"}
    spans = Spans()
    with instrumented(gate(spans, **settings), **settings):
        graph.invoke({"text": TEXT}, THREAD)
        result = graph.invoke(Command(resume=answer), THREAD)
    assert result["verdict"] == verdict
    state = graph.get_state(THREAD).values
    assert state["bias_frozen"] == {}
    assert state["bias_incidents"]["analyst_a"]["outcome"] == outcome
    reasons = [d[c.BREAKER_REASON] for d in spans.of("network")]
    assert "reset_by_person" in reasons


def test_a_person_may_stop_the_run() -> None:
    """It ends as a halted one."""
    graph = guard(unrepairable(), ["analyst_*"]).compile(checkpointer=InMemorySaver())
    asked(graph)
    with pytest.raises(BiasHalt):
        run(graph, Command(resume="stop"))


def test_without_a_checkpointer_nobody_can_be_asked() -> None:
    """The run is halted, as without breaker nodes."""
    with pytest.raises(BiasHalt) as halted:
        run(guard(unrepairable(), ["analyst_*"]).compile(), {"text": TEXT})
    assert halted.value.frozen_payload == {"analyst_a": {"a": "decline"}}


# --- skeptics ------------------------------------------------------------------------------------


def skeptic(name: str) -> ScriptedClient:
    """A model that revises every refusal."""

    def say(request: Any, rng: Any) -> str:
        return json.dumps({"verdict": "revise", "revision": {"a": "approve"}, "confidence": 0.8})

    return ScriptedClient(say, model=name)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_skeptics_are_asked_by_send_and_weighed_together(way: str) -> None:
    """Three reviews in one superstep, one panel, a measured repair."""
    spans = Spans()
    graph = guard(builder(), ["analyst_*"]).compile()
    models = {"repair": "skeptics", "skeptics": [skeptic("alpha-7b"), skeptic("beta-8b")]}
    result = run(graph, {"text": TEXT}, way=way, spans=spans, **models)
    assert result["verdict"] == "approve"
    reviews = [n for n in spans.of("node") if n[c.NODE_ID] == "bias.skeptic"]
    assert len(reviews) == 3 and len({n[c.SUPERSTEP_INDEX] for n in reviews}) == 1
    assert {("bias.router", "bias.skeptic"), ("bias.skeptic", "bias.panel")} <= spans.edges()
    (repair,) = spans.of("intervention")
    assert (repair[c.INTERVENTION_STRATEGY], repair[c.INTERVENTION_OUTCOME]) == (
        "skeptics",
        "cleared",
    )


# --- what cannot be guarded ----------------------------------------------------------------------


def test_a_node_that_goes_on_by_itself_is_halted_by_the_gate() -> None:
    """Its Command does not pass the breaker, so the gate raises."""

    def judge(state: Any) -> Command[Any]:
        answer = "decline" if says(state["text"], "she") else "approve"
        return Command(goto="reviewer", update={"a": answer})

    graph: Any = StateGraph(State)
    graph.add_node("judge", judge, destinations=("reviewer",))
    graph.add_node("reviewer", lambda s: {"verdict": s["a"]})
    graph.add_edge(START, "judge")
    with pytest.raises(BiasHalt):
        run(guard(graph, ["judge"]).compile(), {"text": TEXT}, mode="halt")


def test_a_retry_policy_does_not_answer_for_a_person() -> None:
    """A guarded node's own policy stays its own."""
    graph = unrepairable()
    policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=Exception)
    graph.add_node("extra", lambda s: {}, retry_policy=policy)
    graph.add_edge("planner", "extra")
    compiled = guard(graph, ["analyst_*"]).compile(checkpointer=InMemorySaver())
    assert asked(compiled)["node"] == "analyst_a"


@pytest.mark.parametrize(
    ("prepare", "told"),
    [
        (lambda: guard(builder(), ["nobody"]), "no node is named like 'nobody'; the graph has pl"),
        (lambda: guard(guard(builder(), ["analyst_a"]), ["analyst_b"]), "is guarded already"),
    ],
)
def test_what_cannot_be_guarded_is_told(prepare: Any, told: str) -> None:
    """Before the graph is compiled."""
    with pytest.raises(ConfigurationError, match=told):
        prepare()
