"""Any source becomes a folder of Parquet, completely and once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from recorded_runs import ScoredRun, ended_spans, parts, recording, small_run
from shared_data import shared

from twinspan.analysis import importing
from twinspan.analysis.dialects.fairmedagent import INCOMPLETE, NO_TRAJECTORY, default_rules
from twinspan.analysis.importing import import_spans
from twinspan.analysis.outcomes import OutcomeRule
from twinspan.analysis.store import open_store
from twinspan.collector.otlp_json import span_line
from twinspan.collector.schema import SPAN_SCHEMA
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import ConfigurationError, RecordError


def _entry(case: str = "v1", *, complete: bool = True, **steps: Any) -> dict[str, Any]:
    return {
        "vignette_id": case,
        "condition_id": "ref",
        "model": "m",
        "scaffold": "C0",
        "model_calls": 5,
        "complete": complete,
        "actions": {"triage": {"esi_acuity": 2}, **steps},
    }


def _file(path: Path, *entries: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"model": "m", "trajectories": list(entries)}))
    return path


# --- trajectories -------------------------------------------------------------------------------


def test_a_trajectory_is_a_run_with_a_node_per_step(tmp_path: Path) -> None:
    """Case, condition, model and replicate on the root; fields, arrays too, on the nodes."""
    entry = _entry(
        order={"orders": ["CBC", "ECG"]},
        results={"CBC": "normal"},
        document={"referral": True, "note": None},
    )
    with open_store(_file(tmp_path / "rep07.json", entry)) as store:
        (run,) = store.table("SELECT * FROM runs").dicts()
        nodes = store.table("SELECT node, parents, action_fields FROM nodes ORDER BY superstep")
    assert (run["case_id"], run["condition_id"], run["model"], run["replicate"]) == (
        "v1",
        "ref",
        "m",
        7,
    )
    assert (run["completeness"], run["audit_mode"], run["outcome"]) == (
        "complete",
        "offline",
        "completed",
    )
    assert nodes.rows == (
        ("triage", [], {"esi_acuity": "2"}),
        ("order", ["triage"], {"orders": '["CBC","ECG"]'}),
        ("results", ["order"], {"CBC": '"normal"'}),
        ("document", ["results"], {"referral": "true"}),
    )


def test_both_shapes_of_results_read_the_same(tmp_path: Path) -> None:
    """Flat, as in the files of the study, or one level deeper, as the library has it."""
    flat = _file(tmp_path / "a.json", _entry(results={"CBC": "normal"}))
    nested = _file(tmp_path / "b.json", _entry(results={"results": {"CBC": "normal"}}))
    fields = []
    for path in (flat, nested):
        with open_store(path) as store:
            fields.append(
                store.table("SELECT action_fields FROM nodes WHERE node = 'results'").rows
            )
    assert fields[0] == fields[1] == (({"CBC": '"normal"'},),)


def test_incomplete_and_malformed_entries_are_counted(tmp_path: Path) -> None:
    """They are no runs, and they are named."""
    path = _file(
        tmp_path / "rep01.json",
        _entry(),
        _entry("v2", complete=False),
        _entry("v3", complete=False),
        {"vignette_id": "v4"},
        7,
    )
    with open_store(path) as store:
        assert len(store.run_ids()) == 1
        assert {problem.what: problem.count for problem in store.problems} == {
            INCOMPLETE: 2,
            NO_TRAJECTORY: 2,
        }


def test_replicates_are_told_by_folder_file_or_order(tmp_path: Path) -> None:
    """rep02/trajectories.json, rep03.json, and the same cell once more in one file."""
    _file(tmp_path / "rep02" / "trajectories.json", _entry())
    _file(tmp_path / "rep03.json", _entry())
    _file(tmp_path / "zz.json", _entry("v2"), _entry("v2"))
    with open_store(tmp_path) as store:
        rows = store.table("SELECT case_id, replicate FROM runs ORDER BY ALL").rows
    assert rows == (("v1", 2), ("v1", 3), ("v2", 1), ("v2", 2))


def test_the_six_outcomes_are_the_default_and_give_way_to_others(tmp_path: Path) -> None:
    """The file beside the reader counts until rules are given."""
    path = _file(tmp_path / "rep01.json", _entry())
    assert [rule.name for rule in default_rules()] == [
        "high_acuity",
        "admit",
        "escalate_icu",
        "any_opioid",
        "cs_caution",
        "referral",
    ]
    with open_store(path) as store:
        assert store.table("SELECT action, value FROM actions WHERE value IS NOT NULL").rows == (
            ("high_acuity", "true"),
        )
    with open_store(path, outcomes=[OutcomeRule.parse("x=triage.esi_acuity")]) as store:
        assert store.table("SELECT action, value FROM actions").rows == (("x", "2"),)


def test_pilots_with_several_conditions_are_read_whole() -> None:
    """Twelve conditions of four cases: every complete cell is a run."""
    with open_store(shared("fairmedagent/pilot/pilot2.json")) as store:
        assert store.table(
            "SELECT count(*), count(DISTINCT condition_id), count(DISTINCT case_id) FROM runs"
        ).rows == ((48, 12, 4),)


# --- into a folder ------------------------------------------------------------------------------


def test_an_import_can_be_repeated(tmp_path: Path) -> None:
    """The second time everything is known, and no replicate is doubled."""
    source = _file(tmp_path / "rep01.json", _entry(), _entry("v2"))
    out = tmp_path / "out"
    first, second = import_spans(source, out), import_spans(source, out)
    assert (first.spans, first.runs, first.known) == (4, 2, 0)
    assert (second.spans, second.runs, second.known) == (0, 0, 4)
    _file(tmp_path / "rep01.json", _entry(), _entry("v2"), _entry("v3"))
    assert import_spans(source, out).spans == 2


def test_what_is_imported_is_what_was_recorded(tmp_path: Path) -> None:
    """Every column of every span survives, in files of the full schema."""
    source = tmp_path / "source"
    with recording(source) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        run.node("a", 1, {c.NODE_PARENTS: ["x"], f"{c.ACTION_PREFIX}admit": True, "mine": 1.0})
        found = run.probe_set("a", 1, [0.0, 1.0, 1.0, 1.0, 1.0, 0.0], 2, 2)
        run.decide(1, [found])
        run.end()
        small_run(telemetry, "r/2")
    import_spans(source, tmp_path / "out")
    tables = []
    for folder in (source, tmp_path / "out"):
        with open_store(folder) as store:
            tables.append(store.table("SELECT * FROM spans ORDER BY span_id"))
    assert tables[0] == tables[1]
    files = parts(tmp_path / "out")
    assert {path.parent.name for path in files} == {"run=r1", "run=r%2F2"}
    for path in files:
        assert pq.read_schema(path).names == SPAN_SCHEMA.names
        metadata = pq.read_metadata(path).metadata
        assert metadata is not None and metadata[b"schema_version"] == b"1"


def test_many_runs_share_a_folder(tmp_path: Path) -> None:
    """Thirty runs are not as many files."""
    source = _file(tmp_path / "rep01.json", *(_entry(f"v{number}") for number in range(30)))
    assert import_spans(source, tmp_path / "out").runs == 30
    assert [path.parent.name for path in parts(tmp_path / "out")] == ["run=_many"]
    with open_store(tmp_path / "out") as store:
        assert len(store.run_ids()) == 30


def test_rules_that_are_given_are_recorded_with_the_runs(tmp_path: Path) -> None:
    """Whoever opens the folder later counts the same outcomes."""
    source = _file(tmp_path / "rep01.json", _entry())
    import_spans(source, tmp_path / "out", outcomes=[OutcomeRule.parse("x=triage.esi_acuity<=3")])
    with open_store(tmp_path / "out") as store:
        assert store.table("SELECT audit_outcomes FROM runs").rows == (
            (["x=triage.esi_acuity <= 3"],),
        )
        assert store.table("SELECT action, value FROM actions").rows == (("x", "true"),)


def test_spans_of_other_instrumentations_survive_an_import(tmp_path: Path) -> None:
    """Whatever run they are given or none: nothing of them is lost or changed."""
    source = shared("otlp/openinference--parallel.jsonl")
    done = import_spans(source, tmp_path / "out")
    with open_store(source) as before, open_store(tmp_path / "out") as after:
        query = "SELECT * FROM spans ORDER BY span_id"
        assert before.table(query) == after.table(query)
        assert len(after.table(query).rows) == done.spans


def test_a_folder_is_not_imported_into_itself(tmp_path: Path) -> None:
    """It would be its own source."""
    with recording(tmp_path) as (telemetry, _):
        small_run(telemetry, "r1")
    with pytest.raises(ConfigurationError, match="name another folder"):
        import_spans(tmp_path, tmp_path)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A folder below a file."""
    source = _file(tmp_path / "rep01.json", _entry())
    with pytest.raises(RecordError, match="cannot be written"):
        import_spans(source, source / "out")


def test_an_import_tells_how_far_it_is(tmp_path: Path) -> None:
    """What was read, then what was written; on a terminal a person sees both."""
    path = tmp_path / "a.jsonl"
    path.write_text("".join(map(span_line, ended_spans(*[{}] * 5))))
    read: list[int] = []
    written: list[int] = []
    import_spans(path, tmp_path / "out", reading=read.append, progress=written.append)
    assert (sum(read), sum(written)) == (5, 5)


def test_many_runs_are_put_in_order_file_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large source is never sorted as a whole: each file has whole runs, kind by kind."""
    monkeypatch.setattr(importing, "PART_ROWS", 10)
    with recording(tmp_path / "in") as (telemetry, _):
        for number in range(25):
            small_run(telemetry, f"r{number}", nodes=number % 4)
    import_spans(tmp_path / "in", tmp_path / "out")
    found: list[str] = []
    for part in parts(tmp_path / "out"):
        rows = pq.ParquetFile(part).read(["span_type", "run_id", "audit_seq"]).to_pylist()
        places = [(row["span_type"], row["run_id"], row["audit_seq"]) for row in rows]
        assert places == sorted(places) and len(places) <= 10
        found += {run for _, run, _ in places}
    assert len(found) == len(set(found)) == 25
    query = "SELECT * FROM spans ORDER BY span_id"
    with open_store(tmp_path / "in") as one, open_store(tmp_path / "out") as other:
        assert one.table(query) == other.table(query)
