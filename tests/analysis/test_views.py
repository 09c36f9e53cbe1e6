"""The views say of recorded spans what is true of them."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest
from recorded_runs import ScoredRun, delta_of, parts, recording, small_run

from twinspan.analysis.described import described_columns
from twinspan.analysis.store import Store, open_store
from twinspan.analysis.views import VIEWS, script, view_sql
from twinspan.collector.reduction import REDUCTIONS
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.settings import Reduction


def _distances(rng: np.random.Generator, n: int, m: int) -> list[float]:
    size = n + m
    return [float(value) for value in rng.random(size * (size - 1) // 2)]


def _dicts(store: Store, query: str) -> list[dict[str, object]]:
    return list(store.table(query).dicts())


def test_every_view_can_be_asked(tmp_path: Path) -> None:
    """No view fails, whatever a source lacks."""
    with recording(tmp_path) as (telemetry, _):
        small_run(telemetry, "r1")
    with open_store(tmp_path) as store:
        for view in VIEWS:
            store.table(f"SELECT * FROM {view}")


# --- completeness -------------------------------------------------------------------------------


def _completeness(folder: Path) -> list[tuple[object, ...]]:
    with open_store(folder) as store:
        return list(store.table("SELECT completeness, missing, incomplete_reason FROM runs").rows)


def test_a_run_with_all_its_spans_is_complete(tmp_path: Path) -> None:
    """Numbers without gaps and as many spans as the root says."""
    with recording(tmp_path) as (telemetry, _):
        small_run(telemetry, "r1")
    assert _completeness(tmp_path) == [("complete", 0, "")]


def test_a_lost_file_shows(tmp_path: Path) -> None:
    """Whichever part of a run is removed, the run reads as incomplete."""
    with recording(tmp_path, max_spans=4) as (telemetry, recorder):
        run = telemetry.run("r1")
        for _ in range(3):
            for _ in range(4):
                run.end(run.start("invoke_node a", "node"))
            recorder.flush()
        root = run.start("invoke_workflow g", "run")
        run.end(root, {c.RUN_SPAN_COUNT: run.ended_count + 1})
    files = parts(tmp_path)
    assert len(files) == 4
    for lost in files:
        content = lost.read_bytes()
        lost.unlink()
        ((completeness, missing, reason),) = _completeness(tmp_path)
        assert completeness == "incomplete"
        assert (missing == 4 and "4 of 13 spans" in str(reason)) or "root" in str(reason)
        lost.write_bytes(content)


def test_a_gap_in_another_writers_numbers_shows(tmp_path: Path) -> None:
    """Two writers of a run number their spans apart; a gap in either shows."""
    with recording(tmp_path) as (telemetry, recorder):
        small_run(telemetry, "r1")
        recorder.flush()
        second = telemetry.run("r1")
        for _ in range(2):
            second.end(second.start("invoke_node b", "node"))
        recorder.flush()
        second.end(second.start("invoke_node c", "node"))
        recorder.flush()
    assert _completeness(tmp_path) == [("complete", 0, "")]
    parts(tmp_path)[-2].unlink()
    assert _completeness(tmp_path)[0][:2] == ("incomplete", 2)


def test_a_root_that_announces_nothing_proves_nothing(tmp_path: Path) -> None:
    """Without a number of spans nobody can say that all are there."""
    with recording(tmp_path) as (telemetry, _):
        run = telemetry.run("r1")
        run.end(run.start("invoke_workflow g", "run"))
    ((completeness, _, reason),) = _completeness(tmp_path)
    assert (completeness, reason) == (
        "incomplete",
        "the root span announces no number of spans",
    )


# --- the graph ----------------------------------------------------------------------------------


def test_edges_are_the_payloads_that_went(tmp_path: Path) -> None:
    """A join reads from two nodes, attempts of one execution count once, loops are edges."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        run.node("a", 1)
        run.node("b", 1)
        for attempt in (1, 2):
            run.node(
                "join",
                2,
                {
                    c.NODE_PARENTS: ["a", "b"],
                    c.NODE_PARENT_HASHES: ["ha", f"hb{attempt}"],
                    c.NODE_EDGE_KIND: "observed",
                    c.NODE_ATTEMPT: attempt,
                },
            )
        for step in (3, 4):
            run.node("loop", step, {c.NODE_PARENTS: ["loop"], c.NODE_EDGE_KIND: "inferred"})
        run.end()
    with open_store(tmp_path) as store:
        edges = store.table(
            "SELECT source, target, kind, payload_hash, executions FROM edges ORDER BY 1, 2"
        ).rows
    assert edges == (
        ("a", "join", "observed", "ha", 1),
        ("b", "join", "observed", "hb2", 1),
        ("loop", "loop", "inferred", None, 2),
    )


def test_an_edge_of_unknown_kind_is_never_called_observed(tmp_path: Path) -> None:
    """What nobody saw is inferred."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        run.node("b", 1, {c.NODE_PARENTS: ["a"]})
        run.end()
    with open_store(tmp_path) as store:
        assert store.table("SELECT kind FROM edges").rows == (("inferred",),)


def test_supersteps_gather_what_ran_together(tmp_path: Path) -> None:
    """Nodes once each, executions by task, the decision beside them."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        for worker in range(3):
            run.node("worker", 1, {c.NODE_TASK_ID: f"t{worker}"})
        run.node("flaky", 1, {c.NODE_ATTEMPT: 1})
        run.node("flaky", 1, {c.NODE_ATTEMPT: 2})
        run.decide(1, [])
        run.end()
    with open_store(tmp_path) as store:
        rows = store.table(
            "SELECT superstep, nodes, executions, attempts, decision FROM supersteps"
        ).rows
    assert rows == ((1, ["flaky", "worker"], 4, 5, "proceed"),)


def test_coverage_names_every_node_and_why(tmp_path: Path) -> None:
    """Probed, sampled out, exempt or unknown: each execution is in one column."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        run.node("a", 1, {c.PROBE_DECISION: "probed", c.PROBE_SAMPLING_RATE: 0.5})
        run.node("a", 2, {c.PROBE_DECISION: "sampled_out", c.PROBE_SAMPLING_RATE: 0.5})
        run.node("b", 3, {c.PROBE_DECISION: "exempt"})
        run.node("c", 4)
        run.probe_set("a", 1, [0.0, 0.0, 1.0, 1.0, 1.0, 0.0], 2, 2)
        run.end()
    with open_store(tmp_path) as store:
        rows = store.table(
            "SELECT node, executions, probed, sampled_out, exempt, unknown, sampling_rate, axes, "
            "scored FROM coverage ORDER BY node"
        ).rows
    assert rows == (
        ("a", 2, 1, 1, 0, 0, 0.5, ["gender"], 1),
        ("b", 1, 0, 0, 1, 0, None, None, 0),
        ("c", 1, 0, 0, 0, 1, None, None, 0),
    )


# --- scores, again ------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(2, 2), (5, 3), (10, 5)])
def test_delta_follows_from_the_recorded_distances(tmp_path: Path, n: int, m: int) -> None:
    """SQL and the definition over the whole matrix agree."""
    distances = _distances(np.random.default_rng(n), n, m)
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        run.probe_set("a", 1, distances, n, m)
        run.end()
    with open_store(tmp_path) as store:
        ((delta, again),) = store.table("SELECT delta, delta_recomputed FROM probe_sets").rows
    assert delta == delta_of(distances, n, m)
    assert math.isclose(float(str(again)), float(str(delta)), abs_tol=1e-12)


def test_a_score_without_its_parts_is_not_invented(tmp_path: Path) -> None:
    """A missing or miscounted list of distances gives no score."""
    whole = [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        run.probe_set("whole", 1, whole, 2, 2)
        run.probe_set("miscounted", 1, whole, 2, 2, counts=(3, 2))
        run.probe_set("one_sample", 1, whole, 2, 2, counts=(1, 3))
        run.end()
    with open_store(tmp_path) as store:
        rows = store.table("SELECT node, delta_recomputed FROM probe_sets ORDER BY node").rows
    assert rows == (("miscounted", None), ("one_sample", None), ("whole", 1.0))


def _superstep(
    run: ScoredRun, rng: np.random.Generator, superstep: int, weights: dict[str, float]
) -> None:
    """Some nodes fire, on one or two axes, one of them perhaps in two executions."""
    firing = [node for node in weights if rng.random() < 0.7]
    sets: list[str] = []
    magnitudes: dict[str, float] = {}
    for node in firing:
        run.node(node, superstep, {c.NODE_WEIGHT: weights[node]})
        for axis in ("gender", "age")[: int(rng.integers(1, 3))]:
            n, m = int(rng.integers(2, 6)), int(rng.integers(2, 5))
            distances = _distances(rng, n, m)
            delta = delta_of(distances, n, m)
            magnitudes[node] = max(magnitudes.get(node, -math.inf), delta)
            sets.append(
                run.probe_set(node, superstep, distances, n, m, axis=axis, weight=weights[node])
            )
    if magnitudes:
        run.accumulator.update(magnitudes, weights)
    run.decide(superstep, sets)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_the_network_score_follows_from_probe_sets_and_weights_alone(
    tmp_path: Path, reduction: Reduction
) -> None:
    """Whatever fires, however it is reduced and smoothed: SQL arrives at the same numbers."""
    rng = np.random.default_rng(REDUCTIONS.index(reduction))
    with recording(tmp_path) as (telemetry, _):
        for number in range(5):
            alphas = (float(rng.uniform(0.05, 1)), float(rng.uniform(0.05, 1)))
            run = ScoredRun(telemetry, f"r{number}", reduction=reduction, alphas=alphas)
            weights = {"hub": 1.0, "middle": 0.6, "leaf": 0.25}
            for superstep in range(1, 6):
                _superstep(run, rng, superstep, weights)
            run.end()
    _assert_recomputed(tmp_path)


def _assert_recomputed(folder: Path) -> None:
    with open_store(folder) as store:
        rows = _dicts(store, "SELECT * FROM network ORDER BY audit_seq")
    assert rows
    for row in rows:
        for recorded, again in (
            ("b_fast", "b_fast_recomputed"),
            ("b_slow", "b_slow_recomputed"),
            ("raw_fast", "raw_fast_recomputed"),
        ):
            if row[recorded] is None:
                assert row[again] is None
            else:
                difference = float(str(row[again])) - float(str(row[recorded]))
                assert abs(difference) <= 1e-12


def test_a_repaired_superstep_counts_once(tmp_path: Path) -> None:
    """Its second input takes the place of the first, for it and for all that follow."""
    rng = np.random.default_rng(7)
    weights = {"a": 1.0, "b": 0.5}
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        _superstep(run, rng, 1, weights)
        before = run.accumulator.state
        for attempt, decision in enumerate(("halt", "halt", "proceed")):
            distances = _distances(rng, 4, 3)
            found = run.probe_set("a", 2, distances, 4, 3)
            run.accumulator.state = before
            run.accumulator.update({"a": delta_of(distances, 4, 3)}, weights)
            extra = {c.INTERVENTION_ID: f"i{attempt}"} if attempt else {}
            run.decide(2, [found], decision=decision, extra=extra)
        run.decide(3, [])
        _superstep(run, rng, 4, weights)
        run.end()
    _assert_recomputed(tmp_path)


def test_a_weight_of_the_node_serves_where_the_probe_set_has_none(tmp_path: Path) -> None:
    """Node spans carry the weights; a probe set need not repeat them."""
    distances = [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        run.node("a", 1, {c.NODE_WEIGHT: 0.5})
        found = run.probe_set("a", 1, distances, 2, 2, weight=None)
        run.accumulator.update({"a": 1.0}, {"a": 0.5})
        run.decide(1, [found])
        run.end()
    _assert_recomputed(tmp_path)
    with open_store(tmp_path) as store:
        ((contributions,),) = store.table("SELECT contributions FROM network").rows
    assert contributions == [{"node": "a", "magnitude": 1.0, "weight": 0.5, "impact": 0.5}]


# --- other names --------------------------------------------------------------------------------


def test_the_clickhouse_names_hold_every_attribute_as_text(tmp_path: Path) -> None:
    """Queries written for the ClickHouse exporter find spans, attributes and links."""
    with recording(tmp_path) as (telemetry, _):
        run = telemetry.run("r1")
        span = run.start(
            "invoke_node a", "node", {c.NODE_ID: "a", "mine.key": 2, f"{c.ACTION_PREFIX}x": "y"}
        )
        span.add_event("seen", {"k": "v"})
        run.end(span)
    with open_store(tmp_path) as store:
        row = _dicts(store, "SELECT * FROM otel_traces")[0]
        found = store.table(
            "SELECT SpanAttributes['twinspan.node.id'], Events.Name[1], StatusCode, SpanKind "
            "FROM otel_traces WHERE ServiceName <> ''"
        ).rows
    attributes = row["SpanAttributes"]
    assert isinstance(attributes, dict)
    assert attributes["mine.key"] == "2"
    assert attributes["twinspan.action.x"] == "y"
    assert found == (("a", "seen", "Unset", "Internal"),)


def test_a_dotted_key_of_the_rest_is_found_by_its_name(tmp_path: Path) -> None:
    """A macro reads the JSON rest: flat keys, whatever is in them."""
    with recording(tmp_path) as (telemetry, _):
        run = telemetry.run("r1")
        run.end(run.start("n", "node", {"mine.a.b": 1, "a/b~c": "odd", 'quo"te': True}))
    with open_store(tmp_path) as store:
        rows = store.table(
            "SELECT attr(attributes, 'mine.a.b'), attr(attributes, 'a/b~c'), "
            "attr(attributes, 'quo\"te'), attr(attributes, 'none') FROM spans"
        ).rows
    assert rows == (("1", "odd", "true", None),)


# --- their documentation --------------------------------------------------------------------------


def test_every_column_of_every_view_has_a_meaning() -> None:
    """Written once: at the attribute, or at the end of the view's SQL."""
    assert [(each.view, each.column) for each in described_columns() if not each.meaning] == []


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_described_that_is_not_there(view: str) -> None:
    """A description outlives its column easily."""
    columns = {each.column for each in described_columns(view)}
    _, _, told = view_sql(view).partition("\n-- Columns\n")
    for line in told.splitlines():
        assert line.removeprefix("-- ").partition(":")[0].partition(" [")[0] in columns, line


def test_the_page_of_the_views_is_current() -> None:
    """`python docs/refresh_views.py` writes it."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "docs/refresh_views.py", "--check"], cwd=root, check=False
    )
    assert done.returncode == 0, "run: python docs/refresh_views.py"


def test_the_clickhouse_names_are_those_of_its_exporter() -> None:
    """As its table is created; nested columns are structures of lists."""
    assert [each.column for each in described_columns("otel_traces")] == [
        *("Timestamp", "TraceId", "SpanId", "ParentSpanId", "TraceState", "SpanName", "SpanKind"),
        *("ServiceName", "ResourceAttributes", "ScopeName", "ScopeVersion", "SpanAttributes"),
        *("Duration", "StatusCode", "StatusMessage", "Events", "Links"),
    ]
    types = {each.column: each.type for each in described_columns("otel_traces")}
    assert '"Timestamp"' in types["Events"] and '"Name"' in types["Events"]
    for name in ("TraceId", "SpanId", "TraceState", "Attributes"):
        assert f'"{name}"' in types["Links"] or f"{name} " in types["Links"]


def test_the_printed_sql_works_without_twinspan(tmp_path: Path) -> None:
    """In a plain DuckDB, over the files alone, with the same answers."""
    folder = tmp_path / "it's"
    with recording(folder) as (telemetry, _):
        small_run(telemetry, "r1")
    with duckdb.connect() as connection, open_store(folder) as store:
        connection.execute(script(str(folder)))
        for view in VIEWS:
            query = f"SELECT * FROM {view} ORDER BY ALL"
            assert connection.execute(query).fetchall() == list(store.table(query).rows), view
