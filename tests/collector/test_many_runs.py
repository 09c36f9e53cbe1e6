"""Runs do not touch each other, and leave nothing behind.

In full, 8 threads with 1,000 runs each and 100,000 runs, by ``benchmarks/bench_runs.py``.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from many_runs import NODES, Plant, concurrent_runs, endings, never_ending, on_and_on, scores_of
from opentelemetry.trace import SpanContext

from twinspan.analysis.store import open_store
from twinspan.analysis.verify import verify
from twinspan.collector.records import ProbeRecord, record_of
from twinspan.collector.runs import MOST_SEEN
from twinspan.instrumentation import conventions as c


def test_concurrent_runs_are_decided_as_each_by_itself(tmp_path: Path) -> None:
    """Eight threads, one gate, one recorder; seven kinds of runs."""
    assert concurrent_runs(8, 14, tmp_path / "spans") == 0


def objects(plant: Plant, work: Iterator[None], count: int) -> list[int]:
    """Live objects at every quarter of the work, with everything on disk."""
    seen: list[int] = []
    for number, _ in enumerate(work, start=1):
        if number % (count // 4) == 0:
            plant.settle()
            gc.collect()
            seen.append(len(gc.get_objects()))
    return seen


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(("kind", "count"), [(endings, 80), (never_ending, 240), (on_and_on, 1200)])
def test_memory_is_flat(
    tmp_path: Path,
    kind: Callable[[Plant, int], Iterator[None]],
    count: int,
    recorded: bool,
) -> None:
    """Runs that end, runs that never do (50 may be live here), and one without an end."""
    plant = Plant.build(tmp_path / "spans" if recorded else None)
    plant.gate.runs._most = 50  # pyright: ignore[reportPrivateUsage]
    seen = objects(plant, kind(plant, count), count)
    plant.gate.shutdown()
    assert seen[3] <= seen[1] + 0.01 * seen[1], "nothing grows with the number of runs"


def test_a_host_whose_runs_never_end_is_not_flooded_with_warnings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first run that is given up is told, then only when there are twice as many."""
    plant = Plant.build()
    plant.gate.runs._most = 5  # pyright: ignore[reportPrivateUsage]
    for _ in never_ending(plant, 105):
        pass
    told = [record.args for record in caplog.records if "never ended" in record.message]
    assert [args[0] for args in told if isinstance(args, tuple)] == [1, 2, 4, 8, 16, 32, 64]


def test_a_run_that_was_given_up_is_forgotten_by_the_recorder_too(tmp_path: Path) -> None:
    plant = Plant.build(tmp_path / "spans")
    plant.gate.runs._most = 5  # pyright: ignore[reportPrivateUsage]
    for _ in never_ending(plant, 40):
        pass
    assert plant.gate.recorder is not None
    plant.gate.recorder.flush()
    for run_id in plant.gate.recorder._take_over():  # pyright: ignore[reportPrivateUsage]
        plant.gate.recorder.close_run(run_id)
    assert len(plant.gate.recorder._begun) <= 5  # pyright: ignore[reportPrivateUsage]
    assert (len(plant.gate.runs), plant.gate.runs.given_up) == (5, 35)
    plant.gate.shutdown()


def test_a_probe_set_that_comes_twice_counts_once_however_long_the_run() -> None:
    """The latest ones are known by their spans, and no more of them than that are kept."""
    plant = Plant.build()
    tracer = plant.begin()
    state = plant.gate.runs.get(tracer.run_id)
    assert state is not None
    for number in range(MOST_SEEN + 50):
        record = probe_set(number, superstep=number % 7)
        state.take_in(record)
        state.take_in(record)
    assert len(state.seen) == MOST_SEEN
    assert sum(map(len, state.pending.values())) == MOST_SEEN + 50


def probe_set(number: int, *, superstep: int) -> ProbeRecord:
    told = {
        c.RUN_ID: "r",
        c.PROBE_SET_ID: f"set-{number}",
        c.NODE_ID: "n",
        c.NODE_TASK_ID: f"task-{number}",
        c.SUPERSTEP_SCOPE: "",
        c.SUPERSTEP_INDEX: superstep,
        c.PROBE_AXIS: "gender",
        c.EFFECT_VALUE: 0.1,
    }
    return record_of(told, SpanContext(trace_id=1, span_id=number + 1, is_remote=False))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
def test_a_forked_worker_decides_as_its_parent_would(tmp_path: Path) -> None:
    """Both go on after the fork, with runs of their own, into one folder."""
    plant = Plant.build(tmp_path / "spans")
    before = plant.begin()
    plant.superstep(before, 0, NODES[0], scores_of(3)[0])
    reading, writing = os.pipe()
    if os.fork() == 0:  # pragma: no cover - the child
        told = plant.whole(3)
        assert plant.gate.recorder is not None
        plant.gate.recorder.flush()
        os.write(writing, json.dumps(told).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        child = [tuple(decision) for decision in json.load(pipe)]
    os.wait()
    assert child == plant.whole(3)
    plant.gate.shutdown()
    with open_store(str(tmp_path / "spans")) as store:
        ended = store.table("SELECT count(DISTINCT run_id), count(*) FROM decisions").rows
        assert ended == ((3, 9),)
        assert {each.verdict for each in verify(store)} <= {"verified", "incomplete"}
