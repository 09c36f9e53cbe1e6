"""Error history: counted from recorded runs, handed to live ones, recomputed by verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from biased_graph import GENDER, TEXT, Graph, gate
from click.testing import CliRunner
from sample_agents import instrumented

from twinspan.analysis.cli import main
from twinspan.analysis.store import open_store
from twinspan.analysis.verify import verify
from twinspan.collector.history_file import read_history
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import ConfigurationError

CLEAN = "An applicant runs a shop."


def record(folder: Path, *biased: bool, **options: Any) -> None:
    """Runs of the graph, some with the analyst that declines women."""
    given: dict[str, Any] = {"axes": [GENDER], "nodes": ["analyst_*"], **options}
    with instrumented(gate(folder=folder, **given), **given):
        for is_biased in biased:
            graph = Graph()
            graph.biased = is_biased
            graph.compiled.invoke({"text": TEXT})


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history") / "spans"
    record(folder, True, False, True)
    return folder


@pytest.fixture(scope="module")
def file(spans: Path) -> Path:
    """What `twinspan history` writes."""
    out = spans.parent / "history.json"
    found = CliRunner().invoke(
        main, ["history", str(spans), "--prior", "1", "9", "--out", str(out), "--format", "json"]
    )
    assert found.exit_code == 0, found.output
    rows = json.loads(found.output)
    assert [(row["node"], row["runs"], row["biased"], row["clear"]) for row in rows] == [
        ("analyst_a", 3, 2, 1),
        ("analyst_b", 3, 0, 3),
    ]
    assert [row["probability"] for row in rows] == pytest.approx([3 / 13, 1 / 13])
    assert all(row["ci_low"] < row["probability"] < row["ci_high"] for row in rows)
    return out


def test_a_node_is_judged_by_its_own_probes_once_a_run(file: Path) -> None:
    """Two of three runs for the one; its neighbour, which always agreed with it, none."""
    history = read_history(file)
    assert history.probability("analyst_a") == pytest.approx(3 / 13)
    assert history.probability("reviewer") == pytest.approx(1 / 10), "never judged: the prior"


def test_a_payload_without_the_axis_is_no_verdict(tmp_path: Path) -> None:
    """Nothing was varied, so the run says nothing about any node."""
    given: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"]}
    with instrumented(gate(folder=tmp_path / "spans", **given), **given):
        Graph().compiled.invoke({"text": CLEAN})
    with open_store(str(tmp_path / "spans")) as store:
        assert store.table("SELECT * FROM history").rows == ()


def test_a_live_run_records_the_composite_risk(tmp_path: Path, file: Path) -> None:
    """Blast radius' share times P(biased | history), both factors beside it."""
    record(tmp_path / "spans", True, history=file)
    with open_store(str(tmp_path / "spans")) as store:
        rows = store.table(
            "SELECT node, weight_share, bias_probability, risk FROM nodes ORDER BY node"
        ).rows
        (found,) = verify(store)
    told = {str(row[0]): [float(str(value)) for value in row[1:]] for row in rows}
    assert told["analyst_a"][1] == pytest.approx(3 / 13)
    assert told["planner"][1] == pytest.approx(1 / 10)
    assert all(risk == pytest.approx(share * belief) for share, belief, risk in told.values())
    assert found.verdict == "verified"


def test_the_history_decides_nothing(tmp_path: Path, file: Path) -> None:
    decided = "SELECT decision, reason, b_fast, b_slow, monitor FROM decisions ORDER BY audit_seq"
    found = []
    for name, options in (("with", {"history": file}), ("without", {})):
        record(tmp_path / name, True, **options)
        with open_store(str(tmp_path / name)) as store:
            found.append(store.table(decided).rows)
    assert found[0] == found[1]


@pytest.mark.parametrize("name", [c.NODE_RISK, c.NODE_BIAS_PROBABILITY])
def test_an_altered_risk_is_named(tmp_path: Path, file: Path, name: str) -> None:
    record(tmp_path / "spans", True, history=file)
    column = c.CATALOGUE[name].column
    for path in (tmp_path / "spans").rglob("*.parquet"):
        rows = pq.read_table(path)
        values = [None if v is None else v / 2 for v in rows.column(column).to_pylist()]
        place = rows.column_names.index(column)
        pq.write_table(rows.set_column(place, column, pa.array(values, pa.float64())), path)
    with open_store(str(tmp_path / "spans")) as store:
        (found,) = verify(store)
    assert found.verdict == "mismatch"
    assert {each.what for each in found.mismatches} == {name}


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "{}",
        '{"prior": {"biased": 0, "clear": 1}, "nodes": {}}',
        '{"prior": {"biased": 1, "clear": 1}, "nodes": {"a": {"biased": -1, "clear": 0}}}',
        '{"prior": {"biased": 1, "clear": 1}, "nodes": []}',
    ],
)
def test_what_is_no_history_is_refused_with_the_cure(tmp_path: Path, content: str) -> None:
    path = tmp_path / "history.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError):
        read_history(path)
    with pytest.raises(ConfigurationError, match="twinspan history SPANS"):
        read_history(tmp_path / "absent.json")
