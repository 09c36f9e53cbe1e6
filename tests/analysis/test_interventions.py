"""What the record tells of interventions: in SQL, in the trail, and to whoever recomputes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from biased_graph import GENDER, TEXT, Graph, gate
from click.testing import CliRunner
from reviewers import rewriter, skeptic
from sample_agents import instrumented

from twinspan.analysis import open_store
from twinspan.analysis.cli import main
from twinspan.analysis.verify import Verification, verify
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import BiasHalt

Answer = dict[str, str]


def approve(answer: Answer) -> Answer:
    return {"a": "approve"}


def soften(answer: Answer) -> Answer:
    return {"a": "refer"} if answer["a"] == "decline" else answer


PANEL = [
    skeptic("alpha", soften, confidence=0.9),
    skeptic("beta", approve, confidence=0.6, evidence=["accounts are in order"]),
    skeptic("gamma", confidence=0.8),
]
OPTIONS: dict[str, dict[str, Any]] = {
    "blind": {},
    "skeptics": {"repair": "skeptics", "skeptics": PANEL, "weighting": "trust"},
    "madera": {"repair": "madera", "editor": rewriter(approve)},
    "escalated": {"repair": "madera", "editor": rewriter(soften)},
}


def record(folder: Path, name: str) -> Path:
    """One run of the biased graph under one repair."""
    settings = {"axes": [GENDER], "nodes": ["*"], "mode": "repair", "repair_samples": 16}
    settings |= OPTIONS[name]
    with instrumented(gate(None, folder, **settings), **settings):
        try:
            Graph().compiled.invoke({"text": TEXT})
        except BiasHalt:
            assert name == "escalated"
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: record(tmp_path_factory.mktemp(name), name) for name in OPTIONS}


def verified(folder: Path) -> Verification:
    with open_store(folder) as store:
        (found,) = verify(store)
    return found


@pytest.mark.parametrize("name", OPTIONS)
def test_every_kind_of_repair_is_recomputed_from_raw_spans(
    folders: dict[str, Path], name: str
) -> None:
    """Routes, trust, votes, choices and measurements included."""
    found = verified(folders[name])
    assert (found.verdict, found.mismatches) == ("verified", ())


def test_sql_tells_the_whole_loop(folders: dict[str, Path]) -> None:
    """Why this repair, who said what, what was measured, what was handed on."""
    with open_store(folders["skeptics"]) as store:
        repairs = store.table(
            "SELECT strategy, outcome, reason, route, route_reason, route_axis, route_biased, "
            "route_nodes, panel_decision, panel_weighting, candidate FROM interventions"
        ).rows
        reviews = store.table(
            "SELECT stance, confidence, checked, round(weight, 3) FROM reviews ORDER BY weight"
        ).rows
        attempts = store.table("SELECT candidate, delta, below_bound FROM attempts ORDER BY 1").rows
    assert repairs == (
        (
            *("skeptics", "cleared", "below_bound", "madera", "entrenched", "gender", 1, 4),
            *("revised", "trust", "revision-1"),
        ),
    )
    # (0.3 + 1 + 1) / (0.25 + 0.75 * 0.8) * 0.8, the same at 0.9, and (1 + 1 + 1) / 0.25.
    assert reviews == (("stands", 0.8, 0, 2.165), ("revise", 0.9, 0, 2.238), ("revise", 0.6, 1, 12))
    assert attempts == (("revision-1", 0.0, True), ("revision-2", 1.0, False))


def test_the_trail_tells_reviews_candidates_and_outcome(folders: dict[str, Path]) -> None:
    """In the order in which they came."""
    told = CliRunner().invoke(main, ["trail", str(folders["skeptics"])]).output
    assert "reviews of analyst_a: " in told and "the panel's vote: revised" in told
    assert "candidate revision-1 for analyst_a: delta 0" in told
    assert "intervention skeptics on analyst_a: cleared, delta 1 -> 0, handed on at" in told


def test_the_trail_of_an_escalated_run_ends_with_a_person(folders: dict[str, Path]) -> None:
    """After three tries, each with its reason."""
    told = CliRunner().invoke(main, ["trail", str(folders["escalated"])]).output
    assert told.count("intervention madera on analyst_a: failed (no_better_attempt)") == 3
    assert "intervention human on analyst_a: escalated" in told


def test_the_trail_view_has_every_review_and_attempt(folders: dict[str, Path]) -> None:
    """As events of their own."""
    with open_store(folders["skeptics"]) as store:
        rows = store.table(
            "SELECT event, count(*) FROM trail WHERE event IN ('review', 'attempt') "
            "GROUP BY event ORDER BY event"
        ).rows
    assert rows == (("attempt", 2), ("review", 3))


# --- tampering ----------------------------------------------------------------------------------


def change(span_type: str, key: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    """One value of the first span of a type, in its column or in the JSON rest."""

    def changed(table: pa.Table) -> pa.Table:
        at = table["span_type"].to_pylist().index(span_type)
        name = c.CATALOGUE[key].column
        is_column = name in table.schema.names
        name = name if is_column else "attributes"
        values = table[name].to_pylist()
        if is_column:
            values[at] = value
        else:
            values[at] = json.dumps({**json.loads(str(values[at])), key: value})
        place = table.schema.get_field_index(name)
        return table.set_column(place, table.schema.field(name), [values])

    return changed


@pytest.mark.parametrize(
    ("name", "span_type", "key", "value"),
    [
        ("skeptics", "intervention", c.ROUTE_STRATEGY, "skeptics"),
        ("skeptics", "intervention", c.ROUTE_BIASED, 3),
        ("skeptics", "intervention", c.PANEL_DECISION, "stands"),
        ("skeptics", "intervention", c.PANEL_CONFIDENCE, 0.1),
        ("skeptics", "intervention", c.INTERVENTION_CANDIDATE, "revision-2"),
        ("skeptics", "intervention", c.INTERVENTION_SCORE_AFTER, -0.5),
        ("skeptics", "intervention", c.INTERVENTION_UPPER_AFTER, 0.01),
        ("skeptics", "intervention", c.INTERVENTION_OUTCOME, "unchanged"),
        ("skeptics", "review", c.REVIEW_STANCE, "reject"),
        ("skeptics", "review", c.REVIEW_WEIGHT, 50.0),
        ("skeptics", "review", c.REVIEW_TRUST, 50.0),
        ("skeptics", "attempt", c.ATTEMPT_DELTA, -1.0),
        ("madera", "attempt", c.ATTEMPT_BELOW_BOUND, False),
    ],
)
def test_one_altered_value_of_an_intervention_is_named(
    folders: dict[str, Path], tmp_path: Path, name: str, span_type: str, key: str, value: Any
) -> None:
    """Nothing of the loop can be told otherwise than it was."""
    tables = [pq.ParquetFile(part).read() for part in sorted(folders[name].rglob("*.parquet"))]
    place = tmp_path / "date=2026-01-01" / "run=r"
    place.mkdir(parents=True)
    altered = change(span_type, key, value)(pa.concat_tables(tables))
    pq.write_table(altered, place / "part-00000.parquet")
    found = verified(tmp_path)
    assert found.verdict == "mismatch"
    named = {each.what for each in found.mismatches}
    assert key in named or named & {c.PANEL_DECISION, c.PANEL_CONFIDENCE, c.REVIEW_WEIGHT}
