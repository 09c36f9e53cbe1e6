"""What recording, importing, asking and verifying cost at a million recorded spans.

Everything is measured in one process beside what it is compared to: a recorded span beside the
SDK's bare one and the SDK's own exporter of OTLP JSON, typed columns beside the same attributes as
JSON text. CPU time of all threads; on a machine that others use it reads up to twice too high, so
ratios say more than microseconds.

    python benchmarks/bench_record.py [--spans 1000000] [--rounds 5] [--lines 100000] [--runs 500]

The SDK's exporter is a beta that pins other betas, so it is in no group of dependencies; its row
needs `opentelemetry-exporter-otlp-json-file`, `-otlp-json-common`, `-otlp-common` and
`opentelemetry-proto-json` of one version, and is left out without them.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import multiprocessing
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from bench_verify import copy_of, recorded_demo, replay_all, verify_all
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from twinspan.analysis.dialects import Problems, RowSink
from twinspan.analysis.dialects.otlp_json import OtlpJson
from twinspan.analysis.importing import import_spans
from twinspan.analysis.store import Store, open_store
from twinspan.analysis.verify import verify
from twinspan.collector.otlp_json import span_line
from twinspan.collector.parts import write_part
from twinspan.collector.recorder import Recorder
from twinspan.collector.rows import SpanFacts
from twinspan.collector.schema import SPAN_SCHEMA
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.tracing import RunTracer, Telemetry

NODES = tuple(f"agent_{number}" for number in range(7))
SPANS_OF_A_RUN = 50
CASES = 100
REPLICATES = 200

_random = random.Random(0)
_WORDS = ["".join(_random.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(5000)]


def text(length: int) -> str:
    """Words at random, so that compression finds little."""
    return " ".join(_random.choices(_WORDS, k=length // 7))


def identifier(bits: int) -> str:
    """Hex digits at random."""
    return f"{_random.getrandbits(bits):0{bits // 4}x}"


# --- recording ------------------------------------------------------------------------------------


def probe_attributes(number: int) -> dict[str, object]:
    """The twenty attributes of a probe, with 600 characters of text."""
    return {
        c.NODE_ID: NODES[number % 7],
        c.NODE_TASK_ID: f"task-{number // 15}",
        c.PROBE_SET_ID: f"set-{number // 15}",
        c.PROBE_AXIS: "gender",
        c.PROBE_ARM: "counterfactual",
        c.PROBE_REPLICATE: number % 15,
        c.PROBE_POSITION: number % 15,
        c.PERTURBATION_KIND: "attribute_swap",
        c.PERTURBATION_ID: "gender:woman>man",
        c.PERTURBATION_EDIT_COUNT: 3,
        c.PROBE_DIVERGENCE: _random.random(),
        c.PROBE_FLIP: number % 2 == 0,
        c.PROBE_INPUT_HASH: identifier(128),
        c.GEN_AI_INPUT_MESSAGES: text(300),
        c.GEN_AI_OUTPUT_MESSAGES: text(300),
    }


def spans_in(run: RunTracer, attributes: list[dict[str, object]]) -> None:
    """Start and end one span for each set of attributes."""
    for each in attributes:
        run.end(run.start("probe counterfactual", "probe", each))


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of all threads."""
    gc.collect()
    begun = time.process_time()
    work()
    return time.process_time() - begun


def bare_seconds(attributes: list[dict[str, object]]) -> float:
    """CPU of spans that nobody records."""
    run = Telemetry([]).run()
    return cpu(lambda: spans_in(run, attributes))


def recorded_seconds(attributes: list[dict[str, object]]) -> tuple[float, int]:
    """CPU of spans that are recorded, their writing included, and the bytes of their files."""
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(folder)
        telemetry = Telemetry([recorder])
        run = telemetry.run()

        def work() -> None:
            spans_in(run, attributes)
            telemetry.shutdown()

        spent = cpu(work)
        assert recorder.recorded == len(attributes) and recorder.lost == 0
        return spent, sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))


def line_seconds(attributes: list[dict[str, object]]) -> tuple[float, int]:
    """CPU of writing ended spans as OTLP JSON, and the bytes of it."""
    memory = InMemorySpanExporter()
    spans_in(Telemetry([SimpleSpanProcessor(memory)]).run(), attributes)
    lines: list[str] = []
    spent = cpu(lambda: lines.extend(map(span_line, memory.get_finished_spans())))
    return spent, sum(map(len, lines))


def sdk_seconds(spans: Sequence[ReadableSpan]) -> tuple[float, int] | None:
    """CPU of the SDK's own exporter of OTLP JSON, in batches, and its bytes; None without it."""
    try:
        module: Any = importlib.import_module("opentelemetry.exporter.otlp.json.file")
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spans.jsonl"
        exporter = module.FileSpanExporter(path)

        def work() -> None:
            for start in range(0, len(spans), 512):
                exporter.export(spans[start : start + 512])
            exporter.shutdown()

        return cpu(work), path.stat().st_size


def told(what: str, budget: str, ours: str, beside: str = "", ratio: float | None = None) -> None:
    """One line of the table."""
    times = "" if ratio is None else f"{ratio:7.1f}x"
    print(f"{what:26} {budget:>14} {ours:>16}   {beside:44}{times}", flush=True)


def bench_recording(rounds: int, count: int = 20_000) -> None:
    """A recorded span beside a bare one, and beside OTLP JSON."""
    attributes = [probe_attributes(number) for number in range(count)]
    memory = InMemorySpanExporter()
    spans_in(Telemetry([SimpleSpanProcessor(memory)]).run(), attributes)
    ended = memory.get_finished_spans()
    bare, recorded, lines, exported = [], [], [], []
    for _ in range(rounds):
        bare.append(bare_seconds(attributes))
        recorded.append(recorded_seconds(attributes))
        lines.append(line_seconds(attributes))
        exported.append(sdk_seconds(ended))
    alone = min(bare)
    whole, size = min(recorded)
    line, length = min(lines)
    micros = 1e6 / count
    ours = (whole - alone) * micros
    told("bare span", "", f"{alone * micros:.1f} us")
    told("export to Parquet", "15 us", f"{ours:.1f} us")
    told("bytes of a span", "300", f"{size / count:.0f}", f"our OTLP JSON {length / count:.0f}")
    told("", "", "", f"our OTLP JSON {line * micros:.1f} us", line * micros / ours)
    if exported[0] is None:
        print("the SDK's exporter of OTLP JSON is not installed; its row is left out")
        return
    theirs, written = min(each for each in exported if each is not None)
    beside = f"SDK's OTLP JSON {theirs * micros:.1f} us, {written / count:.0f} bytes"
    told("", "6x", "", beside, theirs * micros / ours)


# --- questions ------------------------------------------------------------------------------------


def many_spans(count: int) -> Iterator[tuple[SpanFacts, dict[str, object]]]:
    """Runs of fifty spans: a root, seven nodes, a probe set and six probes for each."""
    start = 1_800_000_000_000_000_000
    for run in range(count // SPANS_OF_A_RUN):
        run_id, trace_id = identifier(128), identifier(128)
        base: dict[str, object] = {c.RUN_ID: run_id, c.AUDIT_WRITER: "w"}
        for seq, (kind, attributes) in enumerate(run_spans(run)):
            start += 1000
            facts = SpanFacts(
                trace_id,
                identifier(64),
                None if kind == "run" else identifier(64),
                None,
                f"{kind} x",
                "INTERNAL",
                "UNSET",
                None,
                start // 1000,
                start,
                _random.randrange(10**6),
                "bench",
                c.SCOPE,
                "1",
                "{}",
            )
            yield facts, {**base, c.SPAN_TYPE: kind, c.AUDIT_SEQ: seq, **attributes}


def run_spans(run: int) -> Iterator[tuple[str, dict[str, object]]]:
    """The spans of one run: case, replicate and answers differ from run to run."""
    for place, node in enumerate(NODES):
        yield (
            "node",
            {
                c.NODE_ID: node,
                c.NODE_TASK_ID: f"{run}/{node}",
                c.SUPERSTEP_INDEX: place,
                c.NODE_WEIGHT: 1 / (place + 1),
                c.NODE_OUTCOME: "ok",
                c.NODE_PARENTS: list(NODES[max(0, place - 1) : place]),
                c.NODE_EDGE_KIND: "observed",
                f"{c.ACTION_PREFIX}admit": _random.random() < 0.3,
                c.GEN_AI_INPUT_MESSAGES: text(200),
                c.GEN_AI_OUTPUT_MESSAGES: text(200),
            },
        )
        yield (
            "probe_set",
            {c.NODE_ID: node, c.PROBE_AXIS: "gender", c.EFFECT_VALUE: _random.random()},
        )
        for number in range(5):
            yield (
                "probe",
                {
                    c.NODE_ID: node,
                    c.PROBE_AXIS: "gender",
                    c.PROBE_REPLICATE: number,
                    c.PROBE_DIVERGENCE: _random.random(),
                    c.PROBE_INPUT_HASH: identifier(128),
                    c.GEN_AI_OUTPUT_MESSAGES: text(200),
                },
            )
    yield (
        "run",
        {
            c.CASE_ID: f"case-{run % CASES}",
            c.REPLICATE_INDEX: run // CASES,
            c.GEN_AI_REQUEST_MODEL: "m",
            c.AUDIT_OUTCOMES: [f"admit_{node}={node}.admit" for node in NODES],
            c.RUN_SPAN_COUNT: SPANS_OF_A_RUN,
        },
    )


def write_twice(folder: Path, count: int) -> tuple[Path, Path]:
    """The same spans with typed columns, and with every attribute as JSON text.

    In files as `open_store` makes them of a source that it reads. Lasting files are packed harder
    and have all columns: of the same size they take a fifth to a third longer, and as a recorder
    leaves them, 5,000 rows each, two to three times as long until they are compacted.
    """
    typed, plain = folder / "typed", folder / "json"
    for each in (typed, plain):
        each.mkdir()
    sinks = RowSink(typed), RowSink(plain)
    for facts, attributes in many_spans(count):
        sinks[0].add(facts, attributes)
        sinks[1].add(facts, {"all": json.dumps(attributes)})
    for sink in sinks:
        sink.flush()
    return typed, plain


def questions(run_id: str) -> Mapping[str, tuple[str, str]]:
    """What is asked of the views, and the same of JSON text."""
    key = "json_extract_string(a, '/twinspan.{}')".format
    nodes = f"{key('span.type')} = 'node'"
    return {
        "one trail": (
            f"SELECT * FROM trail WHERE run_id = '{run_id}'",
            f"SELECT *, {key('node.id')}, {key('probe.axis')}, {key('effect.value')} "
            f"FROM j WHERE {key('run.id')} = '{run_id}' ORDER BY {key('audit.seq')}::INT",
        ),
        "node group-by": (
            "SELECT node_id, avg(probe_divergence), quantile_cont(probe_divergence, 0.9) "
            "FROM spans WHERE span_type = 'probe' GROUP BY 1",
            f"SELECT {key('node.id')}, avg({key('probe.divergence')}::DOUBLE), "
            f"quantile_cont({key('probe.divergence')}::DOUBLE, 0.9) "
            f"FROM j WHERE {key('span.type')} = 'probe' GROUP BY 1",
        ),
        "floors": (
            "SELECT action, sum(flips), sum(cells) FROM floors GROUP BY 1",
            f"WITH r AS (SELECT {key('run.id')} r, {key('case.id')} v FROM j "
            f"WHERE {key('span.type')} = 'run'), "
            f"n AS (SELECT {key('run.id')} r, {key('node.id')} s, {key('action.admit')} x "
            f"FROM j WHERE {nodes}), "
            "k AS (SELECT s, v, x, count(*) n FROM n JOIN r USING (r) GROUP BY ALL), "
            "f AS (SELECT s, v, (sum(n) * sum(n) - sum(n * n)) / 2 f, "
            "sum(n) * (sum(n) - 1) / 2 c FROM k GROUP BY ALL) "
            "SELECT s, sum(f), sum(c) FROM f GROUP BY 1",
        ),
        "edges": (
            "SELECT source, target, count(*) FROM edges GROUP BY ALL",
            "WITH e AS (SELECT "
            f"{key('run.id')} r, {key('node.id')} t, {key('node.task.id')} k, "
            "unnest(from_json(json_extract(a, '/twinspan.node.parents'), '[\"VARCHAR\"]')) s "
            f"FROM j WHERE {nodes}) SELECT s, t, count(*) FROM "
            "(SELECT r, s, t, count(DISTINCT k) FROM e GROUP BY ALL) GROUP BY ALL",
        ),
    }


def bench_questions(folder: Path, count: int, rounds: int) -> None:
    """Questions over typed columns and over JSON."""
    typed, plain = write_twice(folder, count)
    begun = time.process_time()
    with open_store(typed) as store, duckdb.connect() as connection:
        told(f"open {count:,} spans", "", f"{(time.process_time() - begun) * 1e3:.0f} ms")
        connection.execute(
            "CREATE VIEW j AS SELECT *, json_extract_string(attributes, '/all') AS a "
            f"FROM read_parquet('{plain}/*.parquet')"
        )
        ask(store, connection, rounds)


_BUDGETS = {"one trail": "50 ms", "node group-by": "50 ms", "floors": "150 ms", "edges": "150 ms"}


def ask(store: Store, connection: duckdb.DuckDBPyConnection, rounds: int) -> None:
    """Each question, the fastest of its rounds, and how much longer JSON takes."""
    run_id = str(store.table("SELECT run_id FROM spans LIMIT 1 OFFSET 100").rows[0][0])
    for name, (query, other) in questions(run_id).items():
        store.table(query)
        ours = min(cpu(partial(store.table, query)) for _ in range(rounds))
        theirs = cpu(partial(connection.execute, other))
        beside = f"attributes as JSON {theirs * 1e3:.0f} ms (budget 20x)"
        told(name, _BUDGETS[name], f"{ours * 1e3:.1f} ms", beside, theirs / ours)


# --- importing ------------------------------------------------------------------------------------


def write_lines(path: Path, count: int) -> None:
    """A file of OTLP JSON, one span on a line."""
    with path.open("w") as file:
        for start in range(0, count, 10_000):
            memory = InMemorySpanExporter()
            numbers = range(start, min(start + 10_000, count))
            telemetry = Telemetry([SimpleSpanProcessor(memory)])
            spans_in(telemetry.run(), [probe_attributes(number) for number in numbers])
            file.writelines(map(span_line, memory.get_finished_spans()))


def imported(path: Path, out: Path) -> int:
    """Import a file and tell the most memory that the process ever took, in MB."""
    import_spans(path, out)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def bench_import(folder: Path, count: int) -> None:
    """OTLP JSON lines into rows, and the memory of a whole import."""
    small, large = folder / "small.jsonl", folder / "large.jsonl"
    write_lines(small, 20_000)
    rates: list[float] = []
    for number in range(3):
        (folder / f"read-{number}").mkdir()
        sink = RowSink(folder / f"read-{number}")
        rates.append(20_000 / cpu(partial(OtlpJson().read, [small], sink, Problems())))
    told("OTLP JSON into rows", "30,000/s", f"{max(rates):,.0f}/s")
    write_lines(large, count)
    # A process of its own: this one has held all that was written.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        peak = pool.apply(imported, (large, folder / "out"))
    size = large.stat().st_size / 2**20
    told("memory of an import", "1,024 MB", f"{peak:,} MB", f"of {count:,} spans in {size:,.0f} MB")


# --- verifying ------------------------------------------------------------------------------------


def bench_verify(folder: Path, runs: int, rounds: int) -> None:
    """Recorded demos, all of them verified and replayed."""
    rows = recorded_demo(folder / "demo")
    many = folder / "many"
    many.mkdir()
    for first in range(0, runs, 100):
        copies = [
            row for each in range(first, min(first + 100, runs)) for row in copy_of(rows, each)
        ]
        table = pa.Table.from_pylist(copies, schema=SPAN_SCHEMA)
        write_part(many / f"part-{first}.parquet", table)
    count = runs * len(rows)
    with open_store(many) as store:
        assert {each.verdict for each in verify(store)} == {"verified"}
    again = min(cpu(partial(verify_all, many)) for _ in range(rounds))
    replayed = min(cpu(partial(replay_all, many)) for _ in range(rounds))
    beside = f"{count:,} spans, {runs:,} runs"
    told("verify", "100,000/s", f"{count / again:,.0f}/s", beside)
    told("replay", "100,000/s", f"{count / replayed:,.0f}/s", beside)


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=500)
    options = parser.parse_args()
    told("what", "budget", "ours", "beside it")
    with tempfile.TemporaryDirectory() as folder:
        bench_recording(options.rounds)
        bench_import(Path(folder), options.lines)
        bench_verify(Path(folder), options.runs, options.rounds)
        bench_questions(Path(folder), options.spans, options.rounds)


if __name__ == "__main__":
    main()
