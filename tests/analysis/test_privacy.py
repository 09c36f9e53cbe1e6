"""Words planted wherever content is, and looked for wherever anything comes out.

With the switch off no byte that leaves the process has one of them: no file, no export, no log
line, no report, no error of the command line. With it on they are where they should be.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import logging
import shlex
import threading
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypedDict

import duckdb
import pytest
from biased_graph import decisions
from click.testing import CliRunner
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from other_instrumentations import OTHERS, beside

from twinspan.analysis.cli import main
from twinspan.analysis.store import open_store
from twinspan.collector.otlp_json import span_line
from twinspan.instrumentation.errors import BiasHalt
from twinspan.instrumentation.perturbation import Axis, Slot
from twinspan.instrumentation.settings import CAPTURE_CONTENT_VARIABLE

PROMPT, ANSWER, KEY = "Quillfeather", "vermilionpuma", "Zanthe Obermoor"
ARGUMENT, FAULT, PAUSE, RESUMED = "tangerinearg", "kettlefault", "nougatpause", "sorbetresume"
CONFIG, FROM, TO, NEUTRAL = "marzipancfg", "grumbaxian", "flozzian", "neutralish"
PLANTED = (PROMPT, ANSWER, KEY, ARGUMENT, FAULT, PAUSE, RESUMED, CONFIG, FROM, TO, NEUTRAL)

AXIS = Axis(
    name="origin",
    groups=("north", "south"),
    slots=(Slot(name="people", forms={"north": (FROM,), "south": (TO,)}, neutral=(NEUTRAL,)),),
)


class State(TypedDict, total=False):
    """What the agents share."""

    text: str
    files: dict[str, str]
    answer: str
    verdict: str


@tool
def look_up(who: str) -> str:
    """Look somebody up."""
    return f"{who} {ANSWER}"


def _judge(state: Any) -> State:
    return {"answer": f"{'decline' if FROM in state['text'] else 'approve'} {ANSWER}"}


def _talk(state: Any) -> State:
    look_up.invoke({"who": ARGUMENT})
    return {"verdict": f"{state['answer']} {ANSWER}"}


def _broken(state: Any) -> State:
    raise ValueError(f"{FAULT} {state['text']}")


def _ask(state: Any) -> State:
    return {"verdict": interrupt(PAUSE)}


def _app(*nodes: tuple[str, Any]) -> Any:
    graph: Any = StateGraph(State)
    for name, node in nodes:
        graph.add_node(name, node)
    names = [name for name, _ in nodes]
    for source, target in zip((START, *names), (*names, END), strict=True):
        graph.add_edge(source, target)
    return graph.compile(name="planted", checkpointer=InMemorySaver())


GIVEN = {"text": f"{PROMPT} is {FROM}.", "files": {KEY: f"one of the {FROM}"}}


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread, "user_name": CONFIG}, "metadata": {"u": CONFIG}}


def _play() -> None:
    """A repaired run, a failing one, one that asks a person and goes on."""
    _app(("judge", _judge), ("talk", _talk)).invoke(GIVEN, _config("t1"))
    with pytest.raises(ValueError, match=FAULT):
        _app(("judge", _judge), ("broken", _broken)).invoke(GIVEN, _config("t2"))
    asking = _app(("judge", _judge), ("ask", _ask))
    asking.invoke(GIVEN, _config("t3"))
    asking.invoke(Command(resume=RESUMED), _config("t3"))


@dataclass
class Receiver:
    """A stand-in for a Collector: keeps every byte that it is sent."""

    url: str
    bodies: list[bytes] = field(default_factory=list)


@pytest.fixture
def receiver() -> Generator[Receiver]:
    """A receiver on this machine."""
    found = Receiver("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            packed = self.headers.get("Content-Encoding") == "gzip"
            found.bodies.append(gzip.decompress(body) if packed else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


def _record(folder: Path, receiver: Receiver | None, others: tuple[str, ...] = ()) -> Path:
    """Play everything; returns a file of what was exported beside the record."""
    options: dict[str, Any] = {
        "axes": [AXIS],
        "nodes": ["judge", "talk"],
        "safe_tools": ["look_up"],
        "estimator": "category",
        "mode": "repair",
    }
    with beside(others, folder=folder, **options) as world:
        if receiver is not None:
            exporter = OTLPSpanExporter(endpoint=f"{receiver.url}/v1/traces")
            world.provider.add_span_processor(SimpleSpanProcessor(exporter))
        _play()
    assert "halt" in [each[0] for each in decisions(world.spans)]
    exported = folder.parent / "exported.jsonl"
    exported.write_text("".join(span_line(span) for span in world.spans.ended), encoding="utf-8")
    return exported


def _bytes(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file as it is, and what packed ones hold."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        raw = path.read_bytes()
        yield path.name, raw
        if raw[:2] == b"\x1f\x8b":
            yield path.name, gzip.decompress(raw)
        if path.suffix == ".parquet":
            with duckdb.connect() as connection:
                rows = connection.execute(f"SELECT * FROM read_parquet('{path}')").fetchall()
            yield path.name, repr(rows).encode()


def _found(texts: Mapping[str, bytes]) -> set[tuple[str, str]]:
    return {
        (name, word) for name, text in texts.items() for word in PLANTED if word.encode() in text
    }


COMMANDS = (
    "report {spans} --out {out}/report.html",
    "sarif {spans} --out {out}/findings.sarif",
    "import {spans} --out {out}/imported",
    "import {exported} --out {out}/imported-json",
    "trail {spans}",
    "trail {spans} --format json",
    "verify {spans}",
    "dag {spans} --format json",
    "dag {spans} --format mermaid",
    "replay {spans}",
    "flips {spans}",
    "floor {spans} --format json",
    "schema",
    "sql {spans} 'SELECT * FROM no_such_view'",
    "sql {spans} 'SELECT CAST(text AS INT) FROM spans, (SELECT name AS text FROM spans)'",
    "floor {out}/nothing-here",
    "calibrate {spans} --target 0.05",
    "watch {spans}",
    "history {spans}",
    "compact {spans}",
)
VIEWS = (
    "spans", "runs", "nodes", "edges", "supersteps", "probe_sets", "probes", "network",
    "decisions", "interventions", "actions", "floors", "coverage", "llm_calls", "trail",
    "otel_traces",
)  # fmt: skip


def _said(spans: Path, exported: Path, out: Path, receiver: Receiver) -> dict[str, bytes]:
    """What each command prints, and every traceback it hides."""
    out.mkdir()
    asked = [command.format(spans=spans, exported=exported, out=out) for command in COMMANDS]
    asked += [f"sql {spans} 'FROM {view}' --format json" for view in VIEWS]
    asked.append(f"jaeger {spans} --endpoint {receiver.url}")
    found: dict[str, bytes] = {}
    for command in asked:
        result = CliRunner().invoke(main, shlex.split(command))
        assert result.exit_code in (0, 1, 2, 3), command
        assert result.exception is None or isinstance(result.exception, SystemExit), command
        found[command] = result.output.encode()
    return found


@pytest.mark.parametrize("others", [(), tuple(OTHERS)], ids=["alone", "beside others"])
def test_with_the_switch_off_no_planted_word_comes_out(
    tmp_path: Path,
    receiver: Receiver,
    others: tuple[str, ...],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Not in a file, an export, a log line, a report or a printed line."""
    caplog.set_level(logging.DEBUG, logger="twinspan")
    # What others export is theirs: their spans are open by default.
    exported = _record(tmp_path / "spans", None if others else receiver, others)
    said = _said(tmp_path / "spans", exported, tmp_path / "out", receiver)
    texts = said | dict(_bytes(tmp_path))
    texts |= {f"received {n}": body for n, body in enumerate(receiver.bodies)}
    texts["log"] = "\n".join(
        f"{each.getMessage()} {each.exc_text or ''}"
        for each in caplog.records
        if each.name.startswith("twinspan")
    ).encode()
    assert receiver.bodies
    assert len(said) > 30
    assert _found(texts) == set()


def test_with_the_switch_on_content_is_where_it_should_be(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts and answers on nodes, words on probes; exception texts nowhere even so."""
    monkeypatch.setenv(CAPTURE_CONTENT_VARIABLE, "SPAN_ONLY")
    _record(tmp_path / "spans", receiver)
    with open_store(tmp_path / "spans") as store:
        nodes = str(store.table("SELECT * FROM spans WHERE span_type = 'node'").rows)
        probes = str(store.table("SELECT * FROM spans WHERE span_type = 'probe'").rows)
    assert PROMPT in nodes and ANSWER in nodes
    assert FROM in probes and TO in probes
    assert FAULT not in nodes + probes
    assert any(ANSWER.encode() in body for body in receiver.bodies)


def test_hashes_cannot_be_guessed(tmp_path: Path) -> None:
    """Equal payloads of one run hash alike; of two runs they do not, and no plain hash is there."""
    _record(tmp_path / "spans", None)
    answer = json.dumps({"answer": f"approve {ANSWER}"}, sort_keys=True)
    with open_store(tmp_path / "spans") as store:
        rows = store.table(
            "SELECT run_id, output_hash FROM nodes WHERE node = 'judge' AND outcome = 'ok'"
        ).rows
        everything = str(store.table("FROM spans").rows)
    assert len({row[1] for row in rows}) == len({row[0] for row in rows}) == len(rows) == 3
    for name in ("sha256", "sha1", "md5", "blake2b"):
        assert hashlib.new(name, answer.encode()).hexdigest()[:16] not in everything
    assert hmac.new(b"", answer.encode(), "sha256").hexdigest()[:16] not in everything


def test_a_halt_says_where_and_never_what() -> None:
    """The payload is on the error for the program; its text and traceback do not carry it."""
    options: dict[str, Any] = {"axes": [AXIS], "nodes": ["judge"], "mode": "halt"}
    with beside((), estimator="category", **options):
        with pytest.raises(BiasHalt) as caught:
            _app(("judge", _judge), ("talk", _talk)).invoke(GIVEN, _config("t1"))
    told = f"{caught.value} {caught.value!r} {caught.value.args}"
    assert not any(word in told for word in PLANTED)
    assert ANSWER in str(caught.value.frozen_payload)
