"""Nine ways in which a breaker inside a graph can go wrong (E1 to E9), on real graphs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from biased_graph import GENDER, TEXT, State, gate, says
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy
from sample_agents import Spans, instrumented

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import BiasHalt
from twinspan.instrumentation.probing.guard import current_probe

CLEAN = "An applicant runs a shop."
THREAD: Any = {"configurable": {"thread_id": "t"}}


def judge(state: Any) -> State:
    return {"a": "decline" if says(state["text"], "she") else "approve"}


def chain(*nodes: tuple[str, Any], saver: Any = None, **options: Any) -> Any:
    """The nodes one after the other."""
    graph: Any = StateGraph(State)
    names = [name for name, _ in nodes]
    for name, node in nodes:
        graph.add_node(name, node, **options)
    for source, target in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(source, target)
    return graph.compile(checkpointer=saver)


def run(graph: Any, *texts: str, way: str = "invoke", **options: Any) -> tuple[list[Any], Spans]:
    spans = Spans()
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], **options}
    results: list[Any] = []
    with instrumented(gate(spans, **settings), **settings):
        for text in texts:
            try:
                if way == "invoke":
                    results.append(graph.invoke({"text": text}, THREAD))
                else:
                    results.append(asyncio.run(graph.ainvoke({"text": text}, THREAD)))
            except BiasHalt as halt:
                results.append(halt)
    return results, spans


def reader(state: Any) -> State:
    return {"verdict": state["a"]}


def idle(state: Any) -> State:
    return {"b": "noted"}


def test_e1_a_biased_run_leaves_nothing_to_the_runs_after_it() -> None:
    """One graph, one gate: a halt, two clean runs, and a halt again."""
    graph = chain(("judge", judge), ("reader", reader))
    results, _ = run(graph, TEXT, CLEAN, CLEAN, TEXT, mode="halt", nodes=["judge"])
    assert [isinstance(each, BiasHalt) for each in results] == [True, False, False, True]


def test_e2_a_frozen_payload_is_never_committed_after_its_repair() -> None:
    """Three nodes on, the state still holds the repaired answer, and so does every checkpoint."""
    saver = InMemorySaver()
    graph = chain(("judge", judge), ("two", idle), ("three", idle), ("reader", reader), saver=saver)
    (result,), _ = run(graph, TEXT, mode="repair", nodes=["judge"])
    assert (result["a"], result["verdict"]) == ("approve", "approve")
    assert "decline" not in repr([(t.checkpoint, t.pending_writes) for t in saver.list(THREAD)])


def test_e3_a_score_enters_the_network_once() -> None:
    """In later supersteps it only fades: B_fast after four is 0.7 * 0.3^3 / (1 - 0.3^4) of it."""
    graph = chain(("judge", judge), ("two", idle), ("three", idle), ("reader", reader))
    _, spans = run(graph, TEXT)
    inputs = [d[c.NETWORK_INPUT] for d in spans.of("network")]
    assert inputs[0] > 0.5
    assert inputs[1:] == [0.0, 0.0, 0.0]
    last = spans.of("network")[-1][c.NETWORK_SCORE_FAST]
    assert last == pytest.approx(inputs[0] * 0.7 * 0.3**3 / (1 - 0.3**4))


def test_e4_a_retried_node_is_one_step_of_the_network() -> None:
    """A failure before the answer: one superstep, one decision, one set of samples."""
    tries: list[int] = []

    def flaky(state: Any) -> State:
        if current_probe() is None and not tries:
            tries.append(1)
            raise ConnectionError("not yet")
        return judge(state)

    policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ConnectionError)
    graph = chain(("judge", flaky), retry_policy=policy)
    _, spans = run(graph, TEXT)
    assert [d[c.NETWORK_STEP] for d in spans.of("network")] == [1]
    assert len(spans.of("probe_set")) == 1
    assert [n[c.NODE_OUTCOME] for n in spans.of("node")] == ["retried", "ok"]


def test_e5_async_nodes_config_and_commands_keep_their_meaning() -> None:
    """The node gets its config, its Command its way, and the probe the node's input."""
    seen: list[str] = []

    async def decide(state: Any, config: RunnableConfig) -> Command[Any]:
        seen.append(str((config.get("metadata") or {})["langgraph_node"]))
        await asyncio.sleep(0)
        return Command(goto="reader", update=judge(state))

    graph: Any = StateGraph(State)
    graph.add_node("judge", decide, destinations=("reader",))
    graph.add_node("reader", reader)
    graph.add_edge(START, "judge")
    (halt,), _ = run(graph.compile(), TEXT, way="ainvoke", mode="halt", nodes=["judge"])
    assert isinstance(halt, BiasHalt)
    assert halt.edge == "judge->reader"
    assert set(seen) == {"judge"}


def test_e6_branches_and_visits_are_decided_by_themselves() -> None:
    """Unequal branches: the sink runs as often as it would, and each visit has its own score."""

    def again(state: Any) -> State:
        return {"b": state.get("b", "") + "x", **judge(state)}

    graph: Any = StateGraph(State)
    graph.add_node("judge", again)
    graph.add_edge(START, "judge")
    graph.add_conditional_edges("judge", lambda s: END if len(s["b"]) > 2 else "judge")
    _, spans = run(graph.compile(), TEXT, estimator="action")
    scored = [p[c.EFFECT_VALUE] for p in spans.of("probe_set")]
    assert len(scored) == len(spans.of("network")) == 3
    assert len({p[c.SUPERSTEP_INDEX] for p in spans.of("probe_set")}) == 3


def test_e7_a_stream_shows_nothing_that_is_not_decided() -> None:
    """The updates of the halted superstep never come."""
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["judge"], "mode": "halt"}
    seen: list[Any] = []
    graph = chain(("plan", idle), ("judge", judge), ("reader", reader))
    with instrumented(gate(**settings), **settings):
        with pytest.raises(BiasHalt):
            for chunk in graph.stream({"text": TEXT}, stream_mode="updates"):
                seen.append(chunk)
    assert [list(chunk) for chunk in seen] == [["plan"]]


def test_e8_a_repaired_payload_is_put_back_and_a_halt_says_why() -> None:
    """Repair, halt and escalation are three outcomes, each with its reason."""

    def stubborn(state: Any) -> State:
        if not says(state["text"], "she", "he"):
            raise RuntimeError("cannot be blind")
        return judge(state)

    graph = chain(("judge", judge), ("reader", reader))
    (mended,), _ = run(graph, TEXT, mode="repair", nodes=["judge"])
    (halt,), _ = run(graph, TEXT, mode="halt", nodes=["judge"])
    hopeless = chain(("judge", stubborn), ("reader", reader))
    (escalated,), spans = run(hopeless, TEXT, mode="repair", nodes=["judge"])
    assert mended["verdict"] == "approve"
    assert halt.reason == "monitor_at_limit"
    assert escalated.reason == "retries_exhausted"
    strategies = [i[c.INTERVENTION_STRATEGY] for i in spans.of("intervention")]
    assert strategies[-1] == "human"


def test_e9_a_repair_that_fails_does_not_let_the_next_low_score_pass() -> None:
    """The run stays halted: nobody reads the payload, and recovery is never assumed."""

    def stubborn(state: Any) -> State:
        if not says(state["text"], "she", "he"):
            raise RuntimeError("cannot be blind")
        return judge(state)

    graph = chain(("judge", stubborn), ("reader", reader))
    (halt,), spans = run(graph, TEXT, mode="repair", nodes=["judge"])
    assert isinstance(halt, BiasHalt)
    assert "reader" not in {n[c.NODE_ID] for n in spans.of("node")}
    states = [d[c.BREAKER_STATE_TO] for d in spans.of("network")]
    assert "normal" not in states
    assert states[-1] == "escalated"
