"""Any source of spans is one relation; junk is named, what is no source is refused."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_runs import ended_spans, parts, recording, small_run, table_of
from shared_data import shared

from twinspan.analysis.store import Store, open_store
from twinspan.collector.otlp_json import span_line
from twinspan.collector.parts import write_part
from twinspan.collector.recorder import Recorder
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import NoSpans, SourceError
from twinspan.instrumentation.tracing import Telemetry


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one recorded run of four spans."""
    with recording(tmp_path / "spans") as (telemetry, _):
        small_run(telemetry, "r1")
    return tmp_path / "spans"


def _lines(count: int = 3) -> list[str]:
    """Lines of OTLP JSON, a span each."""
    return [span_line(span) for span in ended_spans(*({c.NODE_ID: f"n{i}"} for i in range(count)))]


def _count(store: Store) -> int:
    return len(store.table("SELECT span_id FROM spans").rows)


def _problems(store: Store) -> list[str]:
    return [problem.what for problem in store.problems]


# --- our own files ------------------------------------------------------------------------------


def test_a_folder_of_parts_is_read_whole(folder: Path) -> None:
    """All parts of all days and runs are one table."""
    with open_store(folder) as store:
        assert _count(store) == 4
        assert store.run_ids() == ["r1"]
        assert store.problems == ()


@pytest.mark.parametrize(("spans", "kept"), [(10, True), (6000, False)])
def test_only_files_of_few_rows_are_taken_into_memory(
    tmp_path: Path, spans: int, kept: bool
) -> None:
    """Files of many short rows are small in bytes alone, and are read as far as is asked."""
    told = ended_spans(*({c.NODE_ID: "n"} for _ in range(spans * 2)))
    for number in (0, 1):
        rows = table_of(told[number * spans : (number + 1) * spans])
        write_part(tmp_path / f"part-{number}.parquet", rows)
    with open_store(tmp_path) as store:
        tables = store.table("SELECT table_name FROM duckdb_tables()").rows
        assert (("loaded",) in tables) == kept
        found = {str(row[0]) for row in store.table("SELECT span_id FROM spans").rows}
        assert found == {f"{span.context.span_id:016x}" for span in told if span.context}


def test_a_single_part_is_a_source(folder: Path) -> None:
    """One file will do; what it lacks shows as incomplete."""
    with open_store(parts(folder)[0]) as store:
        assert _count(store) == 3
        assert store.table("SELECT completeness FROM runs").rows == (("incomplete",),)


def test_files_of_an_older_schema_read_beside_new_ones(folder: Path) -> None:
    """A column that a file does not have is NULL; one that we do not know is kept."""
    table = pq.read_table(parts(folder)[0]).drop_columns(["node_weight", "links"])
    older = table.append_column("added_later", pa.array(["x"] * table.num_rows))
    pq.write_table(older, parts(folder)[0])
    with open_store(folder) as store:
        assert store.table("SELECT count(added_later), count(node_weight) FROM spans").rows == (
            (3, 0),
        )
    with open_store(parts(folder)[0]) as store:
        assert store.table("SELECT count(*) FROM interventions").rows == ((0,),)


def test_a_column_of_another_type_is_cast(folder: Path) -> None:
    """Somebody's file with text for numbers reads, as far as the text is numbers."""
    table = pq.read_table(parts(folder)[0])
    place = table.schema.get_field_index("audit_seq")
    text = pa.array(["0", "1", "two"])
    pq.write_table(table.set_column(place, "audit_seq", text), parts(folder)[0])
    with open_store(parts(folder)[0]) as store:
        assert store.table("SELECT audit_seq FROM spans ORDER BY 1 NULLS LAST").rows == (
            (0,),
            (1,),
            (None,),
        )


def test_a_copied_part_counts_once(folder: Path) -> None:
    """The same span twice is one span, and it is said."""
    shutil.copy(parts(folder)[0], folder / "copy.parquet")
    with open_store(folder) as store:
        assert _count(store) == 4
        assert [(p.what, p.count) for p in store.problems] == [
            ("a span that was recorded twice was counted once", 3)
        ]
        assert store.table("SELECT completeness FROM runs").rows == (("complete",),)


def test_a_journal_left_by_a_killed_writer_is_read(folder: Path) -> None:
    """What was committed and not yet in a part is there, once."""
    recorder = Recorder(folder, max_seconds=3600)
    run = Telemetry([recorder]).run("r2")
    run.end(run.start("update_network_score", "network", {c.NETWORK_SCORE: 0.1 + 0.2}))
    run.end(run.start("update_network_score", "network", {c.BREAKER_EDGES: ["x", "y"]}))
    recorder.commit("r2")
    with open_store(folder) as store:
        rows = store.table(
            "SELECT audit_seq, network_score, breaker_edges FROM spans "
            "WHERE run_id = 'r2' ORDER BY audit_seq"
        ).rows
    assert rows == ((0, 0.1 + 0.2, None), (1, None, ["x", "y"]))
    (journal,) = folder.rglob("*.jsonl")
    content = journal.read_bytes()
    recorder.close_run("r2")
    journal.write_bytes(content)
    with open_store(folder) as store:
        assert _count(store) == 6
    recorder.shutdown()


def test_an_unfinished_part_is_named(folder: Path) -> None:
    """What a killed writer had begun is no part, and not passed over in silence."""
    (parts(folder)[0].parent / ".part-x-00000.parquet.unfinished").write_bytes(b"PAR1")
    with open_store(folder) as store:
        assert _count(store) == 4
        assert _problems(store) == ["an unfinished part of a killed writer was not read"]


def test_names_with_quotes_and_brackets_are_only_names(tmp_path: Path) -> None:
    """A path is never read as a pattern or as SQL."""
    odd = tmp_path / "it's [here] *"
    with recording(odd) as (telemetry, _):
        small_run(telemetry, "a'b[1]/*")
    with open_store(odd) as store:
        assert store.run_ids() == ["a'b[1]/*"]


def test_a_duckdb_file_with_a_table_spans_is_a_source(folder: Path, tmp_path: Path) -> None:
    """A native table serves as well as files."""
    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE TABLE spans AS FROM read_parquet('{folder}/**/*.parquet', "
            "hive_partitioning = false)"
        )
    with open_store(path) as store:
        assert _count(store) == 4


# --- OTLP JSON ----------------------------------------------------------------------------------


def test_lines_of_otlp_json_are_rows_with_their_types(tmp_path: Path) -> None:
    """Our own line is read back to the row that the recorder writes."""
    spans = ended_spans(
        {
            c.NODE_ID: "a",
            c.NODE_WEIGHT: 1.0,
            c.NODE_ATTEMPT: 1,
            c.BREAKER_ENFORCED: True,
            c.DIVERGENCE_DISTANCES: [0.5, 1.0],
            f"{c.ACTION_PREFIX}orders": ["CBC"],
            "mine.x": [1, 2],
        }
    )
    path = tmp_path / "a.jsonl"
    path.write_text("".join(map(span_line, spans)))
    (expected,) = table_of(spans).to_pylist()
    with open_store(path) as store:
        (row,) = store.table("SELECT * FROM spans").dicts()
    row["action_fields"] = list(dict(row["action_fields"]).items())  # type: ignore[call-overload]
    for name, value in expected.items():
        assert row[name] == value, name


@pytest.mark.parametrize("packed", [False, True])
def test_a_cut_last_line_and_other_junk_are_counted(tmp_path: Path, packed: bool) -> None:
    """What can be read is read; what cannot is named with its number."""
    lines = _lines()
    text = lines[0] + "not json\n" + "\0" * 20 + lines[1] + '{"resourceLogs": []}\n' + lines[2][:99]
    path = tmp_path / ("a.jsonl.gz" if packed else "a.jsonl")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with open_store(path) as store:
        assert _count(store) == 2
        assert {problem.what: problem.count for problem in store.problems} == {
            "a line is not JSON and was skipped": 1,
            "a run of NUL bytes was skipped": 1,
            "an object holds no spans and was skipped": 1,
            "the last line is cut off and was skipped": 1,
        }


def test_a_cut_compressed_file_gives_what_came_before(tmp_path: Path) -> None:
    """A transfer that broke off does not cost the spans that arrived."""
    lines = _lines(300)
    path = tmp_path / "a.jsonl.gz"
    packed = gzip.compress("".join(lines).encode())
    path.write_bytes(packed[: len(packed) * 2 // 3])
    with open_store(path) as store:
        assert 0 < _count(store) < 300
        assert "the compressed file is cut off; what came before was read" in _problems(store)


def test_one_object_over_many_lines_is_read(tmp_path: Path) -> None:
    """A pretty-printed export, as one object or as a list of them."""
    documents = [json.loads(line) for line in _lines()]
    one = {"resourceSpans": [each for d in documents for each in d["resourceSpans"]]}
    for name, document in (("one.json", one), ("list.json", documents)):
        (tmp_path / name).write_text(json.dumps(document, indent=2))
        with open_store(tmp_path / name) as store:
            assert _count(store) == 3
            assert store.problems == ()


def test_repeated_lines_count_once(tmp_path: Path) -> None:
    """Retries and forks export twice."""
    lines = _lines()
    (tmp_path / "a.jsonl").write_text("".join([*lines, *lines[:2]]))
    with open_store(tmp_path / "a.jsonl") as store:
        assert _count(store) == 3
        assert _problems(store) == ["a span that was recorded twice was counted once"]


def test_a_folder_of_otlp_json_is_read_whole(tmp_path: Path) -> None:
    """Rotated files together; a file of another kind is named."""
    first, second, third = _lines()
    (tmp_path / "a.jsonl").write_text(first + second)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(third.encode()))
    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("hello")
    with open_store(tmp_path) as store:
        assert _count(store) == 3
        assert _problems(store) == ["a file of no form that holds spans was not read"]


def test_spans_without_valid_ids_are_refused_one_by_one(tmp_path: Path) -> None:
    """Empty, zero and malformed ids; base64 ids are understood."""
    document = json.loads(_lines(1)[0])
    (scoped,) = document["resourceSpans"][0]["scopeSpans"]
    good = scoped["spans"][0]
    scoped["spans"] = [
        good,
        {**good, "spanId": "", "name": "empty"},
        {**good, "traceId": "0" * 32, "name": "zero"},
        {**good, "spanId": "APBnqgupArc=", "name": "base64"},
        {**good, "spanId": 5, "name": "number"},
        {**good, "spanId": "00f067aa0ba902b8", "attributes": 7, "name": "malformed"},
    ]
    (tmp_path / "a.json").write_text(json.dumps(document))
    with open_store(tmp_path / "a.json") as store:
        names = store.table("SELECT name FROM spans ORDER BY name").column("name")
        assert names == ["base64", good["name"]]
        assert {problem.what: problem.count for problem in store.problems} == {
            "a span without a valid trace or span id was skipped": 3,
            "a span of another shape was skipped": 1,
        }


def test_recorded_files_of_other_instrumentations_read_whole() -> None:
    """Every recorded program gives as many spans as its file holds."""
    for path in sorted(shared("otlp").glob("*.jsonl")):
        expected = sum(
            len(scoped["spans"])
            for line in path.read_text().splitlines()
            for resource in json.loads(line)["resourceSpans"]
            for scoped in resource["scopeSpans"]
        )
        with open_store(path) as store:
            assert _count(store) == expected
            assert not any(what.endswith("was skipped") for what in _problems(store))


# --- what is no source ----------------------------------------------------------------------------


def _refused(path: Path, kind: type[SourceError] = SourceError) -> str:
    with pytest.raises(kind) as caught:
        open_store(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    """The message names what would do."""
    assert "there is nothing at" in _refused(tmp_path / "none")


def test_a_folder_without_spans(tmp_path: Path) -> None:
    """Readable and empty is its own condition."""
    assert "no spans in" in _refused(tmp_path, NoSpans)


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    """Other files, other JSON, other Parquet."""
    (tmp_path / "readme.txt").write_text("hello")
    (tmp_path / "data.json").write_text('{"a": 1}')
    _refused(tmp_path, NoSpans)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    assert "'trace_id' is missing" in _refused(tmp_path)


def test_a_file_of_something_else(tmp_path: Path) -> None:
    """Text, binary, and JSON of another form."""
    for name, content in (("a.txt", b"hello"), ("b.bin", b"\0\0\1\2"), ("c.json", b"{}")):
        (tmp_path / name).write_bytes(content)
        assert "no spans" in _refused(tmp_path / name)


@pytest.mark.parametrize("keep", [0, -50])
def test_a_truncated_part_is_named(folder: Path, keep: int) -> None:
    """A part that was cut is no reason for silence or for a traceback."""
    victim = parts(folder)[0]
    victim.write_bytes(victim.read_bytes()[:keep])
    assert victim.name in _refused(folder)
    assert victim.name in _refused(victim)


def test_an_empty_part_or_file_holds_no_spans(folder: Path, tmp_path: Path) -> None:
    """A Parquet file without rows, a text file without lines."""
    empty = tmp_path / "empty.parquet"
    pq.write_table(pq.read_table(parts(folder)[0]).slice(0, 0), empty)
    _refused(empty, NoSpans)
    (tmp_path / "empty.jsonl").write_text("")
    _refused(tmp_path / "empty.jsonl")


def test_a_database_without_spans(tmp_path: Path) -> None:
    """No table, or no database at all."""
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE other (a INTEGER)")
    assert "one table of spans and has none" in _refused(tmp_path / "x.duckdb")
    (tmp_path / "y.db").write_text("hello, this is no database at all")
    _refused(tmp_path / "y.db")


def test_temporary_files_go_when_the_store_is_left(tmp_path: Path) -> None:
    """Nothing of a converted source stays behind, opened or refused."""
    program = (
        "import sys, tempfile, os; from twinspan.analysis.store import open_store\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "open_store(sys.argv[2]).close()\n"
        "try: open_store(sys.argv[1])\n"
        "except Exception as error: print(type(error).__name__)\n"
        "print(os.listdir(sys.argv[1]))"
    )
    (tmp_path / "a.jsonl").write_text("".join(_lines()))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, str(scratch), str(tmp_path / "a.jsonl")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["NoSpans", "[]"]


def test_nothing_is_drawn_between_the_rows_of_a_slow_question(tmp_path: Path) -> None:
    """A progress bar on stdout would break whatever reads the rows."""
    with recording(tmp_path) as (telemetry, _):
        small_run(telemetry, "r1")
    with open_store(str(tmp_path)) as store:
        setting = "SELECT current_setting('enable_progress_bar')"
        assert str(store.table(setting).rows[0][0]).lower() == "false"
