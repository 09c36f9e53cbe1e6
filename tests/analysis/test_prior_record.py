"""The prior implementation's vectors and faults of the audit trail and of SARIF, by their names.

Vectors 61 and 62, faults E11, E12 and E13 of its description.
"""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import ScoredRun, recording
from sarif_schema import check

from twinspan.analysis.sarif import sarif_log
from twinspan.analysis.store import open_store
from twinspan.analysis.trail import AuditTrail
from twinspan.analysis.trail_records import RunTrail
from twinspan.instrumentation import conventions as c

FLIPPED = [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]
"""Two and two samples that agree within and disagree across their arms: delta 1."""

HALF = [0.0, 0.5, 0.5, 0.5, 0.5, 0.0]
SAME = [0.0] * 6
ABOVE = {c.GEN_AI_EVALUATION_LABEL: "above_floor"}
WITHIN = {c.GEN_AI_EVALUATION_LABEL: "within_floor"}


def cut(node: str, axis: str) -> dict[str, object]:
    """What a decision says that cuts the edge out of a node."""
    return {
        c.BREAKER_EDGE: f"{node}->next",
        c.BREAKER_EDGES: [f"{node}->next"],
        c.BREAKER_NODE: node,
        c.BREAKER_AXIS: axis,
        c.BREAKER_REASON: "monitor_at_limit",
    }


def log_of(folder: Path, **options: Any) -> dict[str, Any]:
    with open_store(folder) as store:
        log: dict[str, Any] = sarif_log(store, **options)
    check(log)
    return log


def trail_of(folder: Path) -> RunTrail:
    with AuditTrail.open(folder) as trail:
        return trail.run("r1")


@pytest.fixture
def routed(tmp_path: Path) -> Path:
    """Two scores at a router, age small and gender large; normal, warning, reroute."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        age = run.probe_set(
            "router", 1, HALF, 2, 2, axis="age", extra={**WITHIN, c.EFFECT_STANDARDIZED: 1.5}
        )
        gender = run.probe_set(
            "router", 1, FLIPPED, 2, 2, extra={**ABOVE, c.EFFECT_STANDARDIZED: 6.0}
        )
        for decision, score in (("proceed", 0.2), ("warn", 0.4), ("reroute", 0.6)):
            run.accumulator.update({"router": score}, {"router": 1.0})
            extra = cut("router", "gender") if decision == "reroute" else {}
            run.decide(1, [age, gender], decision=decision, extra=extra)
        run.run.end(run.root, {c.RUN_OUTCOME: "halted", c.RUN_SPAN_COUNT: run.run.ended_count + 1})
    return tmp_path


def test_vector_61_the_breach_is_the_routers_on_gender(routed: Path) -> None:
    """Five events besides the run, a trajectory of three decisions."""
    trail = trail_of(routed)
    (breach,) = trail.breaches
    worst = breach.contributions[0]
    assert (breach.node, breach.axis, worst.axis, worst.delta) == ("router", "gender", "gender", 1)
    assert [each.decision for each in trail.decisions] == ["proceed", "warn", "reroute"]
    with AuditTrail.open(routed) as opened:
        events = [row["event"] for row in opened.events("r1").dicts()]
    assert sorted(map(str, events)) == ["network"] * 3 + ["probe_set"] * 2 + ["run"]


def test_vector_62_two_rules_two_levels_and_no_result_for_what_passed(
    routed: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The reroute is an error, the score behind it a warning; an empty trail is valid."""
    log = log_of(routed)
    found = {(each["ruleId"], each["level"]) for each in log["runs"][0]["results"]}
    assert {("breaker/reroute", "error"), ("bias/gender", "warning")} <= found
    assert not any(rule.startswith(("breaker/proceed", "bias/age")) for rule, _ in found)
    empty = tmp_path_factory.mktemp("empty")
    with recording(empty) as (telemetry, _):
        ScoredRun(telemetry, "r1").end()
    assert log_of(empty)["runs"][0]["results"] == []


def test_fault_e11_numbers_are_unique_in_threads_and_everything_is_recorded(tmp_path: Path) -> None:
    """8 threads of 500 spans: no number twice, and nobody had to call a recorder."""
    with recording(tmp_path) as (telemetry, _):
        run = telemetry.run("r1")

        def work() -> None:
            for _ in range(500):
                run.end(run.start("invoke_node a", "node"))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with open_store(tmp_path) as store:
        assert store.table(
            "SELECT count(*), count(DISTINCT audit_seq), max(audit_seq) FROM spans "
            "WHERE run_id = 'r1' AND trace_id IS NOT NULL"
        ).rows == ((4000, 4000, 3999),)


def test_fault_e12_the_sample_size_does_not_name_the_breach(tmp_path: Path) -> None:
    """A tiny shift with a large effect size loses to the halting node; all halts are traced."""
    tiny = [0.0, 0.12, 0.12, 0.12, 0.12, 0.0]
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        many = run.probe_set("many", 1, tiny, 2, 2, extra={**ABOVE, c.EFFECT_STANDARDIZED: 22.9})
        few = run.probe_set("few", 1, FLIPPED, 2, 2, extra={**ABOVE, c.EFFECT_STANDARDIZED: 3.4})
        run.decide(1, [many, few], decision="halt", extra=cut("few", "gender"))
        late = run.probe_set("late", 2, HALF, 2, 2, extra=ABOVE)
        run.decide(2, [late], decision="halt", extra=cut("late", "gender"))
        run.end()
    first, second = trail_of(tmp_path).breaches
    assert (first.node, first.contributions[0].node) == ("few", "few")
    assert (second.node, second.contributions[0].node) == ("late", "late")


def test_fault_e13_nothing_is_dropped_doubled_or_called_none(tmp_path: Path) -> None:
    """Warnings and reroutes are told, a thousand scores that passed are not, no NaN, no None."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        passed = [run.probe_set("a", 1, SAME, 2, 2, extra=WITHIN) for _ in range(1000)]
        run.decide(1, passed, decision="warn", extra={c.BREAKER_REASON: "monitor_near_limit"})
        found = run.probe_set("b", 2, FLIPPED, 2, 2, extra=ABOVE)
        run.decide(2, [found], decision="reroute", extra=cut("b", "gender"))
        repair = run.run.start(
            "intervene madera",
            "intervention",
            {c.INTERVENTION_ID: "i", c.INTERVENTION_STRATEGY: "madera", c.NODE_ID: "b"},
            parent=run.root,
        )
        run.run.end(repair)
        run.end()
    log = log_of(tmp_path)
    rules = [each["ruleId"] for each in log["runs"][0]["results"]]
    assert len(rules) < 10
    assert {"breaker/warn", "breaker/reroute", "bias/gender"} <= set(rules)
    assert not re.search(r"\bNone\b|\bNaN\b", json.dumps(log))
    for each in log["runs"][0]["results"]:
        assert each["locations"] and each["partialFingerprints"]
