"""Recorded spans read well in Jaeger: checked on a real one, by what a person would look for."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jaeger_server
import pytest
from recorded_runs import recording, small_run

from twinspan.analysis.demo.run import run_demo
from twinspan.analysis.jaeger import send_spans
from twinspan.analysis.store import open_store
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import NotSent, SourceError


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's biased run and an unbiased one, recorded."""
    folder = tmp_path_factory.mktemp("demo")
    run_demo(folder, seed=0)
    run_demo(folder, seed=1, biased=False)
    return folder


class _Receiver:
    """Takes OTLP/HTTP and keeps it; answers with a status."""

    def __init__(self, status: int = 200) -> None:
        self.requests: list[Any] = []
        kept = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                kept.append((self.path, json.loads(body)))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> _Receiver:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def spans(self) -> list[dict[str, Any]]:
        return [
            span
            for _, document in self.requests
            for entry in document["resourceSpans"]
            for scoped in entry["scopeSpans"]
            for span in scoped["spans"]
        ]


def _tags(span: dict[str, Any]) -> dict[str, Any]:
    return {entry["key"]: entry["value"] for entry in span["attributes"]}


# --- what is sent -------------------------------------------------------------------------------


def test_every_span_is_sent_once_with_what_a_reader_must_see(demo: Path) -> None:
    """The cut is an error with its reason, passed checks are fine, links are repeated."""
    with _Receiver() as receiver, open_store(demo) as store:
        sent = send_spans(store, receiver.url)
        recorded = store.table("SELECT span_id, breaker_decision FROM spans").rows
    spans = {span["spanId"]: span for span in receiver.spans()}
    assert {path for path, _ in receiver.requests} == {"/v1/traces"}
    assert sent.spans == len(receiver.spans()) == len(spans) == len(recorded)
    assert len(sent.traces) == 2
    for span_id, decision in recorded:
        if decision is not None:
            assert spans[str(span_id)]["status"]["code"] == (2 if decision == "halt" else 1)
    (halt,) = [s for s in spans.values() if s["status"]["message"].startswith("halt: ")]
    assert next(iter(_tags(halt))) == c.BREAKER_DECISION
    assert any("twinspan.links" in _tags(span) for span in spans.values())


def test_text_is_cut_and_batches_are_small(tmp_path: Path) -> None:
    """A server refuses what is too large as a whole."""
    with recording(tmp_path) as (telemetry, _):
        run = telemetry.run("r1")
        for _ in range(700):
            messages = {c.GEN_AI_INPUT_MESSAGES: "x" * 10_000}
            run.end(run.start("chat", "node", messages))
    with _Receiver() as receiver, open_store(tmp_path) as store:
        assert send_spans(store, receiver.url).spans == 700
    assert len(receiver.requests) > 1
    assert max(len(json.dumps(document)) for _, document in receiver.requests) < 3 * 1024 * 1024
    text = _tags(receiver.spans()[0])[c.GEN_AI_INPUT_MESSAGES]["stringValue"]
    assert text.endswith("x [5904 more characters]")


def test_a_parent_that_is_not_recorded_is_a_tag(tmp_path: Path) -> None:
    """Jaeger would complain of a parent that never comes."""
    with recording(tmp_path) as (telemetry, _):
        small_run(telemetry, "r1")
    with open_store(tmp_path) as store:
        store.table("SELECT 1")
        parent = str(store.table("SELECT span_id FROM spans WHERE span_type = 'run'").rows[0][0])
    for part in tmp_path.rglob("*.parquet"):
        with open_store(part) as store:
            if store.table("SELECT count(*) FROM spans WHERE span_type = 'node'").rows == ((3,),):
                with _Receiver() as receiver:
                    send_spans(store, receiver.url)
                for span in receiver.spans():
                    assert "parentSpanId" not in span
                    assert _tags(span)["twinspan.parent.outside"] == {"stringValue": parent}


def test_what_is_not_taken_is_an_error_with_its_cure(demo: Path) -> None:
    """Nobody listens; somebody refuses; there is no such run."""
    with open_store(demo) as store:
        with pytest.raises(NotSent, match="--endpoint"):
            send_spans(store, "http://127.0.0.1:9")
        with pytest.raises(NotSent, match="--endpoint"):
            send_spans(store, "not a url")
        with _Receiver(413) as receiver, pytest.raises(NotSent, match="status 413"):
            send_spans(store, receiver.url)
        with pytest.raises(SourceError, match="has no run 'x'"):
            send_spans(store, run_id="x")


# --- a real Jaeger ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jaeger(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[jaeger_server.Jaeger]:
    """A real Jaeger that was sent both runs by the command."""
    with jaeger_server.running(tmp_path_factory.mktemp("jaeger") / "log") as running:
        done = subprocess.run(
            [
                *[sys.executable, "-m", "twinspan.analysis.cli", "jaeger", str(demo)],
                *["--endpoint", running.otlp],
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith("sent ")
        yield running


def _runs(jaeger: jaeger_server.Jaeger, **tags: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = jaeger.get(
        "/api/traces", service=_service(jaeger), tags=json.dumps(tags), limit=20, lookback="2d"
    )
    return found


def _service(jaeger: jaeger_server.Jaeger) -> str:
    (service,) = jaeger.get("/api/services")
    return str(service)


def test_jaeger_has_one_trace_for_each_run(jaeger: jaeger_server.Jaeger, demo: Path) -> None:
    """Whole, with the parents that were recorded and nothing to complain of."""
    with open_store(demo) as store:
        recorded = {
            (str(t), str(s)): p
            for t, s, p in store.table("SELECT trace_id, span_id, parent_span_id FROM spans").rows
        }
    traces = _runs(jaeger)
    shown = {
        (trace["traceID"], span["spanID"]): next(
            (r["spanID"] for r in span["references"] if r["refType"] == "CHILD_OF"), None
        )
        for trace in traces
        for span in trace["spans"]
    }
    assert len(traces) == 2
    assert shown == recorded
    assert Counter(p is None for p in shown.values())[True] == 2
    spans = [span for trace in traces for span in trace["spans"]]
    assert [span["warnings"] for span in spans if span["warnings"]] == []


def test_jaeger_lists_what_agents_did(jaeger: jaeger_server.Jaeger) -> None:
    """Operations are few and name the node."""
    operations = set(jaeger.get(f"/api/services/{_service(jaeger)}/operations"))
    assert {"update_network_score", "probe analyst_a", "probe counterfactual"} <= operations
    assert any(name.endswith(" reviewer") for name in operations)
    assert len(operations) < 40


def test_jaeger_marks_the_halt(jaeger: jaeger_server.Jaeger) -> None:
    """Found by its tag, in one run only, marked as an error with its reason."""
    (trace,) = _runs(jaeger, **{c.BREAKER_DECISION: "halt"})
    (halted,) = [
        {tag["key"]: tag["value"] for tag in span["tags"]}
        for span in trace["spans"]
        if {"key": c.BREAKER_DECISION, "type": "string", "value": "halt"} in span["tags"]
    ]
    assert halted["error"] is True
    assert halted["otel.status_description"] == "halt: monitor_at_limit"
    assert halted[c.BREAKER_EDGE] == "analyst_a->reviewer"


@pytest.mark.parametrize(
    ("key", "value", "runs"),
    [
        (c.BREAKER_DECISION, "proceed", 2),
        (c.PROBE_AXIS, "gender", 2),
        (c.NODE_ID, "analyst_a", 2),
        (c.GEN_AI_EVALUATION_LABEL, "above_floor", 1),
        (c.BREAKER_ENFORCED, "true", 2),
        (c.BREAKER_DECISION, "none", 0),
    ],
)
def test_jaeger_finds_runs_by_tag(
    jaeger: jaeger_server.Jaeger, key: str, value: str, runs: int
) -> None:
    """The searches that the documentation names."""
    assert len(_runs(jaeger, **{key: value})) == runs
