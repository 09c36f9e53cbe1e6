"""The record tells what measuring cost beside what the work cost, and nothing of what was said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from biased_graph import GENDER
from model_programs import PROGRAMS, QUESTION, run
from other_instrumentations import EACH, beside
from recorded_runs import parts

from twinspan.analysis.store import open_store
from twinspan.analysis.verify import verify

PROGRAM = PROGRAMS["parallel"]


@pytest.fixture(params=EACH[1:], ids="+".join)
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A repaired run, recorded while others watched."""
    options: dict[str, Any] = {
        "axes": [GENDER],
        "nodes": ["*"],
        "estimator": "category",
    }
    with beside(request.param, folder=tmp_path, mode="repair", **options):
        run(PROGRAM, PROGRAM.build())
    return tmp_path


def test_work_probes_and_repair_are_told_apart(recorded: Path) -> None:
    """Once each, with their node and tokens, however many instrumentations watched."""
    with open_store(recorded) as store:
        purposes: dict[Any, Any] = {
            purpose: count
            for purpose, count in store.table(
                "SELECT purpose, count(*) FROM llm_calls GROUP BY ALL"
            ).rows
        }
        arms = store.table("SELECT node, arm, count(*) FROM llm_calls GROUP BY ALL").rows
        drawn = store.table("SELECT node, arm, count(*) FROM probes GROUP BY ALL").rows
        untold = "SELECT * FROM llm_calls WHERE node IS NULL OR input_tokens IS NULL"
        assert store.table(untold).rows == ()
        tokens = store.table("SELECT sum(output_tokens) FROM llm_calls").rows
    assert purposes == {
        "work": PROGRAM.calls,
        "repair": 1,
        "probe": sum(int(str(row[2])) for row in drawn),
    }
    assert {row for row in arms if row[1] is not None} == set(drawn)
    assert tokens == ((3 * sum(purposes.values()),),)


def test_the_record_is_as_complete_and_verified_as_without(recorded: Path) -> None:
    """Spans of others have no number of ours, so none of them is missed or counted."""
    with open_store(recorded) as store:
        assert store.table("SELECT completeness FROM runs").rows == (("complete",),)
        assert [each.verdict for each in verify(store)] == ["verified"]


def test_nothing_that_was_said_is_kept(recorded: Path) -> None:
    """Others' spans carry prompts by default, and ours take none of it."""
    said = [QUESTION, *QUESTION.split()[:2], "approve", "decline"]
    with open_store(recorded) as store:
        for row in store.table("SELECT * FROM spans").rows:
            assert not any(word in str(row) for word in said)
    for part in parts(recorded):
        assert not any(word.encode() in part.read_bytes() for word in said)
