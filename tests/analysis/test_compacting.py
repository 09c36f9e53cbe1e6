"""A record in fewer files says the same, whenever the work is interrupted; old runs go whole."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_runs import parts, recording, small_run

from twinspan.analysis import compacting
from twinspan.analysis.compacting import Compacted, compact
from twinspan.analysis.demo.run import run_demo
from twinspan.analysis.store import open_store
from twinspan.analysis.verify import verify
from twinspan.collector import parts as parts_module
from twinspan.collector.recorder import Recorder
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import ConfigurationError, RecordError, SourceError
from twinspan.instrumentation.tracing import Telemetry

DAY = 86_400 * 10**9


def told(folder: Path) -> Any:
    """Everything a folder says, and whether it holds."""
    with open_store(folder) as store:
        rows = store.table("SELECT * FROM spans ORDER BY trace_id, span_id").rows
        return rows, [(each.run_id, each.verdict, each.checked) for each in verify(store)]


def compacted(folder: Path, **options: Any) -> Compacted:
    return compact(folder, settled_seconds=-1, **options)


def run_on(telemetry: Telemetry, run_id: str, days: list[int]) -> None:
    """A whole run with a node on each of some days since 1970."""
    run = telemetry.run(run_id)
    for day in days:
        run.end(
            run.start("invoke_node a", "node", start_time=day * DAY + 1), end_time=day * DAY + 2
        )
    root = run.start("invoke_workflow g", "run", start_time=days[0] * DAY)
    run.end(root, {c.RUN_SPAN_COUNT: run.ended_count + 1}, end_time=days[-1] * DAY + 3)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Demo runs and small ones, in many files."""
    folder = tmp_path / "spans"
    run_demo(folder, seed=0)
    run_demo(folder, seed=1, biased=False)
    with recording(folder) as (telemetry, recorder):
        for number in range(10):
            small_run(telemetry, f"r{number}")
            recorder.flush()
    return folder


def test_fewer_files_say_the_same(many: Path) -> None:
    """Every row, every verdict; a second time nothing is left to do."""
    before = told(many)
    done = compacted(many)
    assert done.files_before > 20 and done.files_after == len(parts(many)) == 2
    assert done.spans == len(before[0])
    assert (done.repeated, done.skipped, done.expired_spans) == (0, 0, 0)
    assert told(many) == before
    assert compacted(many).spans == 0
    assert told(many) == before


@pytest.mark.parametrize("lost", [0, 1])
def test_the_loss_of_any_file_still_shows(many: Path, lost: int) -> None:
    """Roots lie apart from the rest of their runs."""
    compacted(many)
    parts(many)[lost].unlink()
    with open_store(many) as store:
        assert {each.verdict for each in verify(store)} <= {"incomplete", "mismatch"}


def test_what_was_written_just_now_is_left_alone(many: Path) -> None:
    """It may be its writer's still."""
    before = parts(many)
    assert compact(many).spans == 0
    assert parts(many) == before


def test_a_recorder_goes_on_beside_it(tmp_path: Path) -> None:
    """Runs that are being recorded lose nothing when their first parts are merged."""
    with recording(tmp_path, max_seconds=3600) as (telemetry, recorder):
        run = telemetry.run("r1")
        root = run.start("invoke_workflow g", "run")
        for number in range(6):
            run.end(run.start(f"invoke_node n{number}", "node", parent=root))
            recorder.flush()
        compacted(tmp_path)
        run.end(root, {c.RUN_SPAN_COUNT: run.ended_count + 1})
    with open_store(tmp_path) as store:
        assert store.table("SELECT run_id, completeness, span_count FROM runs").rows == (
            ("r1", "complete", 7),
        )


def test_a_journal_of_a_killed_writer_becomes_a_part(tmp_path: Path) -> None:
    """Once, although its decision may be in a part as well."""
    recorder = Recorder(tmp_path, max_seconds=3600)
    run = Telemetry([recorder]).run("r1")
    run.end(run.start("update_network_score", "network", {c.NETWORK_SCORE: 0.1}))
    recorder.commit("r1")
    before = told(tmp_path)
    compacted(tmp_path)
    assert list(tmp_path.rglob("*.jsonl")) == []
    assert told(tmp_path) == before
    recorder.close_run("r1")
    assert compacted(tmp_path).files_after == 2  # two files are few enough already
    assert told(tmp_path) == before
    recorder.shutdown()


def test_copies_are_merged_and_what_differs_stays(many: Path) -> None:
    """An altered copy is evidence."""
    victim = next(part for part in parts(many) if pq.read_metadata(part).num_rows == 3)
    table = pq.ParquetFile(victim).read()
    pq.write_table(table, victim.with_name("part-copy-1.parquet"))
    place = table.schema.get_field_index("name")
    altered = table.set_column(place, table.schema.field("name"), pa.array(["other"] * 3))
    altered = altered.replace_schema_metadata({"schema_version": "1"})
    pq.write_table(altered, victim.with_name("part-copy-2.parquet"))
    before = told(many)
    done = compacted(many)
    assert (done.files_after, done.repeated) == (2, 3)
    with open_store(many) as store:
        assert {(each.copies, each.alike) for each in store.repeated()} == {(2, False)}
        assert "mismatch" in {each.verdict for each in verify(store)}
    assert [row[:2] for row in told(many)[0]] == [row[:2] for row in before[0]]


def test_files_of_another_layout_are_left_alone(many: Path) -> None:
    """What a later version added would be lost."""
    table = pq.ParquetFile(parts(many)[0]).read()
    later = table.append_column("added", pa.array([1] * table.num_rows))
    pq.write_table(later, parts(many)[0])
    versioned = table.replace_schema_metadata({"schema_version": "2"})
    pq.write_table(versioned, parts(many)[0].with_name("part-x-2.parquet"))
    assert compacted(many).skipped == 2
    with open_store(many) as store:
        ((kept,),) = store.table("SELECT count(added) FROM spans").rows
    assert int(str(kept)) > 0


# --- interruptions ------------------------------------------------------------------------------


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("name", ["unlink", "rename"])
def test_wherever_it_dies_the_record_is_whole(
    many: Path, monkeypatch: pytest.MonkeyPatch, step: int, name: str
) -> None:
    """Before a file is renamed, or between two removals; the next one finishes."""
    before = told(many)
    done: list[Path] = []
    real: Callable[..., Any] = getattr(Path, name)

    def dying(self: Path, *arguments: Any, **options: Any) -> Any:
        if self.suffix in (".parquet", ".unfinished") and len(done) >= step:
            raise KeyboardInterrupt
        done.append(self)
        return real(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Path, name, dying)
        try:
            compacted(many)
        except KeyboardInterrupt:
            pass
    assert told(many) == before
    compacted(many)
    assert told(many) == before
    assert len(parts(many)) == 2


def test_a_killed_compaction_loses_nothing(many: Path) -> None:
    """With SIGKILL, at whatever moment."""
    before = told(many)
    program = """
        import sys
        from twinspan.analysis.compacting import compact
        print("begun", flush=True)
        compact(sys.argv[1], settled_seconds=-1)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(many)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert told(many) == before
    compacted(many)
    assert told(many) == before


def test_only_one_is_at_work(many: Path) -> None:
    """A second one is refused."""
    with (many / ".compacting").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ConfigurationError, match="another process"):
            compacted(many)


def test_a_full_disk_costs_nothing(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error with its cure, and the record as it was."""
    before = told(many)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parts_module, "_write_parquet", full)
    with pytest.raises(RecordError, match="free some space"):
        compacted(many)
    assert told(many) == before


# --- retention ----------------------------------------------------------------------------------


def test_runs_that_are_too_old_go_whole(tmp_path: Path) -> None:
    """One that goes on into the days that are kept is kept with its beginning."""
    with recording(tmp_path, max_seconds=3600) as (telemetry, _):
        run_on(telemetry, "old", [10])
        run_on(telemetry, "older", [8, 9])
        run_on(telemetry, "bridging", [10, 11])
        run_on(telemetry, "young", [12])
    today = date(1970, 1, 13)  # day 12 since 1970-01-01
    done = compacted(tmp_path, keep_days=2, today=today)
    assert done.expired_days == ("1970-01-09", "1970-01-10")
    assert done.expired_spans == 5
    with open_store(tmp_path) as store:
        assert store.table("SELECT run_id, completeness FROM runs ORDER BY 1").rows == (
            ("bridging", "complete"),
            ("young", "complete"),
        )
    assert list(tmp_path.glob(".*")) == []


def test_what_is_being_removed_is_not_read(tmp_path: Path) -> None:
    """A removal that was interrupted is finished by the next compaction."""
    with recording(tmp_path) as (telemetry, _):
        run_on(telemetry, "old", [1])
        run_on(telemetry, "young", [2])
    (tmp_path / "date=1970-01-02").rename(tmp_path / ".expired-date=1970-01-02-x")
    with open_store(tmp_path) as store:
        assert store.run_ids() == ["young"]
    compacted(tmp_path)
    assert list(tmp_path.glob(".*")) == []


def test_wrong_use_is_said(tmp_path: Path) -> None:
    """No folder; no days."""
    with pytest.raises(SourceError, match="is no folder"):
        compact(tmp_path / "none")
    with pytest.raises(ConfigurationError, match="at least 1"):
        compact(tmp_path, keep_days=0)


def test_a_day_larger_than_a_file_becomes_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put in order file by file, since no memory holds a whole day with all its columns."""
    monkeypatch.setattr(compacting, "PART_ROWS", 40)
    with recording(tmp_path) as (telemetry, recorder):
        for number in range(30):
            small_run(telemetry, f"r{number:02d}")
            recorder.flush()
    before = told(tmp_path)
    done = compacted(tmp_path)
    assert told(tmp_path) == before
    files = [pq.ParquetFile(part).read().to_pylist() for part in parts(tmp_path)]
    assert [len(rows) for rows in files] == [20, 10, 20, 20, 20, 20, 10]
    assert (done.files_after, done.spans) == (7, 120)
    assert [{row["span_type"] for row in rows} == {"run"} for rows in files] == [True] * 2 + [
        False
    ] * 5
    for kind in (files[:2], files[2:]):
        places = [(row["run_id"], row["audit_seq"]) for rows in kind for row in rows]
        assert places == sorted(places)
