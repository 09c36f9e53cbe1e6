"""The recorder writes everything, whatever happens, and never harms the host."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from opentelemetry.sdk.trace import TracerProvider
from recorded_runs import ended_spans, parts, recording, rows, small_run

from twinspan.collector.recorder import Recorder
from twinspan.collector.run_files import read_run
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.tracing import Telemetry


def _until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def _recorded(recorder: Recorder, spans: int) -> Callable[[], bool]:
    return lambda: recorder.recorded == spans


def _child(program: str, folder: Path) -> subprocess.Popen[bytes]:
    """Another process that runs a program of ours."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.fixture
def forgiving(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a host: our failures are counted instead of raised."""
    monkeypatch.delenv("TWINSPAN_RAISE", raising=False)


def test_a_closed_run_is_all_there_in_order(tmp_path: Path) -> None:
    """Every span of a run is in its folder, numbered without gaps."""
    with recording(tmp_path) as (telemetry, recorder):
        small_run(telemetry, "r1")
        assert recorder.close_run("r1")
        assert sorted(rows(tmp_path, "audit_seq, span_type")) == [
            (0, "node"),
            (1, "node"),
            (2, "node"),
            (3, "run"),
        ]
    assert recorder.recorded == 4


def test_parts_lie_by_day_and_run_and_carry_the_version(tmp_path: Path) -> None:
    """The folder's names are Hive partitions; the schema's version is in each file."""
    with recording(tmp_path) as (telemetry, _):
        small_run(telemetry, "team/run:1")
    (folder,) = {part.parent for part in parts(tmp_path)}
    assert folder.name == "run=team%2Frun%3A1"
    assert folder.parent.name.startswith("date=")
    for part in parts(tmp_path):
        metadata = pq.read_metadata(part).metadata
        assert metadata is not None and metadata[b"schema_version"] == b"1"


def test_a_run_is_never_a_single_file(tmp_path: Path) -> None:
    """The root of a short run has a file of its own: if either is lost, it shows."""
    with recording(tmp_path) as (telemetry, recorder):
        small_run(telemetry, "r1")
        recorder.close_run("r1")
    assert len(parts(tmp_path)) == 2


def test_short_runs_that_end_together_share_their_files(tmp_path: Path) -> None:
    """A file costs as much as hundreds of spans; the roots lie apart from the rest as ever."""
    with recording(tmp_path, max_seconds=0.4) as (telemetry, recorder):
        for number in range(30):
            small_run(telemetry, f"r{number}")
            recorder.end_run(f"r{number}")
        assert _until(lambda: recorder.recorded == 120)
    assert {part.parent.name for part in parts(tmp_path)} == {"run=_many"}
    kinds = [set(pq.read_table(part).column("span_type").to_pylist()) for part in parts(tmp_path)]
    assert kinds.count({"run"}) == kinds.count({"node"}) > 0
    counted = Counter(rows(tmp_path, "run_id, audit_seq"))
    assert counted == {(f"r{number}", seq): 1 for number in range(30) for seq in range(4)}


def test_runs_that_are_live_at_the_same_time_share_their_files(tmp_path: Path) -> None:
    """A hundred of them cost no more files than one; each is whole when they are over."""
    with recording(tmp_path, max_seconds=0.4) as (telemetry, recorder):
        live = [telemetry.run(f"r{number}") for number in range(20)]
        for round_ in range(1, 4):
            for run in live:
                run.end(run.start("invoke_node a", "node"))
            assert _until(_recorded(recorder, 20 * round_))
        for run in live:
            run.end(run.start("invoke_workflow g", "run"))
            recorder.end_run(run.run_id)
        assert _until(lambda: recorder.recorded == 80)
    assert len(parts(tmp_path)) < 20
    counted = Counter(rows(tmp_path, "run_id, audit_seq"))
    assert counted == {(f"r{number}", seq): 1 for number in range(20) for seq in range(4)}


def test_a_run_among_many_is_read_back_alone(tmp_path: Path) -> None:
    """Whoever resets a run finds it in shared files too."""
    with recording(tmp_path, max_seconds=0.4) as (telemetry, recorder):
        for name in ("a", "b"):
            small_run(telemetry, name)
            recorder.end_run(name)
        assert _until(lambda: recorder.recorded == 8)
    assert {part.parent.name for part in parts(tmp_path)} == {"run=_many"}
    found = read_run(tmp_path, "b")
    assert found is not None and found.run_id == "b"
    assert read_run(tmp_path, "c") is None


def test_a_span_of_nobody_goes_to_a_folder_of_its_own(tmp_path: Path) -> None:
    """A foreign span has no run and no number, and is kept."""
    provider = TracerProvider(shutdown_on_exit=False)
    recorder = Recorder(tmp_path)
    provider.add_span_processor(recorder)
    provider.get_tracer("theirs").start_span("chat").end()
    provider.shutdown()
    assert [part.parent.name for part in parts(tmp_path)] == ["run=_none"]
    assert rows(tmp_path, "name, run_id, audit_seq") == [("chat", None, None)]


def test_the_background_writes_within_its_time(tmp_path: Path) -> None:
    """Nobody has to flush: an ended span reaches the disk by itself."""
    with recording(tmp_path, max_seconds=0.05) as (telemetry, recorder):
        run = telemetry.run("r1")
        run.end(run.start("invoke_node a", "node"))
        assert _until(lambda: recorder.recorded == 1)


def test_a_full_run_is_written_at_once(tmp_path: Path) -> None:
    """Enough spans make a part long before the time is over."""
    with recording(tmp_path, max_spans=10, max_seconds=3600) as (telemetry, recorder):
        small_run(telemetry, "r1", nodes=10)
        assert _until(lambda: recorder.recorded >= 10)


def test_a_full_buffer_writes_instead_of_dropping(tmp_path: Path) -> None:
    """With room for twenty spans a thousand are recorded, none lost."""
    with recording(tmp_path, max_waiting=20, max_seconds=3600) as (telemetry, recorder):
        small_run(telemetry, "r1", nodes=1000)
    assert (recorder.recorded, recorder.lost) == (1001, 0)
    assert rows(tmp_path, "count(DISTINCT span_id), max(audit_seq)") == [(1001, 1000)]


def test_a_flush_waits_for_what_the_background_is_writing(tmp_path: Path) -> None:
    """Rows that are on their way to a file are not yet in it."""
    with recording(tmp_path, max_spans=1, max_seconds=3600) as (telemetry, recorder):
        run = telemetry.run("r1")
        for number in range(20):
            run.end(run.start("invoke_node a", "node"))
            assert recorder.flush()
            assert recorder.recorded == number + 1


def test_text_is_bounded_by_its_bytes(tmp_path: Path) -> None:
    """Long prompts fill the buffer before their number does."""
    with recording(tmp_path, max_bytes=200_000, max_seconds=3600) as (telemetry, recorder):
        run = telemetry.run("r1")
        for _ in range(40):
            run.end(run.start("chat", "node", {c.GEN_AI_INPUT_MESSAGES: "x" * 20_000}))
        assert recorder.recorded > 0


def test_many_threads_lose_nothing(tmp_path: Path) -> None:
    """Spans that end in parallel are all recorded."""
    with recording(tmp_path, max_spans=50, max_seconds=0.05) as (telemetry, recorder):
        run = telemetry.run("r1")

        def work() -> None:
            for _ in range(200):
                run.end(run.start("invoke_node a", "node"))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert rows(tmp_path, "count(*), count(DISTINCT audit_seq)") == [(800, 800)]
    assert recorder.lost == 0


def test_two_recorders_in_one_folder_do_not_clash(tmp_path: Path) -> None:
    """Two processes may share a run: their files have names of their own."""
    with recording(tmp_path) as (first, _), recording(tmp_path) as (second, _):
        small_run(first, "r1")
        small_run(second, "r1")
    assert len(parts(tmp_path)) == 4
    assert rows(tmp_path, "count(DISTINCT span_id)") == [(8,)]


def test_a_decision_is_on_disk_before_it_is_enforced(tmp_path: Path) -> None:
    """Committing writes the decision alone; its line goes when its part is written."""
    with recording(tmp_path, max_seconds=3600) as (telemetry, recorder):
        run = telemetry.run("r1")
        run.end(run.start("invoke_node a", "node"))
        run.end(run.start("update_network_score", "network", {c.BREAKER_DECISION: "halt"}))
        assert recorder.commit("r1")
        (journal,) = tmp_path.rglob("*.jsonl")
        assert journal.read_text().count("\n") == 1
        assert '"halt"' in journal.read_text()
        assert recorder.commit("r1")
        assert journal.read_text().count("\n") == 1
        assert recorder.close_run("r1")
        assert not journal.exists()
    assert rows(tmp_path, "count(*)") == [(2,)]


def test_a_killed_process_leaves_only_whole_parts(tmp_path: Path) -> None:
    """After SIGKILL every part can be read, and at most the last moments are missing."""
    program = """
        import sys
        from twinspan.collector.recorder import Recorder
        from twinspan.instrumentation.tracing import Telemetry
        run = Telemetry([Recorder(sys.argv[1], max_spans=50, max_seconds=0.05)]).run("r1")
        while True:
            run.end(run.start("invoke_node a", "node"))
    """
    child = _child(program, tmp_path)
    try:
        assert _until(lambda: len(parts(tmp_path)) >= 3, 120)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert all(pq.read_metadata(part).num_rows > 0 for part in parts(tmp_path))
    ((count, highest),) = rows(tmp_path, "count(*), max(audit_seq)")
    assert count == int(str(highest)) + 1


def test_a_process_that_just_ends_loses_nothing(tmp_path: Path) -> None:
    """Nobody called shutdown: the interpreter's exit writes the rest."""
    program = """
        import sys
        from twinspan.collector.recorder import Recorder
        from twinspan.instrumentation.tracing import Telemetry
        run = Telemetry([Recorder(sys.argv[1], max_seconds=3600)]).run("r1")
        run.end(run.start("invoke_node a", "node"))
    """
    assert _child(program, tmp_path).wait(60) == 0
    assert rows(tmp_path, "count(*)") == [(1,)]


def test_a_fork_records_apart_from_its_parent(tmp_path: Path) -> None:
    """The child drops what its parent holds and writes under a name of its own."""
    program = """
        import os, sys
        from twinspan.collector.recorder import Recorder
        from twinspan.instrumentation.tracing import Telemetry
        recorder = Recorder(sys.argv[1], max_seconds=3600)
        telemetry = Telemetry([recorder])
        run = telemetry.run("r1")
        run.end(run.start("parent", "node"))
        pid = os.fork()
        if pid == 0:
            other = telemetry.run("r1")
            other.end(other.start("child", "node"))
            recorder.shutdown()
            os._exit(0)
        os.waitpid(pid, 0)
        recorder.shutdown()
    """
    assert _child(program, tmp_path).wait(60) == 0
    assert sorted(rows(tmp_path, "name")) == [("child",), ("parent",)]
    assert len({part.name.split("-")[1] for part in parts(tmp_path)}) == 2


@pytest.mark.usefixtures("forgiving")
def test_a_folder_that_cannot_be_written_leaves_the_host_unharmed(tmp_path: Path) -> None:
    """A folder below a file: failures are counted and told, spans wait, nothing is raised."""
    (tmp_path / "file").write_text("")
    told: list[Exception] = []
    recorder = Recorder(tmp_path / "file" / "spans", max_seconds=3600, on_error=told.append)
    run = Telemetry([recorder]).run("r1")
    run.end(run.start("invoke_node a", "node"))
    assert not recorder.flush()
    assert not recorder.close_run("r1")
    run.end(run.start("update_network_score", "network"))
    assert not recorder.commit("r1")
    assert recorder.errors == len(told) == 3
    assert isinstance(told[0], OSError)
    assert recorder.lost == 0
    recorder.folder = tmp_path / "spans"
    assert recorder.commit("r1")
    assert recorder.flush()
    assert rows(tmp_path, "count(*)") == [(2,)]
    recorder.shutdown()


@pytest.mark.usefixtures("forgiving")
def test_beyond_its_bound_a_failing_recorder_gives_up_all_but_decisions(tmp_path: Path) -> None:
    """Memory stays bounded; every span that was given up is counted, and its number missing."""
    (tmp_path / "file").write_text("")
    recorder = Recorder(tmp_path / "file" / "spans", max_waiting=10, max_seconds=3600)
    run = Telemetry([recorder]).run("r1")
    for _ in range(30):
        run.end(run.start("invoke_node a", "node"))
    run.end(run.start("update_network_score", "network"))
    assert recorder.lost == 20
    recorder.folder = tmp_path / "spans"
    recorder.shutdown()
    assert recorder.recorded == 11
    assert rows(tmp_path, "max(audit_seq)") == [(30,)]


@pytest.mark.usefixtures("forgiving")
def test_a_full_disk_leaves_no_half_part(tmp_path: Path) -> None:
    """With no file allowed to grow, nothing unreadable stays behind; later it is written."""
    recorder = Recorder(tmp_path, max_seconds=3600)
    run = Telemetry([recorder]).run("r1")
    run.end(run.start("invoke_node a", "node"))
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        assert not recorder.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert recorder.flush()
    assert rows(tmp_path, "count(*)") == [(1,)]
    recorder.shutdown()


def test_in_tests_a_failure_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With TWINSPAN_RAISE=1 nothing of ours fails silently."""
    monkeypatch.setenv("TWINSPAN_RAISE", "1")
    (tmp_path / "file").write_text("")
    recorder = Recorder(tmp_path / "file" / "spans", max_seconds=3600)
    run = Telemetry([recorder]).run("r1")
    run.end(run.start("invoke_node a", "node"))
    with pytest.raises(OSError):
        recorder.flush()
    monkeypatch.delenv("TWINSPAN_RAISE")
    recorder.folder = tmp_path / "spans"
    recorder.shutdown()


@pytest.mark.usefixtures("forgiving")
def test_a_span_that_cannot_be_a_row_costs_only_itself(tmp_path: Path) -> None:
    """One broken span does not hold back the others of its run."""
    recorder = Recorder(tmp_path, max_seconds=3600)
    whole, broken, odd = ended_spans({}, {}, {})
    broken._context = None
    odd._name = 5  # type: ignore[assignment]
    for span in (broken, whole, odd):
        recorder.on_end(span)
    recorder.shutdown()
    assert sorted(rows(tmp_path, "audit_seq, name")) == [(0, "invoke_node a"), (2, "5")]
    assert (recorder.lost, recorder.errors) == (1, 1)


def test_a_run_over_midnight_lies_under_both_days(tmp_path: Path) -> None:
    """Spans are filed by the day on which they began."""
    day = 86_400 * 10**9
    with recording(tmp_path, max_seconds=3600) as (telemetry, _):
        run = telemetry.run("r1")
        for start in (day - 5, day + 5, day - 3):
            run.end(run.start("invoke_node a", "node", start_time=start), end_time=start + 1)
    assert [part.parent.parent.name for part in parts(tmp_path)] == [
        "date=1970-01-01",
        "date=1970-01-02",
    ]
    assert sorted(rows(tmp_path, "start_unix_nano - 86400000000000")) == [(-5,), (-3,), (5,)]


def test_spans_after_a_shutdown_are_still_written(tmp_path: Path) -> None:
    """A late span is not dropped in silence."""
    recorder = Recorder(tmp_path)
    recorder.shutdown()
    run = Telemetry([recorder]).run("r1")
    run.end(run.start("invoke_node a", "node"))
    assert rows(tmp_path, "count(*)") == [(1,)]
