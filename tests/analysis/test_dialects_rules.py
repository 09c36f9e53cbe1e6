"""The rules by which foreign spans are read, each on a trace of a few spans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foreign_spans import ERROR, GENAI, OPENINFERENCE, Program, written
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded_runs import ended_spans

from twinspan.analysis.dialects import interpretation
from twinspan.analysis.dialects.control_flow import outcome_of
from twinspan.analysis.dialects.foreign import ForeignSpan
from twinspan.analysis.dialects.interpretation import DIALECTS
from twinspan.analysis.dialects.matching import Interval, same
from twinspan.analysis.dialects.sequences import Turn, placed
from twinspan.analysis.dialects.span_tree import Told
from twinspan.analysis.dialects.traces import TraceReading
from twinspan.analysis.store import open_store
from twinspan.collector.otlp_json import span_line
from twinspan.instrumentation import conventions as c

Rows = tuple[tuple[object, ...], ...]


def _answer(source: Path, query: str) -> Rows:
    with open_store(source) as store:
        return store.table(query).rows


def _edges(source: Path) -> Rows:
    return _answer(source, "SELECT source, target, kind FROM edges ORDER BY ALL")


def _problems(source: Path) -> set[tuple[str, int]]:
    with open_store(source) as store:
        return {(problem.what, problem.count) for problem in store.problems}


# --- nodes --------------------------------------------------------------------------------------


def test_what_runs_inside_a_node_is_no_node(tmp_path: Path) -> None:
    """Inner graphs and functions carry the node's own names; a tool and a model too."""
    program = Program()
    graph = program.oi_graph("g", (0, 9))
    node = program.oi_node("a:1", 1, graph, (1, 8))
    inner = program.oi_node("a:1", 1, node, (2, 7), name="RunnableCallable")
    program.oi_node("a:1", 1, inner, (3, 4), name="again")
    program.oi_node("a:1", 1, inner, (3, 4), name="t", kind="TOOL")
    program.oi_node("a:1", 1, inner, (5, 6), name="m", kind="LLM")
    source = written(tmp_path, program)
    assert _answer(source, "SELECT node, kind FROM nodes") == (("a", "agent"),)
    assert _answer(source, "SELECT node, task_id FROM llm_calls") == (("a", "1"),)


def test_nodes_of_a_subgraph_are_qualified_by_their_holder(tmp_path: Path) -> None:
    """However deep; the holder's task is their scope, and it is a subgraph."""
    program = Program()
    graph = program.oi_graph("g", (0, 9))
    outer = program.oi_node("team:1", 4, graph, (1, 8))
    inner = program.oi_node("team:1|desk:2", 1, outer, (2, 7))
    program.oi_node("team:1|desk:2|draft:3", 1, inner, (3, 6))
    assert _answer(
        written(tmp_path, program), "SELECT node, scope, kind FROM nodes ORDER BY ALL"
    ) == (
        ("team", "", "subgraph"),
        ("team/desk", "1", "subgraph"),
        ("team/desk/draft", "2", "function"),
    )


def test_a_task_that_resumes_in_another_trace_is_one_execution(tmp_path: Path) -> None:
    """Its second attempt has read what the first one read."""
    first, second = Program(trace=1), Program(trace=2)
    graph = first.oi_graph("g", (0, 5))
    first.oi_node("plan:p", 1, graph, (1, 2))
    first.oi_node("ask:q", 2, graph, (3, 4), raised="langgraph.errors.GraphInterrupt")
    second.oi_node("ask:q", 2, second.oi_graph("g", (10, 15)), (11, 12))
    source = written(tmp_path, first, second)
    assert _answer(
        source, "SELECT attempt, outcome, parents FROM nodes WHERE node = 'ask' ORDER BY attempt"
    ) == ((1, "interrupted", ["plan"]), (2, "ok", ["plan"]))
    assert _answer(source, "SELECT outcome FROM runs ORDER BY start_time") == (
        ("interrupted",),
        ("completed",),
    )


def test_a_failure_stands_only_if_no_attempt_followed(tmp_path: Path) -> None:
    """A retried failure is told as retried, the last one as an error."""
    program = Program()
    graph = program.tl_graph("g", (0, 9), status=ERROR, raised="ValueError")
    for when in ((1, 2), (3, 4)):
        program.tl_node("a:1", 1, graph, when, status=ERROR, raised="ValueError")
    source = written(tmp_path, program)
    assert _answer(source, "SELECT outcome, error_type FROM nodes ORDER BY attempt") == (
        ("retried", "ValueError"),
        ("error", "ValueError"),
    )
    assert _answer(source, "SELECT outcome, error_type FROM runs") == (("failed", "ValueError"),)


def test_a_run_whose_first_span_is_lost_still_has_nodes(tmp_path: Path) -> None:
    """And says what it lacks."""
    program = Program()
    program.oi_node("a:1", 1, 77, (1, 2))
    program.oi_node("b:2", 2, 77, (3, 4))
    source = written(tmp_path, program)
    assert _answer(source, "SELECT count(*), count(DISTINCT run_id) FROM nodes") == ((2, 1),)
    assert _answer(source, "SELECT incomplete_reason FROM runs") == (("the root span is missing",),)


def test_two_runs_of_a_graph_in_one_trace_stay_two(tmp_path: Path) -> None:
    """Also side by side, and when two instrumentors tell both of them."""
    program = Program()
    request = program.span("app", "request", None, (0, 99), {})
    for begin in (1, 5):
        graph = program.oi_graph("g", (begin, begin + 20), parent=request)
        program.oi_node(f"a:{begin}", 1, graph, (begin + 1, begin + 2))
        program.genai("invoke_workflow", "g", request, (begin + 0.5, begin + 19))
    source = written(tmp_path, program)
    assert _answer(source, "SELECT graph, node_count FROM runs") == (("g", 1), ("g", 1))


# --- what is no failure ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [
        ("langgraph.errors.GraphInterrupt", "interrupted"),
        ("NodeInterrupt", "interrupted"),
        ("langgraph.errors.GraphDrained", "interrupted"),
        ("langgraph.errors.ParentCommand", "ok"),
        ("GeneratorExit", "cancelled"),
        ("asyncio.exceptions.CancelledError", "cancelled"),
    ],
)
def test_exceptions_that_steer_are_no_failures(tmp_path: Path, raised: str, outcome: str) -> None:
    """Whatever status the instrumentation gave them."""
    program = Program()
    program.tl_node("a:1", 1, program.tl_graph("g", (0, 9)), (1, 2), status=ERROR, raised=raised)
    query = "SELECT outcome, error_type, status_code FROM nodes"
    assert _answer(written(tmp_path, program), query) == ((outcome, None, "UNSET"),)


def _ended(**told: Any) -> tuple[str, str | None]:
    facts: dict[str, Any] = {"scope_name": "x", **told}
    return outcome_of(
        ForeignSpan(
            trace_id="t",
            span_id="s",
            parent_span_id=None,
            name="n",
            start=0,
            end=1,
            status="ERROR",
            **facts,
        )
    )


def test_a_command_in_the_message_is_a_jump_and_a_sentence_is_not() -> None:
    """Only the form of a call counts, not the word."""
    assert _ended(status_message="Command(goto='b')") == ("ok", None)
    assert _ended(status_message="GraphInterrupt((Interrupt(value=1),))") == ("interrupted", None)
    assert _ended(status_message="Command failed (code 3)") == ("error", "_OTHER")


def test_only_the_official_word_for_a_broken_stream_is_one() -> None:
    """Elsewhere the same word is a failure without a name."""
    assert _ended(error_type="_OTHER", scope_name=GENAI) == ("cancelled", None)
    assert _ended(error_type="_OTHER") == ("error", "_OTHER")


# --- edges ----------------------------------------------------------------------------------------


def test_a_join_names_its_sources_though_one_came_earlier(tmp_path: Path) -> None:
    """Both ends stand in the trigger; the slower branch decides when."""
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    program.oi_node("a:1", 1, graph, (1, 2))
    program.oi_node("slow:2", 1, graph, (1, 3))
    program.oi_node("b:3", 2, graph, (4, 5))
    program.oi_node("c:4", 3, graph, (6, 7), triggers=["branch:to:c", "join:a+b:c"])
    edges = _edges(written(tmp_path, program))
    assert ("a", "c", "observed") in edges
    assert ("b", "c", "observed") in edges


def test_a_join_that_is_not_complete_names_nobody(tmp_path: Path) -> None:
    """Triggers are all that could wake a node: here a branch did, and that is a guess."""
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    program.oi_node("r:1", 1, graph, (1, 2))
    program.oi_node("c:2", 2, graph, (3, 4), triggers=["branch:to:c", "join:a+b:c"])
    assert _edges(written(tmp_path, program)) == (("r", "c", "inferred"),)


def test_a_join_wakes_a_node_once(tmp_path: Path) -> None:
    """The second time in a loop its sources must have run anew."""
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    triggers = ["branch:to:c", "join:a+b:c"]
    program.oi_node("a:1", 1, graph, (1, 2))
    program.oi_node("b:2", 1, graph, (1, 2))
    program.oi_node("c:3", 2, graph, (3, 4), triggers=triggers)
    program.oi_node("d:4", 3, graph, (5, 6))
    program.oi_node("c:5", 4, graph, (7, 8), triggers=triggers)
    assert ("d", "c", "inferred") in _edges(written(tmp_path, program))


def test_a_join_needs_each_source_anew(tmp_path: Path) -> None:
    """One source alone wakes nobody by a join: it was a branch, and only likely."""
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    triggers = ["branch:to:c", "join:a+b:c"]
    program.oi_node("a:1", 1, graph, (1, 2))
    program.oi_node("b:2", 1, graph, (1, 2))
    program.oi_node("c:3", 2, graph, (3, 4), triggers=triggers)
    program.oi_node("a:4", 3, graph, (5, 6))
    program.oi_node("c:5", 4, graph, (7, 8), triggers=triggers)
    query = "SELECT edge_kind, parents FROM nodes WHERE node = 'c' ORDER BY superstep"
    assert _answer(written(tmp_path, program), query) == (
        ("observed", ["a", "b"]),
        ("inferred", ["a"]),
    )


def test_a_join_wakes_at_once_or_not_at_all(tmp_path: Path) -> None:
    """Sources that were complete a superstep earlier woke nobody now."""
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    program.oi_node("a:1", 1, graph, (1, 2))
    program.oi_node("b:2", 1, graph, (1, 2))
    program.oi_node("d:3", 2, graph, (3, 4))
    program.oi_node("c:4", 3, graph, (5, 6), triggers=["branch:to:c", "join:a+b:c"])
    query = "SELECT edge_kind, parents FROM nodes WHERE node = 'c'"
    assert _answer(written(tmp_path, program), query) == (("inferred", ["d"]),)


def test_a_jump_is_observed_and_its_neighbour_is_not_blamed(tmp_path: Path) -> None:
    """A command and a conditional edge name the node that runs next."""
    command: dict[str, object] = {"graph": None, "update": {}, "resume": None, "goto": "x"}
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    program.oi_node("r:1", 1, graph, (1, 2), output=command)
    other = program.oi_node("s:2", 1, graph, (1, 2), output={"x": "y"})
    program.oi_node("s:2", 1, other, (1.2, 1.5), name="RunnableCallable", output=["y", "z"])
    program.oi_node("x:3", 2, graph, (3, 4))
    program.oi_node("y:4", 2, graph, (3, 4))
    assert _edges(written(tmp_path, program)) == (("r", "x", "observed"), ("s", "y", "observed"))


def test_a_declared_edge_is_observed_only_from_the_only_node_before(tmp_path: Path) -> None:
    """Of two declared sources either may have taken its edge."""
    program = Program()
    graph = program.tl_graph("g", (0, 99), ["a -> b", "a -> c", "b -> d", "c -> d"])
    program.tl_node("a:1", 1, graph, (1, 2))
    program.tl_node("b:2", 2, graph, (3, 4))
    program.tl_node("c:3", 2, graph, (3, 4))
    program.tl_node("d:4", 3, graph, (5, 6))
    assert _edges(written(tmp_path, program)) == (
        ("a", "b", "observed"),
        ("a", "c", "observed"),
        ("b", "d", "inferred"),
        ("c", "d", "inferred"),
    )


def test_declared_edges_narrow_a_guess(tmp_path: Path) -> None:
    """A node without an edge to the target is no candidate."""
    program = Program()
    graph = program.tl_graph("g", (0, 99), ["a -> d"])
    for task, node in enumerate(("a", "b")):
        program.tl_node(f"{node}:{task}", 1, graph, (1, 2))
    program.tl_node("d:9", 2, graph, (5, 6))
    assert _edges(written(tmp_path, program)) == (("a", "d", "inferred"),)


def test_a_gap_in_the_supersteps_is_not_bridged(tmp_path: Path) -> None:
    """Of what was lost nothing can be said."""
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    program.oi_node("a:1", 1, graph, (1, 2))
    program.oi_node("c:2", 3, graph, (5, 6))
    assert _edges(written(tmp_path, program)) == ()


def test_agents_without_a_handoff_follow_in_time(tmp_path: Path) -> None:
    """Times tell an order, and no more than that: the edges are inferred."""
    program = Program()
    flow = program.genai("invoke_workflow", "g", None, (0, 99))
    program.genai("invoke_agent", "a", flow, (1, 4))
    program.genai("invoke_agent", "b", flow, (2, 5))
    program.genai("invoke_agent", "c", flow, (6, 7))
    assert _edges(written(tmp_path, program)) == (("a", "c", "inferred"), ("b", "c", "inferred"))


def test_a_handoff_names_who_handed_over_even_if_lost(tmp_path: Path) -> None:
    """The record names both ends, whether or not the first one's span is here."""
    program = Program()
    flow = program.span("openinference.instrumentation.openai_agents", "w", None, (0, 9), {})
    program.agent("b", flow, (3, 4), handed_by="a")
    program.agent("c", flow, (5, 6), handed_by="b")
    assert _edges(written(tmp_path, program)) == (("a", "b", "observed"), ("b", "c", "observed"))


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), min_size=1, max_size=12),
)
def test_a_turn_never_follows_one_that_was_still_running(times: list[tuple[int, int]]) -> None:
    """Layers grow along every source, and each source had ended."""
    turns = [
        Turn(task=str(number), node="n", start=start, end=start + length)
        for number, (start, length) in enumerate(times)
    ]
    layers = {each.turn.task: each.layer for each in placed(turns)}
    for each in placed(turns):
        assert all(source.end <= each.turn.start for source in each.sources)
        assert all(layers[source.task] == each.layer - 1 for source in each.sources)
        assert (each.layer > 1) == bool(each.sources)


# --- several dialects -----------------------------------------------------------------------------


def test_one_dialect_is_believed_for_each_graph(tmp_path: Path) -> None:
    """A subgraph that only the second instrumentor saw is not lost with the rest of its spans."""
    program = Program()
    graph = program.tl_graph("g", (0, 99))
    other = program.oi_graph("g", (0.5, 98), parent=graph)
    program.oi_node("a:1", 1, other, (1, 9))
    twin = program.tl_node("a:1", 1, graph, (1, 9))
    program.tl_node("a:1|inner:2", 1, twin, (2, 3))
    source = written(tmp_path, program)
    assert _answer(source, "SELECT node FROM nodes ORDER BY node") == (("a",), ("a/inner",))
    assert _problems(source) == {
        ("a span of Traceloop was left out, since OpenInference tells the same", 1)
    }


def test_a_call_that_only_one_instrumentor_saw_counts(tmp_path: Path) -> None:
    """Two calls side by side are matched one to one; the third is nobody's copy."""
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    node = program.oi_node("a:1", 1, graph, (1, 90))
    for begin in (2.0, 2.5):
        program.oi_node("a:1", 1, node, (begin, begin + 20), name="m", kind="LLM")
        program.genai("chat", "m", graph, (begin + 0.1, begin + 19))
    program.genai("chat", "m", graph, (3, 22))
    assert _answer(written(tmp_path, program), "SELECT count(*) FROM llm_calls") == ((3,),)


def test_the_span_of_a_client_inside_a_call_is_the_same_call(tmp_path: Path) -> None:
    """A framework's model and the library it calls both have spans."""
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    node = program.oi_node("a:1", 1, graph, (1, 90))
    call = program.oi_node("a:1", 1, node, (2, 9), name="m", kind="LLM")
    program.span(OPENINFERENCE, "client", call, (3, 8), {"openinference.span.kind": "LLM"})
    program.genai("chat", "m", call, (3, 8))
    assert _answer(written(tmp_path, program), "SELECT count(*) FROM llm_calls") == ((1,),)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=8), st.integers(2, 4))
def test_copies_never_add_a_call(times: list[tuple[int, int]], dialects: int) -> None:
    """However many instrumentors tell the very same calls."""
    told = [
        Interval(span_id=f"{rank}/{number}", rank=rank, start=start, end=start + length)
        for rank in range(dialects)
        for number, (start, length) in enumerate(times)
    ]
    assert len(set(same(told).values())) == len(times)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), max_size=7), st.data())
def test_as_many_spans_as_can_be_are_taken_for_one(
    times: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Against all ways of pairing two dialects up: none makes fewer things of them."""

    def told(rank: int, times: list[tuple[int, int]]) -> list[Interval]:
        return [
            Interval(span_id=f"{rank}/{n}", rank=rank, start=start, end=start + length)
            for n, (start, length) in enumerate(times)
        ]

    some = data.draw(st.permutations(times)) if times else times
    first, second = told(0, times), told(1, [(s + 1, n) for s, n in some[: len(some) // 2 + 1]])

    def most(left: list[Interval], free: frozenset[str]) -> int:
        if not left:
            return 0
        head, *rest = left
        ways = [o for o in first if o.span_id in free and o.may_be(head)]
        return max([most(rest, free), *(1 + most(rest, free - {o.span_id}) for o in ways)])

    pairs = most(second, frozenset(each.span_id for each in first))
    assert len(set(same([*first, *second]).values())) == len(first) + len(second) - pairs


def _own_line(program: Program) -> str:
    """A node of ours in the same trace."""
    (span,) = ended_spans({c.NODE_ID: "team/a", c.NODE_TASK_ID: "1"})
    document = json.loads(span_line(span))
    (ours,) = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    ours["traceId"] = f"{program.trace:032x}"
    program.genai("chat", "m", int(ours["spanId"], 16), (3, 4))
    return json.dumps(document)


def test_our_own_spans_come_before_all_others(tmp_path: Path) -> None:
    """Foreign nodes beside ours are left out and told; model calls join our run and node."""
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    program.oi_node("a:1", 1, graph, (1, 9))
    own = _own_line(program)
    source = written(tmp_path, program)
    source.write_text(source.read_text() + own + "\n")
    assert _answer(source, "SELECT node, run_id FROM nodes") == (("team/a", "r1"),)
    assert _answer(source, "SELECT run_id FROM runs") == (("r1",),)
    assert _answer(source, "SELECT run_id, node, task_id FROM llm_calls") == (
        ("r1", "team/a", "1"),
    )
    assert _problems(source) == {
        ("a span of OpenInference was left out, since twinspan tells the same", 1)
    }


# --- what is damaged ------------------------------------------------------------------------------


def test_metadata_that_is_not_json_is_counted(tmp_path: Path) -> None:
    """The span stays; what it would have meant is not known."""
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    broken = {"openinference.span.kind": "CHAIN", "metadata": '{"langgraph_node": "a'}
    program.span(OPENINFERENCE, "a", graph, (1, 2), broken)
    source = written(tmp_path, program)
    assert _answer(source, "SELECT count(*) FROM spans") == ((2,),)
    assert _answer(source, "SELECT count(*) FROM nodes") == ((0,),)
    assert _problems(source) == {
        ("an attribute that should hold JSON does not and was passed over", 1)
    }


def test_a_lone_surrogate_spoils_nothing(tmp_path: Path) -> None:
    """JSON can hold half a character, a table cannot."""
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    program.oi_node("\ud800:1", 1, graph, (1, 2), output={"v\ud800": "\ud800"})
    assert _answer(written(tmp_path, program), "SELECT node FROM nodes") == (("\ufffd",),)


def test_spans_that_are_each_others_parents_end_somewhere(tmp_path: Path) -> None:
    """A ring is no tree; it is read without an end in itself."""
    program = Program()
    program.genai("invoke_agent", "a", 1002, (1, 4))
    program.genai("invoke_agent", "b", 1001, (2, 3))
    assert len(_answer(written(tmp_path, program), "SELECT node FROM nodes")) == 2


def test_a_trace_beyond_all_bounds_is_cut_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory grows with the longest trace, so that has a limit."""
    monkeypatch.setattr(interpretation, "LONGEST_TRACE", 3)
    program = Program()
    graph = program.oi_graph("g", (0, 99))
    for step in range(1, 6):
        program.oi_node(f"a:{step}", step, graph, (step, step + 1))
    source = written(tmp_path, program)
    assert _answer(source, "SELECT count(*) FROM nodes") == ((2,),)
    assert {count for _, count in _problems(source)} == {3}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
_NAMES = (
    "openinference.span.kind",
    "metadata",
    "input.value",
    "output.value",
    "output.mime_type",
    "graph.node.id",
    "graph.node.parent_id",
    "llm.token_count.prompt",
    "traceloop.span.kind",
    "traceloop.entity.output",
    "traceloop.association.properties.langgraph_node",
    "traceloop.association.properties.langgraph_step",
    "traceloop.association.properties.langgraph_triggers",
    "traceloop.association.properties.langgraph_checkpoint_ns",
    "gen_ai.operation.name",
    "gen_ai.agent.name",
    "gen_ai.workflow.edges",
    "gen_ai.usage.input_tokens",
)
_WORDS = ("CHAIN", "LLM", "AGENT", "task", "workflow", "chat", "invoke_agent", "invoke_workflow")
_metadata = st.fixed_dictionaries(
    {
        "langgraph_node": st.sampled_from(["a", "b"]) | _json,
        "langgraph_step": st.integers(0, 3) | _json,
        "langgraph_triggers": st.just(["join:a+b:a", "branch:to:b"]) | _json,
        "langgraph_checkpoint_ns": st.sampled_from(["a:1", "b:2", "a:1|b:3", "|:", ""]) | _json,
    }
).map(json.dumps)
_value = _json | _json.map(json.dumps) | st.sampled_from(_WORDS) | _metadata
_span = st.tuples(
    st.dictionaries(st.sampled_from(_NAMES), _value, max_size=8),
    st.integers(0, 6),
    st.integers(0, 9),
    st.sampled_from([OPENINFERENCE, GENAI, "opentelemetry.instrumentation.langchain"]),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_span, max_size=6))
def test_no_attribute_makes_a_reader_fail(spans: list[tuple[Any, int, int, str]]) -> None:
    """Whatever stands in them: each span means something or nothing, and is told once."""
    told: list[Told] = []
    for number, (attributes, parent, start, scope) in enumerate(spans):
        span = ForeignSpan(
            trace_id="t",
            span_id=str(number),
            parent_span_id=str(parent),
            name="n",
            scope_name=scope,
            start=start,
            end=start + 2,
            status="ERROR",
        )
        claimed = (each for each in DIALECTS if each.claims(span, attributes))
        dialect = next(claimed, None)
        told.append(Told(span=span, reading=dialect.read(span, attributes) if dialect else None))
    rows = list(TraceReading(told).rows())
    assert len({row["span_id"] for row in rows}) == len(rows)
    interpretation.table_of(rows)
