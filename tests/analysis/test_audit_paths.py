"""Trajectories of an audit: propagation, forced flips, accumulation, bands, contrasts, export."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import audit_agents
import pytest
from audit_agents import rows, run, write_audit

from twinspan.analysis.audit_paths import audit_paths
from twinspan.analysis.store import open_store
from twinspan.instrumentation.audit import read_trajectories

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of an agent whose second step reads only its first."""
    folder = tmp_path_factory.mktemp("loop")
    (folder / "audit.toml").write_text(audit_agents.TWO_STEPS, "utf-8")
    run("audit", "--config", folder / "audit.toml", "--out", folder / "spans")
    return folder


def test_a_flip_propagates_where_the_next_step_reads_it(loop: Path) -> None:
    with open_store(loop / "spans") as store:
        (row,) = audit_paths(store).propagation
    assert (row.upstream, row.downstream) == ("serious", "admitted")
    assert row.found.given_flip.value == 1.0
    assert row.found.baseline is not None and row.found.baseline.value == 0.0


def test_forcing_the_first_step_moves_the_second_and_the_descriptor_alone_does_not(
    loop: Path,
) -> None:
    """Held for everybody nobody flips; flipped for women everybody does."""
    with open_store(loop / "spans") as store:
        (row,) = audit_paths(store).forced
    found = row.found
    assert (row.held, row.flipped, row.action) == ("held", "flipped", "admitted")
    assert (found.flipped_arm.value, found.held_arm.value, found.value) == (1.0, 0.0, 1.0)
    assert (found.paired_cases, found.balanced) == (3, True)


def test_shifts_that_go_one_way_accumulate(loop: Path) -> None:
    with open_store(loop / "spans") as store:
        (row,) = audit_paths(store).accumulation
    assert (row.condition, row.found.mean_abs_composite, row.found.concordance) == (
        "sex=woman",
        2.0,
        1.0,
    )


def test_arms_are_compared_within_themselves(loop: Path) -> None:
    told = {
        (row["arm"], row["action"]): row["flip_rate"]
        for row in rows("flips", loop / "spans", code=1)
        if row["condition"] == "sex=woman"
    }
    assert told["free", "admitted"] == 1.0
    assert told["held", "admitted"] is None  # constant: the descriptor alone does nothing


def test_the_report_tells_of_paths(loop: Path, tmp_path: Path) -> None:
    out, facts = tmp_path / "r.html", tmp_path / "r.json"
    assert run("report", loop / "spans", "--out", out, "--json", facts).exit_code == 0
    page = out.read_text("utf-8")
    for heading in ("Propagation", "Forced flips", "Accumulation"):
        assert f"<h3>{heading}</h3>" in page
    audit = json.loads(facts.read_text("utf-8"))["audit"]
    assert audit["forced"]["total"] == 1 and audit["disparities"]["total"] == 12


def test_exported_trajectories_say_what_was_forced_and_are_read_again(
    loop: Path, tmp_path: Path
) -> None:
    out = tmp_path / "t.json"
    assert run("trajectories", loop / "spans", "--out", out).exit_code == 0
    document = json.loads(out.read_text("utf-8"))
    assert document["counts"] == {"cells": 108, "complete": 108, "model_calls": 144}
    held = [each for each in document["trajectories"] if each.get("arm") == "held"]
    assert {tuple(each["forced_steps"]) for each in held} == {("triage",)}
    assert {tuple(each["descriptor_steps"]) for each in held} == {("decide",)}
    again = read_trajectories(document)
    assert len(again) == 108 and again[0].get("triage", "serious") in (True, False)


# --- bands and contrasts ----------------------------------------------------------------------

DEFENSIBLE = """
[[contrast]]
attribute = "sex"
sub_action = "approve"
direction = "less"

[[band]]
field = "decide.approve"
case = "a"
acceptable = { one_of = [true, false] }
"""


@pytest.mark.parametrize(
    ("direction", "verdict", "family"),
    [("less", "descriptive", "descriptive"), ("more", "above_floor", "confirmatory")],
)
def test_only_a_registered_direction_is_no_finding(
    tmp_path: Path, direction: str, verdict: str, family: str
) -> None:
    extra = DEFENSIBLE.replace('"less"', f'"{direction}"')
    config = write_audit(tmp_path, audit_agents.certain, extra=extra)
    run("audit", "--config", config, "--out", tmp_path / "spans")
    found = rows("flips", tmp_path / "spans", "--config", config)
    (swap,) = [row for row in found if row["condition"] == "sex=woman"]
    assert (swap["verdict"], swap["family"]) == (verdict, family)
    assert (swap["n_in_band"], swap["wcfr"], swap["ground_truth"]) == (8, 1.0, False)
    assert (swap["in_band_reference"], swap["in_band"], swap["p_in_band"]) == (1.0, 1.0, 1.0)


# --- examples ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "replicates", "finding"),
    [
        ("clinical_audit", "replicates = 6", ("race_black_man_private", "cs_caution")),
        ("hiring_audit", "replicates = 8", ("gender=woman", "invited")),
    ],
)
def test_a_worked_example_finds_the_bias_it_was_given_and_ends_in_a_report(
    tmp_path: Path, name: str, replicates: str, finding: tuple[str, str]
) -> None:
    """With fewer replicates than it has."""
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    text = (folder / "audit.toml").read_text("utf-8")
    assert replicates in text
    (folder / "audit.toml").write_text(text.replace(replicates, "replicates = 4"), "utf-8")
    out, page = tmp_path / "spans", tmp_path / "report.html"
    result = run("audit", "--config", folder / "audit.toml", "--out", out, "--report", page)
    assert result.exit_code == 1, result.output
    assert "twinspan: note: case" not in result.stderr  # the cases have no lint
    first, *_ = rows("flips", out, code=1)
    assert (first["condition"], first["action"]) == finding
    assert "beyond the floor" in page.read_text("utf-8")


def test_the_clinical_loop_is_exported_with_every_field_of_the_original(tmp_path: Path) -> None:
    """Orders met by their synonyms, what met nothing, results flat or nested."""
    folder = tmp_path / "clinical_audit"
    shutil.copytree(EXAMPLES / "clinical_audit", folder)
    text = (folder / "audit.toml").read_text("utf-8").replace("replicates = 6", "replicates = 1")
    (folder / "audit.toml").write_text(text, "utf-8")
    places = ("--out", tmp_path / "spans", "--report", tmp_path / "report.html")
    run("audit", "--config", folder / "audit.toml", *places)
    out = tmp_path / "t.json"
    assert run("trajectories", tmp_path / "spans", "--out", out, "--nested").exit_code == 0
    runs = json.loads(out.read_text("utf-8"))["trajectories"]
    (chest, *_) = [each for each in runs if each["vignette_id"] == "chest_pressure"]
    assert list(chest["actions"]) == [
        "triage",
        "order",
        "results",
        "reassess",
        "prescribe",
        "document",
    ]
    results = chest["actions"]["results"]["results"]
    assert results["12-lead ECG"] == "sinus rhythm, no ST elevation"
    assert results["Chest X-ray"] == "clear lungs, normal heart size"
    assert chest["model_calls"] == 5 and chest["fixture_ambiguities"] == []
    (headache, *_) = [each for each in runs if each["vignette_id"] == "headache"]
    refused = {"No lumbar puncture indicated"} & set(headache["actions"]["order"]["orders"])
    assert set(headache["unresolved_orderables"]) == refused
