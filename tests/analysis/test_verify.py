"""Every number follows from the raw spans; what does not is named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinspan.analysis import open_store
from twinspan.analysis.demo.run import run_demo
from twinspan.analysis.recorded import recorded_runs
from twinspan.analysis.replay import replay, summary
from twinspan.analysis.verify import Verification, verify
from twinspan.instrumentation import conventions as c


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every kind: repaired, unbiased, adaptive, sampled, in shadow mode."""
    folder = tmp_path_factory.mktemp("honest")
    run_demo(folder, seed=0)
    run_demo(folder, seed=1, biased=False)
    run_demo(folder, seed=2, plan="adaptive", axes=["gender", "age"])
    run_demo(folder, seed=3, probed_nodes=2.5)
    run_demo(folder, seed=4, mode="shadow")
    run_demo(folder, seed=5, plan="thorough", controls=["sham"], trigger="either")
    run_demo(folder, seed=6, scaling="deviation", tau_enter=3.0, tau_exit=1.0, trigger="both")
    run_demo(folder, seed=7, reduction="weighted_mean", weights="out_degree")
    return folder


def verified(folder: Path) -> list[Verification]:
    with open_store(folder) as store:
        return verify(store)


def test_honest_runs_are_verified_whatever_their_configuration(honest: Path) -> None:
    """Scores, weights, network score, monitor, decisions, chain."""
    found = verified(honest)
    assert [each.verdict for each in found] == ["verified"] * 8
    assert all(each.checked > 30 for each in found)


def test_sql_agrees_with_the_collector_on_every_plan(honest: Path) -> None:
    """The view and the live arithmetic are two implementations."""
    with open_store(honest) as store:
        ((worst, count),) = store.table(
            "SELECT max(greatest(abs(b_fast - b_fast_recomputed), "
            "abs(b_slow - b_slow_recomputed), abs(input - input_recomputed))), count(*) "
            "FROM network WHERE b_fast IS NOT NULL"
        ).rows
    assert float(str(worst)) < 1e-12 and int(str(count)) > 20


def tampered(
    tmp_path: Path, change: Callable[[pa.Table], pa.Table], **options: Any
) -> Verification:
    """A run whose single file was changed."""
    run_demo(tmp_path, seed=0, flush_seconds=60, **options)
    parts = sorted(tmp_path.rglob("*.parquet"))
    whole = pa.concat_tables([pq.ParquetFile(part).read() for part in parts])
    for part in parts[1:]:
        part.unlink()
    pq.write_table(change(whole), parts[0])
    (found,) = verified(tmp_path)
    return found


def column(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(name), [values])


def change_one(name: str, span_type: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        types, values = table["span_type"].to_pylist(), table[name].to_pylist()
        values[types.index(span_type)] = value
        return column(table, name, values)

    return change


def drop_one(span_type: str) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        types = table["span_type"].to_pylist()
        keep = [row for row in range(len(types)) if row != types.index(span_type)]
        return table.take(keep)

    return change


@pytest.mark.parametrize(
    ("name", "span_type", "value", "what"),
    [
        ("effect_value", "probe_set", 0.9, c.EFFECT_VALUE),
        ("effect_p_value", "probe_set", 0.5, c.EFFECT_P_VALUE),
        ("effect_e_value", "probe_set", 1e6, c.EFFECT_E_VALUE),
        ("node_weight", "probe_set", 0.123, c.NODE_WEIGHT),
        ("network_score_fast", "network", 0.9, c.NETWORK_SCORE_FAST),
        ("monitor_value", "network", 0.1, c.MONITOR_VALUE),
        ("breaker_decision", "network", "warn", c.BREAKER_DECISION),
    ],
)
def test_one_altered_number_is_named(
    tmp_path: Path, name: str, span_type: str, value: Any, what: str
) -> None:
    """With its span and with what the raw spans give instead."""
    found = tampered(tmp_path, change_one(name, span_type, value))
    assert found.verdict == "mismatch"
    assert what in {each.what for each in found.mismatches}


def test_an_altered_distance_unsettles_everything_above_it(tmp_path: Path) -> None:
    """Raw parts cannot be changed to fit a verdict without the rest telling."""

    def change(table: pa.Table) -> pa.Table:
        types = table["span_type"].to_pylist()
        values = table["divergence_distances"].to_pylist()
        values[types.index("probe_set")] = [1.0] * 105
        return column(table, "divergence_distances", values)

    found = tampered(tmp_path, change)
    named = {each.what for each in found.mismatches}
    assert {c.EFFECT_VALUE, c.EFFECT_P_VALUE, c.MONITOR_VALUE} <= named


@pytest.mark.parametrize("distances", [[0.5] * 7, [0.5] * 104 + [float("nan")], [1.0], []])
def test_distances_that_are_none_are_named_and_stop_nothing(
    tmp_path: Path, distances: list[float]
) -> None:
    """Too few, no numbers, none at all: the span is named, and other runs are still verified."""

    def change(table: pa.Table) -> pa.Table:
        types = table["span_type"].to_pylist()
        values = table["divergence_distances"].to_pylist()
        values[types.index("probe_set")] = distances
        return column(table, "divergence_distances", values)

    tampered(tmp_path / "spans", change)
    run_demo(tmp_path / "spans", seed=1)
    found = {each.verdict: each for each in verified(tmp_path / "spans")}
    assert set(found) == {"mismatch", "verified"}
    assert c.DIVERGENCE_DISTANCES in {each.what for each in found["mismatch"].mismatches}


def test_a_removed_decision_breaks_the_chain(tmp_path: Path) -> None:
    """And the numbering shows the hole."""
    found = tampered(tmp_path, drop_one("network"))
    assert found.verdict == "mismatch" and found.reasons
    assert c.AUDIT_HASH in {each.what for each in found.mismatches}


def test_two_swapped_decisions_break_the_chain(tmp_path: Path) -> None:
    """Their numbers were exchanged."""

    def change(table: pa.Table) -> pa.Table:
        types, seqs = table["span_type"].to_pylist(), table["audit_seq"].to_pylist()
        first, second = [row for row, kind in enumerate(types) if kind == "network"][:2]
        seqs[first], seqs[second] = seqs[second], seqs[first]
        return column(table, "audit_seq", seqs)

    assert tampered(tmp_path, change).verdict == "mismatch"


def test_a_lost_probe_makes_the_run_incomplete(tmp_path: Path) -> None:
    """Nothing that remains is wrong, but not everything is there."""
    found = tampered(tmp_path, drop_one("probe"))
    assert (found.verdict, found.mismatches) == ("incomplete", ())


def test_a_duplicated_span_counts_once_and_is_named(tmp_path: Path) -> None:
    """As a retried export would leave it: nothing is wrong, and it is told."""
    found = tampered(tmp_path, lambda table: pa.concat_tables([table, table.slice(0, 1)]))
    assert found.verdict == "verified"
    (note,) = found.notes
    assert note.endswith("is recorded 2 times and counts once")


def test_a_copy_that_says_something_else_is_named(tmp_path: Path) -> None:
    """Of two spans under one id at most one is the recorded one."""

    def change(table: pa.Table) -> pa.Table:
        row = table["span_type"].to_pylist().index("node")
        copy = table.slice(row, 1)
        return pa.concat_tables([table, column(copy, "node_outcome", ["altered"])])

    found = tampered(tmp_path, change)
    assert found.verdict == "mismatch"
    assert ("span", "2 that differ", "one") in {
        (each.what, each.recorded, each.recomputed) for each in found.mismatches
    }


def test_a_truncated_run_names_what_is_missing(tmp_path: Path) -> None:
    """The end of a run is gone, with its root, and pieces in the middle."""

    def change(table: pa.Table) -> pa.Table:
        seqs = table["audit_seq"].to_pylist()
        kept = set(range(50)) - {3, 4, 7}
        return table.take([row for row, seq in enumerate(seqs) if seq in kept])

    found = tampered(tmp_path, change)
    assert found.verdict == "incomplete"
    assert found.reasons[0].startswith("the root span is missing; 3 of 50 spans are missing")
    assert found.reasons[1] == "the numbers that are missing: 3-4, 7"


def test_the_command_ends_with_1_where_something_does_not_fit(honest: Path, tmp_path: Path) -> None:
    """And with 0 where all is well."""

    def run(folder: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "twinspan.analysis.cli", "verify", str(folder)]
        return subprocess.run(
            [*command, "--format", "json"], capture_output=True, text=True, check=False
        )

    assert run(honest).returncode == 0
    broken = tmp_path / "broken"
    shutil.copytree(honest, broken)
    sorted(broken.rglob("*.parquet"))[0].unlink()
    done = run(broken)
    assert done.returncode == 1
    assert "verified" in {run["verdict"] for run in json.loads(done.stdout)}


# --- replay ---------------------------------------------------------------------------------------


def test_replay_with_the_recorded_options_decides_the_same(honest: Path) -> None:
    """Live and in replay the same object reckons."""
    with open_store(honest) as store:
        for run in recorded_runs(store):
            again = [step.decision.decision.value for step in replay(run)]
            assert again == [item.told[c.BREAKER_DECISION] for item in run.supersteps]


def test_replay_tells_what_another_configuration_would_have_done(honest: Path) -> None:
    """A threshold out of reach halts nothing, one at the floor halts at once."""
    with open_store(honest) as store:
        run = recorded_runs(store)[0]
    far = replace(run.options, trigger="threshold", tau_enter=5.0, tau_exit=1.0)
    near = replace(run.options, trigger="threshold", tau_enter=0.2, tau_exit=0.1)
    assert summary(run, far).replayed_halt is None
    assert summary(run, near).replayed_halt == 2
    assert summary(run, near).recorded_halt == 2
