"""The demo, from its recorded files alone: halts where it must and nowhere else."""

from __future__ import annotations

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from twinspan.analysis import Store, open_store
from twinspan.analysis.demo.run import HOT, TAU_EXIT, run_demo
from twinspan.instrumentation.errors import BiasHalt

EDGES = {
    ("planner", "analyst_a"),
    ("planner", "analyst_b"),
    ("analyst_a", "reviewer"),
    ("analyst_b", "reviewer"),
}


RUNS = 80


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifty biased runs in one folder."""
    folder = tmp_path_factory.mktemp("biased")
    for seed in range(50):
        run_demo(folder, seed=seed)
    return folder


@pytest.fixture(scope="module")
def store(recorded: Path) -> Any:
    with open_store(recorded) as opened:
        yield opened


def rows(store: Store, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in store.table(query).rows]


def test_the_biased_edge_is_cut_in_nearly_every_run(store: Store) -> None:
    """At least 48 of 50 seeds halt at analyst_a -> reviewer, and at no other edge."""
    cut = rows(
        store,
        "SELECT count(DISTINCT run_id) FROM decisions WHERE decision = 'halt' "
        "AND superstep = 2 AND edge = 'analyst_a->reviewer' AND enforced",
    )
    assert cut[0][0] >= 48
    elsewhere = rows(
        store, "SELECT DISTINCT edge FROM decisions WHERE decision = 'halt' AND superstep = 2"
    )
    assert elsewhere == [("analyst_a->reviewer",)]


def test_the_edges_are_the_graphs_four_all_observed(store: Store) -> None:
    """In every run."""
    found = rows(store, "SELECT DISTINCT source, target, kind FROM edges")
    assert {(source, target) for source, target, _ in found} == EDGES
    assert {kind for _, _, kind in found} == {"observed"}
    per_run = rows(
        store,
        "SELECT DISTINCT count(*) FROM edges JOIN runs USING (run_id) "
        "WHERE outcome = 'completed' GROUP BY run_id",
    )
    assert per_run == [(4,)]


def test_the_network_score_is_recomputed_from_probe_spans(store: Store) -> None:
    """In SQL, from distances and weights alone, to 1e-12."""
    (worst,) = rows(
        store,
        "SELECT max(abs(b_fast - b_fast_recomputed)), max(abs(b_slow - b_slow_recomputed)), "
        "max(abs(input - input_recomputed)), count(*) FROM network",
    )
    assert max(worst[:3]) < 1e-12
    assert worst[3] >= 190


def test_the_reviewer_read_the_repaired_payload(store: Store) -> None:
    """By hash: of the edge's payload, and of the reviewer's whole input."""
    found = rows(
        store,
        """
        SELECT i.payload_hash = e.payload_hash, i.handed_hash = n.input_hash,
               d.payload_hash <> e.payload_hash
        FROM interventions i
        JOIN edges e ON e.run_id = i.run_id AND e.source = i.node AND e.target = 'reviewer'
        JOIN nodes n ON n.run_id = i.run_id AND n.node = 'reviewer'
        JOIN decisions d ON d.run_id = i.run_id AND d.decision = 'halt' AND d.superstep = 2
        WHERE i.outcome = 'cleared' AND i.superstep = 2
        """,
    )
    assert len(found) >= 48
    assert {row[:2] for row in found} == {(True, True)}
    # A repair may by chance arrive at the very answer that was frozen.
    assert sum(not differs for _, _, differs in found) <= 5


def test_repaired_runs_recover_by_measurement(store: Store) -> None:
    """B_net falls below tau_exit with the repaired procedure's own score, and the run ends."""
    (counts,) = rows(
        store,
        """
        SELECT count(*) FILTER (reason = 'remeasured_below_limits'),
               max(b_fast) FILTER (reason = 'remeasured_below_limits'),
               (SELECT count(*) FROM runs WHERE outcome = 'completed')
        FROM decisions
        """,
    )
    assert counts[0] >= 45
    assert counts[1] < TAU_EXIT
    assert counts[2] >= 48


def test_every_run_is_complete(store: Store) -> None:
    """No span is missing from the record."""
    assert rows(store, "SELECT DISTINCT completeness FROM runs") == [("complete",)]


@pytest.mark.parametrize("temperature", [None, HOT], ids=["unbiased", "hot"])
def test_without_bias_nothing_is_halted(tmp_path: Path, temperature: float | None) -> None:
    """At most the monitor's alpha of 5 percent, within its error; noise is not bias.

    `benchmarks/study_demo.py` does it over 200 seeds.
    """
    heat: dict[str, Any] = {} if temperature is None else {"temperature": temperature}
    for seed in range(RUNS):
        run_demo(tmp_path, seed=1000 + seed, biased=False, **heat)
    with open_store(tmp_path) as opened:
        (halted,) = rows(
            opened, "SELECT count(DISTINCT run_id) FROM decisions WHERE decision = 'halt'"
        )
        (runs,) = rows(opened, "SELECT count(*) FROM runs")
    assert runs[0] == RUNS
    assert halted[0] <= 8  # more than 8 of 80 come up in 3 percent of such tests at 5 percent


def test_the_halting_decision_is_on_disk_before_the_halt_is_raised(tmp_path: Path) -> None:
    """Whoever catches the halt finds it in the files, before anything else is written."""
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from langgraph.pregel._runner import PregelRunner\n"
        "from twinspan.analysis.demo.run import run_demo\n"
        "import twinspan.instrumentation.run as live\n"
        "def die(self, outcome, error=None):\n"
        "    os._exit(9 if outcome == 'halted' else 1)\n"
        "live.LiveRun.close = die\n"
        "run_demo(Path(sys.argv[1]), seed=0, mode='halt', flush_seconds=60)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == 9
    with open_store(tmp_path) as opened:
        found = rows(
            opened, "SELECT decision, edge, enforced FROM decisions WHERE edge IS NOT NULL"
        )
        (run,) = rows(opened, "SELECT completeness FROM runs")
    assert found == [("halt", "analyst_a->reviewer", True)]
    assert run == ("incomplete",)


def test_a_halt_reaches_the_application_where_it_is_not_repaired() -> None:
    """With the frozen payload, which is in no file."""
    outcome = run_demo(None, seed=0, mode="halt")
    assert isinstance(outcome.halt, BiasHalt)
    assert outcome.halt.edge == "analyst_a->reviewer"
    assert "analyst_a" in str(outcome.halt.frozen_payload)


def twinspan(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "twinspan.analysis.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_tells_the_story_from_the_files(tmp_path: Path) -> None:
    """Graph, network score, trail, and what to ask next."""
    done = twinspan("demo", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    for told in ("halt at analyst_a->reviewer", "axis gender", "cleared", "twinspan sql"):
        assert told in done.stdout


@pytest.mark.parametrize("kind", ["--unbiased", "--hot"])
def test_the_unbiased_command_tells_no_halt(tmp_path: Path, kind: str) -> None:
    """And says so."""
    done = twinspan("demo", kind, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "halt at" not in done.stdout and "clear" in done.stdout


def test_removing_a_recorded_file_makes_the_trail_say_incomplete(tmp_path: Path) -> None:
    """Whichever file it is."""
    run_demo(tmp_path, seed=3, flush_spans=20)
    parts = sorted(tmp_path.rglob("*.parquet"))
    assert len(parts) > 2
    for part in parts:
        kept = part.read_bytes()
        part.unlink()
        done = twinspan("trail", str(tmp_path), "--format", "json")
        part.write_bytes(kept)
        assert [run["verdict"] for run in json.loads(done.stdout)] == ["incomplete"]
    assert "incomplete" not in twinspan("trail", str(tmp_path)).stdout


class Sink(BaseHTTPRequestHandler):
    """An OTLP endpoint that keeps what it is sent."""

    received: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append(body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_the_demo_sends_its_spans_by_otlp(tmp_path: Path) -> None:
    """As an application with an exporter of its own would."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = twinspan(
            "demo", "--out", str(tmp_path), "--otlp", f"http://127.0.0.1:{server.server_port}"
        )
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    assert b"update_network_score" in b"".join(Sink.received)
