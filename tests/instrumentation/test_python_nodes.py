"""Plain functions as nodes: spans, edges, context, and the same results as without twinspan."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from sample_agents import instrumented

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation import node, parallel, pipeline, step, tool
from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.frameworks.python.dataflow import flow_graph

DIAMOND = {
    ("planner", "analyst_a"),
    ("planner", "analyst_b"),
    ("analyst_a", "reviewer"),
    ("analyst_b", "reviewer"),
}


@node
def planner(text: str) -> dict[str, str]:
    return {"plan": f"plan {text}"}


@node
def analyst_a(plan: dict[str, str]) -> str:
    return f"a {plan['plan']}"


@node
def analyst_b(plan: dict[str, str]) -> str:
    return f"b {plan['plan']}"


@node
def reviewer(a: str, b: str) -> str:
    return f"{a} + {b}"


@node(name="planner")
async def aplanner(text: str) -> dict[str, str]:
    return {"plan": f"plan {text}"}


@node(name="analyst_a")
async def aanalyst_a(plan: dict[str, str]) -> str:
    await asyncio.sleep(0)
    return f"a {plan['plan']}"


@node(name="analyst_b")
async def aanalyst_b(plan: dict[str, str]) -> str:
    return f"b {plan['plan']}"


@node(name="reviewer")
async def areviewer(a: str, b: str) -> str:
    return f"{a} + {b}"


@pipeline
def in_sequence(text: str) -> str:
    plan = planner(text)
    return reviewer(analyst_a(plan), analyst_b(plan))


@pipeline
def in_a_pool(text: str) -> str:
    plan = planner(text)
    with ThreadPoolExecutor(2) as pool:
        a, b = pool.submit(analyst_a, plan), pool.submit(analyst_b, plan)
        return reviewer(a.result(), b.result())


@pipeline
def in_threads(text: str) -> str:
    plan, found = planner(text), dict[str, str]()
    threads = [
        threading.Thread(target=lambda: found.update(a=analyst_a(plan))),
        threading.Thread(target=lambda: found.update(b=analyst_b(plan))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return reviewer(found["a"], found["b"])


@pipeline
def together(text: str) -> str:
    plan = planner(text)
    a, b = parallel(lambda: analyst_a(plan), lambda: analyst_b(plan))
    return reviewer(a, b)


@pipeline(name="gathered")
async def _gathered(text: str) -> str:
    plan = await aplanner(text)
    a, b = await asyncio.gather(aanalyst_a(plan), aanalyst_b(plan))
    return await areviewer(a, b)


@pipeline(name="together_on_a_loop")
async def _together_on_a_loop(text: str) -> str:
    plan = await aplanner(text)
    a, b = await parallel(aanalyst_a(plan), aanalyst_b(plan))
    return await areviewer(a, b)


@pipeline(name="in_a_task_group")
async def _in_a_task_group(text: str) -> str:
    plan = await aplanner(text)
    async with asyncio.TaskGroup() as group:
        a, b = group.create_task(aanalyst_a(plan)), group.create_task(aanalyst_b(plan))
    return await areviewer(a.result(), b.result())


@pipeline(name="plain_nodes_in_threads")
async def _plain_nodes_in_threads(text: str) -> str:
    plan = planner(text)
    a, b = await asyncio.gather(
        asyncio.to_thread(analyst_a, plan), asyncio.to_thread(analyst_b, plan)
    )
    return reviewer(a, b)


def on_a_loop(program: Callable[[str], Any]) -> Callable[[str], Any]:
    def run(text: str) -> Any:
        return asyncio.run(program(text))

    return run


PROGRAMS: dict[str, Callable[[str], Any]] = {
    "in_sequence": in_sequence,
    "in_a_pool": in_a_pool,
    "in_threads": in_threads,
    "together": together,
    "gathered": on_a_loop(_gathered),
    "together_on_a_loop": on_a_loop(_together_on_a_loop),
    "in_a_task_group": on_a_loop(_in_a_task_group),
    "plain_nodes_in_threads": on_a_loop(_plain_nodes_in_threads),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_edges_are_those_along_which_results_were_passed(name: str) -> None:
    """However the steps are run, and without a word about edges."""
    with instrumented() as collector:
        PROGRAMS[name]("x")
    assert collector.spans.edges() == DIAMOND
    assert {n[c.NODE_EDGE_KIND] for n in collector.spans.of("node")} == {"observed"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_run_is_one_trace_and_leaves_nothing_open(name: str) -> None:
    """Threads and tasks belong to the run that started them."""
    with instrumented() as collector:
        PROGRAMS[name]("x")
    (tracer,) = collector.tracers
    assert tracer.open_count == 0
    assert len(collector.spans.traces) == 1
    (run,) = collector.spans.of("run")
    assert run[c.RUN_OUTCOME] == "completed"
    assert (run[c.RUN_NODE_COUNT], run[c.RUN_SPAN_COUNT]) == (4, len(collector.spans.ended))


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_the_uninstrumented_run(name: str) -> None:
    """The application's answer does not change."""
    plain = PROGRAMS[name]("x")
    with instrumented():
        assert PROGRAMS[name]("x") == plain


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_graph_is_read_from_the_pipelines_text(name: str) -> None:
    """Before it has run once, so that its nodes can be weighed."""
    with instrumented() as collector:
        PROGRAMS[name]("x")
    (run,) = collector.spans.of("run")
    if name == "in_threads":  # an answer that travels through a dict of a closure is not followed
        assert set(run[c.GRAPH_NODES]) == {"planner", "analyst_a", "analyst_b", "reviewer"}
    else:
        assert set(run[c.GRAPH_EDGES]) == {f"{a}->{b}" for a, b in DIAMOND}


def test_together_is_one_superstep_and_all_else_a_superstep_each() -> None:
    """What is decided together is what the user says runs together."""
    with instrumented() as collector:
        together("x")
        in_a_pool("x")
    assert [boundary.nodes for boundary in collector.boundaries][:3] == [
        ("planner",),
        ("analyst_a", "analyst_b"),
        ("reviewer",),
    ]
    assert [len(boundary.nodes) for boundary in collector.boundaries][3:] == [1, 1, 1, 1]


def test_what_a_node_read_is_what_its_predecessor_handed_on() -> None:
    """The hashes on both ends of an edge agree."""
    with instrumented() as collector:
        in_sequence("x")
    nodes = {n[c.NODE_ID]: n for n in collector.spans.of("node")}
    assert dict(
        zip(
            nodes["reviewer"][c.NODE_PARENTS],
            nodes["reviewer"][c.NODE_PARENT_HASHES],
            strict=True,
        )
    ) == {name: nodes[name][c.NODE_OUTPUT_HASH] for name in ("analyst_a", "analyst_b")}


# --- edges that no object shows -----------------------------------------------------------------


@node
def summarise(text: str) -> str:
    return "refer"


@node
def judge(prompt: str) -> str:
    return "approve"


@node(reads=[summarise])
def audit(case: str) -> str:
    return "fine"


@pipeline
def by_prompt(text: str) -> str:
    summary = summarise(text)
    return judge(f"Judge this: {summary}")


@pipeline
def by_declaration(text: str) -> str:
    summarise(text)
    return audit("case 7")


def test_an_answer_that_travels_in_a_new_text_is_an_inferred_edge() -> None:
    """The pipeline's text says so; no object was seen."""
    with instrumented() as collector:
        by_prompt("x")
    last = collector.spans.of("node")[-1]
    assert last[c.NODE_PARENTS] == ("summarise",)
    assert last[c.NODE_EDGE_KIND] == "inferred"


def test_a_declared_edge_is_observed() -> None:
    """`reads` is the programmer's word."""
    with instrumented() as collector:
        by_declaration("x")
    last = collector.spans.of("node")[-1]
    assert last[c.NODE_PARENTS] == ("summarise",)
    assert last[c.NODE_EDGE_KIND] == "observed"


@node
def first(x: str) -> str:
    return "approve"


@node
def second(x: str) -> str:
    return "approve"


@node
def third(verdict: str) -> str:
    return verdict


@pipeline
def two_equal(x: str) -> str:
    first(x)
    verdict = second(x)
    return third(verdict)


def test_two_nodes_that_return_one_object_are_told_apart_by_the_graph() -> None:
    """Python keeps one copy of a literal, and identity alone would name both."""
    with instrumented() as collector:
        two_equal("x")
    assert collector.spans.of("node")[-1][c.NODE_PARENTS] == ("second",)


def test_a_shared_state_belongs_to_whoever_wrote_it_last() -> None:
    """A node that passes on the dict that it received is its reader's predecessor."""

    @node
    def one(state: dict[str, int]) -> dict[str, int]:
        state["n"] += 1
        return state

    @node
    def two(state: dict[str, int]) -> dict[str, int]:
        state["n"] *= 10
        return state

    @node
    def three(state: dict[str, int]) -> int:
        return state["n"]

    with instrumented() as collector, pipeline("shared"):
        assert three(two(one({"n": 1}))) == 20
    assert collector.spans.edges() == {("one", "two"), ("two", "three")}


# --- forms --------------------------------------------------------------------------------------


@dataclass
class Team:
    """Methods are nodes too."""

    log: list[str] = field(default_factory=list[str])

    @node
    def draft(self, text: str) -> str:
        self.log.append(text)
        return f"draft of {text}"

    @node
    def polish(self, draft: str) -> str:
        return f"polished {draft}"

    @pipeline
    def write(self, text: str) -> str:
        return self.polish(self.draft(text))


def test_methods_are_nodes_and_their_object_is_no_payload() -> None:
    """A pipeline may be a method too, and its graph is read all the same."""
    with instrumented() as collector:
        assert Team().write("x") == "polished draft of x"
    assert collector.spans.edges() == {("draft", "polish")}
    assert collector.spans.of("run")[0][c.GRAPH_EDGES] == ("draft->polish",)


def test_a_block_is_a_node_and_a_run() -> None:
    """For code that is no function."""
    with instrumented() as collector:
        with pipeline("by_hand"):
            with step("screen", "a letter") as screening:
                screening.result = {"advice": "invite"}
            with step("invite", screening.result) as invitation:
                invitation.result = "see you"
    assert collector.spans.edges() == {("screen", "invite")}
    assert collector.spans.of("run")[0][c.GEN_AI_AGENT_NAME] == "by_hand"


def test_an_async_block_is_too() -> None:
    """With `async with`."""

    async def program() -> None:
        async with pipeline("by_hand"):
            async with step("screen", "a letter") as screening:
                screening.result = {"advice": "invite"}

    with instrumented() as collector:
        asyncio.run(program())
    assert [n[c.NODE_ID] for n in collector.spans.of("node")] == ["screen"]


def test_a_node_inside_a_node_belongs_to_it() -> None:
    """Its name is qualified, its superstep numbered within."""

    @node
    def inner(x: str) -> str:
        return x

    @node
    def outer(x: str) -> str:
        return inner(x)

    with instrumented() as collector, pipeline("nested"):
        outer("x")
    nodes = {n[c.NODE_ID]: n for n in collector.spans.of("node")}
    assert set(nodes) == {"outer", "outer/inner"}
    assert nodes["outer/inner"][c.SUPERSTEP_SCOPE] == nodes["outer"][c.NODE_TASK_ID]


def test_a_node_outside_of_any_run_is_one() -> None:
    """One trace, one node."""
    with instrumented() as collector:
        summarise("x")
    assert len(collector.spans.of("run")) == 1


def test_a_pipeline_within_another_is_the_same_run() -> None:
    """One trace per run."""

    @pipeline
    def outer(text: str) -> str:
        return in_sequence(text)

    with instrumented() as collector:
        outer("x")
    assert len(collector.spans.of("run")) == 1
    assert collector.spans.edges() == DIAMOND


def test_concurrent_runs_do_not_mix() -> None:
    """Ten runs at once on one loop."""

    async def many() -> list[str]:
        return list(await asyncio.gather(*(_gathered(str(i)) for i in range(10))))

    with instrumented() as collector:
        answers = asyncio.run(many())
    assert answers == [f"a plan {i} + b plan {i}" for i in range(10)]
    assert len(collector.spans.traces) == 10
    assert collector.spans.edges() == DIAMOND


def test_a_failing_node_fails_as_ever_and_says_nothing_of_its_text() -> None:
    """The exception reaches the caller; its text stays out of the spans."""

    @node
    def broken(x: str) -> str:
        raise ValueError("secret words")

    with instrumented() as collector:
        with pytest.raises(ValueError, match="secret words"):
            with pipeline("failing"):
                broken("x")
    (failed,) = collector.spans.of("node")
    assert (failed[c.NODE_OUTCOME], failed[c.ERROR_TYPE]) == ("error", "ValueError")
    assert collector.spans.of("run")[0][c.RUN_OUTCOME] == "failed"
    assert "secret" not in "".join(span.to_json() for span in collector.spans.ended)


def test_a_wrong_call_is_the_callers_own_error() -> None:
    """Nothing of twinspan is in it."""
    with instrumented() as collector:
        with pytest.raises(TypeError, match="summarise"):
            summarise()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert collector.spans.of("node") == []


def test_without_instrumentation_a_node_is_the_function() -> None:
    """And afterwards it is again."""
    with instrumented() as collector:
        pass
    assert in_sequence("x") == "a plan x + b plan x"
    assert tool(len)("four") == 4
    assert collector.spans.ended == []


def test_uninstrumenting_restores_the_threads() -> None:
    """Nothing of the standard library stays wrapped."""
    before = (ThreadPoolExecutor.submit, threading.Thread.start)
    with instrumented():
        assert ThreadPoolExecutor.submit is not before[0]
    assert (ThreadPoolExecutor.submit, threading.Thread.start) == before


def test_plain_and_async_calls_do_not_go_together() -> None:
    """The cure is in the message."""
    waiting = aplanner("x")
    with pytest.raises(ConfigurationError, match="to_thread"):
        parallel(waiting, lambda: 1)
    waiting.close()


def test_a_failing_member_fails_the_group_after_all_are_done() -> None:
    """As `asyncio.gather` raises the first error; nothing stays open."""

    @node
    def broken(x: str) -> str:
        raise KeyError(x)

    with instrumented() as collector:
        with pytest.raises(KeyError), pipeline("group"):
            parallel(lambda: broken("x"), lambda: summarise("x"))
    assert {n[c.NODE_OUTCOME] for n in collector.spans.of("node")} == {"error", "ok"}
    assert collector.tracers[0].open_count == 0


# --- reading a pipeline's text --------------------------------------------------------------------


def test_loops_and_branches_are_read() -> None:
    """A value may travel backwards through a loop, and out of either branch."""

    def program(texts: list[str]) -> str:
        notes: list[Any] = []
        for text in texts:
            notes.append(summarise(text))
        verdict = judge(str(notes)) if len(notes) > 1 else "none"
        while verdict != "done":
            verdict = third(verdict)
        return verdict

    graph = flow_graph(program)
    assert list(graph.nodes) == ["summarise", "judge", "third"]
    assert set(graph.edges) == {("summarise", "judge"), ("judge", "third"), ("third", "third")}


def _helper(text: str) -> str:
    return summarise(text)


def test_helpers_of_the_same_module_are_followed() -> None:
    """Their nodes are known, though not their edges."""

    def program(text: str) -> str:
        return judge(_helper(text))

    assert set(flow_graph(program).nodes) == {"summarise", "judge"}
