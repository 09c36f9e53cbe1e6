"""What verifying and replaying cost, a span.

The demo is recorded once and written many times under new run ids, with its chain of decisions
hashed anew, so that every copy is a run that verifies. CPU time of all threads.

    python benchmarks/bench_verify.py [--runs 200] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from twinspan.analysis.demo.run import run_demo
from twinspan.analysis.recorded import recorded_runs
from twinspan.analysis.replay import replay
from twinspan.analysis.store import Store, open_store
from twinspan.analysis.verify import verify
from twinspan.collector.chain import GENESIS, decision_hash
from twinspan.collector.parts import write_part
from twinspan.collector.schema import PROMOTED_COLUMNS, SPAN_SCHEMA
from twinspan.instrumentation import conventions as c

Row = dict[str, Any]


def recorded_demo(folder: Path) -> list[Row]:
    """The rows of one demo run, in the order of their numbers."""
    run_demo(folder, seed=0)
    with open_store(folder) as store:
        names = ", ".join(f'"{name}"' for name in SPAN_SCHEMA.names)
        table = store.arrow(f"SELECT {names} FROM spans ORDER BY audit_seq").read_all()
    return table.to_pylist()


def told(row: Mapping[str, Any]) -> Row:
    """What a decision's hash is taken over."""
    named = {name: row[column] for name, column in PROMOTED_COLUMNS.items()}
    rest = json.loads(row["attributes"] or "{}")
    outside = {c.AUDIT_PREV_HASH, c.ERROR_TYPE}
    said = {key: value for key, value in named.items() if value is not None} | rest
    return {key: value for key, value in said.items() if key not in outside}


def copy_of(rows: list[Row], number: int) -> list[Row]:
    """The same run under another id."""
    shift = f"{number:08x}"
    previous = GENESIS
    copied: list[Row] = []
    for row in rows:
        new = {**row, "run_id": f"{row['run_id']}-{number}"}
        for name in ("trace_id", "span_id", "parent_span_id"):
            if row[name] is not None:
                new[name] = shift + row[name][8:]
        if row["audit_hash"] is not None:
            new["audit_prev_hash"] = previous
            previous = new["audit_hash"] = decision_hash(told(new), previous)
        copied.append(new)
    return copied


def cpu_of(work: Any) -> float:
    """CPU seconds of all threads."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def replay_all(store: Store) -> None:
    """Decide every superstep of every run again."""
    for run in recorded_runs(store):
        replay(run)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = recorded_demo(Path(scratch) / "demo")
        folder = Path(scratch) / "many"
        folder.mkdir()
        copies = [row for number in range(options.runs) for row in copy_of(rows, number)]
        write_part(folder / "part-0.parquet", pa.Table.from_pylist(copies, schema=SPAN_SCHEMA))
        with open_store(folder) as store:
            verdicts = {each.verdict for each in verify(store)}
            spent = min(cpu_of(lambda: verify(store)) for _ in range(options.rounds))
            again = min(cpu_of(lambda: replay_all(store)) for _ in range(options.rounds))
        count = len(copies)
        sets = sum(row["span_type"] == "probe_set" for row in copies)
        print(f"{options.runs} runs, {count:,} spans, {sets:,} probe sets, all {verdicts}")
        print(f"verify {count / spent:10,.0f} spans/s ({spent / count * 1e6:.1f} us a span)")
        print(f"replay {count / again:10,.0f} spans/s ({again / count * 1e6:.1f} us a span)")


if __name__ == "__main__":
    main()
