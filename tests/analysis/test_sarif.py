"""SARIF: valid by the published schema, every breach with its way, nothing that is no finding."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import audit_agents
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audit_agents import SIGNED_GATE, rows, run, write_audit
from click.testing import CliRunner
from recorded_runs import ScoredRun, parts, recording, small_run
from sarif_schema import check

from twinspan.analysis.cli import main
from twinspan.analysis.demo.run import run_demo
from twinspan.analysis.sarif import FINGERPRINT, sarif_log
from twinspan.analysis.store import open_store
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import SourceError
from twinspan.instrumentation.tracing import Telemetry

FLIPPED = [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]
"""Two and two samples that agree within and disagree across: delta 1."""

SAME = [0.0] * 6
ABOVE = {c.GEN_AI_EVALUATION_LABEL: "above_floor"}
WITHIN = {c.GEN_AI_EVALUATION_LABEL: "within_floor"}


def log_of(folder: Path, **options: Any) -> dict[str, Any]:
    """The log of a folder, valid and without a number that JSON cannot say."""
    with open_store(folder) as store:
        log = sarif_log(store, **options)
    json.dumps(log, allow_nan=False)
    return log


def results_of(folder: Path, **options: Any) -> list[dict[str, Any]]:
    """Its results."""
    results: list[dict[str, Any]] = log_of(folder, **options)["runs"][0]["results"]
    return results


def halt(node: str, target: str, axis: str = "gender", **extra: object) -> dict[str, object]:
    """What a decision says that cuts one edge."""
    return {
        c.BREAKER_EDGE: f"{node}->{target}",
        c.BREAKER_EDGES: [f"{node}->{target}"],
        c.BREAKER_NODE: node,
        c.BREAKER_AXIS: axis,
        c.BREAKER_REASON: "monitor_at_limit",
        **extra,
    }


def chain(telemetry: Telemetry, run_id: str, *, strange: str = "b") -> None:
    """a -> b -> d and a -> c -> d; b is halted first with a small impact, c later with a large.

    b has the larger delta and the smaller weight: w * delta is 0.2 against 0.75.
    """
    run = ScoredRun(telemetry, run_id)
    run.node("a", 1, {c.NODE_WEIGHT: 1.0})
    run.decide(1, [run.probe_set("a", 1, SAME, 2, 2, extra=WITHIN)])
    half = [0.0, 1.0, 0.5, 1.0, 0.5, 0.0]
    for node, superstep, weight, distances in ((strange, 2, 0.2, FLIPPED), ("c", 3, 1.0, half)):
        run.node(node, superstep, {c.NODE_PARENTS: ["a"], c.NODE_WEIGHT: weight})
        found = run.probe_set(node, superstep, distances, 2, 2, weight=weight, extra=ABOVE)
        run.decide(superstep, [found], decision="halt", extra=halt(node, "d"))
    run.node("d", 4, {c.NODE_PARENTS: [strange, "c"], c.NODE_WEIGHT: 0.5})
    run.decide(4, [], decision="warn", extra={c.BREAKER_REASON: "monitor_near_limit"})
    run.end()


@pytest.fixture(scope="module")
def chained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The log of two breaches and a warning."""
    folder = tmp_path_factory.mktemp("chain")
    with recording(folder) as (telemetry, _):
        chain(telemetry, "r1")
    return log_of(folder)


@pytest.fixture(scope="module")
def log(demo: Path) -> dict[str, Any]:
    """The log of the biased demo."""
    return log_of(demo)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The biased demo."""
    folder = tmp_path_factory.mktemp("demo")
    run_demo(folder, seed=0)
    return folder


def test_the_demo_is_told_by_the_published_schema(log: dict[str, Any]) -> None:
    """A halt as an error, the reaction behind it as a warning, the repair as a note."""
    check(log)
    found = [(each["ruleId"], each["level"]) for each in log["runs"][0]["results"]]
    assert found == [
        ("breaker/halt", "error"),
        ("bias/gender", "warning"),
        ("intervention/blind_rerun", "note"),
    ]
    assert log["runs"][0]["invocations"][0]["executionSuccessful"] is True


def test_a_result_carries_every_number_it_rests_on(log: dict[str, Any]) -> None:
    """Delta, interval, p, e, samples per arm and estimator, for the halt and the reaction."""
    halted, reaction, repair = log["runs"][0]["results"]
    for result in (halted, reaction):
        numbers = result["properties"]
        assert numbers["delta"] > 0.5
        assert numbers["interval"][0] < numbers["delta"] < numbers["interval"][1]
        assert numbers["p"] == pytest.approx(1 / 3003)  # no labelling is as extreme
        assert numbers["e"] > 100
        assert numbers["n"] == {"reference": 10, "counterfactual": 5}
        assert numbers["estimator"] == "action"
        assert numbers["impact"] == pytest.approx(numbers["weight"] * numbers["delta"])
    assert halted["properties"]["perturbations"] == ["gender:woman>man"]
    assert repair["properties"]["deltaAfter"] < 0.1


def test_the_bias_is_followed_to_the_cut_edge(log: dict[str, Any]) -> None:
    """Node by node in the order of the graph, and the consumer that did not get to read."""
    (flow,) = log["runs"][0]["results"][0]["codeFlows"]
    locations = flow["threadFlows"][0]["locations"]
    names = [each["location"]["logicalLocations"][0]["name"] for each in locations]
    assert names == ["planner", "analyst_a", "reviewer"]
    assert [each["executionOrder"] for each in locations] == [1, 2, 3]
    assert [each["importance"] for each in locations] == ["important", "essential", "essential"]
    assert locations[-1]["properties"] == {"cut": True}


def test_every_breach_is_a_result_and_the_largest_impact_comes_first(
    chained: dict[str, Any],
) -> None:
    """Not the first in time, not the largest delta: the largest w * delta."""
    check(chained)
    results = chained["runs"][0]["results"]
    halts = [each for each in results if each["ruleId"] == "breaker/halt"]
    nodes = [each["locations"][0]["logicalLocations"][0]["name"] for each in halts]
    impacts = [each["properties"]["impact"] for each in halts]
    assert nodes == ["c", "b"]
    assert impacts == pytest.approx([0.75, 0.2])
    assert results[:2] == halts


def test_a_drift_warning_is_a_result(chained: dict[str, Any]) -> None:
    """On the graph, since no node is named; the rule says warning."""
    results = chained["runs"][0]["results"]
    (warned,) = [each for each in results if each["ruleId"] == "breaker/warn"]
    assert warned["level"] == "warning"
    assert "monitor near limit" in warned["message"]["text"]
    assert warned["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "g"


def test_a_significant_score_and_a_reroute_make_two_rules(tmp_path: Path) -> None:
    """bias/gender as a warning, breaker/reroute as an error; proceed is no result."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        run.node("router", 1, {c.NODE_WEIGHT: 1.0})
        run.decide(1, [run.probe_set("router", 1, SAME, 2, 2, extra=WITHIN, axis="age")])
        found = run.probe_set("router", 1, FLIPPED, 2, 2, extra=ABOVE)
        run.decide(1, [found], decision="reroute", extra=halt("router", "x"))
        run.end()
    log = log_of(tmp_path)
    check(log)
    rules = {
        rule["id"]: rule["defaultConfiguration"]["level"]
        for rule in log["runs"][0]["tool"]["driver"]["rules"]
    }
    assert rules == {"bias/gender": "warning", "breaker/reroute": "error"}
    results = log["runs"][0]["results"]
    assert [each["ruleId"] for each in results] == ["breaker/reroute", "bias/gender"]


def test_a_run_without_findings_is_valid_and_empty(tmp_path: Path) -> None:
    """A thousand scores within the floor are no thousand results."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        for superstep in range(40):
            run.decide(superstep, [run.probe_set("a", superstep, SAME, 2, 2, extra=WITHIN)])
        run.end()
    log = log_of(tmp_path)
    check(log)
    assert log["runs"][0]["results"] == []
    everything = log_of(tmp_path, everything=True)
    check(everything)
    results = everything["runs"][0]["results"]
    assert len(results) == 80
    assert {(each["kind"], each["level"]) for each in results} == {("pass", "none")}


def test_a_finding_has_one_fingerprint_over_runs(tmp_path: Path) -> None:
    """Another run, other numbers, other times: the same; another node: another."""
    with recording(tmp_path) as (telemetry, _):
        chain(telemetry, "r1")
        chain(telemetry, "r2")
        chain(telemetry, "r3", strange="e")

    results = results_of(tmp_path)

    def prints(run_id: str) -> list[str]:
        return [
            each["partialFingerprints"][FINGERPRINT]
            for each in results
            if each["properties"]["runId"] == run_id
        ]

    assert prints("r1") == prints("r2")
    assert len(set(prints("r1"))) == len(prints("r1")) == 5
    assert len(set(prints("r3")) - set(prints("r1"))) == 2


def test_what_is_unknown_is_left_out_and_never_called_none(tmp_path: Path) -> None:
    """A repair without outcome or score, a halt without node, a probe set without a score."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        run.decide(1, [], decision="halt", extra={c.BREAKER_REASON: None})
        run.run.end(
            run.run.start("intervene", "intervention", {c.INTERVENTION_ID: "i"}, parent=run.root)
        )
        run.end()
    log = log_of(tmp_path, everything=True)
    check(log)
    assert not re.search(r"\bNone\b|\bnan\b|null", json.dumps(log))


def _all_numbers_gone(folder: Path) -> None:
    """Every measured number becomes NaN, as no recorder of ours would write it."""
    names = ("effect_value", "effect_p_value", "network_score_fast", "monitor_value", "node_weight")
    for path in parts(folder):
        table = pq.read_table(path)
        for name in names:
            place = table.schema.get_field_index(name)
            values = [None if v is None else float("nan") for v in table.column(name).to_pylist()]
            table = table.set_column(place, name, pa.array(values, table.schema.field(place).type))
        pq.write_table(table, path)


def test_numbers_that_are_none_do_not_reach_the_file(tmp_path: Path) -> None:
    """NaN in the record is an absent property, and the halt is still told."""
    with recording(tmp_path) as (telemetry, _):
        chain(telemetry, "r1")
    _all_numbers_gone(tmp_path)
    log = log_of(tmp_path)
    check(log)
    assert [each["ruleId"] for each in log["runs"][0]["results"]].count("breaker/halt") == 2
    assert not re.search(r"\bnan\b", json.dumps(log), re.IGNORECASE)


def test_names_cannot_become_links_or_arguments(tmp_path: Path) -> None:
    """Brackets and braces mean something in SARIF's texts; in a name they do not."""
    with recording(tmp_path) as (telemetry, _):
        chain(telemetry, "r1", strange="[b](http://x) {0}")
    texts = [each["message"]["text"] for each in results_of(tmp_path)]
    assert any(r"\[b\](http://x) {{0}}" in text for text in texts)


def test_a_record_with_holes_is_no_clean_bill(tmp_path: Path) -> None:
    """No result, but the invocation failed and says why."""
    with recording(tmp_path) as (telemetry, _):
        small_run(telemetry, "r1")
    parts(tmp_path)[0].unlink()
    log = log_of(tmp_path)
    check(log)
    (invocation,) = log["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert (
        "3 of 4 spans are missing" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    )


def test_a_loop_in_the_graph_is_walked_once(tmp_path: Path) -> None:
    """a -> b -> a -> b -> c: the way to the cut edge ends."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        for superstep, node, parents in ((1, "a", ["b"]), (2, "b", ["a"]), (3, "a", ["b"])):
            run.node(node, superstep, {c.NODE_PARENTS: parents, c.NODE_WEIGHT: 1.0})
        found = run.probe_set("b", 4, FLIPPED, 2, 2, extra=ABOVE)
        run.decide(4, [found], decision="halt", extra=halt("b", "c"))
        run.end()
    log = log_of(tmp_path)
    check(log)
    locations = log["runs"][0]["results"][0]["codeFlows"][0]["threadFlows"][0]["locations"]
    names = [each["location"]["logicalLocations"][0]["name"] for each in locations]
    assert names == ["a", "b", "c"]


# --- the command ----------------------------------------------------------------------------------


def test_the_command_writes_a_file_or_stdout(demo: Path, tmp_path: Path) -> None:
    """The same log; it reports and does not judge."""
    printed = CliRunner().invoke(main, ["sarif", str(demo), "--out", "-"])
    assert printed.exit_code == 0
    out = tmp_path / "x.sarif"
    written = CliRunner().invoke(main, ["sarif", str(demo), "--out", str(out)])
    assert (written.exit_code, written.stdout) == (0, "")
    assert json.loads(out.read_text(encoding="utf-8")) == json.loads(printed.stdout)


def test_the_command_gives_results_a_file_if_told_one(demo: Path) -> None:
    """Code hosts show nothing without."""
    arguments = ["sarif", str(demo), "--out", "-", "--source-file", "app/graph.py"]
    log = json.loads(CliRunner().invoke(main, arguments).stdout)
    check(log)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "app/graph.py"


def test_an_unknown_run_is_an_error(demo: Path) -> None:
    """With those that there are."""
    with open_store(demo) as store, pytest.raises(SourceError, match="has no run 'x'"):
        sarif_log(store, run_id="x")
    assert CliRunner().invoke(main, ["sarif", str(demo), "--out", "-", "--run", "x"]).exit_code == 3


# --- audits -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of an agent that declines women, with a gate whose band nobody signed."""
    folder = tmp_path_factory.mktemp("audited")
    gate = SIGNED_GATE.replace('"clinician-adjudicated"', '"author-derived"')
    config = write_audit(folder, audit_agents.decided, extra=gate)
    assert run("audit", "--config", config, "--out", folder / "spans").exit_code == 1
    return folder


def audit_results(audited: Path, *extra: str) -> list[dict[str, Any]]:
    """The results of the command, by the published schema."""
    config = audited / "audit.toml"
    result = run("sarif", audited / "spans", "--out", "-", "--config", config, *extra)
    assert result.exit_code == 0, result.output
    log = json.loads(result.stdout)
    check(log)
    results: list[dict[str, Any]] = log["runs"][0]["results"]
    return results


def test_a_disparity_and_a_closed_gate_are_results(audited: Path) -> None:
    """An error with every number that `flips` has, a warning with the gate's reason."""
    disparity, held_out = audit_results(audited)
    assert (disparity["ruleId"], disparity["level"]) == ("disparity/sex", "error")
    assert (held_out["ruleId"], held_out["level"]) == ("gate/bands_are_not_ground_truth", "warning")
    (row, *_) = rows("flips", audited / "spans", code=1)
    told = disparity["properties"]
    for ours, theirs in (
        ("flipRate", "flip_rate"),
        ("floor", "floor"),
        ("excess", "excess"),
        ("pAdjusted", "p_adjusted"),
        ("pControls", "p_controls"),
        ("adjustedBy", "adjusted_by"),
        ("tests", "n_tests"),
    ):
        assert told[ours] == row[theirs], ours
    assert "by Holm over 1 comparison," in disparity["message"]["text"]
    (place,) = disparity["locations"][0]["logicalLocations"]
    assert place["fullyQualifiedName"] == "two/decide"
    assert "withinBandRate" not in held_out["properties"]


def test_an_audit_is_told_without_a_file_as_well(audited: Path) -> None:
    (only,) = results_of(audited / "spans")
    assert only["ruleId"] == "disparity/sex"


def test_findings_of_an_audit_keep_their_fingerprint_and_differ(audited: Path) -> None:
    first, second = audit_results(audited), audit_results(audited)
    prints = [[each["partialFingerprints"][FINGERPRINT] for each in x] for x in (first, second)]
    assert prints[0] == prints[1] and len(set(prints[0])) == 2


def test_one_named_run_is_no_audit(audited: Path) -> None:
    with open_store(audited / "spans") as store:
        run_id = str(store.table("SELECT run_id FROM runs LIMIT 1").rows[0][0])
    assert results_of(audited / "spans", run_id=run_id) == []


def test_what_is_no_finding_is_open_and_has_no_number(tmp_path: Path) -> None:
    """One replicate: with --all the comparison is listed, with its reason alone."""
    config = write_audit(tmp_path, audit_agents.decided, **{"replicates = 8": "replicates = 1"})
    run("audit", "--config", config, "--out", tmp_path / "spans")
    assert results_of(tmp_path / "spans") == []
    (only,) = results_of(tmp_path / "spans", everything=True)
    assert (only["kind"], only["level"]) == ("open", "none")
    assert "no case was run twice" in only["message"]["text"]
    assert not {"flipRate", "floor", "excess", "p", "pAdjusted", "shift"} & set(only["properties"])


def test_an_audit_with_missing_runs_is_no_clean_bill(tmp_path: Path) -> None:
    config = write_audit(tmp_path, audit_agents.raising, agent_extra="retries = 0")
    run("audit", "--config", config, "--out", tmp_path / "spans")
    invocation = log_of(tmp_path / "spans")["runs"][0]["invocations"][0]
    assert invocation["executionSuccessful"] is False
    told = [each["descriptor"]["id"] for each in invocation["toolExecutionNotifications"]]
    assert "audit/incomplete" in told
