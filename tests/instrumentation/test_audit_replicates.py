"""Trajectories in both forms, and replicates."""

from __future__ import annotations

import json

import pytest
from shared_data import shared

from twinspan.instrumentation.audit import (
    Trajectory,
    collapse_replicates,
    number_replicates,
    read_trajectories,
)
from twinspan.instrumentation.errors import ConfigurationError


def run(replicate: int | None = None, **fields: object) -> Trajectory:
    return Trajectory(case_id="v", condition_id="ref", actions={"s": fields}, replicate=replicate)


def test_vector_60_a_continuous_field_is_averaged_and_has_no_agreement() -> None:
    found = collapse_replicates([run(tier=3, urgency=72)] * 3, ["urgency"])
    assert found.actions["s"] == {"tier": 3, "urgency": 72}
    assert found.agreement == {"s.tier": 1.0, "s.urgency": None}
    assert found.n_replicates == 3


def test_vector_61_a_tie_is_none() -> None:
    found = collapse_replicates([run(tier=tier) for tier in (3, 1, 3, 1)])
    assert (found.actions["s"]["tier"], found.agreement["s.tier"]) == (None, 0.5)


def test_missing_values_are_left_out_and_counted() -> None:
    found = collapse_replicates([run(a=1), run(a=None), run(a=1, b=None)])
    assert found.actions["s"] == {"a": 1, "b": None}
    assert found.agreement == {"s.a": 1.0, "s.b": None}
    assert found.answers == {"s.a": 2, "s.b": 0}


def test_a_yes_is_not_the_number_one_and_the_order_of_keys_does_not_matter() -> None:
    assert collapse_replicates([run(a=True), run(a=1)]).actions["s"]["a"] is None
    same = collapse_replicates([run(a={"x": 1, "y": 2}), run(a={"y": 2, "x": 1})])
    assert same.agreement["s.a"] == 1.0
    lists = collapse_replicates([run(a=["x", "y"]), run(a=["y", "x"])])
    assert lists.agreement["s.a"] == 0.5


def test_a_continuous_field_that_is_no_number_is_taken_as_it_is() -> None:
    assert collapse_replicates([run(a="high"), run(a="high")], ["a"]).agreement["s.a"] == 1.0
    assert collapse_replicates([run(a=1), run(a=2)], ["s.a"]).actions["s"]["a"] == 1.5


def test_nothing_collapses_to_nothing() -> None:
    found = collapse_replicates([])
    assert found.as_dict() == {"actions": {}, "agreement": {}, "answers": {}, "n_replicates": 0}


def test_runs_of_several_cells_are_not_collapsed() -> None:
    other = Trajectory(case_id="w", condition_id="ref", actions={})
    with pytest.raises(ConfigurationError, match="2 cells"):
        collapse_replicates([run(a=1), other])


def test_replicates_are_numbered_around_those_that_have_numbers() -> None:
    found = number_replicates([run(), run(2), run(), run()])
    assert [each.replicate for each in found] == [1, 2, 3, 4]
    with pytest.raises(ConfigurationError, match="replicate 2 twice"):
        number_replicates([run(2), run(2)])


ENTRY: dict[str, object] = {
    "vignette_id": "v1",
    "condition_id": "ref",
    "model": "m",
    "scaffold": "C0",
    "model_calls": 5,
    "complete": True,
    "actions": {"order": {"orders": ["ECG"]}, "results": {"ECG": "normal"}},
}


def test_both_forms_of_results_are_read_as_one() -> None:
    flat = Trajectory.from_mapping(ENTRY)
    nested = Trajectory.from_mapping(
        {
            **ENTRY,
            "actions": {"order": {"orders": ["ECG"]}, "results": {"results": {"ECG": "normal"}}},
        }
    )
    assert flat == nested
    assert flat.as_dict()["actions"] == ENTRY["actions"]
    written = flat.as_dict(results="nested")["actions"]
    assert isinstance(written, dict) and written["results"] == {"results": {"ECG": "normal"}}


def test_the_librarys_list_of_steps_is_read() -> None:
    found = Trajectory.from_mapping(
        {
            "vignette_id": "v1",
            "condition_id": "ref",
            "steps": [
                {"step": "triage", "action": {"esi_acuity": 2}, "model_calls": 1},
                {"step": "results", "action": {"results": {}}, "model_calls": 0},
                {"step": "document", "action": None, "model_calls": 1},
            ],
            "forced_steps": ["triage"],
        }
    )
    assert found.actions == {"triage": {"esi_acuity": 2}, "results": {}}
    assert (found.model_calls, found.details) == (2, {"forced_steps": ["triage"]})


def test_what_is_written_is_read_again() -> None:
    first = Trajectory.from_mapping(ENTRY, replicate=3)
    for results in ("flat", "nested"):
        assert Trajectory.from_mapping(first.as_dict(results=results)) == first


@pytest.mark.parametrize("missing", ["vignette_id", "condition_id", "actions"])
def test_an_entry_without_its_place_is_refused(missing: str) -> None:
    entry = {name: value for name, value in ENTRY.items() if name != missing}
    with pytest.raises(ConfigurationError):
        Trajectory.from_mapping(entry)
    with pytest.raises(ConfigurationError, match="name both"):
        Trajectory(case_id=" ", condition_id="x", actions={})


def test_incomplete_entries_are_left_out() -> None:
    document = {
        "model": "doc",
        "trajectories": [{**ENTRY, "model": None}, {**ENTRY, "complete": False}],
    }
    (found,) = read_trajectories(document, replicate=4)
    assert found.replicate == 4
    with pytest.raises(ConfigurationError, match="no list"):
        read_trajectories({})


def test_a_released_file_is_read_whole_and_written_as_it_was() -> None:
    document = json.loads(shared("fairmedagent/floor16/rep01.json").read_text("utf-8"))
    found = read_trajectories(document, replicate=1)
    assert len(found) == 16
    for trajectory, entry in zip(found, document["trajectories"], strict=True):
        written = trajectory.as_dict()
        assert {name: written[name] for name in entry} == entry
