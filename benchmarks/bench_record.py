"""What recording costs, and what questions over a million recorded spans cost.

Everything is measured in one process beside what it is compared to: a recorded span beside the
SDK's bare one, typed columns beside the same attributes as JSON text. CPU time of all threads.

    python benchmarks/bench_record.py [--spans 1000000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import duckdb
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from twinspan.analysis.dialects import Problems, RowSink
from twinspan.analysis.dialects.otlp_json import OtlpJson
from twinspan.analysis.store import Store, open_store
from twinspan.collector.otlp_json import span_line
from twinspan.collector.recorder import Recorder
from twinspan.collector.rows import SpanFacts
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


def bench_recording(rounds: int, count: int = 20_000) -> None:
    """A recorded span beside a bare one, and beside OTLP JSON."""
    attributes = [probe_attributes(number) for number in range(count)]
    bare, recorded, lines = [], [], []
    for _ in range(rounds):
        bare.append(bare_seconds(attributes))
        recorded.append(recorded_seconds(attributes))
        lines.append(line_seconds(attributes))
    alone = min(bare)
    whole, size = min(recorded)
    line, length = min(lines)
    micros = 1e6 / count
    print(f"bare span             {alone * micros:8.1f} us")
    print(f"recorded in Parquet  +{(whole - alone) * micros:8.1f} us, {size / count:.0f} bytes")
    print(f"as OTLP JSON         +{line * micros:8.1f} us, {length / count:.0f} bytes")


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
    """The same spans with typed columns, and with every attribute as JSON text."""
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
        print(f"\nopened {count:,} spans in {(time.process_time() - begun) * 1e3:.0f} ms CPU")
        connection.execute(
            "CREATE VIEW j AS SELECT *, json_extract_string(attributes, '/all') AS a "
            f"FROM read_parquet('{plain}/*.parquet')"
        )
        ask(store, connection, rounds)


def ask(store: Store, connection: duckdb.DuckDBPyConnection, rounds: int) -> None:
    """Each question, the fastest of its rounds, and how much longer JSON takes."""
    run_id = str(store.table("SELECT run_id FROM spans LIMIT 1 OFFSET 100").rows[0][0])
    for name, (query, other) in questions(run_id).items():
        store.table(query)
        ours = min(cpu(partial(store.table, query)) for _ in range(rounds))
        theirs = cpu(partial(connection.execute, other))
        print(
            f"{name:14} {ours * 1e3:8.1f} ms CPU   as JSON {theirs * 1e3:8.1f} ms   "
            f"{theirs / ours:5.0f}x"
        )


# --- importing ------------------------------------------------------------------------------------


def bench_import(folder: Path, count: int = 20_000) -> None:
    """OTLP JSON lines into rows."""
    memory = InMemorySpanExporter()
    telemetry = Telemetry([SimpleSpanProcessor(memory)])
    spans_in(telemetry.run(), [probe_attributes(number) for number in range(count)])
    path = folder / "spans.jsonl"
    path.write_text("".join(map(span_line, memory.get_finished_spans())))
    memory.clear()
    (folder / "read").mkdir()
    sink = RowSink(folder / "read")
    spent = cpu(lambda: OtlpJson().read([path], sink, Problems()))
    print(f"\nOTLP JSON import {count / spent:,.0f} spans/s ({spent / count * 1e6:.1f} us each)")


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench_recording(options.rounds)
        bench_import(Path(folder))
        bench_questions(Path(folder), options.spans, options.rounds)


if __name__ == "__main__":
    main()
