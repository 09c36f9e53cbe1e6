"""Killed processes, full disks, folders that cannot be written, clocks that jump."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import recording, small_run

from twinspan.analysis.store import open_store
from twinspan.analysis.verify import verify
from twinspan.instrumentation import conventions as c

ANSWER = """
    import json, logging, sys
    from pathlib import Path
    logging.basicConfig()
    from twinspan.analysis.demo.run import run_demo
    {before}
    told = []
    for seed in range(2):
        told.append(run_demo(Path(sys.argv[1]), seed=seed, flush_seconds=0.05).state)
    print(json.dumps(told))
"""


def answers(folder: Path, before: str = "") -> tuple[Any, str]:
    """What an application got to see in a process of its own, and its log."""
    program = textwrap.dedent(ANSWER).format(before=before)
    environment = {k: v for k, v in os.environ.items() if k != "TWINSPAN_RAISE"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The application's answers where recording works."""
    folder = tmp_path_factory.mktemp("fine")
    told, log = answers(folder)
    assert "cannot be recorded" not in log
    return told


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a few files."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here; it takes the right to")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def _verdicts(folder: Path) -> set[str]:
    with open_store(folder) as store:
        return {each.verdict for each in verify(store)}


def test_a_full_disk_harms_no_answer_and_shows(small_disk: Path, undisturbed: Any) -> None:
    """Each recorder tells it once, and what is on disk says that it is not whole."""
    told, log = answers(small_disk)
    assert told == undisturbed
    assert log.count("spans cannot be recorded") == 2
    assert "No space left" in log
    assert "spans were never recorded" in log
    assert _verdicts(small_disk) == {"incomplete"}


def test_a_file_that_may_not_grow_harms_no_answer(tmp_path: Path, undisturbed: Any) -> None:
    """As under a limit on the size of files."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))"
    told, log = answers(tmp_path, limit)
    assert told == undisturbed
    assert "File too large" in log
    assert list(tmp_path.rglob(".*unfinished")) == []
    assert "verified" not in _verdicts(tmp_path)


def test_a_folder_that_is_read_only_harms_no_answer(small_disk: Path, undisturbed: Any) -> None:
    """For root as well: the file system is read-only. Nothing is there to be called clear."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    told, log = answers(small_disk / "spans")
    assert told == undisturbed
    assert "Read-only file system" in log
    assert not (small_disk / "spans").exists()


def test_a_clock_that_jumps_loses_nothing(tmp_path: Path) -> None:
    """Spans are numbered, not ordered by time; an end before its start lasts no time."""
    day = 86_400 * 10**9
    with recording(tmp_path, max_seconds=3600) as (telemetry, _):
        run = telemetry.run("r1")
        root = run.start("invoke_workflow g", "run", start_time=5 * day)
        for start, end in ((5 * day, 5 * day + 1), (2 * day, 2 * day + 1), (5 * day, 4 * day)):
            run.end(run.start("invoke_node a", "node", parent=root, start_time=start), end_time=end)
        run.end(root, {c.RUN_SPAN_COUNT: run.ended_count + 1}, end_time=day)
    with open_store(tmp_path) as store:
        assert store.table(
            "SELECT audit_seq, start_unix_nano // 86400000000000 FROM spans ORDER BY 1"
        ).rows == ((0, 5), (1, 2), (2, 5), (3, 5))
        assert [each.verdict for each in verify(store)] == ["verified"]


def test_two_processes_record_into_one_folder(tmp_path: Path) -> None:
    """At the same time, under the same run even: every span of both is there."""
    program = """
        import sys
        sys.path[:0] = sys.argv[2].split(":")
        from pathlib import Path
        from recorded_runs import recording, small_run
        with recording(Path(sys.argv[1]), max_seconds=0.01) as (telemetry, recorder):
            for number in range(20):
                small_run(telemetry, "shared")
                small_run(telemetry, f"{sys.argv[3]}-{number}")
    """
    children = [
        subprocess.Popen(
            [
                *[sys.executable, "-c", textwrap.dedent(program), str(tmp_path)],
                *[str(Path(__file__).parents[1]), name],
            ],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for name in ("a", "b")
    ]
    assert [child.wait(120) for child in children] == [0, 0]
    with open_store(tmp_path) as store:
        assert store.table("SELECT count(*), count(DISTINCT span_id) FROM spans").rows == (
            (320, 320),
        )
        assert store.table(
            "SELECT count(*) FROM runs WHERE completeness = 'complete' AND run_id <> 'shared'"
        ).rows == ((40,),)


def test_killed_processes_lose_no_decision() -> None:
    """A few of the hundred that `python tests/killed_runs.py` kills."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parents[1] / "killed_runs.py"), "--kills", "4"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    # The bound of one second holds on a machine that has time; here only what must never be.
    assert "committed decisions lost: 0\n" in done.stdout, done.stderr
    assert "do not say so, or do not fit: 0\n" in done.stdout


def test_a_finished_run_beside_a_broken_one_is_whole(tmp_path: Path) -> None:
    """What is lost of one run is nobody else's."""
    with recording(tmp_path) as (telemetry, recorder):
        small_run(telemetry, "whole")
        recorder.close_run("whole")
        run = telemetry.run("cut")
        run.end(run.start("invoke_node a", "node"))
    with open_store(tmp_path) as store:
        assert {each.run_id: each.verdict for each in verify(store)} == {
            "whole": "verified",
            "cut": "incomplete",
        }
