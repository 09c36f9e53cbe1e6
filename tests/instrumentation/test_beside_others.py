"""twinspan alone and beside each other instrumentation: the same record, the same answers."""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from biased_graph import GENDER, decisions
from langgraph.pregel import Pregel
from langgraph.pregel._runner import PregelRunner
from langgraph.types import Command
from model_programs import PROGRAMS, Program, arun, run
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace import ReadableSpan
from other_instrumentations import EACH, OTHERS, SCOPES, World, beside, nothing_logged
from sample_agents import Spans
from shared_data import shared

from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.patching import Hook

Others = tuple[str, ...]
_T = TypeVar("_T")
UNPROBED: Mapping[str, Any] = {"axes": [], "nodes": []}
PROBED: Mapping[str, Any] = {
    "axes": [GENDER],
    "nodes": ["planner", "analyst_*", "worker", "writer_team/*", "reviewer"],
    "estimator": "category",
    "reference": 8,
    "counterfactual": 6,
}


def _named(names: Others) -> str:
    return "+".join(names) or "alone"


Ran = Callable[[Program, Any], list[Any]]


def _on_a_loop(program: Program, app: Any) -> list[Any]:
    return asyncio.run(arun(program, app))


@pytest.fixture(params=[run, _on_a_loop], ids=["sync", "async"])
def ran(request: pytest.FixtureRequest) -> Ran:
    """Runs a program, plainly or on an event loop."""
    found: Ran = request.param
    return found


def _away(work: Callable[[], _T]) -> _T:
    """Work in a context of its own, so that what others leave current stays there."""
    return contextvars.Context().run(work)


def _supersteps(spans: Spans) -> dict[str, dict[int, list[str]]]:
    """Executions by the node that holds them and their superstep."""
    nodes = spans.of("node")
    holders = {n[c.NODE_TASK_ID]: n[c.NODE_ID] for n in nodes}
    once = {n[c.NODE_TASK_ID]: n for n in nodes}
    found: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for node in once.values():
        scope = str(node[c.SUPERSTEP_SCOPE])
        holder = holders[scope] if scope else ""
        name = str(node[c.NODE_ID]).rpartition("/")[2]
        found[holder][node[c.SUPERSTEP_INDEX]].append(name)
    return {h: {step: sorted(nodes) for step, nodes in of.items()} for h, of in found.items()}


def _edges(spans: Spans) -> set[tuple[str, str]]:
    return {(a.rpartition("/")[2], b.rpartition("/")[2]) for a, b in spans.edges()}


def _watched(
    name: str, others: Others, ours_first: bool, ran: Ran
) -> tuple[World, Program, list[Any]]:
    program = PROGRAMS[name]
    app = program.build()

    def work() -> tuple[World, list[Any]]:
        with beside(others, ours_first=ours_first, **UNPROBED) as world:
            return world, ran(program, app)

    world, answers = _away(work)
    return world, program, answers


@pytest.mark.parametrize(
    ("ran", "ours_first"),
    [(run, True), (_on_a_loop, False)],
    ids=["sync, ours first", "async, ours last"],
)
@pytest.mark.parametrize("others", EACH, ids=_named)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_told_as_it_ran(name: str, others: Others, ran: Ran, ours_first: bool) -> None:
    """One trace, the exact graph, nothing left open, no false error, the same answer.

    A run that waited for a person goes on as the same run, in a trace of each invocation.
    """
    goes_on = any(isinstance(each, Command) for each in PROGRAMS[name].inputs)
    with nothing_logged():
        world, program, answers = _watched(name, others, ours_first, ran)
    spans = world.spans

    assert answers == ran(program, program.build())

    by_run: dict[object, set[int]] = defaultdict(set)
    for span in world.watch.ended:
        assert span.context is not None
        by_run[(span.attributes or {}).get(c.RUN_ID)].add(span.context.trace_id)
    stamped = {run_id: traces for run_id, traces in by_run.items() if run_id is not None}
    invocations = len(program.inputs)
    assert len(stamped) == (1 if goes_on else invocations)
    assert all(1 <= len(each) <= (invocations if goes_on else 1) for each in stamped.values())
    assert world.traces == set[int]().union(*stamped.values())
    if len(others) < 2:  # two others leave each other's spans current, with and without us
        assert len(world.traces) == len(program.inputs)

    assert _supersteps(spans) == program.supersteps
    assert _edges(spans) == program.edges
    assert [each[c.RUN_OUTCOME] for each in spans.of("run")] == list(program.outcomes)
    ended = Counter(str(node[c.NODE_OUTCOME]) for node in spans.of("node"))
    assert {how: many for how, many in ended.items() if how != "ok"} == program.attempts

    assert world.left_open == []
    failed = "failed" in program.outcomes
    assert len(world.errors) == (2 if failed else 0)  # the node and its run


@pytest.mark.parametrize("others", EACH, ids=_named)
def test_the_order_of_instrumenting_does_not_matter(others: Others) -> None:
    """The other two of the four combinations, on one program of each kind."""
    for name in ("sendsub", "interrupt"):
        for ran, ours_first in ((run, False), (_on_a_loop, True)):
            world, program, _ = _watched(name, others, ours_first, ran)
            assert _supersteps(world.spans) == program.supersteps
            assert _edges(world.spans) == program.edges
            assert world.left_open == []
            assert len(world.traces) <= len(program.inputs)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "failing"])
def test_the_truth_is_the_published_one(name: str) -> None:
    """The programs that others' recordings were published of are those programs."""
    published = json.loads(shared("otlp/expected.json").read_text()).get(name)
    if published is None:
        return
    program = PROGRAMS[name]
    assert program.build().get_name() == published["graph"]
    assert {
        holder: {str(step): sorted(nodes) for step, nodes in steps.items()}
        for holder, steps in program.supersteps.items()
    } == published["supersteps"]
    assert {tuple(edge) for edge in published["edges"]} <= program.edges
    assert program.calls == published["llm_calls"]


@pytest.mark.parametrize("others", EACH[1:], ids=_named)
@pytest.mark.parametrize("name", ["parallel", "sendsub", "loop"])
def test_decisions_do_not_depend_on_who_else_watches(name: str, others: Others) -> None:
    """Probed on the same seeds, every score and every decision is the same."""
    program = PROGRAMS[name]

    def decided(others: Others) -> list[tuple[Any, ...]]:
        def work() -> list[tuple[Any, ...]]:
            with beside(others, mode="shadow", **PROBED) as world:
                run(program, program.build())
            return decisions(world.spans)

        return _away(work)

    alone = decided(())
    assert alone == decided(others)
    assert any(each[0] == "halt" for each in alone) == (name == "parallel")


# --- whose cost it is ---------------------------------------------------------------------------


def _calls(world: World, scope: str) -> list[ReadableSpan]:
    """Spans of one instrumentation that stand for a call of the model."""

    def is_call(span: ReadableSpan) -> bool:
        told = span.attributes or {}
        return told.get("openinference.span.kind") == "LLM" or told.get(c.GEN_AI_OPERATION) in {
            "chat",
            "completion",
        }

    return [
        span
        for span in world.foreign()
        if span.instrumentation_scope is not None
        and span.instrumentation_scope.name == scope
        and is_call(span)
    ]


@pytest.mark.parametrize("others", EACH[1:], ids=_named)
def test_a_model_call_says_whether_it_is_work_or_measurement(others: Others, ran: Ran) -> None:
    """Each call carries its node, and in a probe the arm; work and probes add up."""
    program = PROGRAMS["parallel"]

    def work() -> World:
        with beside(others, **PROBED) as world:
            ran(program, program.build())
        return world

    world = _away(work)
    probes = Counter(str(each[c.PROBE_ARM]) for each in world.spans.of("probe"))
    tasks = {each[c.NODE_TASK_ID]: each[c.NODE_ID] for each in world.spans.of("node")}
    for name in others:
        calls = [dict(span.attributes or {}) for span in _calls(world, SCOPES[name])]
        arms = Counter(str(told.get(c.PROBE_ARM)) for told in calls)
        assert arms.pop("None") == program.calls
        assert arms == probes
        assert all(told[c.NODE_ID] == tasks[told[c.NODE_TASK_ID]] for told in calls)
        (root,) = world.spans.of("run")
        assert all(told[c.RUN_ID] == root[c.RUN_ID] for told in calls)


def test_spans_outside_of_a_run_are_left_alone() -> None:
    """What the application does before and after is none of our business."""
    with beside((), **UNPROBED) as world:
        tracer = world.provider.get_tracer("app")
        with tracer.start_as_current_span("before"):
            pass
        run(PROGRAMS["loop"], PROGRAMS["loop"].build())
        with tracer.start_as_current_span("after"):
            pass
    alone = {span.name: span for span in world.foreign()}
    assert {name: dict(span.attributes or {}) for name, span in alone.items()} == {
        "before": {},
        "after": {},
    }
    assert all(span.parent is None for span in alone.values())


def test_after_uninstrument_nothing_is_stamped() -> None:
    """The processor stays on the provider, since it cannot be taken off, and is silent."""
    with beside((), **UNPROBED) as world:
        pass
    with world.provider.get_tracer("app").start_as_current_span("later"):
        pass
    assert dict(world.watch.ended[-1].attributes or {}) == {}


# --- on and off, in any order -------------------------------------------------------------------


def _layers(owner: type, name: str) -> list[str]:
    """Classes of the layers around a method, the outermost first."""
    layer, found = owner.__dict__[name], list[str]()
    while layer is not None:
        found.append(type(layer).__name__)
        layer = layer.below if isinstance(layer, Hook) else getattr(layer, "__wrapped__", None)
    return found


METHODS = [(Pregel, "stream"), (Pregel, "astream"), (PregelRunner, "tick"), (PregelRunner, "atick")]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("ours_first", [True, False])
def test_uninstrument_takes_ours_away_and_leaves_theirs(name: str, ours_first: bool) -> None:
    """Whoever came last."""
    before = [_layers(*method) for method in METHODS]
    with beside((name,), ours_first=ours_first, **UNPROBED):
        TwinspanInstrumentor().uninstrument()
        within = [_layers(*method) for method in METHODS]
        run(PROGRAMS["loop"], PROGRAMS["loop"].build())
        TwinspanInstrumentor().instrument(collector=None)
    assert not any("Hook" in layers for layers in within)
    assert [_layers(*method) for method in METHODS] == before


def test_the_uninstrument_of_another_leaves_ours() -> None:
    """They take off the outermost layer, which may be ours: it stays, and theirs goes."""
    with beside(("genai",), ours_first=False, **UNPROBED) as world:
        OTHERS["genai"]().uninstrument()
        run(PROGRAMS["loop"], PROGRAMS["loop"].build())
        assert _layers(Pregel, "stream") == ["Hook", "function"]
        OTHERS["genai"]().instrument(tracer_provider=world.provider)
    assert len(world.spans.of("run")) == 1
    assert world.foreign() == []


def test_nothing_of_ours_is_current_after_a_run(
    ran: Ran,
) -> None:
    """Not even where somebody restores a context that they found during the run."""
    for others in EACH:
        for ours_first in (True, False):

            def work(others: Others = others, ours_first: bool = ours_first) -> set[str]:
                with beside(others, ours_first=ours_first, **UNPROBED):
                    ran(PROGRAMS["parallel"], PROGRAMS["parallel"].build())
                    left = otel_context.get_current().values()
                    return {getattr(value, "name", "") for value in left}

            assert "invoke_workflow loan_review" not in _away(work)


# --- as OpenTelemetry's own command sets it up ----------------------------------------------------

_AGENT = """
import collections, json
from model_programs import PROGRAMS, run
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from twinspan.instrumentation import TwinspanInstrumentor

memory = InMemorySpanExporter()
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(memory))
run(PROGRAMS["sendsub"], PROGRAMS["sendsub"].build())
TwinspanInstrumentor().flush()
spans = memory.get_finished_spans()
scopes = collections.Counter(span.instrumentation_scope.name for span in spans)
print(json.dumps([scopes, len({span.context.trace_id for span in spans})]))
"""


@pytest.mark.parametrize(
    ("disabled", "expected"),
    [
        ("", {c.SCOPE, *SCOPES.values()}),
        ("langchain", {c.SCOPE}),
        ("twinspan", set(SCOPES.values())),
    ],
)
def test_opentelemetry_instrument_has_all_of_them_side_by_side(
    disabled: str, expected: set[str], tmp_path: Path
) -> None:
    """Each is switched off by its own name; all that are on share one trace."""
    agent = tmp_path / "agent.py"
    agent.write_text(_AGENT, encoding="utf-8")
    exporters = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER")
    done = subprocess.run(
        [Path(sys.executable).parent / "opentelemetry-instrument", sys.executable, agent],
        env={
            **os.environ,
            **dict.fromkeys(exporters, "none"),
            "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": disabled,
            "PYTHONPATH": str(Path(__file__).parents[1]),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    scopes, traces = json.loads(done.stdout)
    assert set(scopes) == expected
    assert traces == 1
