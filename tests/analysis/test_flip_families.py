"""Findings over a family of outcomes, axes and groups, adjusted from the command line."""

from __future__ import annotations

import json
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import audit_agents
import numpy as np
import pytest
from audit_agents import rows, run, write_audit
from scipy.stats import false_discovery_control

from twinspan.analysis.inference.excess_bets import excess_bets

SWAPS = ("race_black", "race_asian", "sex_woman", "age_78")
OUTCOMES = ("admit", "refer", "scan")
CASES, REPLICATES = 5, 4


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four swaps and a control by three outcomes, of which some change much, some a little."""
    rng = np.random.default_rng(5)
    shares = {"ref": 0.3, "rerender_control": 0.3, **dict(zip(SWAPS, (1, 0.9, 0.6, 0.3)))}  # noqa: B905
    trajectories = [
        {
            "vignette_id": f"v{case}",
            "condition_id": condition,
            "replicate": replicate,
            "model": "m",
            "complete": True,
            "actions": {
                "decide": {
                    name: bool(rng.random() < (share if name != "scan" else 0.3))
                    for name in OUTCOMES
                }
            },
        }
        for condition, share in shares.items()
        for case in range(CASES)
        for replicate in range(1, REPLICATES + 1)
    ]
    path = tmp_path_factory.mktemp("family") / "runs.json"
    path.write_text(json.dumps({"source": "drawn", "trajectories": trajectories}), "utf-8")
    return path


RULES = [word for name in OUTCOMES for word in ("--outcome", f"{name}=decide.{name}")]


def comparisons(family: Path, procedure: str | None = None) -> list[dict[str, Any]]:
    """What `flips` has to say, adjusted by a procedure."""
    extra = [] if procedure is None else ["--adjust", procedure]
    found: list[dict[str, Any]] = rows("flips", family, *RULES, *extra)
    assert len(found) == (len(SWAPS) + 1) * len(OUTCOMES)
    return found


def swaps_of(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The comparisons that can be findings."""
    return [row for row in found if row["verdict"] != "control"]


def by_holm(values: list[float]) -> list[float]:
    """Every adjusted p as the largest over all sets that hold it of |set| min(set), by closure."""
    places = range(len(values))
    sets = [s for size in range(1, len(values) + 1) for s in combinations(places, size)]
    return [
        max(min(1.0, len(s) * min(values[i] for i in s)) for s in sets if place in s)
        for place in places
    ]


@pytest.mark.parametrize("procedure", ["bh", "by"])
def test_false_discovery_rates_are_those_of_scipy(family: Path, procedure: Any) -> None:
    """All twelve comparisons are one family, whatever axis and outcome they are of."""
    swaps = swaps_of(comparisons(family, procedure))
    assert len(swaps) == len(SWAPS) * len(OUTCOMES)
    expected = false_discovery_control([row["p_value"] for row in swaps], method=procedure)
    assert [row["p_adjusted"] for row in swaps] == pytest.approx(list(expected))
    assert {(row["adjusted_by"], row["n_tests"]) for row in swaps} == {(procedure, 12)}


def test_without_a_word_the_chance_of_any_false_finding_is_kept(family: Path) -> None:
    """Holm, as the closure of Bonferroni tests over all 4,095 sets."""
    swaps = swaps_of(comparisons(family))
    expected = by_holm([row["p_value"] for row in swaps])
    assert [row["p_adjusted"] for row in swaps] == pytest.approx(expected)
    assert {row["adjusted_by"] for row in swaps} == {"holm"}


def test_e_values_are_adjusted_whatever_the_dependence(family: Path) -> None:
    """e-BH is BH of the inverse e-values."""
    swaps = swaps_of(comparisons(family, "e-bh"))
    inverse = [min(1.0, 1.0 / row["e_value"]) for row in swaps]
    expected = false_discovery_control(inverse, method="bh")
    assert [row["p_adjusted"] for row in swaps] == pytest.approx(list(expected))
    assert {row["adjusted_by"] for row in swaps} == {"e-bh"}
    clearest = max(swaps, key=lambda row: row["e_value"])
    assert (clearest["condition"], clearest["verdict"]) == ("race_black", "above_floor")


def test_a_control_is_in_no_family_of_findings(family: Path) -> None:
    found = comparisons(family, "by")
    (controls,) = {row["n_tests"] for row in found if row["verdict"] == "control"}
    assert controls == len(OUTCOMES)


def test_the_share_of_false_findings_is_milder_than_the_chance_of_one(family: Path) -> None:
    findings = {
        procedure: {
            (row["condition"], row["action"])
            for row in comparisons(family, procedure)
            if (row["p_adjusted"] or 1) <= 0.05 and row["verdict"] != "control"
        }
        for procedure in ("holm", "bh", "by")
    }
    assert findings["holm"] <= findings["bh"] and findings["by"] <= findings["bh"]


@pytest.mark.parametrize("procedure", ["holm", "bh", "by", "e-bh"])
def test_no_adjusted_p_is_smaller_than_the_design_allows(family: Path, procedure: str) -> None:
    for row in comparisons(family, procedure):
        assert row["p_adjusted"] >= row["p_smallest"] * (1 - 1e-9)


@pytest.mark.parametrize(
    ("procedure", "told"),
    [
        ("holm", "by Holm over 12 comparisons (3 outcomes, 4 conditions): the chance of"),
        ("bh", "by Benjamini-Hochberg over 12 comparisons"),
        ("by", "whatever the dependence, and comparisons that share a reference depend on"),
        ("e-bh", "by e-values that bet on the excess of each case"),
    ],
)
def test_the_output_says_which_procedure_and_why(family: Path, procedure: str, told: str) -> None:
    assert told in run("flips", family, *RULES, "--adjust", procedure).stderr


def test_a_plan_seals_the_procedure_and_every_command_follows_it(tmp_path: Path) -> None:
    config = write_audit(
        tmp_path, audit_agents.certain, extra='[analysis]\nalpha = 0.01\nadjust = "by"\n'
    )
    first = run("audit", "--config", config, "--out", tmp_path / "s", "--report", tmp_path / "r")
    assert "Benjamini-Yekutieli" in first.stderr and "at most 0.01" in first.stderr
    assert "Benjamini-Yekutieli" in (tmp_path / "r").read_text("utf-8")
    told = run("flips", tmp_path / "s", "--config", config)
    assert "Benjamini-Yekutieli" in told.stderr and "at most 0.01" in told.stderr
    config.write_text(config.read_text("utf-8").replace('"by"', '"bh"'), "utf-8")
    again = run("audit", "--config", config, "--out", tmp_path / "s")
    assert again.exit_code == 2 and "another plan" in again.stderr


def test_an_unknown_procedure_is_named_with_its_line(tmp_path: Path) -> None:
    config = write_audit(tmp_path, audit_agents.certain, extra='[analysis]\nadjust = "fdr"\n')
    result = run("audit", "--config", config)
    assert result.exit_code == 2
    assert "audit.toml, line 26" in result.stderr and "by" in result.stderr


# --- the e-value itself -----------------------------------------------------------------------


def test_the_bets_of_a_case_pay_one_in_the_mean_over_all_its_labellings() -> None:
    """Three and three answers: all 20 ways to label them, beside a case that never changes."""
    answers = [True, True, False, True, False, False]
    told = []
    for chosen in combinations(range(6), 3):
        arms = (
            {"a": [answers[i] for i in chosen], "b": [True, True]},
            {"a": [answers[i] for i in range(6) if i not in chosen], "b": [True, True]},
        )
        found = excess_bets(*arms)
        assert found is not None and found.n_cases == 2
        told.append(found.e_value)
    assert len(told) == comb(6, 3)
    assert np.mean(told) == pytest.approx(1.0)


def test_cases_multiply() -> None:
    one = excess_bets({"a": [1] * 5}, {"a": [2] * 5})
    two = excess_bets({"a": [1] * 5, "b": [1] * 5}, {"a": [2] * 5, "b": [2] * 5})
    assert one is not None and two is not None
    assert one.e_value == pytest.approx(58.8238019946)  # a published vector of one probe set
    assert two.e_value == pytest.approx(one.e_value**2)


def test_one_answer_in_an_arm_is_nothing_to_bet_on() -> None:
    assert excess_bets({"a": [True, False]}, {"a": [True]}) is None


def test_runs_without_a_known_outcome_are_told_as_such(family: Path) -> None:
    result = run("flips", family)
    assert (result.exit_code, "name outcomes with --outcome" in result.stderr) == (0, True)


def test_weakness_13_an_answer_that_stands_in_two_cases_is_not_tested(family: Path) -> None:
    """By response ids: where one is used twice in a comparison there are rates and no p."""
    document = json.loads(family.read_text("utf-8"))
    for number, each in enumerate(document["trajectories"]):
        shared = each["condition_id"] == "race_black" and each["replicate"] == 1
        each["response_ids"] = ["one answer" if shared else f"answer {number}"]
    path = family.with_name("reused.json")
    path.write_text(json.dumps(document), "utf-8")
    before = {(row["condition"], row["action"]): row for row in comparisons(family)}
    for row in comparisons(path):
        unshared = before[row["condition"], row["action"]]
        assert (row["flip_rate"], row["floor"]) == (unshared["flip_rate"], unshared["floor"])
        if row["condition"] == "race_black":
            assert (row["verdict"], row["reason"]) == ("inconclusive", "answers_reused")
            assert row["p_value"] is row["p_adjusted"] is row["ci_low"] is row["p_smallest"] is None
        else:
            assert row["p_value"] == unshared["p_value"]
