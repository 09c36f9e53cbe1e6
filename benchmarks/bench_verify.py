"""What verifying and replaying cost, a span.

The demo is recorded once and written many times under new run ids, with its chain of decisions
hashed anew and the samples of every arm in another order, so that every copy is a run that
verifies and hardly two have the same distances. CPU time of all threads, the opening of the record
included; the commands in processes of their own besides, where Python's imports count too.

    python benchmarks/bench_verify.py [--runs 500] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from twinspan.analysis.demo.run import run_demo
from twinspan.analysis.replay_summaries import summaries
from twinspan.analysis.row_order import in_order
from twinspan.analysis.store import open_store
from twinspan.analysis.verify import verify
from twinspan.collector.chain import GENESIS, decision_hash
from twinspan.collector.parts import write_part
from twinspan.collector.schema import PROMOTED_COLUMNS, SPAN_SCHEMA
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.orbit import square
from twinspan.instrumentation.splits import EXACT_LIMIT

Row = dict[str, Any]

RUNS_OF_A_FILE = 500


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


def reordered(row: Row, rng: np.random.Generator) -> list[float]:
    """A probe set's distances with the samples of either arm in another order: nothing else.

    Labellings that are drawn and not enumerated depend on the order; such a set stays as it is.
    """
    n = row[PROMOTED_COLUMNS[c.DIVERGENCE_REFERENCE_COUNT]]
    m = row[PROMOTED_COLUMNS[c.DIVERGENCE_COUNTERFACTUAL_COUNT]]
    if comb(n + m, n) > EXACT_LIMIT:
        return list(row["divergence_distances"])
    order = np.concatenate([rng.permutation(n), n + rng.permutation(m)])
    first, second = np.triu_indices(n + m, 1)
    found: list[float] = square(row["divergence_distances"])[order[first], order[second]].tolist()
    return found


def copy_of(rows: list[Row], number: int) -> list[Row]:
    """The same run under another id."""
    shift, rng = f"{number:08x}", np.random.default_rng(number)
    previous = GENESIS
    copied: list[Row] = []
    for row in rows:
        new = {**row, "run_id": f"{row['run_id']}-{number}"}
        for name in ("trace_id", "span_id", "parent_span_id"):
            if row[name] is not None:
                new[name] = shift + row[name][8:]
        if row["divergence_distances"] is not None:
            new["divergence_distances"] = reordered(row, rng)
        if row["audit_hash"] is not None:
            new["audit_prev_hash"] = previous
            previous = new["audit_hash"] = decision_hash(told(new), previous)
        copied.append(new)
    return copied


def write_copies(folder: Path, rows: list[Row], runs: int) -> None:
    """Write as many runs, in files as an import or a compaction leaves them."""
    for first in range(0, runs, RUNS_OF_A_FILE):
        numbers = range(first, min(first + RUNS_OF_A_FILE, runs))
        copies = [row for number in numbers for row in copy_of(rows, number)]
        table = in_order(pa.Table.from_pylist(copies, schema=SPAN_SCHEMA))
        write_part(folder / f"part-{first:06d}.parquet", table)


def cpu_of(work: Any) -> float:
    """CPU seconds of all threads."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def verify_all(folder: Path) -> None:
    """Open a record and verify every run."""
    with open_store(folder) as store:
        verify(store)


def replay_all(folder: Path) -> None:
    """Open a record and decide every superstep of every run again."""
    with open_store(folder) as store:
        summaries(store)


def command_cpu(command: str, folder: Path) -> float:
    """CPU seconds of a command of its own, from its first import on."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "twinspan.analysis.cli", command, str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = recorded_demo(Path(scratch) / "demo")
        folder = Path(scratch) / "many"
        folder.mkdir()
        write_copies(folder, rows, options.runs)
        with open_store(folder) as store:
            verdicts = {each.verdict for each in verify(store)}
        spent = min(cpu_of(lambda: verify_all(folder)) for _ in range(options.rounds))
        again = min(cpu_of(lambda: replay_all(folder)) for _ in range(options.rounds))
        count = len(rows) * options.runs
        sets = sum(row["span_type"] == "probe_set" for row in rows) * options.runs
        print(f"{options.runs} runs, {count:,} spans, {sets:,} probe sets, all {verdicts}")
        print(f"verify {count / spent:10,.0f} spans/s ({spent / count * 1e6:.1f} us a span)")
        print(f"replay {count / again:10,.0f} spans/s ({again / count * 1e6:.1f} us a span)")
        for command in ("verify", "replay"):
            one, all_runs = (
                command_cpu(command, each) for each in (Path(scratch) / "demo", folder)
            )
            print(f"twinspan {command}: {one:.2f} s for one run, {all_runs:.2f} s for all of them")


if __name__ == "__main__":
    main()
