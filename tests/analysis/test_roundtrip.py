"""Every type of attribute comes back the same through every form that spans are kept in."""

from __future__ import annotations

import gzip
import json
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from every_type import ATTRIBUTES, spans
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from recorded_runs import table_of

from twinspan.analysis.store import open_store
from twinspan.collector.otlp_json import span_line
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import MissingExtra, NoSpans, SourceError


def _json_lines(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    path = path / "a.jsonl"
    path.write_text("".join(map(span_line, ended)))
    return path


def _gzip(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    packed = path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress("".join(map(span_line, ended)).encode()))
    return packed


def _one_object(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    documents = [json.loads(span_line(span)) for span in ended]
    one = {"resourceSpans": [each for d in documents for each in d["resourceSpans"]]}
    (path / "a.json").write_text(json.dumps(one, indent=1))
    return path / "a.json"


def _parquet(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    pq.write_table(table_of(ended), path / "a.parquet")
    return path / "a.parquet"


def _database(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    file = path / "a.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.register("rows", table_of(ended))
        connection.execute("CREATE TABLE spans AS FROM rows")
    return file


def _encoded(ended: Sequence[ReadableSpan]) -> bytes:
    return bytes(encode_spans(ended).SerializeToString())


def _protobuf(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    (path / "a.pb").write_bytes(_encoded(ended))
    return path / "a.pb"


def _protobuf_one_by_one(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    (path / "a.pb").write_bytes(b"".join(_encoded([span]) for span in ended))
    return path / "a.pb"


def _protobuf_prefixed(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    messages = [_encoded([span]) for span in ended]
    (path / "a.bin").write_bytes(b"".join(struct.pack(">I", len(m)) + m for m in messages))
    return path / "a.bin"


def _protobuf_packed(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    (path / "a.pb.gz").write_bytes(gzip.compress(_encoded(ended)))
    return path / "a.pb.gz"


def _collector_zstd(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    codec = pa.Codec("zstd")
    messages = [bytes(codec.compress(_encoded([span]), asbytes=True)) for span in ended]
    (path / "a.zstd").write_bytes(b"".join(struct.pack(">I", len(m)) + m for m in messages))
    return path / "a.zstd"


def _collector_json_zstd(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    codec = pa.Codec("zstd")
    messages = [bytes(codec.compress(span_line(span).encode(), asbytes=True)) for span in ended]
    (path / "a.zstd").write_bytes(b"".join(struct.pack(">I", len(m)) + m for m in messages))
    return path / "a.zstd"


FORMS: dict[str, Callable[[Path, Sequence[ReadableSpan]], Path]] = {
    "Parquet": _parquet,
    "OTLP JSON lines": _json_lines,
    "OTLP JSON lines, gzip": _gzip,
    "OTLP JSON, one object": _one_object,
    "DuckDB": _database,
    "OTLP protobuf": _protobuf,
    "OTLP protobuf, messages behind each other": _protobuf_one_by_one,
    "OTLP protobuf, length-prefixed": _protobuf_prefixed,
    "OTLP protobuf, gzip": _protobuf_packed,
    "OTLP protobuf of a Collector, zstd": _collector_zstd,
    "OTLP JSON of a Collector, zstd": _collector_json_zstd,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("in_folder", [False, True], ids=["file", "folder"])
def test_every_type_survives(tmp_path: Path, form: str, in_folder: bool) -> None:
    """The rows are those that the recorder itself would have written."""
    ended = spans()
    if in_folder and form == "DuckDB":
        pytest.skip("a DuckDB file is named by itself")
    path = FORMS[form](tmp_path, ended)
    with open_store(path.parent if in_folder else path) as store:
        found = {row["name"]: row for row in store.table("SELECT * FROM spans").dicts()}
        assert store.problems == ()
    for expected in table_of(ended).to_pylist():
        row = found[expected["name"]]
        fields = row["action_fields"]
        row["action_fields"] = list(fields.items()) if isinstance(fields, dict) else None
        for name, value in expected.items():
            assert row[name] == value, name


def test_what_was_expected_is_what_was_given() -> None:
    """The yardstick of the test above, by hand: types and values of the rest."""
    row = next(row for row in table_of(spans()).to_pylist() if row["name"] == "child")
    rest = json.loads(row["attributes"])
    for key in ("mine.int.max", "mine.int.min", "mine.double", "mine.ints", "mine.map"):
        assert rest[key] == ATTRIBUTES[key]
        assert type(rest[key]) is type(ATTRIBUTES[key])
    assert (rest["mine.nan"], rest["mine.infinity"]) == ("nan", "-inf")
    assert rest["mine.bytes"] == "AP8="
    assert rest[c.NODE_WEIGHT_SHARE] == "heavy" and row["node_weight_share"] is None
    assert dict(row["action_fields"]) == {
        "admit": "true",
        "level": "3",
        "orders": '["CBC","EKG"]',
    }
    assert row["node_weight"] == 0.1 + 0.2 and row["audit_seq"] == 2**53 + 1
    assert [event["unix_nano"] for event in row["events"]] == [11, 12]
    assert (row["dropped_events"], row["links"][0]["edge"]) == (1, "a->b")
    assert (row["status_code"], row["status_message"]) == ("ERROR", "why")


def test_without_its_extra_protobuf_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says what to install."""
    path = _protobuf(tmp_path, spans())
    monkeypatch.setitem(sys.modules, "opentelemetry.proto", None)
    monkeypatch.delitem(sys.modules, "opentelemetry.proto.trace", raising=False)
    with pytest.raises(MissingExtra, match=r"twinspan\[otlp\]"):
        open_store(path)


def test_a_cut_protobuf_gives_what_came_before(tmp_path: Path) -> None:
    """And says so; bytes that are no message are named too."""
    messages = [_encoded([span]) for span in spans()]
    path = tmp_path / "a.pb"
    path.write_bytes(messages[0] + messages[1][:-5])
    with open_store(path) as store:
        assert len(store.table("SELECT * FROM spans").rows) == 1
        assert [p.what for p in store.problems] == ["the last message is cut off and was skipped"]
    path.write_bytes(messages[0] + b"\xff" * 50)
    with open_store(path) as store:
        assert [p.what for p in store.problems] == [
            "bytes that are no span message were not read, nor what follows them"
        ]


def test_text_that_begins_with_an_empty_line_is_no_protobuf(tmp_path: Path) -> None:
    """A line feed is also protobuf's first tag."""
    path = tmp_path / "a.json"
    path.write_text("\n" + json.dumps(json.loads(span_line(spans()[0])), indent=2))
    with open_store(path) as store:
        assert len(store.table("SELECT * FROM spans").rows) == 1
    (tmp_path / "b.bin").write_bytes(b"\n\x00")
    with pytest.raises(NoSpans):
        open_store(tmp_path / "b.bin")


# --- tables of others ---------------------------------------------------------------------------


def _as_clickhouse(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    file = path / "clickhouse.duckdb"
    with open_store(_parquet(path, ended)) as store, duckdb.connect(str(file)) as connection:
        store.table("SELECT 1 FROM otel_traces")
        connection.register("rows", store.arrow("FROM otel_traces").read_all())
        connection.execute("CREATE TABLE otel_traces AS FROM rows")
        connection.execute("CREATE TABLE other AS SELECT 1 AS x")
    return file


def _as_duckdb_otlp(path: Path, ended: Sequence[ReadableSpan]) -> Path:
    """Under the names of DuckDB's own OTLP reader, all attributes as JSON."""
    file = path / "otlp.duckdb"
    builder = {
        row["span_id"]: json.dumps(
            {
                **json.loads(row["attributes"]),
                **{
                    attribute.name: row[attribute.column]
                    for attribute in c.PROMOTED
                    if row[attribute.column] is not None
                },
                **{
                    f"{c.ACTION_PREFIX}{key}": json.loads(value)
                    for key, value in row["action_fields"] or ()
                },
            }
        )
        for row in table_of(ended).to_pylist()
    }
    with duckdb.connect(str(file)) as connection:
        connection.register("rows", table_of(ended))
        connection.register("told", pa.table({"id": list(builder), "text": list(builder.values())}))
        connection.execute(
            "CREATE TABLE traces AS SELECT trace_id, span_id, parent_span_id, name, "
            "CASE kind WHEN 'SERVER' THEN 2 ELSE 1 END AS kind, "
            "CASE status_code WHEN 'OK' THEN 1 ELSE 2 END AS status_code, "
            "status_message AS status_status_message, service_name, scope_name, scope_version, "
            "make_timestamp_ns(start_unix_nano) AS start_time_unix_nano, "
            "duration_ns AS duration_time_unix_nano, text::JSON AS span_attributes, "
            "resource_attributes::JSON AS resource_attributes, to_json(events) AS events_json, "
            "to_json(links) AS links_json FROM rows JOIN told ON id = span_id"
        )
    return file


@pytest.mark.parametrize("form", [_as_clickhouse, _as_duckdb_otlp])
def test_tables_of_others_give_the_same_columns(
    tmp_path: Path, form: Callable[[Path, Sequence[ReadableSpan]], Path]
) -> None:
    """ClickHouse keeps text only, so what no column of ours types stays text there."""
    ended = spans()
    with open_store(form(tmp_path, ended)) as store:
        found = {row["name"]: row for row in store.table("SELECT * FROM spans").dicts()}
        assert store.problems == ()
    untyped = {"attributes", "resource_attributes", "action_fields", "dropped_events"}
    for expected in table_of(ended).to_pylist():
        row = found[expected["name"]]
        for name, value in expected.items():
            if name in untyped or name in ("events", "links", "trace_state"):
                continue
            if name == "start_unix_nano" and form is _as_clickhouse:
                value -= value % 1000  # a time there is what DuckDB can reckon with
            assert row[name] == value, name
        rest, wanted = json.loads(str(row["attributes"])), json.loads(expected["attributes"])
        assert rest.keys() == wanted.keys()
        if form is _as_duckdb_otlp:
            assert rest == wanted
            links: Any = row["links"]
            assert [link["span_id"] for link in links or ()] == [
                link["span_id"] for link in expected["links"] or ()
            ]
        told: Any = row["events"] or []
        assert [event["unix_nano"] // 1000 for event in told] == [
            event["unix_nano"] // 1000 for event in expected["events"] or ()
        ]


def test_a_database_with_several_tables_of_spans_must_say_which(tmp_path: Path) -> None:
    """Guessing would be an answer to another question."""
    file = tmp_path / "a.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.register("rows", table_of(spans()))
        connection.execute("CREATE TABLE first AS FROM rows")
        connection.execute("CREATE TABLE second AS FROM rows")
    with pytest.raises(SourceError, match=r"first.*second.*make a view"):
        open_store(file)
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE VIEW spans AS FROM first")
    with open_store(file) as store:
        assert len(store.table("SELECT * FROM spans").rows) == 2


# --- versions -----------------------------------------------------------------------------------

FIRST_LAYOUT = {
    "trace_id": ["0" * 31 + "1"] * 4,
    "span_id": ["0" * 15 + str(i) for i in range(1, 5)],
    "parent_span_id": [None, *["0" * 15 + "1"] * 3],
    "name": ["run", "node", "probe", "network"],
    "kind": ["INTERNAL"] * 4,
    "status_code": ["UNSET"] * 4,
    "start_unix_nano": [10, 11, 12, 13],
    "duration_ns": [9, 1, 1, 1],
    "run_id": ["old"] * 4,
    "audit_seq": [3, 0, 1, 2],
    "node": [None, "a", "a", None],
    "superstep": [None, 1, 1, 1],
    "probe_role": [None, None, "baseline", None],
    "probe_axis": [None, None, "gender", None],
    "divergence": [None, None, 0.25, None],
    "weight": [None, 0.5, None, None],
    "outcome": [None, "approve", None, None],
    "b_net": [None, None, None, 0.125],
    "decision": [None, None, None, "halt"],
    "output_text": [None, "yes", None, None],
    "attributes": ['{"mine":1}'] * 4,
}
"""A file of the first layout, before columns had the names of attributes."""


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a new file"])
def test_a_file_of_the_first_layout_answers_todays_questions(tmp_path: Path, beside: bool) -> None:
    """Old names and words become the present ones; nothing is lost."""
    pq.write_table(pa.table(FIRST_LAYOUT), tmp_path / "old.parquet")
    if beside:
        pq.write_table(table_of(spans()), tmp_path / "new.parquet")
    with open_store(tmp_path) as store:
        assert store.table(
            "SELECT span_type, node_id, superstep_index, probe_arm, probe_divergence, node_weight, "
            "network_score_fast, breaker_decision, gen_ai_output_messages FROM spans "
            "WHERE run_id = 'old' ORDER BY start_unix_nano"
        ).rows == (
            ("run", *[None] * 8),
            ("node", "a", 1, None, None, 0.5, None, None, "yes"),
            ("probe", "a", 1, "standard", 0.25, *[None] * 4),
            ("network", None, 1, None, None, None, 0.125, "halt", None),
        )
        assert store.table("SELECT action, value FROM actions WHERE run_id = 'old'").rows == (
            ("a.outcome", "approve"),
        )
        assert len(store.table("SELECT * FROM spans").rows) == (6 if beside else 4)
        assert not [p for p in store.problems if "version" in p.what]


def test_a_file_of_a_later_version_is_read_and_said(tmp_path: Path) -> None:
    """A newer twinspan's files are not misread in silence."""
    newer = table_of(spans()).replace_schema_metadata({"schema_version": "7"})
    pq.write_table(newer, tmp_path / "a.parquet")
    with open_store(tmp_path) as store:
        assert len(store.table("SELECT * FROM spans").rows) == 2
        assert [p.what for p in store.problems] == [
            "a file of schema version 7 was read as far as version 1 goes"
        ]
