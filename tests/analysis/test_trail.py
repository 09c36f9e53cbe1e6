"""The trail: a verdict that is never better than the record, and breaches with their causes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_runs import ScoredRun, parts, recording, small_run

from twinspan.analysis.chain import broken_links
from twinspan.analysis.graphs import dot, mermaid, run_graph
from twinspan.analysis.store import open_store
from twinspan.analysis.trail import AuditTrail
from twinspan.analysis.trail_records import RunTrail
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import NoSpans, SourceError
from twinspan.instrumentation.tracing import Telemetry

FLIPPED = [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]
"""Two and two samples that agree within and disagree across their arms: delta 1."""

SAME = [0.0] * 6


def _breached(telemetry: Telemetry, run_id: str) -> None:
    """a -> b; a's payload is halted at a->b, repaired, and passes."""
    run = ScoredRun(telemetry, run_id)
    run.node("a", 1, {c.NODE_WEIGHT: 1.0, c.PROBE_DECISION: "probed"})
    first = run.probe_set("a", 1, FLIPPED, 2, 2)
    other = run.probe_set("a", 1, SAME, 2, 2, axis="age")
    before = run.accumulator.state
    run.accumulator.update({"a": 1.0}, {"a": 1.0})
    run.decide(
        1,
        [first, other],
        decision="halt",
        extra={
            c.BREAKER_EDGE: "a->b",
            c.BREAKER_EDGES: ["a->b"],
            c.BREAKER_NODE: "a",
            c.BREAKER_AXIS: "gender",
        },
    )
    again = run.probe_set("a", 1, SAME, 2, 2, extra={c.INTERVENTION_ID: "i1"})
    run.accumulator.state = before
    run.accumulator.update({"a": 0.0}, {"a": 1.0})
    run.decide(1, [again], extra={c.INTERVENTION_ID: "i1"})
    span = run.run.start(
        "intervene blind_rerun",
        "intervention",
        {
            c.INTERVENTION_ID: "i1",
            c.INTERVENTION_STRATEGY: "blind_rerun",
            c.NODE_ID: "a",
            c.SUPERSTEP_INDEX: 1,
            c.SUPERSTEP_SCOPE: "",
            c.INTERVENTION_SCORE_BEFORE: 1.0,
        },
        parent=run.root,
    )
    run.run.end(
        span,
        {
            c.INTERVENTION_SCORE_AFTER: 0.0,
            c.INTERVENTION_OUTCOME: "cleared",
            c.INTERVENTION_EDGE: "a->b",
        },
    )
    run.node("b", 2, {c.NODE_PARENTS: ["a"], c.NODE_EDGE_KIND: "observed", c.NODE_WEIGHT: 0.5})
    run.end()


def _trail(folder: Path, run_id: str = "r1") -> RunTrail:
    with AuditTrail.open(folder) as trail:
        return trail.run(run_id)


def test_a_breach_goes_back_to_node_axis_perturbation_and_edge(tmp_path: Path) -> None:
    """With every share of the score, its evidence, and what was done."""
    with recording(tmp_path) as (telemetry, _):
        _breached(telemetry, "r1")
    run = _trail(tmp_path)
    assert (run.verdict, run.reasons) == ("flagged", ("1 breach(es)",))
    assert [each.decision for each in run.decisions] == ["halt", "proceed"]
    (breach,) = run.breaches
    assert breach.path == (
        "superstep 1",
        "node a",
        "axis gender",
        "perturbation gender:one>other",
        "edge a->b",
    )
    worst, other = breach.contributions
    assert (worst.axis, worst.weight, worst.magnitude, worst.impact) == ("gender", 1.0, 1.0, 1.0)
    assert (worst.delta, worst.p_value, worst.e_value) == (1.0, 0.5, 1.0)
    assert worst.targets == ("/text",)
    assert (other.axis, other.delta) == ("age", 0.0)
    (done,) = breach.interventions
    assert (done.strategy, done.outcome, done.score_before, done.score_after, done.edge) == (
        "blind_rerun",
        "cleared",
        1.0,
        0.0,
        "a->b",
    )
    assert [each.decision for each in breach.rechecks] == ["proceed"]


def test_a_run_in_which_nothing_was_measured_is_not_clear(tmp_path: Path) -> None:
    """No probe set has a score: inconclusive. With one, and no breach: clear."""
    with recording(tmp_path) as (telemetry, _):
        small_run(telemetry, "r1")
        run = ScoredRun(telemetry, "r2")
        run.decide(1, [run.probe_set("a", 1, SAME, 2, 2)])
        run.end()
    assert _trail(tmp_path, "r1").verdict == "inconclusive"
    assert _trail(tmp_path, "r2").verdict == "clear"


def test_a_lost_part_comes_before_everything_else(tmp_path: Path) -> None:
    """Whichever file is removed, the run is incomplete, breach or not."""
    with recording(tmp_path) as (telemetry, _):
        _breached(telemetry, "r1")
    assert len(parts(tmp_path)) == 2
    for lost in parts(tmp_path):
        content = lost.read_bytes()
        lost.unlink()
        assert _trail(tmp_path).verdict == "incomplete"
        lost.write_bytes(content)
    assert _trail(tmp_path).verdict == "flagged"


def _altered(folder: Path, column: str, value: object, *, seq: int) -> None:
    """Change one value of the span with a number."""
    for path in parts(folder):
        table = pq.read_table(path)
        numbers = table.column("audit_seq").to_pylist()
        if seq in numbers:
            values = table.column(column).to_pylist()
            values[numbers.index(seq)] = value
            place = table.schema.get_field_index(column)
            changed = pa.array(values, table.schema.field(place).type)
            pq.write_table(table.set_column(place, column, changed), path)


def test_an_altered_decision_breaks_the_chain(tmp_path: Path) -> None:
    """A halt that was turned into a proceed shows, and the run is not trusted."""
    with recording(tmp_path) as (telemetry, _):
        _breached(telemetry, "r1")
    with open_store(tmp_path) as store:
        assert broken_links(store) == []
        ((seq,),) = store.table("SELECT audit_seq FROM decisions WHERE decision = 'halt'").rows
    _altered(tmp_path, "breaker_decision", "proceed", seq=int(str(seq)))
    with open_store(tmp_path) as store:
        assert [each.reason for each in broken_links(store, "r1")] == [
            "its content does not fit its hash"
        ]
    run = _trail(tmp_path)
    assert run.verdict == "incomplete"
    assert "does not fit its hash" in run.reasons[0]


def test_a_removed_decision_breaks_the_chain(tmp_path: Path) -> None:
    """The one after it has no predecessor."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        for superstep in range(3):
            run.decide(superstep, [])
        run.end()
    for path in parts(tmp_path):
        table = pq.read_table(path)
        keep = [number != 1 for number in table.column("audit_seq").to_pylist()]
        pq.write_table(table.filter(pa.array(keep)), path)
    with open_store(tmp_path) as store:
        assert [(each.audit_seq, each.reason) for each in broken_links(store)] == [
            (2, "its predecessor is missing or was altered")
        ]


def test_an_unknown_run_is_said_with_those_there_are(tmp_path: Path) -> None:
    """A name that was mistyped."""
    with recording(tmp_path) as (telemetry, _):
        small_run(telemetry, "r1")
    with (
        AuditTrail.open(tmp_path) as trail,
        pytest.raises(SourceError, match="has no run 'r2'; its runs begin with 'r1'"),
    ):
        trail.run("r2")


def test_events_come_in_the_order_of_the_record(tmp_path: Path) -> None:
    """The view `trail`, one run of it."""
    with recording(tmp_path) as (telemetry, _):
        _breached(telemetry, "r1")
    with AuditTrail.open(tmp_path) as trail:
        events = trail.events("r1")
    assert events.column("event")[-1] == "run"
    assert events.column("audit_seq") == sorted(map(int, map(str, events.column("audit_seq"))))
    assert ("network", "halt", "a->b") in [
        (row["event"], row["what"], row["edge"]) for row in events.dicts()
    ]


# --- graphs -------------------------------------------------------------------------------------


def test_the_graph_has_weights_scores_and_cut_edges(tmp_path: Path) -> None:
    """As plain values, and drawn."""
    with recording(tmp_path) as (telemetry, _):
        _breached(telemetry, "r1")
    with open_store(tmp_path) as store:
        graph = run_graph(store)
    document = graph.document()
    assert [(node["node"], node["weight"], node["delta"]) for node in document["nodes"]] == [
        ("a", 1.0, 1.0),
        ("b", 0.5, None),
    ]
    assert document["edges"] == [
        {
            "source": "a",
            "target": "b",
            "kind": "observed",
            "scope": "",
            "executions": 1,
            "cut": True,
        }
    ]
    assert "n0 --x n1" in mermaid(graph)
    assert '"a" -> "b" [color=red];' in dot(graph)


def test_a_graph_without_weights_is_weighed_by_its_edges(tmp_path: Path) -> None:
    """Katz over what was seen: the source of a chain weighs most, and it is said."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1", root={c.GRAPH_NODES: ["a", "b", "never"]})
        run.node("a", 1)
        run.node("b", 2, {c.NODE_PARENTS: ["a"]})
        run.end()
    with open_store(tmp_path) as store:
        nodes = {node.node: node for node in run_graph(store).nodes}
    assert nodes["a"].weight == 1.0
    assert (nodes["b"].weight or 1) < 1
    assert nodes["a"].weight_method == "katz, from the edges"
    assert nodes["never"].executions == 0


def test_spans_without_a_run_have_no_graph(tmp_path: Path) -> None:
    """Foreign spans alone."""
    from opentelemetry.sdk.trace import TracerProvider

    from twinspan.collector.recorder import Recorder

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Recorder(tmp_path))
    provider.get_tracer("theirs").start_span("chat").end()
    provider.shutdown()
    with open_store(tmp_path) as store, pytest.raises(NoSpans):
        run_graph(store)
