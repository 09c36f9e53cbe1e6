"""What other instrumentations recorded of real programs reads as what really ran."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from recorded_runs import parts
from shared_data import shared

from twinspan.analysis.floors import floor_table
from twinspan.analysis.graphs import run_graph
from twinspan.analysis.importing import import_spans
from twinspan.analysis.store import Store, open_store
from twinspan.analysis.trail import AuditTrail

FILES = (
    "genai--agents",
    "genai--parallel",
    "openai_agents_openinference--handoff",
    "openinference--interrupt",
    "openinference--loop",
    "openinference--parallel",
    "openinference--sendsub",
    "traceloop--parallel",
    "traceloop--retry",
    "traceloop--sendsub",
    "triple--parallel",
)
WITHOUT_NODES = {"genai--parallel"}
"""The official instrumentation has no span for a plain node."""

Truth = Mapping[str, Any]
Told = tuple[str, Store, Truth]


@pytest.fixture(scope="module", params=FILES)
def told(request: pytest.FixtureRequest) -> Generator[Told]:
    """Each file with its name and what is true of its program."""
    name = str(request.param)
    expected = json.loads(shared("otlp/expected.json").read_text())
    with open_store(shared(f"otlp/{name}.jsonl")) as store:
        yield name, store, expected[name.partition("--")[2]]


def _holders(store: Store) -> dict[object, str]:
    """The node that holds each scope."""
    rows = store.table("SELECT task_id, node FROM nodes").rows
    return {"": "", **{task: str(node) for task, node in rows}}


def _plain(node: object) -> str:
    return str(node).rpartition("/")[2]


def test_nodes_stand_in_their_supersteps(told: Told) -> None:
    """Each execution once, in its own graph; attempts and resumptions do not count twice."""
    name, store, truth = told
    if "supersteps" not in truth or name in WITHOUT_NODES:
        return
    holders = _holders(store)
    found: dict[str, dict[str, list[str]]] = {}
    for scope, step, node, _ in store.table(
        "SELECT DISTINCT scope, superstep, node, task_id FROM nodes ORDER BY ALL"
    ).rows:
        found.setdefault(holders[scope], {}).setdefault(str(step), []).append(_plain(node))
    known = truth["supersteps"]
    if name == "genai--agents":
        known = {"": known[""]}
    assert found == known


def test_the_view_of_supersteps_says_the_same(told: Told) -> None:
    """Which nodes ran together, and how often."""
    name, store, truth = told
    if "supersteps" not in truth or name in WITHOUT_NODES | {"genai--agents"}:
        return
    holders = _holders(store)
    found = {
        (holders[row["scope"]], str(row["superstep"])): (
            sorted({_plain(node) for node in cast("list[str]", row["nodes"])}),
            row["executions"],
        )
        for row in store.table("SELECT * FROM supersteps").dicts()
    }
    assert found == {
        (scope, step): (sorted(set(nodes)), len(nodes))
        for scope, steps in truth["supersteps"].items()
        for step, nodes in steps.items()
    }


def test_edges_are_those_along_which_payloads_went(told: Told) -> None:
    """All of them, and no others."""
    name, store, truth = told
    rows = store.table("SELECT DISTINCT source, target FROM edges").rows
    found = {(_plain(source), _plain(target)) for source, target in rows}
    expected = {tuple(edge) for edge in truth["edges"]}
    assert found == (set() if name in WITHOUT_NODES else expected)


OBSERVED = {
    "openinference--parallel": {("analyst_a", "reviewer"), ("analyst_b", "reviewer")},
    "openinference--sendsub": {("planner", "worker"), ("router", "writer_team")},
    "openinference--loop": {("worker", "worker")},
    "openai_agents_openinference--handoff": {("triage", "decider")},
    "genai--agents": set[tuple[str, str]](),
    "genai--parallel": set[tuple[str, str]](),
    "openinference--interrupt": set[tuple[str, str]](),
}
"""Edges of which the record itself names both ends; Traceloop names all of them."""


def test_an_edge_is_observed_only_if_the_record_names_both_ends(told: Told) -> None:
    """What follows from the order alone is inferred, and says so."""
    name, store, truth = told
    rows = store.table("SELECT DISTINCT source, target FROM edges WHERE kind = 'observed'").rows
    found = {(_plain(source), _plain(target)) for source, target in rows}
    assert found == OBSERVED.get(name, {tuple(edge) for edge in truth["edges"]})
    kinds = {row[0] for row in store.table("SELECT kind FROM edges").rows}
    assert kinds <= {"observed", "inferred"}


def test_each_model_call_counts_once(told: Told) -> None:
    """However many instrumentors watched."""
    _, store, truth = told
    assert len(store.table("SELECT * FROM llm_calls").rows) == truth.get("llm_calls", 0)
    untold = "SELECT count(*) FROM llm_calls WHERE model IS NULL OR input_tokens IS NULL"
    assert store.table(untold).rows == ((0,),)


def test_runs_have_their_graph_and_their_end(told: Told) -> None:
    """A retry and an interrupt are no failures."""
    name, store, truth = told
    rows = store.table("SELECT graph, outcome, error_type FROM runs ORDER BY start_unix_nano").rows
    assert len(rows) == truth.get("runs", 1)
    assert {row[0] for row in rows} == {truth.get("graph", "Agent workflow")}
    ends = [row[1] for row in rows]
    assert ends == (["interrupted", "completed"] if "interrupt" in name else ["completed"])
    assert all(row[2] is None for row in rows)


def test_a_foreign_run_never_passes_for_complete(told: Told) -> None:
    """Nobody announced how many spans there are, so none can be known to be lost."""
    _, store, _ = told
    assert {row[0] for row in store.table("SELECT completeness FROM runs").rows} == {"incomplete"}


def test_attempts_are_told_apart_from_executions(told: Told) -> None:
    """A task that ran twice has two attempts; only failures that stood are errors."""
    _, store, truth = told
    rows = store.table("SELECT task_id, node, attempt, outcome FROM nodes").rows
    executions = {row[0] for row in rows}
    assert len(executions) == truth.get("node_executions", len(executions)) or not rows
    outcomes = Counter(str(row[3]) for row in rows)
    assert outcomes["retried"] == truth.get("failed_attempts", 0)
    assert outcomes["interrupted"] == len(truth.get("interrupted", ()))
    assert outcomes["error"] == 0
    for node, attempts in truth.get("attempts", {}).items():
        assert sorted(int(str(row[2])) for row in rows if row[1] == node) == list(
            range(1, attempts + 1)
        )


def test_three_instrumentors_at_once_are_told() -> None:
    """Which of them is believed, and how much of the others was left out."""
    with open_store(shared("otlp/triple--parallel.jsonl")) as store:
        assert {(problem.what, problem.count) for problem in store.problems} == {
            ("a span of Traceloop was left out, since OpenInference tells the same", 8),
            ("a span of GenAI was left out, since OpenInference tells the same", 4),
        }
        assert {row[0] for row in store.table("SELECT scope_name FROM llm_calls").rows} == {
            "openinference.instrumentation.langchain"
        }


def test_dialects_agree_on_what_a_node_handed_on() -> None:
    """The same program gives the same hashes, whoever recorded it."""
    query = "SELECT node, input_hash, output_hash FROM nodes ORDER BY node"
    answers = []
    for name in ("openinference--parallel", "traceloop--parallel", "triple--parallel"):
        with open_store(shared(f"otlp/{name}.jsonl")) as store:
            answers.append(store.table(query).rows)
    assert answers[0] == answers[1] == answers[2]
    assert all(None not in row for row in answers[0])


def test_two_recordings_of_a_case_give_a_floor(tmp_path: Path) -> None:
    """Runs of one graph on one input are replicates; here they agree in everything."""
    for name in ("openinference--parallel", "traceloop--parallel"):
        (tmp_path / f"{name}.jsonl").write_bytes(shared(f"otlp/{name}.jsonl").read_bytes())
    with open_store(tmp_path) as store:
        rows = store.table("SELECT action, replicates, floor FROM floors ORDER BY action").rows
        assert rows == tuple(
            (f"{node}.output", 2, 0.0) for node in ("analyst_a", "analyst_b", "planner", "reviewer")
        )
        pooled = next(row for row in floor_table(store).dicts() if row["action"] == "pooled")
        assert (pooled["flips"], pooled["floor"], pooled["reason"]) == (0, None, "one_case")
        (by_case, *_) = floor_table(store, by=["case_id"]).dicts()
        assert (by_case["floor"], by_case["reason"]) == (0.0, None)


def test_the_graph_has_weights_and_the_trail_reads(told: Told) -> None:
    """The DAG, its blast radius and the audit trail work without anything of ours."""
    name, store, _ = told
    graph = run_graph(store)
    assert all(node.weight is not None for node in graph.nodes)
    assert bool(graph.nodes) == (name not in WITHOUT_NODES)
    trails = AuditTrail(store).runs()
    assert {trail.verdict for trail in trails} == {"incomplete"}


@pytest.mark.parametrize("name", ["triple--parallel", "openinference--interrupt"])
def test_an_import_keeps_the_meaning(name: str, tmp_path: Path) -> None:
    """What was read once is not read anew: the same answers, and nothing left to complain of."""
    source = shared(f"otlp/{name}.jsonl")
    import_spans(source, tmp_path / "out")
    assert parts(tmp_path / "out")
    with open_store(source) as store, open_store(tmp_path / "out") as again:
        for view in ("nodes", "edges", "llm_calls", "runs", "supersteps"):
            query = f"SELECT * FROM {view} ORDER BY ALL"
            assert again.table(query) == store.table(query)
        assert again.problems == ()
