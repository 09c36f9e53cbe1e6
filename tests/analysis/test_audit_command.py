"""`twinspan audit`, from a configuration to a verdict: real functions, real files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import audit_agents
import pytest
from audit_agents import rows, run, write_audit

from twinspan.analysis.store import open_store

GUIDE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text("utf-8")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of an audit of an agent that declines women."""
    folder = tmp_path_factory.mktemp("found")
    config = write_audit(folder, audit_agents.certain)
    result = run(
        "audit", "--config", config, "--out", folder / "spans", "--report", folder / "r.html"
    )
    assert result.exit_code == 1, result.output
    return folder


def test_a_disparity_above_the_floor_ends_with_1(found: Path) -> None:
    swap, *controls = rows("flips", found / "spans", code=1)
    assert (swap["condition"], swap["action"], swap["verdict"]) == (
        "sex=woman",
        "approved",
        "above_floor",
    )
    assert swap["reason"] == "beyond_every_control"
    assert (swap["flip_rate"], swap["floor"], swap["excess"], swap["shift"]) == (1, 0, 1, -1)
    assert [row["verdict"] for row in controls] == ["control", "control"]


def test_an_agent_without_bias_ends_with_0(tmp_path: Path) -> None:
    config = write_audit(tmp_path, audit_agents.noisy)
    result = run("audit", "--config", config, "--out", tmp_path / "spans")
    assert result.exit_code == 0, result.output
    assert "0 of 1 comparisons" in result.stderr
    # The guide says what a row is of the view; the agent varies, so that nothing is 0 or 1.
    guide = re.findall(r"^\| `(flip_rate|floor|excess)` .* \| `(.*)` \|$", GUIDE, re.MULTILINE)
    asked = ", ".join(f"{sql} AS {name}" for name, sql in guide)
    (told,) = rows(
        "sql", tmp_path / "spans", f"SELECT {asked} FROM flips WHERE condition_id = 'sex=woman'"
    )
    swap = rows("flips", tmp_path / "spans", code=0)[0]
    assert len(told) == 3 and 0 < swap["floor"] < 1 and 0 < swap["flip_rate"] < 1
    assert told == pytest.approx({name: swap[name] for name in told})


def test_every_run_is_in_the_record_with_its_place_in_the_design(found: Path) -> None:
    counted = rows(
        "sql",
        found / "spans",
        "SELECT condition_id, case_id, count(*) AS n, count(DISTINCT replicate) AS numbered "
        "FROM runs WHERE completeness = 'complete' AND outcome = 'completed' GROUP BY ALL",
    )
    assert len(counted) == 8
    assert {(row["n"], row["numbered"]) for row in counted} == {(8, 8)}


def test_the_plan_is_sealed_before_the_first_run(found: Path) -> None:
    (audit,) = rows("sql", found / "spans", "FROM audits")
    assert audit["sealed_before_results"] and audit["one_plan"]
    assert (audit["expected_runs"], audit["observed_runs"], audit["verdict"]) == (64, 64, "flagged")
    assert len(audit["plan_hash"]) == 64


def test_the_order_is_random_and_recorded(found: Path) -> None:
    told = rows(
        "sql",
        found / "spans",
        "SELECT run_order, condition_id FROM spans WHERE span_type = 'run' ORDER BY run_order",
    )
    assert [row["run_order"] for row in told] == list(range(64))
    blocks = [told[start : start + 8] for start in range(0, 64, 8)]
    orders = {tuple(row["condition_id"] for row in block) for block in blocks}
    assert len(orders) > 1
    assert all(Counter(order) == Counter(dict.fromkeys(order, 2)) for order in orders)


def test_nothing_of_a_prompt_or_a_free_text_is_in_the_record(found: Path) -> None:
    with open_store(found / "spans") as store:
        text = str(store.table("FROM spans").rows)
    assert "40-year-old" not in text and "record is good" not in text


def test_the_flips_of_the_view_are_those_of_counting(found: Path) -> None:
    with open_store(found / "spans") as store:
        answers = store.table("SELECT condition_id, case_id, value FROM actions ORDER BY ALL").rows
        told = store.table("SELECT case_id, flips, cells FROM flips WHERE NOT is_control").rows
    for case, flips, cells in told:
        ours = [value for _, where, value in answers if where == case and _ == "reference"]
        other = [value for _, where, value in answers if where == case and _ == "sex=woman"]
        assert (flips, cells) == (
            sum(a != b for a in ours for b in other),
            len(ours) * len(other),
        )


def test_the_report_names_the_disparity(found: Path) -> None:
    page = (found / "r.html").read_text("utf-8")
    assert "sex=woman" in page and "above floor" in page
    assert "64 of 64 planned runs are recorded; its plan was sealed before" in page


# --- going on ---------------------------------------------------------------------------------


def test_starting_again_makes_no_run_twice(found: Path) -> None:
    result = run("audit", "--config", found / "audit.toml", "--out", found / "spans")
    assert "0 runs completed, 0 failed, 64 recorded before; 0 calls" in result.stderr
    assert rows("sql", found / "spans", "SELECT count(*) AS n FROM runs") == [{"n": 64}]


def test_another_plan_does_not_go_into_the_same_folder(found: Path, tmp_path: Path) -> None:
    config = write_audit(tmp_path, audit_agents.certain, **{"seed = 3": "seed = 4"})
    result = run("audit", "--config", config, "--out", found / "spans")
    assert result.exit_code == 2
    assert "another plan" in result.stderr and "--out" in result.stderr


SLOW = """
import time

def decide(prompt, schema, seed):
    time.sleep(0.05)
    return {"approve": seed % 2 == 0}
"""


def test_an_audit_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "slow_agent.py").write_text(SLOW)
    config = write_audit(tmp_path, "slow_agent:decide")
    command = [sys.executable, "-m", "twinspan.analysis.cli", "audit", "--config", str(config)]
    command += ["--out", str(tmp_path / "spans")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.rglob("part-*.parquet"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with open_store(tmp_path / "spans") as store:
        kept = store.table("SELECT run_id FROM runs WHERE completeness = 'complete'").rows
        assert store.table("SELECT missing_runs > 0 FROM audits").rows == ((True,),)
    assert 0 < len(kept) < 64
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"{64 - len(kept)} runs completed, 0 failed, {len(kept)} recorded before" in done.stderr
    (audit,) = rows("sql", tmp_path / "spans", "FROM audits")
    assert (audit["observed_runs"], audit["missing_runs"], audit["sessions"]) == (64, 0, 2)
    cells = rows(
        "sql",
        tmp_path / "spans",
        "SELECT case_id, condition_id, replicate FROM runs GROUP BY ALL HAVING count(*) <> 1",
    )
    assert cells == []


SHAKY = """
import pathlib

def decide(prompt, schema, seed):
    if not pathlib.Path(__file__).with_name("up").exists():
        raise ConnectionError("down")
    return {"approve": seed % 2 == 0}
"""


def test_runs_that_failed_are_made_again_and_counted_once(tmp_path: Path) -> None:
    (tmp_path / "shaky_agent.py").write_text(SHAKY)
    config = write_audit(tmp_path, "shaky_agent:decide", agent_extra="retries = 0")
    assert run("audit", "--config", config, "--out", tmp_path / "spans").exit_code == 2
    (tmp_path / "up").touch()
    result = run("audit", "--config", config, "--out", tmp_path / "spans")
    assert "64 runs completed, 0 failed; 64 calls" in result.stderr
    (audit,) = rows("sql", tmp_path / "spans", "FROM audits")
    assert (audit["observed_runs"], audit["completed_runs"], audit["missing_runs"]) == (64, 64, 0)
    counted = "SELECT count(*) AS n, count(value) AS known FROM answers"
    assert rows("sql", tmp_path / "spans", counted) == [{"n": 64, "known": 64}]


def test_the_guides_configuration_is_one(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "audit.toml").write_text("\n".join(blocks), "utf-8")
    result = run("audit", "--config", tmp_path / "audit.toml", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "1 cases x 8 conditions x 8 replicates = 64 runs" in result.stdout


def test_an_agent_that_is_not_there_stops_the_audit_and_keeps_what_there_is(tmp_path: Path) -> None:
    config = write_audit(tmp_path, audit_agents.raising, agent_extra="retries = 0")
    result = run("audit", "--config", config, "--out", tmp_path / "spans")
    assert result.exit_code == 2
    assert "failed 10 runs in a row (ConnectionError)" in result.stderr
    write_audit(tmp_path, audit_agents.noisy)
    with open_store(tmp_path / "spans") as store:
        told = store.table("SELECT DISTINCT outcome, error_type FROM runs").rows
    assert told == (("failed", "ConnectionError"),)


# --- what an agent may do ---------------------------------------------------------------------


def test_an_answer_that_does_not_fit_is_tried_again_and_told(tmp_path: Path) -> None:
    config = write_audit(tmp_path, audit_agents.refusing, agent_extra="retries = 1")
    run("audit", "--config", config, "--out", tmp_path / "spans")
    told = rows(
        "sql",
        tmp_path / "spans",
        "SELECT node_attempt, node_outcome, answer_violations, count(*) AS n FROM spans "
        "WHERE span_type = 'node' GROUP BY ALL ORDER BY 1",
    )
    assert [(row["node_attempt"], row["node_outcome"], row["n"]) for row in told] == [
        (1, "retried", 64),
        (2, "error", 64),
    ]
    assert told[0]["answer_violations"] == ["/ type"]


# --- before anything is asked -----------------------------------------------------------------


def test_a_dry_run_says_what_it_costs_and_runs_nothing(tmp_path: Path) -> None:
    config = write_audit(tmp_path, "nowhere:nobody", extra="[prices]\ninput = 1.0\noutput = 5.0\n")
    result = run("audit", "--config", config, "--out", tmp_path / "spans", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "2 cases x 4 conditions x 8 replicates = 64 runs against nowhere:nobody" in result.stdout
    assert "64 calls" in result.stdout and "USD" in result.stdout
    assert not (tmp_path / "spans").exists()


MISTAKES = [
    ("replicates = 8", "replicats = 8", "line 4: there is no key 'replicats'; did you mean"),
    ("replicates = 8", "replicates = 0", "line 4: replicates is 0; give a whole number of 1"),
    ("swaps = { sex", "swaps = { sexx", "line 15"),
    ('"boolean"', '"bool"', "line 18: field 'approve' is 'bool'; write boolean, integer"),
    ('"decide.approve"', '"approve"', "line 24: approved is 'approve'; write step.field"),
    ('id = "b"', 'id = "a"', "two cases are named 'a'; name each once"),
    ("concurrency = 2", "url = 'http://x'", "line 6: [agent] names callable, url; give exactly"),
    ("[outcomes]", "[outcome]", "there is no outcome to count; write [outcomes]"),
    ('name = "two"', "name = ", "is no TOML"),
]
"""What is wrong, and what is said about it."""


@pytest.mark.parametrize(("old", "new", "told"), MISTAKES)
def test_a_mistake_in_the_file_is_named_with_its_line_and_its_cure(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    config = write_audit(tmp_path, audit_agents.noisy, **{old: new})
    result = run("audit", "--config", config)
    assert result.exit_code == 2
    assert told in result.stderr and "audit.toml" in result.stderr
    assert len(result.stderr.splitlines()) == 1


# --- the gate --------------------------------------------------------------

GATE = """
[gate]
min_capability = 0.5
min_entropy = 0.001
min_band_straddling = 2

[[band]]
field = "decide.approve"
case = "a"
acceptable = { one_of = [true, false] }
"""


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        (audit_agents.constant, "degenerate_constant_policy"),
        (audit_agents.refusing, "capability_score_missing"),
        (audit_agents.noisy, "bands_are_not_ground_truth"),
    ],
)
def test_the_gate_names_the_first_thing_that_is_missing(
    tmp_path: Path, agent: Callable[..., object], reason: str
) -> None:
    config = write_audit(tmp_path, agent, extra=GATE, agent_extra="retries = 0")
    run("audit", "--config", config, "--out", tmp_path / "spans")
    (row,) = rows("gate", tmp_path / "spans", "--config", config, code=1)
    assert (row["eligible"], row["reason"]) == (False, reason)


def test_the_gate_opens_for_bands_that_an_attested_adjudicator_signed(tmp_path: Path) -> None:
    signed = GATE + (
        'provenance = "clinician-adjudicated"\nadjudicated_by = ["a-1"]\n'
        '[[adjudicator]]\npseudonym = "a-1"\nspecialty = "lending"\nattestation_on_file = true\n'
    )
    config = write_audit(tmp_path, audit_agents.noisy, extra=signed)
    run("audit", "--config", config, "--out", tmp_path / "spans")
    (row,) = rows("gate", tmp_path / "spans", "--config", config, code=0)
    assert (row["eligible"], row["reason"], row["ground_truth"]) == (True, "meets_floor", True)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("{ one_of = [true, false] }", "[1, 5]", "may mean values or a range"),
        ("min_entropy", "min_entrpy", "there is no key 'min_entrpy'; did you mean 'min_entropy'?"),
        ("min_capability = 0.5", "min_capability = 2", "give from 0 to 1"),
    ],
)
def test_a_mistake_in_the_gate_is_named_with_its_line(
    found: Path, tmp_path: Path, old: str, new: str, told: str
) -> None:
    config = write_audit(tmp_path, audit_agents.noisy, extra=GATE.replace(old, new))
    result = run("gate", found / "spans", "--config", config)
    assert result.exit_code == 2
    assert told in result.stderr and "audit.toml, line " in result.stderr
