"""The gate where LangGraph's control flow is not a plain edge: nothing slips past it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import pytest
from biased_graph import GENDER, TEXT, State, gate, says
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, Send, StreamWriter, interrupt
from sample_agents import Spans, instrumented

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import BiasHalt

THREAD: Any = {"configurable": {"thread_id": "t"}}


def judge(state: Any) -> State:
    """Declines women."""
    return {"a": "decline" if says(state["text"], "she") else "approve"}


def halted(graph: Any, given: Any, spans: Spans | None = None, **options: Any) -> BiasHalt:
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], "mode": "halt", **options}
    with instrumented(gate(spans, **settings), **settings):
        with pytest.raises(BiasHalt) as stopped:
            graph.invoke(given, THREAD)
    return stopped.value


def repaired(graph: Any, given: Any, **options: Any) -> tuple[Any, Spans]:
    spans = Spans()
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], "mode": "repair", **options}
    with instrumented(gate(spans, **settings), **settings):
        return graph.invoke(given, THREAD), spans


def shadowed(graph: Any, *given: Any, **options: Any) -> Spans:
    spans = Spans()
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], **options}
    with instrumented(gate(spans, **settings), **settings):
        for each in given:
            graph.invoke(each, THREAD)
    return spans


# --- interrupts and failures beside a biased node --------------------------------------------


def beside(other: Any, saver: Any) -> Any:
    """A biased judge and another node in one superstep, then a reader."""
    graph: Any = StateGraph(State)
    graph.add_node("judge", judge)
    graph.add_node("other", other)
    graph.add_node("reader", lambda s: {"verdict": s["a"]})
    graph.add_edge(START, "judge")
    graph.add_edge(START, "other")
    graph.add_edge(["judge", "other"], "reader")
    return graph.compile(checkpointer=saver)


def ask(state: Any) -> State:
    return {"b": interrupt("approve?")}


def test_a_payload_beside_an_interrupt_is_decided_before_it_is_kept() -> None:
    """Otherwise the resumed run would find it in the checkpoint and hand it on."""
    saver = InMemorySaver()
    stopped = halted(beside(ask, saver), {"text": TEXT}, nodes=["judge"])
    assert stopped.edge == "judge->reader"
    assert "decline" not in repr([t.pending_writes for t in saver.list(THREAD)])


def test_a_payload_beside_an_interrupt_is_repaired_before_it_is_kept() -> None:
    """The resumed run goes on with the repaired one, and does not run the node again."""
    saver = InMemorySaver()
    graph = beside(ask, saver)
    _, spans = repaired(graph, {"text": TEXT}, nodes=["judge"])
    assert [run[c.RUN_OUTCOME] for run in spans.of("run")] == ["interrupted"]
    result, resumed = repaired(graph, Command(resume="yes"), nodes=["judge"])
    assert (result["a"], result["verdict"]) == ("approve", "approve")
    outcomes = {node[c.NODE_ID]: node[c.NODE_OUTCOME] for node in resumed.of("node")}
    assert outcomes == {"judge": "skipped", "other": "ok", "reader": "ok"}


def test_a_payload_beside_a_failure_is_not_kept_before_it_is_decided() -> None:
    """The application is told of its own failure, and the biased payload is in no checkpoint."""

    def broken(state: Any) -> State:
        time.sleep(0.05)  # so that the judge is done
        raise ValueError("broken")

    saver = InMemorySaver()
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["judge"], "mode": "halt"}
    with instrumented(gate(**settings), **settings):
        with pytest.raises(ValueError, match="broken"):
            beside(broken, saver).invoke({"text": TEXT}, THREAD)
    assert "decline" not in repr([t.pending_writes for t in saver.list(THREAD)])


# --- people ----------------------------------------------------------------------------------


def with_person(saver: Any) -> Any:
    """A node that asks a person, more readily about women."""

    def ask_about_women(state: Any) -> State:
        if says(state["text"], "she"):
            return {"a": interrupt("really?")}
        return {"a": "approve"}

    graph: Any = StateGraph(State)
    graph.add_node("judge", ask_about_women)
    graph.add_edge(START, "judge")
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_probe_does_not_take_a_persons_answer_from_the_node(way: str) -> None:
    """The answer is the node's; probes are told it too."""

    def ask_always(state: Any) -> State:
        time.sleep(0.01)
        return {"a": interrupt("approve?")}

    graph: Any = StateGraph(State)
    graph.add_node("judge", ask_always)
    graph.add_edge(START, "judge")
    compiled = graph.compile(checkpointer=InMemorySaver())
    spans = Spans()
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"]}
    with instrumented(gate(spans, **settings), **settings):
        result: Any = None
        inputs: list[Any] = [{"text": TEXT}, Command(resume="yes")]
        for given in inputs:
            if way == "invoke":
                result = compiled.invoke(given, THREAD)
            else:
                result = asyncio.run(compiled.ainvoke(given, THREAD))
    assert result["a"] == "yes"
    asked, answered = spans.of("probe_set")
    assert (asked[c.EFFECT_VALUE], answered[c.EFFECT_VALUE]) == (0.0, 0.0)
    assert {p[c.PROBE_OUTCOME] for p in spans.of("probe")} == {"ok"}


def test_asking_a_person_is_an_answer() -> None:
    """Whom a node doubts is what it answers; a question is no error of the probe."""
    spans = shadowed(with_person(InMemorySaver()), {"text": TEXT.replace("She", "He")})
    (probe,) = spans.of("probe_set")
    assert probe[c.PROBE_OUTCOME] == "ok"
    assert probe[c.EFFECT_VALUE] == 1.0


# --- commands --------------------------------------------------------------------------------


def router(where: str = "update") -> Any:
    """A supervisor that sends women's cases to the long queue, and says the same of both."""

    def supervise(state: Any) -> Command[Any]:
        queue = "long" if says(state["text"], "she") else "short"
        return Command(goto=queue, update={"plan": "look at it"} if where == "update" else None)

    graph: Any = StateGraph(State)
    graph.add_node("supervise", supervise, destinations=("long", "short"))
    graph.add_node("long", lambda s: {"verdict": "in a year"})
    graph.add_node("short", lambda s: {"verdict": "tomorrow"})
    graph.add_edge(START, "supervise")
    return graph.compile()


@pytest.mark.parametrize("where", ["update", "nowhere"])
def test_whom_a_command_goes_to_is_part_of_the_answer(where: str) -> None:
    """The update is the same for all; the queue is not."""
    stopped = halted(router(where), {"text": TEXT}, nodes=["supervise"])
    assert stopped.edge == "supervise->long"


@pytest.mark.parametrize("where", ["update", "nowhere"])
def test_a_repaired_command_goes_where_the_blind_one_goes(where: str) -> None:
    """The old target does not run, and no word of routing becomes state."""
    result, spans = repaired(router(where), {"text": TEXT}, nodes=["supervise"])
    assert result["verdict"] == "tomorrow"
    assert "goto" not in result
    assert spans.edges() == {("supervise", "short")}


def test_a_command_to_the_parent_graph_is_decided_in_the_subgraph() -> None:
    """It leaves the subgraph by an exception, and is a payload all the same."""

    def leave(state: Any) -> Command[Any]:
        return Command(graph=Command.PARENT, goto="reader", update=judge(state))

    def built() -> Any:
        inner: Any = StateGraph(State)
        inner.add_node("judge", leave)
        inner.add_edge(START, "judge")
        graph: Any = StateGraph(State)
        graph.add_node("team", inner.compile(), destinations=("reader",))
        graph.add_node("reader", lambda s: {"verdict": s["a"]})
        graph.add_edge(START, "team")
        return graph.compile()

    only: dict[str, Any] = {"nodes": ["team/judge"]}
    assert halted(built(), {"text": TEXT}, **only).frozen_payload == {
        "team/judge": {"a": "decline", "goto": ["reader"]}
    }
    result, _ = repaired(built(), {"text": TEXT}, **only)
    assert result["verdict"] == "approve"


# --- the same node more than once --------------------------------------------------------------


def seeds(spans: Spans) -> Counter[int]:
    """How often each wording was drawn."""
    return Counter(probe[c.PROBE_SEED] for probe in spans.of("probe"))


def test_every_execution_of_a_node_is_worded_anew() -> None:
    """Sent three times in one superstep: no two share a wording, whose evidence would repeat."""
    graph: Any = StateGraph(State)
    graph.add_node("judge", judge)
    graph.add_conditional_edges(START, lambda s: [Send("judge", s) for _ in range(3)], ["judge"])
    graph.add_node("split", lambda s: {"plan": "p"})
    compiled = graph.compile()
    spans = Spans()
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["judge"]}
    with instrumented(gate(spans, **settings), **settings):
        with pytest.raises(Exception, match="one value per step"):
            compiled.invoke({"text": TEXT})
    assert set(seeds(spans).values()) == {1}
    assert sum(seeds(spans).values()) == 45


def entered_twice() -> Any:
    """A subgraph that is entered again counts its supersteps from 1 again."""
    inner: Any = StateGraph(State)
    inner.add_node("judge", judge)
    inner.add_edge(START, "judge")
    graph: Any = StateGraph(State)
    graph.add_node("team", inner.compile())
    graph.add_node("again", lambda s: {"b": s.get("b", "") + "x"})
    graph.add_edge(START, "team")
    graph.add_edge("team", "again")
    graph.add_conditional_edges("again", lambda s: END if s["b"] == "xx" else "team")
    return graph.compile()


def test_a_subgraph_that_is_entered_again_is_decided_again() -> None:
    """With samples of its own and a decision of its own."""
    spans = shadowed(entered_twice(), {"text": TEXT}, nodes=["team/judge"])
    assert set(seeds(spans).values()) == {1}
    inner = [d for d in spans.of("network") if d[c.SUPERSTEP_SCOPE]]
    assert len(inner) == 2
    assert len({d[c.NETWORK_STEP] for d in inner}) == 2


def test_parallel_subgraphs_decide_one_after_the_other() -> None:
    """Ten at once in threads: every score is taken in, and the chain of decisions is whole."""
    inner: Any = StateGraph(State)
    inner.add_node("judge", judge)
    inner.add_edge(START, "judge")
    team = inner.compile()

    def work(state: Any) -> State:
        team.invoke(state)
        return {}

    graph: Any = StateGraph(State)
    graph.add_node("team", work)
    graph.add_conditional_edges(START, lambda s: [Send("team", s) for _ in range(10)], ["team"])
    options = {"nodes": ["team/judge"], "reference": 4, "counterfactual": 2}
    spans = shadowed(graph.compile(), {"text": TEXT}, **options)
    inner_decisions = [d for d in spans.of("network") if d[c.SUPERSTEP_SCOPE]]
    assert sorted(d[c.NETWORK_STEP] for d in inner_decisions) == list(range(1, 11))
    decisions = sorted(spans.of("network"), key=lambda d: d[c.AUDIT_SEQ])
    hashes = [d[c.AUDIT_HASH] for d in decisions]
    assert [d[c.AUDIT_PREV_HASH] for d in decisions][1:] == hashes[:-1]


def test_a_retry_of_everything_does_not_undo_a_halt() -> None:
    """A policy that retries any error meets the same halt again: the payload stays cut."""
    inner: Any = StateGraph(State)
    inner.add_node("judge", judge)
    inner.add_node("reader", lambda s: {"verdict": s["a"]})
    inner.add_edge(START, "judge")
    inner.add_edge("judge", "reader")
    graph: Any = StateGraph(State)
    policy = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=3, retry_on=Exception)
    graph.add_node("team", inner.compile(), retry_policy=policy)
    graph.add_edge(START, "team")
    spans = Spans()
    halted(graph.compile(), {"text": TEXT}, spans, nodes=["team/judge"])
    assert "team/reader" not in {node[c.NODE_ID] for node in spans.of("node")}
    teams = [node for node in spans.of("node") if node[c.NODE_ID] == "team"]
    assert {node[c.NODE_OUTCOME] for node in teams} == {"halted"}


# --- the functional API ----------------------------------------------------------------------


def workflow(saver: Any = None) -> Any:
    """A biased task, and one that reads its answer."""

    @task
    def judge_it(text: str) -> str:
        return str(judge({"text": text}).get("a"))

    @task
    def tell(verdict: str) -> str:
        return f"we {verdict}"

    @entrypoint(checkpointer=saver)
    def review(given: dict[str, str]) -> str:
        return str(tell(judge_it(given["text"]).result()).result())

    return review


def test_a_called_task_is_decided_before_its_caller_has_the_answer() -> None:
    """The halt reaches the application; the next task never runs."""
    spans = Spans()
    stopped = halted(workflow(), {"text": TEXT}, spans, nodes=["review/*"])
    assert stopped.frozen_payload == {"review/judge_it": {"__return__": "decline"}}
    assert [n[c.NODE_ID] for n in spans.of("node")] == ["review/judge_it", "review"]


def test_a_called_task_is_repaired_and_its_caller_goes_on_with_that() -> None:
    """So does the checkpoint."""
    saver = InMemorySaver()
    result, _ = repaired(workflow(saver), {"text": TEXT}, nodes=["review/*"])
    assert result == "we approve"
    kept = [(t.checkpoint, t.pending_writes) for t in saver.list(THREAD)]
    assert "decline" not in repr(kept)


def test_a_workflow_that_calls_tasks_can_be_probed_as_one_node() -> None:
    """Its tasks run within the probe, and are not observed there."""
    spans = shadowed(workflow(), {"text": TEXT}, nodes=["review"])
    (probe,) = [s for s in spans.of("probe_set") if s[c.NODE_ID] == "review"]
    assert (probe[c.PROBE_OUTCOME], probe[c.EFFECT_VALUE]) == ("ok", 1.0)
    assert Counter(n[c.NODE_ID] for n in spans.of("node")) == {
        "review": 1,
        "review/judge_it": 1,
        "review/tell": 1,
    }


# --- streams -----------------------------------------------------------------------------------


MODES: list[Any] = ["values", "updates", "debug", "tasks", "checkpoints", "custom", "messages"]


def talkative(saver: Any) -> Any:
    """A node in a subgraph that shows its answer while it runs."""

    def show(state: State, writer: StreamWriter) -> State:
        answer = judge(state)
        writer({"so far": answer.get("a")})
        return answer

    inner: Any = StateGraph(State)
    inner.add_node("judge", show)
    inner.add_edge(START, "judge")
    graph: Any = StateGraph(State)
    graph.add_node("team", inner.compile())
    graph.add_node("reader", lambda s: {"verdict": s["a"]})
    graph.add_edge(START, "team")
    graph.add_edge("team", "reader")
    return graph.compile(checkpointer=saver)


def chunks_of(graph: Any, way: str) -> list[Any]:
    seen: list[Any] = []
    if way == "stream":
        for chunk in graph.stream({"text": TEXT}, THREAD, stream_mode=MODES, subgraphs=True):
            seen.append(chunk)
        return seen

    async def read() -> None:
        async for chunk in graph.astream({"text": TEXT}, THREAD, stream_mode=MODES, subgraphs=True):
            seen.append(chunk)

    asyncio.run(read())
    return seen


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_no_mode_of_a_stream_shows_a_payload_before_it_is_decided(way: str) -> None:
    """Values, updates, debug, tasks, checkpoints, custom and messages, of subgraphs too."""
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["team/judge"], "mode": "repair"}
    with instrumented(gate(**settings), **settings):
        chunks = chunks_of(talkative(InMemorySaver()), way)
    shown = [chunk for chunk in chunks if chunk[1] != "custom"]
    assert "decline" not in repr(shown)
    assert "approve" in repr(shown)


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_that_is_halted_has_shown_nothing_of_it(mode: Any) -> None:
    """Custom chunks too: they come while the node runs."""
    seen: list[Any] = []
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["team/judge"], "mode": "halt"}
    with instrumented(gate(**settings), **settings):
        with pytest.raises(BiasHalt):
            for chunk in talkative(InMemorySaver()).stream(
                {"text": TEXT}, THREAD, stream_mode=mode, subgraphs=True
            ):
                seen.append(chunk)
    assert "decline" not in repr(seen)


def test_a_message_that_is_halted_is_not_streamed_token_by_token() -> None:
    """Not even by a model that streams."""

    def script() -> Any:
        while True:
            yield AIMessage("we decline her application")

    model = GenericFakeChatModel(messages=script())

    def answer(state: Any) -> State:
        said = model.invoke(state["text"]).text
        return {"a": said if says(state["text"], "she") else "we approve"}

    graph: Any = StateGraph(State)
    graph.add_node("judge", answer)
    graph.add_edge(START, "judge")
    seen: list[Any] = []
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["judge"], "mode": "halt"}
    with instrumented(gate(**settings), **settings):
        with pytest.raises(BiasHalt):
            for chunk in graph.compile().stream({"text": TEXT}, stream_mode="messages"):
                seen.append(chunk)
    assert seen == []
