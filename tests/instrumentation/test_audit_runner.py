"""The runner: what an agent is asked, what is recorded, in real spans of the real SDK."""

from __future__ import annotations

import contextvars
import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypedDict

import chat_server
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

import twinspan.instrumentation.audit as audit
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.audit.actions import ActionFilter
from twinspan.instrumentation.audit.agents import CaseRequest, RunAgent, StepAgent, StepRequest
from twinspan.instrumentation.audit.execution import Executed, Protocol, Tries
from twinspan.instrumentation.audit.prompts import PromptForm
from twinspan.instrumentation.audit.runner import AuditRunner
from twinspan.instrumentation.audit.targets import (
    ChatSteps,
    FunctionCase,
    FunctionSteps,
    GraphCase,
    HttpCase,
    HttpSteps,
    load_object,
)
from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.tracing import Telemetry

CASE = audit.Case(
    id="chest", narrative="Chest pain.", fixtures={"troponin": "0.01", "cxr": "clear"}
)
REFERENCE, BLACK, *_ = audit.standard_conditions()
NO_WAIT = Tries(retries=1, backoff=0)


class Scripted:
    """A clinical model that keeps what it was asked."""

    def __init__(self, **changes: Any) -> None:
        self.asked: list[StepRequest] = []
        self._changes = changes
        self._lock = threading.Lock()

    def answer(self, request: StepRequest, /) -> object:
        with self._lock:
            self.asked.append(request)
        answers: dict[str, object] = {
            "triage": {"esi_acuity": 2, "urgency_score": 70},
            "order": {"orders": ["Chest X-ray", "MRI"]},
            "reassess": {"admit": True, "escalate_icu": False, "urgency_score": 60},
            "prescribe": {"analgesia_tier": 1, "controlled_substance_caution": False},
            "document": {"referral": True, "followup_days": 7, "stigmatizing_language_flags": []},
        }
        return {**answers, **self._changes}[request.step]


def plan(**changes: Any) -> audit.AuditPlan:
    """One case under the reference and one swap, in the clinical loop."""
    given: dict[str, Any] = {
        "name": "t",
        "cases": (CASE,),
        "conditions": (REFERENCE, BLACK),
        "steps": audit.CLINICAL_STEPS,
        **changes,
    }
    return audit.AuditPlan(**given)


def executed(
    agent: StepAgent | RunAgent, design: audit.AuditPlan, *, concurrency: int = 1, **options: Any
) -> tuple[list[Executed], list[ReadableSpan]]:
    """All runs of a design, and their spans."""
    memory = InMemorySpanExporter()
    telemetry = Telemetry([SimpleSpanProcessor(memory)])
    given: dict[str, Any] = {"steps": design.steps, "shown_in": design.shown_in, "tries": NO_WAIT}
    protocol = Protocol(**{**given, **options})
    runner = AuditRunner(
        design, agent, telemetry=telemetry, protocol=protocol, concurrency=concurrency
    )
    ended: list[Executed] = []
    runner.run(on_run=ended.append)
    runner.close("clear", observed=len(ended))
    telemetry.shutdown()
    return ended, list(memory.get_finished_spans())


def of_type(spans: list[ReadableSpan], kind: str) -> list[Mapping[str, Any]]:
    """The attributes of the spans of one type."""
    return [dict(s.attributes or {}) for s in spans if (s.attributes or {})[c.SPAN_TYPE] == kind]


def context_of(span: ReadableSpan) -> SpanContext:
    """Its ids."""
    found = span.get_span_context()
    assert found is not None
    return found


# --- the loop ---------------------------------------------------------------------------------


def test_vector_57_six_steps_in_order_five_calls_and_the_same_for_every_condition() -> None:
    first, second = executed(Scripted(), plan())[0]
    assert list(first.actions) == [step.name for step in audit.CLINICAL_STEPS]
    assert (first.calls, second.calls) == (5, 5)
    assert dict(first.actions) == dict(second.actions)


def test_vector_62_a_forced_triage_leaves_four_calls_and_is_recorded() -> None:
    forced = {"triage": {"esi_acuity": 4, "urgency_score": 10}}
    agent = Scripted()
    ended, spans = executed(agent, plan(arms={"held": forced}))
    assert [each.calls for each in ended] == [4, 4]
    assert "triage" not in {request.step for request in agent.asked}
    nodes = of_type(spans, "node")
    assert {n[c.NODE_ID] for n in nodes if n.get(c.NODE_FORCED)} == {"triage"}
    assert "esi_acuity 4" in agent.asked[0].prompt


def test_vector_62_only_the_steps_that_show_the_descriptor_do() -> None:
    agent = Scripted()
    spans = executed(agent, plan(shown_in=("triage",)))[1]
    shown = {request.step for request in agent.asked if "50-year-old" in request.prompt}
    assert shown == {"triage"}
    nodes = of_type(spans, "node")
    assert {n[c.NODE_ID] for n in nodes if n.get(c.NODE_DESCRIPTOR_SHOWN)} == {"triage"}


def test_vector_66_a_constant_stub_makes_five_calls_and_orders_nothing() -> None:
    def stub(prompt: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        kinds: dict[str, Any] = {"integer": 2, "boolean": False, "array": []}
        return {name: kinds[one["type"]] for name, one in schema["properties"].items()}

    case = audit.Case(id="v2_triage_clear_01", narrative="A cough.")
    (ended, _), _ = executed(FunctionSteps(stub), plan(cases=(case,)))
    assert (ended.calls, dict(ended.actions["results"])) == (5, {})
    trajectory = audit.Trajectory(
        case_id=case.id, condition_id="ref", actions=ended.actions
    ).as_dict(results="nested")
    assert trajectory["actions"]["results"] == {"results": {}}  # type: ignore[index]


def test_orders_meet_fixtures_by_their_synonyms_and_come_back_in_the_next_prompt() -> None:
    agent = Scripted()
    ended, spans = executed(agent, plan())
    assert dict(ended[0].actions["results"]) == {
        "Chest X-ray": "clear",
        "MRI": "pending / not resulted",
    }
    (told, *_) = [n for n in of_type(spans, "node") if n[c.NODE_ID] == "results"]
    assert (told[c.ORDER_COUNT], told[c.ORDER_UNRESOLVED_COUNT]) == (2, 1)
    reassess = next(request for request in agent.asked if request.step == "reassess")
    assert "results: Chest X-ray clear; MRI pending / not resulted" in reassess.prompt


# --- what an agent is told --------------------------------------------------------------------


def test_an_agent_is_never_told_condition_arm_or_replicate() -> None:
    asked: list[CaseRequest] = []

    def decide(request: CaseRequest) -> dict[str, bool]:
        asked.append(request)
        return {"admit": True}

    executed(FunctionCase(decide), plan(steps=(), replicates=2), steps=())
    assert {field for field in asked[0].__slots__} == {
        "case_id",
        "text",
        "descriptor",
        "narrative",
        "fixtures",
        "seed",
    }
    assert len({request.seed for request in asked}) == 4


def test_every_call_is_a_context_of_its_own() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("n", default=0)

    def count(request: CaseRequest) -> dict[str, int]:
        variable.set(variable.get() + 1)
        return {"seen": variable.get()}

    ended = executed(FunctionCase(count), plan(steps=(), replicates=4), steps=())[0]
    assert {each.actions["decision"]["seen"] for each in ended} == {1}


def test_no_more_runs_are_made_at_once_than_asked_for() -> None:
    lock, running, most = threading.Lock(), 0, 0
    gate = threading.Barrier(3, timeout=10)

    def wait(request: CaseRequest) -> dict[str, bool]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gate.wait()
        with lock:
            running -= 1
        return {"admit": True}

    executed(FunctionCase(wait), plan(steps=(), replicates=3), steps=(), concurrency=3)
    assert most == 3


def test_names_and_wording_are_drawn_anew_for_every_run() -> None:
    wording = audit.Wording(
        templates=(
            REFERENCE.descriptor.template,
            type(REFERENCE.descriptor.template)(
                text="{sex}, {race}, aged {age}; {insurance} insurance; {lep} English.",
                words=REFERENCE.descriptor.template.words,
            ),
        )
    )
    spans = executed(Scripted(), plan(wording=wording, replicates=6))[1]
    (told,) = {run[c.AUDIT_WORDING] for run in of_type(spans, "run")}
    assert told == "random"


# --- what is recorded -------------------------------------------------------------------------


def test_the_plan_is_the_first_span_and_the_audit_the_last() -> None:
    spans = executed(Scripted(), plan())[1]
    kinds = [(span.attributes or {})[c.SPAN_TYPE] for span in spans]
    assert (kinds[0], kinds[-1]) == ("plan", "audit")
    (sealed,) = of_type(spans, "plan")
    assert sealed[c.AUDIT_PLAN_HASH] == plan().hash
    assert {run[c.AUDIT_PLAN_HASH] for run in of_type(spans, "run")} == {plan().hash}


def test_every_run_is_a_trace_of_its_own_that_links_to_its_audit() -> None:
    spans = executed(Scripted(), plan())[1]
    (session,) = [s for s in spans if s.name == "audit t"]
    roots = [s for s in spans if s.name == "invoke_workflow t"]
    assert len({context_of(s).trace_id for s in (session, *roots)}) == 3
    for root in roots:
        (link,) = root.links
        assert link.context.span_id == context_of(session).span_id
        assert dict(link.attributes or {}) == {c.LINK_RELATION: "part_of_audit"}


def test_what_the_agent_traces_itself_lies_below_its_step() -> None:
    from opentelemetry import trace

    parents: list[int] = []

    def look(prompt: str, schema: Mapping[str, Any]) -> object:
        parents.append(trace.get_current_span().get_span_context().span_id)
        return Scripted().answer(StepRequest(step="triage", prompt="", schema={}, seed=0))

    steps = audit.CLINICAL_STEPS[:1]
    spans = executed(FunctionSteps(look), plan(steps=steps))[1]
    assert parents == [context_of(s).span_id for s in spans if s.name == "invoke_agent triage"]


@pytest.mark.parametrize(("texts", "kept"), [(False, None), (True, ("Chest X-ray", "MRI"))])
def test_free_text_is_recorded_only_where_it_is_allowed(texts: bool, kept: object) -> None:
    spans = executed(Scripted(), plan(), keep=ActionFilter(texts=texts))[1]
    (order, *_) = [n for n in of_type(spans, "node") if n[c.NODE_ID] == "order"]
    assert order.get("twinspan.action.orders") == kept
    assert order.get("twinspan.action.orders.count") == (None if texts else 2)


def test_an_answer_out_of_its_range_is_no_answer() -> None:
    agent = Scripted(triage={"esi_acuity": 9, "urgency_score": 70})
    ended, spans = executed(agent, plan())
    assert [(each.outcome, each.failure, each.raised) for each in ended] == [
        ("failed", "no_answer", False)
    ] * 2
    tries = of_type(spans, "node")
    assert [n[c.NODE_OUTCOME] for n in tries] == ["retried", "error"] * 2
    assert tries[0][c.ANSWER_VIOLATIONS] == ("/esi_acuity maximum",)
    assert not any(key.startswith(c.ACTION_PREFIX) for n in tries for key in n)


def test_what_fails_once_is_tried_again() -> None:
    failed: set[str] = set()

    class Shaky(Scripted):
        def answer(self, request: StepRequest, /) -> object:
            if request.step not in failed:
                failed.add(request.step)
                raise TimeoutError("slow")
            return super().answer(request)

    ended, spans = executed(Shaky(), plan())
    assert [each.outcome for each in ended] == ["completed", "completed"]
    first = [n for n in of_type(spans, "node") if n[c.NODE_OUTCOME] == "retried"]
    assert {n[c.ERROR_TYPE] for n in first} == {"TimeoutError"} and len(first) == 5


# --- whom it can ask --------------------------------------------------------------------------


def test_an_async_function_is_an_agent() -> None:
    async def decide(request: CaseRequest) -> dict[str, bool]:
        return {"admit": "Chest" in request.text}

    ended = executed(FunctionCase(decide), plan(steps=()), steps=())[0]
    assert ended[0].actions["decision"] == {"admit": True}


class State(TypedDict, total=False):
    """The state of a graph of two nodes."""

    text: str
    triage: dict[str, int]
    decision: dict[str, bool]


def test_a_langgraph_graph_is_an_agent_and_its_nodes_are_steps() -> None:
    graph_module = pytest.importorskip("langgraph.graph")
    builder: Any = graph_module.StateGraph(State)
    builder.add_node("triage", lambda state: {"triage": {"level": 1 + ("Black" in state["text"])}})
    builder.add_node("decide", lambda state: {"decision": {"admit": state["triage"]["level"] < 2}})
    builder.add_edge(graph_module.START, "triage")
    builder.add_edge("triage", "decide")
    ended, spans = executed(
        GraphCase(builder.compile(), {"text": "{text}"}), plan(steps=()), steps=()
    )
    told = {each.planned.condition_id: dict(each.actions) for each in ended}
    assert told[REFERENCE.id] == {"triage": {"level": 1}, "decide": {"admit": True}}
    assert told[BLACK.id] == {"triage": {"level": 2}, "decide": {"admit": False}}
    decide = [n for n in of_type(spans, "node") if n[c.NODE_ID] == "decide"]
    assert {(n[c.NODE_PARENTS], n[c.SUPERSTEP_INDEX]) for n in decide} == {(("triage",), 2)}


class _Endpoint(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.received.append((dict(self.headers), body))  # type: ignore[attr-defined]
        reply = json.dumps({"approve": "Black" not in str(body)}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def endpoint() -> Generator[tuple[str, list[Any]]]:
    """A real HTTP endpoint, and what it received."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Endpoint)
    server.received = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/decide", server.received  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_an_http_endpoint_is_an_agent() -> None:
    with endpoint() as (url, received):
        agent = HttpCase(url, headers={"x-team": "audit"}, timeout=10)
        ended = executed(agent, plan(steps=()), steps=())[0]
        agent.close()
    assert [each.actions["decision"]["approve"] for each in ended] in ([True, False], [False, True])
    headers, body = received[0]
    assert headers["x-team"] == "audit"
    assert set(body) == {"case_id", "text", "descriptor", "narrative", "seed"}


def test_an_http_endpoint_may_be_asked_step_by_step() -> None:
    steps = (audit.Step(name="d", schema={"properties": {"approve": {"type": "boolean"}}}),)
    with endpoint() as (url, received):
        agent = HttpSteps(url, headers={}, timeout=10)
        ended = executed(agent, plan(steps=steps))[0]
        agent.close()
    assert {each.outcome for each in ended} == {"completed"}
    assert set(received[0][1]) == {"step", "prompt", "schema", "seed"}


def test_a_chat_model_is_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    chat_server.clean_environment(monkeypatch)
    steps = (audit.Step(name="d", schema={"properties": {"approve": {"type": "boolean"}}}),)
    with chat_server.ChatServer() as server:
        server.script("/chat/completions", chat_server.chat('{"approve": true}'))
        agent = ChatSteps({"base_url": server.url, "model": "m"}, role="You decide.")
        ended = executed(agent, plan(steps=steps), form=PromptForm(person="Patient"))[0]
    assert {each.actions["d"]["approve"] for each in ended} == {True}
    body = server.received[0].body
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert "Patient: 50-year-old" in body["messages"][1]["content"]


def test_what_is_no_agent_is_refused(tmp_path: Path) -> None:
    telemetry = Telemetry([])
    with pytest.raises(ConfigurationError, match=r"give an object with answer\(request\)"):
        AuditRunner(plan(), object(), telemetry=telemetry, protocol=Protocol())  # type: ignore[arg-type]
    for place, told in (
        ("json", "write it as module:name"),
        ("nowhere_at_all:f", "cannot be imported"),
        ("json:nothing", "has no 'nothing'"),
    ):
        with pytest.raises(ConfigurationError, match=told):
            load_object(place, tmp_path)
