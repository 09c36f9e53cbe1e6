"""Runs made with the real SDK, for tests of what is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from twinspan.collector.recorder import Recorder
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.tracing import RunTracer, Telemetry


@contextmanager
def recording(folder: Path, **options: object) -> Iterator[tuple[Telemetry, Recorder]]:
    """A telemetry that records into a folder, shut down at the end."""
    recorder = Recorder(folder, **options)  # type: ignore[arg-type]
    telemetry = Telemetry([recorder])
    try:
        yield telemetry, recorder
    finally:
        telemetry.shutdown()


def ended_spans(*attributes: Mapping[str, object]) -> Sequence[ReadableSpan]:
    """Ended spans with these attributes, of one run `r1`."""
    memory = InMemorySpanExporter()
    run = Telemetry([SimpleSpanProcessor(memory)]).run("r1")
    for each in attributes:
        run.end(run.start("invoke_node a", "node", each))
    return memory.get_finished_spans()


def small_run(telemetry: Telemetry, run_id: str, *, nodes: int = 3) -> RunTracer:
    """A finished run: its nodes and its root, which says how many spans there are."""
    run = telemetry.run(run_id)
    root = run.start("invoke_workflow g", "run", {c.GRAPH_ID: "g"})
    for number in range(nodes):
        run.end(run.start(f"invoke_node n{number}", "node", {c.NODE_ID: f"n{number}"}, parent=root))
    run.end(root, {c.RUN_SPAN_COUNT: run.ended_count + 1})
    return run


def rows(folder: Path, query: str = "*") -> list[tuple[object, ...]]:
    """What plain DuckDB reads from a folder of parts, without anything of ours."""
    pattern = f"{folder}/**/*.parquet"
    return duckdb.sql(
        f"SELECT {query} FROM read_parquet('{pattern}', hive_partitioning = false)"
    ).fetchall()


def parts(folder: Path) -> list[Path]:
    """The parts below a folder."""
    return sorted(folder.rglob("*.parquet"))
