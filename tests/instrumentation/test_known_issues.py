"""What went wrong in other projects' agent tracing, by the number of our list of public issues.

Each test names the symptom that was reported elsewhere, and shows that it does not occur here.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from biased_graph import GENDER, decisions
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from model_programs import PROGRAMS, QUESTION, State, arun, run
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode
from other_instrumentations import EACH, World, beside, nothing_logged
from recorded_runs import parts

from twinspan.analysis.store import open_store
from twinspan.instrumentation import TwinspanInstrumentor, stamping
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.attributes import CONTENT_LIMIT, clean_attributes
from twinspan.instrumentation.frameworks.langgraph.task import outcome_of_error
from twinspan.instrumentation.settings import CAPTURE_CONTENT_VARIABLE

SMALL: dict[str, Any] = {
    "axes": [GENDER],
    "nodes": ["*"],
    "estimator": "category",
    "reference": 3,
    "counterfactual": 2,
}
PLAIN: dict[str, Any] = {"axes": [], "nodes": []}
GIVEN: dict[str, Any] = {"question": QUESTION, "notes": []}


def _by_id(world: World) -> dict[int, ReadableSpan]:
    return {span.context.span_id: span for span in world.watch.ended if span.context is not None}


def _parent(world: World, span: ReadableSpan) -> str:
    above = None if span.parent is None else _by_id(world).get(span.parent.span_id)
    return "" if above is None else above.name


def _names(world: World) -> Counter[str]:
    return Counter(span.name for span in world.watch.ended)


def _one_node(function: Callable[[Any], Any], name: str = "only") -> Any:
    graph: Any = StateGraph(State)
    graph.add_node(name, function)
    graph.add_edge(START, name)
    graph.add_edge(name, END)
    return graph.compile(name="one")


def _spanning(world: World) -> Callable[[Any], Any]:
    """A node of an application that makes a span of its own."""

    def node(state: Any) -> Any:
        with world.provider.get_tracer("app").start_as_current_span("inside"):
            return {"a": "done"}

    return node


# --- one trace, the right parents ---------------------------------------------------------------


def test_issue_01_async_steps_are_one_trace() -> None:
    """Async LangGraph: each step its own trace; parents are given, not found."""
    with beside((), **PLAIN) as world:
        asyncio.run(arun(PROGRAMS["parallel"], PROGRAMS["parallel"].build()))
    assert len(world.traces) == 1


def test_issue_02_no_token_is_detached_elsewhere() -> None:
    """A traceback per invocation: attach and detach are in one frame."""

    async def in_two_tasks(app: Any) -> None:
        chunks = app.astream(GIVEN)
        await asyncio.create_task(anext(chunks))
        await asyncio.create_task(anext(chunks))
        await asyncio.create_task(chunks.aclose())

    with nothing_logged(), beside((), **PLAIN) as world:
        asyncio.run(in_two_tasks(PROGRAMS["parallel"].build()))
    assert world.left_open == []


def test_issue_03_callbacks_that_lose_context_change_nothing() -> None:
    """Shielded async callbacks lose context: none of ours is built on callbacks."""

    class Careless(AsyncCallbackHandler):
        async def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
            otel_context.attach(otel_context.Context())

    with beside((), **PLAIN) as world:
        app = PROGRAMS["parallel"].build()
        asyncio.run(app.ainvoke(GIVEN, {"callbacks": [Careless()]}))
    assert len(world.traces) == 1
    assert {_parent(world, s) for s in world.watch.ended if s.parent} == {
        "invoke_workflow loan_review"
    }


@pytest.fixture
def failing_detach(monkeypatch: pytest.MonkeyPatch) -> None:
    """A context runtime that cannot detach."""

    def detach(token: Any) -> None:
        raise ValueError("created in a different Context")

    monkeypatch.setattr(otel_context._RUNTIME_CONTEXT, "detach", detach)


@pytest.mark.usefixtures("failing_detach")
def test_issue_04_a_failed_detach_never_reaches_the_application() -> None:
    """Context detach crashed the user's app: telemetry does not raise."""
    program = PROGRAMS["parallel"]

    def work() -> list[Any]:
        with beside((), **PLAIN):
            return run(program, program.build())

    assert contextvars.Context().run(work) == run(program, program.build())


@pytest.mark.usefixtures("failing_detach")
def test_issue_05_a_failed_detach_does_not_end_recording() -> None:
    """Detach errors, then no spans at all: the next run is recorded as before."""

    def work() -> World:
        with beside((), **PLAIN) as world:
            for _ in range(2):
                run(PROGRAMS["loop"], PROGRAMS["loop"].build())
        return world

    spans = contextvars.Context().run(work).spans
    assert [len(spans.of(kind)) for kind in ("run", "node")] == [2, 6]


def test_issue_06_runs_can_be_joined_without_a_trace() -> None:
    """One trace per node under `ainvoke`: every span names its run."""
    with beside((), **SMALL) as world:
        asyncio.run(arun(PROGRAMS["parallel"], PROGRAMS["parallel"].build()))
    assert len({str((span.attributes or {}).get(c.RUN_ID)) for span in world.spans.ended}) == 1


@pytest.mark.parametrize("way", ["sync", "async", "sync nodes on a loop"])
def test_issue_07_nesting_is_the_same_however_it_is_called(way: str) -> None:
    """Nesting breaks with `ainvoke`: a subgraph's nodes lie in the node that holds it."""
    program = PROGRAMS["parallel" if way == "async" else "deep"]
    app = program.build(asynchronous=True) if way == "async" else program.build()
    with beside((), **PLAIN) as world:
        if way == "sync":
            run(program, app)
        else:
            asyncio.run(arun(program, app))
    for span in world.watch.ended:
        node = str((span.attributes or {}).get(c.NODE_ID, ""))
        if node:
            holder = node.rpartition("/")[0]
            expected = f"invoke_node {holder}" if holder else f"invoke_workflow {app.get_name()}"
            assert _parent(world, span) == expected


@pytest.mark.parametrize("others", [(), ("openinference",)])
def test_issue_08_spans_made_in_a_node_hang_below_it(others: tuple[str, ...]) -> None:
    """Spans made inside a node hang under the root: our node's span is current there."""
    with beside(others, **PLAIN) as world:
        _one_node(_spanning(world)).invoke(GIVEN)
    (inside,) = [span for span in world.foreign() if span.name == "inside"]
    assert _parent(world, inside) == "invoke_node only"


def test_issue_09_parallel_runs_share_nothing() -> None:
    """One shared handler, parallel runs, wrong parents: no state of a run is anywhere else."""
    app = PROGRAMS["parallel"].build()
    with beside((), **PLAIN) as world, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: app.invoke(GIVEN), range(24)))
        world.flush()
    by_id = _by_id(world)
    runs = Counter(str((span.attributes or {})[c.RUN_ID]) for span in world.watch.ended)
    assert set(runs.values()) == {5}
    for span in world.watch.ended:
        if span.parent is not None:
            above = by_id[span.parent.span_id]
            assert (above.attributes or {})[c.RUN_ID] == (span.attributes or {})[c.RUN_ID]


@pytest.mark.parametrize("on_loop", [False, True])
def test_issue_10_probes_in_a_pool_carry_context(on_loop: bool) -> None:
    """`threading.Thread` without `copy_context`: what a probe's node does lies in that probe."""
    with beside((), **SMALL) as world:
        app = _one_node(_spanning(world))
        if on_loop:
            asyncio.run(app.ainvoke(GIVEN))
        else:
            app.invoke(GIVEN)
    inside = [span for span in world.foreign() if span.name == "inside"]
    places = Counter(_parent(world, span).split()[0] for span in inside)
    assert places == {"invoke_agent": 1, "probe": 5}
    for span in inside:
        arm = (span.attributes or {}).get(c.PROBE_ARM)
        assert _parent(world, span) == ("invoke_agent only" if arm is None else f"probe {arm}")


def test_issue_11_parallel_tools_are_no_roots() -> None:
    """Parallel tools become root spans: they run in the node's context."""
    with beside((), **PLAIN) as world:
        tracer = world.provider.get_tracer("app")

        @tool
        def look(who: str) -> str:
            """Look."""
            with tracer.start_as_current_span("looking"):
                return who

        calls = [{"name": "look", "args": {"who": w}, "id": w, "type": "tool_call"} for w in "abc"]
        graph: Any = StateGraph(MessagesState)
        graph.add_node("tools", ToolNode([look]))
        graph.add_edge(START, "tools")
        graph.compile().invoke({"messages": [AIMessage("", tool_calls=calls)]})
    looking = [span for span in world.foreign() if span.name == "looking"]
    assert [_parent(world, span) for span in looking] == ["invoke_node tools"] * 3


# --- every execution is there -------------------------------------------------------------------


def test_issue_12_every_branch_of_a_step_is_kept() -> None:
    """Parallel branches: one node per step kept; here a superstep is a set."""
    with beside((), **PLAIN) as world:
        run(PROGRAMS["unequal"], PROGRAMS["unequal"].build())
    assert world.spans.supersteps()["", 2] == ["long_1", "short"]


def test_issue_13_each_send_is_an_execution() -> None:
    """`Send` map-reduce missing from the graph: executions are keyed by task, not by name."""
    with beside((), **PLAIN) as world:
        run(PROGRAMS["fanout"], PROGRAMS["fanout"].build())
    workers = [node for node in world.spans.of("node") if node[c.NODE_ID] == "worker"]
    assert len({node[c.NODE_TASK_ID] for node in workers}) == 5


def test_issue_14_subgraphs_are_there_with_their_scope() -> None:
    """Named subgraphs vanish: their nodes are told, each in the task that holds them."""
    with beside((), **PLAIN) as world:
        run(PROGRAMS["deep"], PROGRAMS["deep"].build())
    nodes = {str(node[c.NODE_ID]): node for node in world.spans.of("node")}
    assert nodes["team/desk/draft"][c.SUPERSTEP_SCOPE] == nodes["team/desk"][c.NODE_TASK_ID]
    assert nodes["team/desk"][c.SUPERSTEP_SCOPE] == nodes["team"][c.NODE_TASK_ID]


# --- control flow is no failure -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["interrupt", "there_and_back", "sendsub"])
def test_issue_15_steering_is_no_error(name: str) -> None:
    """`GraphInterrupt` shown as error: interrupts and commands leave no error anywhere."""
    with beside((), **PLAIN) as world:
        run(PROGRAMS[name], PROGRAMS[name].build())
    assert world.errors == []
    assert {span.status.status_code for span in world.watch.ended} == {StatusCode.UNSET}
    assert not any(span.events for span in world.watch.ended)


def test_issue_16_the_class_decides_not_its_name() -> None:
    """Interrupts counted as errors: a subclass steers, a namesake does not."""
    steering = type("Pause", (GraphInterrupt,), {})
    bubbling = type("Elsewhere", (GraphBubbleUp,), {})
    namesake = type("GraphInterrupt", (Exception,), {})
    told = [outcome_of_error(kind()) for kind in (steering, bubbling, namesake)]
    assert told == ["interrupted", "ok", "error"]


def test_issue_17_a_paused_node_is_interrupted_and_its_status_unset() -> None:
    """A paused node has status ERROR: the outcome says it, the status stays unset."""
    with beside((), **PLAIN) as world:
        run(PROGRAMS["interrupt"], PROGRAMS["interrupt"].build())
    (paused,) = [
        span
        for span in world.watch.ended
        if (span.attributes or {}).get(c.NODE_OUTCOME) == "interrupted"
    ]
    assert paused.status.status_code is StatusCode.UNSET
    assert c.ERROR_TYPE not in (paused.attributes or {})


# --- every span ends ----------------------------------------------------------------------------


def _left_by(abandon: Callable[[Any], None]) -> World:
    with beside((), **PLAIN) as world:
        abandon(PROGRAMS["parallel"].build())
        gc.collect()
    return world


def _break_off(app: Any) -> None:
    for _ in app.stream(GIVEN):
        break


def _close(app: Any) -> None:
    with closing(app.stream(GIVEN)) as chunks:
        next(chunks)


def _let_go_async(app: Any) -> None:
    async def work() -> None:
        async for _ in app.astream(GIVEN):
            break
        gc.collect()
        await asyncio.sleep(0.01)

    asyncio.run(work())


def _cancel(app: Any) -> None:
    async def work() -> None:
        async def read() -> None:
            async for _ in app.astream(GIVEN):
                await asyncio.sleep(10)

        task = asyncio.create_task(read())
        await asyncio.sleep(0.1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(work())


@pytest.mark.parametrize("abandon", [_break_off, _close, _let_go_async, _cancel])
def test_issue_18_an_abandoned_stream_ends_its_spans(abandon: Callable[[Any], None]) -> None:
    """An abandoned stream's span never ends: closing, collecting and cancelling all end it."""
    world = _left_by(abandon)
    assert world.left_open == []
    (root,) = world.spans.of("run")
    assert root[c.RUN_OUTCOME] == "cancelled"
    assert world.errors == []


@pytest.mark.parametrize("mode", ["values", "updates", "messages", "tasks", "debug", "custom"])
def test_issue_19_no_streamed_call_leaves_a_span_open(mode: str) -> None:
    """Each streamed call leaks an open span: each span has one owner, which ends it."""
    with beside((), **PLAIN) as world:
        app = PROGRAMS["sendsub"].build()
        for _ in range(3):
            list(app.stream(GIVEN, stream_mode=mode))
    assert world.left_open == []
    assert len(world.spans.of("run")) == 3


def test_issue_20_nothing_of_a_run_stays_in_memory() -> None:
    """A span map grows until memory is gone: after a run, maps are as empty as before."""
    with beside(("openinference",), **SMALL) as world:
        for _ in range(3):
            run(PROGRAMS["parallel"], PROGRAMS["parallel"].build())
        engine = TwinspanInstrumentor().engine
        assert engine is not None and engine.telemetry.stamping is not None
        assert len(engine.telemetry.stamping._open) == 0
        assert engine.collector is not None
        assert engine.collector.runs._runs == {}  # type: ignore[attr-defined]
    assert world.left_open == []


def test_issue_21_spans_that_never_end_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans that never end pile up: what is remembered of others' spans has a bound."""
    monkeypatch.setattr(stamping, "MOST_OPEN", 5)

    with beside((), **PLAIN) as world:

        def forgetful(state: Any) -> Any:
            for _ in range(20):
                world.provider.get_tracer("app").start_span("never ended")
            return {"a": "done"}

        _one_node(forgetful).invoke(GIVEN)
        engine = TwinspanInstrumentor().engine
        assert engine is not None and engine.telemetry.stamping is not None
        assert len(engine.telemetry.stamping._open) == 5


# --- attributes ---------------------------------------------------------------------------------


def test_issue_22_no_value_is_refused_or_rewritten() -> None:
    """A dict attribute is refused: every value passes one gate that makes it a valid one."""
    told = clean_attributes({"a": {"b": 1}, "c": [1, "x"], "d": object(), "e": 2**70})
    span = trace.get_tracer("t").start_span("s")
    span.set_attributes(told)
    assert all(
        isinstance(value, bool | int | float | str | tuple | list) for value in told.values()
    )


def test_issue_23_identity_is_never_evicted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Tool schemas evict `gen_ai.*` at 128 attributes: ours have no such limit."""
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "4")
    with beside(("openinference",), folder=tmp_path, **PLAIN) as world:
        run(PROGRAMS["loop"], PROGRAMS["loop"].build())
    assert all(c.NODE_TASK_ID in node for node in world.spans.of("node"))
    assert all(len(span.attributes or {}) <= 4 for span in world.foreign())


def test_issue_24_long_chats_need_no_more_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long chats lose session and token attributes: no key of ours has a number in it."""
    monkeypatch.setenv(CAPTURE_CONTENT_VARIABLE, "SPAN_ONLY")

    def keys(messages: int) -> set[str]:
        given = {"question": QUESTION, "notes": ["word"] * messages}
        with beside((), **SMALL) as world:
            _one_node(lambda state: {"a": "done"}).invoke(given)
        return {key for span in world.spans.ended for key in (span.attributes or {})}

    assert keys(400) == keys(1)
    assert max(len(span) for span in [keys(1)]) < 128


def test_issue_25_a_fat_span_harms_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One fat span kills its batch: text is cut at a known length, and the rest is recorded."""
    monkeypatch.setenv(CAPTURE_CONTENT_VARIABLE, "SPAN_ONLY")
    with beside((), folder=tmp_path, **PLAIN) as world:
        _one_node(lambda state: {"a": "x" * 5_000_000}).invoke(GIVEN)
    longest = max(len(str(v)) for s in world.spans.ended for v in (s.attributes or {}).values())
    assert longest <= CONTENT_LIMIT
    with open_store(tmp_path) as store:
        assert store.table("SELECT completeness FROM runs").rows == (("complete",),)


# --- several instrumentors ----------------------------------------------------------------------


def test_issue_26_a_call_that_two_saw_counts_once(tmp_path: Path) -> None:
    """Two instrumentors, each call twice: one is believed, what was left out is told."""
    with beside(EACH[-1], folder=tmp_path, **PLAIN):
        run(PROGRAMS["parallel"], PROGRAMS["parallel"].build())
    with open_store(tmp_path) as store:
        assert store.table("SELECT count(*) FROM llm_calls").rows == ((4,),)
        assert {problem.count for problem in store.problems} == {4}


def test_issue_27_nothing_is_suppressed_inside_a_probe() -> None:
    """A suppress key hides nested model calls: in a probe they are stamped instead."""
    seen: list[object] = []

    def node(state: Any) -> Any:
        keys = ("suppress_instrumentation", "suppress_language_model_instrumentation")
        seen.extend(otel_context.get_value(key) for key in keys)
        return {"a": "done"}

    with beside((), **SMALL):
        _one_node(node).invoke(GIVEN)
    assert seen == [None] * 12


def test_issue_28_a_bare_loop_has_a_run(tmp_path: Path) -> None:
    """A bare tool loop gave 9 spans in 9 traces: where nobody opened a run, one is opened."""
    with beside((), **PLAIN) as world:
        run(PROGRAMS["agents"], PROGRAMS["agents"].build())
    roots = [span for span in world.watch.ended if span.parent is None]
    assert [span.name for span in roots] == ["invoke_workflow hiring"]
    assert len(world.traces) == 1


# --- processors, samplers, exporters -------------------------------------------------------------


def test_issue_29_a_score_is_on_a_span_of_its_own() -> None:
    """A span is frozen before `on_ending`: nothing of ours is written to a span that has ended."""
    with nothing_logged("opentelemetry"), beside((), **SMALL) as world:
        run(PROGRAMS["loop"], PROGRAMS["loop"].build())
    assert all(c.EFFECT_VALUE in found for found in world.spans.of("probe_set"))
    assert not any(c.EFFECT_VALUE in node for node in world.spans.of("node"))


class _Raising(SpanProcessor):
    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("on start")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("on end")


def test_issue_30_a_processor_that_raises_stays_alone() -> None:
    """A processor's error replaces the application's: neither theirs nor ours gets there."""
    program = PROGRAMS["parallel"]
    with beside((), **SMALL) as world:
        world.provider.add_span_processor(_Raising())
        answers = run(program, program.build())
    assert answers == run(program, program.build())
    assert len(world.spans.of("run")) == 1


def test_issue_30_our_own_processor_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails in stamping is counted, and the application's span goes on."""
    monkeypatch.delenv("TWINSPAN_RAISE")
    monkeypatch.setattr(stamping, "_stamp", lambda _: 1 / 0)
    with beside((), **PLAIN) as world:
        _one_node(_spanning(world)).invoke(GIVEN)
        engine = TwinspanInstrumentor().engine
        assert engine is not None and engine.telemetry.stamping is not None
        assert engine.telemetry.stamping.failures.count == 1
    assert _names(world)["inside"] == 1


def test_issue_31_decisions_see_unsampled_spans() -> None:
    """Processors are blind to unsampled spans: the breaker is not, and nothing is exported."""
    program = PROGRAMS["parallel"]

    def decided(**options: Any) -> tuple[list[tuple[Any, ...]], int]:
        with beside((), mode="shadow", **SMALL, **options) as world:
            run(program, program.build())
        sampled = [s for s in world.watch.ended if s.context and s.context.trace_flags.sampled]
        return decisions(world.spans), len(sampled)

    on, exported = decided()
    off, hidden = decided(sampler=ALWAYS_OFF)
    assert on == off
    assert exported > 0 and hidden == 0


class _Hanging(SpanProcessor):
    def __init__(self, until: threading.Event) -> None:
        self.until = until

    def on_end(self, span: ReadableSpan) -> None:
        self.until.wait()


def test_issue_32_an_exporter_that_hangs_holds_nobody_up() -> None:
    """An unreachable collector: exit hangs; a run ends while the exporter still does."""
    until = threading.Event()
    with beside((), **PLAIN) as world:
        world.provider.add_span_processor(_Hanging(until))
        answers = run(PROGRAMS["loop"], PROGRAMS["loop"].build())
        assert not until.is_set()
        until.set()
    assert len(answers) == 1
    assert len(world.spans.of("run")) == 1


def _program(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    """A program of its own that instruments, builds `app` and goes on with `body`."""
    text = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[1])!r})
from model_programs import PROGRAMS, run
from twinspan.instrumentation import TwinspanInstrumentor
twinspan = TwinspanInstrumentor()
twinspan.instrument(record={str(folder)!r})
app = PROGRAMS["loop"].build()
run(PROGRAMS["loop"], app)
{body}
"""
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False
    )


def _runs(folder: Path) -> list[tuple[object, ...]]:
    with open_store(folder) as store:
        return list(store.table("SELECT completeness, node_count FROM runs").rows)


def test_issue_33_a_recycled_worker_can_flush(tmp_path: Path) -> None:
    """Recycled workers lose all spans: after `flush()` a process may vanish without a goodbye."""
    done = _program(tmp_path, "assert twinspan.flush()\nos._exit(0)")
    assert done.returncode == 0, done.stderr
    assert _runs(tmp_path) == [("complete", 3)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_issue_34_a_forked_child_records_on_its_own(tmp_path: Path) -> None:
    """A processor dead after a fork: parent and child both go on, as different writers."""
    body = """
child = os.fork()
run(PROGRAMS["loop"], app)
assert twinspan.flush()
if child:
    assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""
    done = _program(tmp_path, body)
    assert done.returncode == 0, done.stderr
    assert _runs(tmp_path) == [("complete", 3)] * 3
    assert len({part.name.rsplit("-", 1)[0] for part in parts(tmp_path)}) == 2


def test_issue_35_a_plain_node_says_what_it_is() -> None:
    """Nobody agrees what a plain node is: ours has a kind of its own on every node."""
    with beside((), **PLAIN) as world:
        for name in ("agents", "deep"):
            run(PROGRAMS[name], PROGRAMS[name].build())
    kinds = {str(node[c.NODE_ID]): node[c.NODE_KIND] for node in world.spans.of("node")}
    assert kinds["screener/tools"] == "tool"
    assert kinds["team"] == "subgraph"
    assert kinds["team/desk/draft"] == "function"
