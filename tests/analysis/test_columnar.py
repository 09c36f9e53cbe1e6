"""Many runs at once and one run after the other: the same numbers, verdicts and words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reckoned_runs import ODD, MadeRun, made_run, write_runs

from twinspan.analysis import open_store
from twinspan.analysis.columnar.guards import DECISIONS, REASONS, STATES
from twinspan.analysis.columnar.reckoning import Reckoning, reckon
from twinspan.analysis.columnar.spans import run_batches
from twinspan.analysis.intervention_checks import InterventionSpans
from twinspan.analysis.replay import Replayed, replay, summary, with_orbits
from twinspan.analysis.replay_summaries import summaries
from twinspan.analysis.run_checks import Mismatch, findings_of
from twinspan.analysis.verify import verify
from twinspan.collector.schema import PROMOTED_COLUMNS, SPAN_SCHEMA

RUNS = 40
SEEDS = range(4)

Found = tuple[int, tuple[Mismatch, ...]]
"""How many numbers of a run were checked, and which do not fit."""


def made(seed: int, folder: Path) -> list[MadeRun]:
    """Random runs, every fifth of them out of the ordinary."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    kinds = [ODD[place // 5 % len(ODD)] if place % 5 == 4 else None for place in range(RUNS)]
    runs = [made_run(rng, f"run-{place:03d}", kind) for place, kind in enumerate(kinds)]
    write_runs(folder / "part-00000.parquet", runs, rng)
    return runs


def one_by_one(folder: Path) -> dict[str, Found]:
    """What looking at each run alone finds."""
    found: dict[str, Found] = {}
    with open_store(folder) as store:
        for batch in run_batches(store):
            intervened = InterventionSpans.of(batch)
            for run, orbits in with_orbits(run for run in batch.recorded() if run.told):
                findings = findings_of(run, orbits, intervened)
                found[run.run_id] = findings.checked, tuple(findings.mismatches)
            for run_id, span_id, name in batch.placeless():
                told = Mismatch(span_id=span_id, what=name, recorded="missing", recomputed="named")
                if run_id in found:
                    checked, mismatches = found[run_id]
                    found[run_id] = checked, (*mismatches, told)
    return found


def together(folder: Path) -> dict[str, Found]:
    """What `verify` finds."""
    with open_store(folder) as store:
        return {each.run_id: (each.checked, each.mismatches) for each in verify(store)}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_runs_are_verified_together_as_they_are_one_by_one(
    seed: int, tmp_path: Path
) -> None:
    """Shapes, modes, rounds, screens, repairs, resets, runs that went on: every number fits."""
    made(seed, tmp_path)
    found = together(tmp_path)
    assert found == one_by_one(tmp_path)
    assert len(found) == RUNS and all(not mismatches for _, mismatches in found.values())
    with open_store(tmp_path) as store:
        assert {each.verdict for each in verify(store)} == {"verified"}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_reckoned_together_has_the_same_digits(seed: int, tmp_path: Path) -> None:
    """And only what is out of the ordinary is left to be reckoned alone."""
    kinds = {run.run_id: run.kinds for run in made(seed, tmp_path)}
    with open_store(tmp_path) as store:
        for batch in run_batches(store):
            reckoned = reckon(batch)
            assert reckoned.reckoning is not None
            for place, run in enumerate(batch.recorded()):
                ordinary = bool(reckoned.ordinary[place])
                assert ordinary or kinds[run.run_id] & {"path", "reset", "anew"}
                rows = np.flatnonzero(reckoned.decisions.run == place).tolist()
                for row, step in zip(rows, replay(run), strict=True) if ordinary else ():
                    assert _row(reckoned.reckoning, row) == _numbers(step)


def _row(told: Reckoning, row: int) -> list[object]:
    scores = (told.fast, told.slow, told.raw_fast, told.observed)
    monitor = (told.monitor, told.limit, told.sparse)
    return [
        told.step.item(row),
        *(None if math.isnan(each.item(row)) else each.item(row) for each in (*scores, *monitor)),
        STATES[told.state_from.item(row)],
        STATES[told.state_to.item(row)],
        DECISIONS[told.decision.item(row)],
        REASONS[told.reason.item(row)],
        bool(told.enforced[row]),
    ]


def _numbers(step: Replayed) -> list[object]:
    decision = step.decision
    return [
        step.step,
        decision.b_fast,
        decision.b_slow,
        step.raw_fast if step.step else None,
        step.observed,
        decision.monitor,
        decision.monitor_limit,
        step.monitor_sparse,
        decision.state_from,
        decision.state_to,
        decision.decision,
        decision.reason,
        decision.enforced,
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"trigger": "threshold", "tau_enter": 0.3, "tau_exit": 0.1},
        {"trigger": "either", "tau_enter": 2.0, "tau_exit": 1.0, "scaling": "deviation"},
        {"trigger": "both", "tau_enter": 0.3, "tau_exit": 0.1, "alpha": 0.3},
        {"reduction": "max", "fast_alpha": 0.4, "slow_alpha": 0.2},
        {"trigger": "path"},
    ],
)
def test_another_configuration_decides_the_same_together_and_one_by_one(
    changes: Mapping[str, Any], tmp_path: Path
) -> None:
    """Halts, reasons and the largest numbers, to the last digit."""
    made(11, tmp_path)
    with open_store(tmp_path) as store:
        found = {each.run_id: each for each in summaries(store, changes)}
        runs = [run for batch in run_batches(store) for run in batch.recorded()]
    alone = [summary(run, replace(run.options, **changes)) for run in runs if run.supersteps]
    assert found == {each.run_id: each for each in alone}
    assert len({each.replayed_halt is None for each in alone}) == 2


# --- tampering ------------------------------------------------------------------------------------


def tampered(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    """One attribute changed or emptied, one span removed, or two in each other's place."""
    types = table["span_type"].to_pylist()
    row = int(rng.choice([place for place, kind in enumerate(types) if kind != "probe"]))
    what = rng.choice(["changed", "changed", "changed", "emptied", "removed", "swapped"])
    if what == "removed":
        return table.take([place for place in range(len(types)) if place != row])
    filled = [
        name
        for name in PROMOTED_COLUMNS.values()
        if table[name][row].as_py() is not None and name not in ("run_id", "span_type")
    ]
    name = str(rng.choice(filled))
    values = table[name].to_pylist()
    other = int(rng.integers(len(types)))
    if what == "swapped":
        name = "audit_seq"
        values = table[name].to_pylist()
        values[row], values[other] = values[other], values[row]
    elif what == "emptied" and name != "span_id":
        values[row] = None
    else:
        values[row] = _other(values[row])
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(name), [values])


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return value[1:] if value else ["more"]
    return {"halt": "proceed", "proceed": "warn"}.get(value, f"{value}x")


@pytest.mark.parametrize("seed", range(30))
def test_what_was_altered_is_found_together_as_it_is_one_by_one(seed: int, tmp_path: Path) -> None:
    """The same spans, attributes and numbers are named, and other runs are left alone."""
    rng = np.random.default_rng(seed)
    runs = [
        made_run(rng, f"run-{place}", ODD[seed % 4] if place == 2 else None) for place in range(4)
    ]
    part = tmp_path / "part-00000.parquet"
    write_runs(part, runs, rng)
    whole = pq.ParquetFile(part).read().cast(SPAN_SCHEMA)
    changed = whole
    for _ in range(int(rng.integers(1, 3))):
        changed = tampered(changed, rng)
    pq.write_table(changed, part)
    alone = one_by_one(tmp_path)
    found = together(tmp_path)
    assert {run: found[run] for run in alone} == alone
