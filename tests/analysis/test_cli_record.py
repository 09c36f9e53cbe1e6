"""The command line over recorded spans: stable output, meaningful codes, one-sentence errors."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from recorded_runs import ScoredRun, parts, recording, small_run

from twinspan.analysis.cli import COMMANDS, main
from twinspan.analysis.floors import COLUMNS
from twinspan.instrumentation import conventions as c

CARRIED = Path(__file__).parents[2] / "examples" / "floor16"


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    """One command line."""
    return CliRunner().invoke(main, [str(each) for each in arguments], input=stdin)


def answer(*arguments: str | Path) -> Any:
    """The JSON that a command prints."""
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recorded run that was halted in shadow mode."""
    folder = tmp_path_factory.mktemp("spans")
    with recording(folder) as (telemetry, _):
        scored = ScoredRun(telemetry, "r1")
        scored.node("a", 1, {c.NODE_WEIGHT: 1.0})
        found = scored.probe_set("a", 1, [0.0, 1.0, 1.0, 1.0, 1.0, 0.0], 2, 2)
        scored.accumulator.update({"a": 1.0}, {"a": 1.0})
        scored.decide(
            1,
            [found],
            decision="halt",
            extra={c.BREAKER_EDGE: "a->b", c.BREAKER_ENFORCED: False},
        )
        scored.node("b", 2, {c.NODE_PARENTS: ["a"], c.NODE_EDGE_KIND: "observed"})
        scored.end()
    return folder


# --- every command --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_of_its_own(name: str) -> None:
    """With a first sentence, an explanation of each option, and a module that loads."""
    result = run(name, "--help")
    assert result.exit_code == 0
    command = main.get_command(click.Context(main), name)
    assert command is not None and command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.name}"


def test_commands_are_listed_and_the_version_is_told() -> None:
    """The group's help names each command."""
    listing = run("--help").stdout
    assert all(name in listing for name in COMMANDS)
    assert run("--version").stdout.startswith("twinspan ")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["floor", "/nowhere"], 3),
        (["trail", "/nowhere"], 3),
        (["dag", "/nowhere"], 3),
        (["sql", "/nowhere", "SELECT 1"], 3),
        (["floor"], 2),
        (["floor", "SPANS", "--majority", "2"], 2),
        (["floor", "SPANS", "--by", "modle"], 2),
        (["floor", "SPANS", "--outcome", "nonsense"], 2),
        (["floor", "SPANS", "--outcomes", "/nowhere.toml"], 2),
        (["floor", "SPANS", "--format", "xml"], 2),
        (["sql", "SPANS", "DROP TABLE x"], 2),
        (["schema", "none"], 2),
        (["import", "--out", "x"], 2),
        (["nonsense"], 2),
    ],
)
def test_an_error_is_one_sentence_and_a_code(spans: Path, arguments: list[str], code: int) -> None:
    """2 for wrong use, 3 for what cannot be read; nothing on stdout, never a traceback."""
    result = run(*(str(spans) if each == "SPANS" else each for each in arguments))
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith("twinspan: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr


def test_a_damaged_or_foreign_folder_is_unreadable(tmp_path: Path) -> None:
    """Truncated, empty, of something else: code 3."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.json").write_text("{}")
    with recording(tmp_path / "cut") as (telemetry, _):
        small_run(telemetry, "r1")
    victim = parts(tmp_path / "cut")[0]
    victim.write_bytes(victim.read_bytes()[:-20])
    for folder in ("empty", "other", "cut"):
        result = run("trail", tmp_path / folder)
        assert (result.exit_code, result.stderr.count("\n")) == (3, 1)


def test_the_installed_command_speaks_the_same(spans: Path) -> None:
    """In a process of its own: code and stream are those of the shell."""
    program = [
        sys.executable,
        "-W",
        "error",
        "-c",
        "from twinspan.analysis.cli import main; main()",
    ]
    done = subprocess.run(
        [*program, "trail", str(spans / "none")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)


# --- floor ----------------------------------------------------------------------------------------


def test_floors_have_exactly_their_columns_and_end_with_the_pooled_row() -> None:
    """Sorted by floor; JSON keeps full precision."""
    rows = answer("floor", CARRIED / "first")
    assert [tuple(row) for row in rows] == [COLUMNS] * 7
    assert [(row["action"], row["flips"], row["cells"]) for row in rows] == [
        ("escalate_icu", 16, 720),
        ("any_opioid", 18, 720),
        ("referral", 54, 720),
        ("high_acuity", 55, 720),
        ("admit", 102, 720),
        ("cs_caution", 129, 720),
        ("pooled", 374, 4320),
    ]
    assert rows[-1]["floor"] == 374 / 4320
    assert rows[-1]["kappa"] is None


def test_the_table_of_floors_says_the_same_in_columns() -> None:
    """Aligned text where there is no terminal."""
    lines = run("floor", CARRIED / "first", "--majority", "3").stdout.splitlines()
    assert (*lines[0].split(), "reason") == COLUMNS, "all rows have a floor: no reason shown"
    assert lines[-1].split()[:4] == ["pooled", "12660", "201600", "0.0628"]


def test_floors_follow_outcomes_that_are_given(tmp_path: Path) -> None:
    """By flag and by file, together."""
    file = tmp_path / "o.toml"
    file.write_text('[outcomes]\nadmit = "reassess.admit"\n')
    rows = answer(
        "floor",
        CARRIED / "first",
        "--outcomes",
        file,
        "--outcome",
        "any=prescribe.analgesia_tier>=1",
    )
    assert {row["action"] for row in rows} == {"admit", "any", "pooled"}


def test_an_import_gives_the_same_floors(tmp_path: Path) -> None:
    """From the folder of Parquet, after two sources were imported into it."""
    done = run(
        "import",
        CARRIED / "first",
        CARRIED / "second",
        "--out",
        tmp_path / "out",
        "--format",
        "ndjson",
    )
    assert done.exit_code == 0
    assert [json.loads(line)["spans"] for line in done.stdout.splitlines()] == [800, 480]
    rows = answer("floor", tmp_path / "out", "--by", "model")
    assert [row["flips"] for row in rows if row["action"] == "pooled"] == [374, 96]


def test_runs_that_repeat_nothing_are_said_to_have_no_floor(spans: Path) -> None:
    """An empty answer is explained on stderr."""
    result = run("floor", spans)
    assert result.exit_code == 0
    assert "no case has the answers that are to be compared" in result.stderr


# --- sql ------------------------------------------------------------------------------------------


def test_sql_prints_rows_in_four_formats(spans: Path) -> None:
    """The same answer as JSON, lines of JSON, CSV and text."""
    query = "SELECT node, weight, parents, start_time < now() AS past FROM nodes ORDER BY node"
    expected = [
        {"node": "a", "weight": 1.0, "parents": None, "past": True},
        {"node": "b", "weight": None, "parents": ["a"], "past": True},
    ]
    assert answer("sql", spans, query) == expected
    lines = run("sql", spans, query, "--format", "ndjson").stdout.splitlines()
    assert [json.loads(line) for line in lines] == expected
    rows = list(csv.reader(io.StringIO(run("sql", spans, query, "--format", "csv").stdout)))
    assert rows == [
        ["node", "weight", "parents", "past"],
        ["a", "1.0", "", "true"],
        ["b", "", '["a"]', "true"],
    ]
    assert run("sql", spans, query).stdout.splitlines()[0].split() == rows[0]


def test_sql_reads_a_query_from_stdin(spans: Path) -> None:
    """For queries that are longer than a line."""
    assert run("sql", spans, "-", stdin="SELECT 1 AS a\n").stdout.split() == ["a", "1"]


def test_what_json_cannot_say_is_null(spans: Path) -> None:
    """NaN and infinities are no JSON."""
    assert answer("sql", spans, "SELECT 'nan'::DOUBLE AS x, 'inf'::DOUBLE AS y") == [
        {"x": None, "y": None}
    ]


def test_junk_of_a_source_is_told_beside_the_answer(tmp_path: Path) -> None:
    """On stderr, so that the answer stays what it is."""
    (tmp_path / "a.json").write_text('{"trajectories": [{"complete": false}]}')
    (tmp_path / "rep01.json").write_text(
        json.dumps(
            {
                "trajectories": [
                    {"vignette_id": "v", "condition_id": "r", "actions": {"s": {"x": 1}}}
                ]
            }
        )
    )
    result = run("sql", tmp_path, "SELECT count(*) AS n FROM runs", "--format", "csv")
    assert result.stdout == "n\n1\n"
    assert "note: a.json: an incomplete trajectory was skipped (1)" in result.stderr


# --- trail, dag, schema ---------------------------------------------------------------------------


def test_the_trail_tells_a_breach_in_words_and_in_json(spans: Path) -> None:
    """Ends with 0: it reports and does not judge."""
    text = run("trail", spans)
    assert text.exit_code == 0
    assert "run r1 (g): flagged: 1 breach(es)" in text.stdout
    assert "shadow" in text.stdout
    assert "superstep 1 <- node a <- axis gender <- perturbation gender:one>other" in text.stdout
    assert "w*B 1 = 1 * 1; delta 1" in text.stdout
    (document,) = answer("trail", spans, "--run", "r1")
    assert document["verdict"] == "flagged"
    assert document["breaches"][0]["path"][-1] == "edge a->b"
    assert document["decisions"][0]["enforced"] is False
    lines = run("trail", spans, "--format", "csv").stdout.splitlines()
    assert lines[0].startswith("run_id,verdict,audit_seq,scope,superstep,decision")


def test_a_removed_part_reads_as_incomplete(tmp_path: Path) -> None:
    """The first thing that the trail says."""
    with recording(tmp_path) as (telemetry, _):
        small_run(telemetry, "r1")
    parts(tmp_path)[0].unlink()
    result = run("trail", tmp_path)
    assert result.exit_code == 0
    assert result.stdout.startswith("run r1: incomplete: 3 of 4 spans are missing")


def test_the_graph_is_printed_for_programs_and_for_people(spans: Path) -> None:
    """JSON of a fixed shape, Mermaid, DOT, and a table."""
    document = answer("dag", spans)
    assert list(document) == ["run", "nodes", "edges"]
    assert document["run"] == "r1"
    assert [(node["node"], node["weight"]) for node in document["nodes"]] == [
        ("a", 1.0),
        ("b", None),
    ]
    assert [(e["source"], e["target"], e["kind"]) for e in document["edges"]] == [
        ("a", "b", "observed")
    ]
    assert run("dag", spans, "--format", "mermaid").stdout.startswith("flowchart TD\n")
    assert run("dag", spans, "--format", "dot").stdout.startswith('digraph "r1" {')
    assert "observed" in run("dag", spans).stdout


def test_the_schema_names_every_view_and_attribute() -> None:
    """Columns with types, and what each attribute means."""
    rows = answer("schema")
    views = {row["view"] for row in rows}
    assert {"spans", "edges", "decisions", "network", "floors", "otel_traces"} <= views
    told = {row["attribute"]: row["meaning"] for row in rows if row["attribute"]}
    assert told.keys() >= {attribute.name for attribute in c.PROMOTED}
    assert told == {name: c.CATALOGUE[name].meaning for name in told}
    (decision,) = [row for row in answer("schema", "decisions") if row["column"] == "b_fast"]
    assert decision["type"] == "DOUBLE"


def test_decisions_have_the_columns_that_programs_rely_on() -> None:
    """They are never renamed."""
    columns = [row["column"] for row in answer("schema", "decisions")]
    for name in (
        "run_id audit_seq superstep decision reason state_from state_to b_fast b_slow monitor "
        "edge enforced"
    ).split():
        assert name in columns
    edges = [row["column"] for row in answer("schema", "edges")]
    assert edges[:5] == ["run_id", "scope", "source", "target", "kind"]
