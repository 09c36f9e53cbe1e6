"""A span becomes a row, and nothing of it is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext, TraceFlags
from recorded_runs import ended_spans, table_of

from twinspan.collector.parts import write_part
from twinspan.collector.rows import RowBuilder
from twinspan.collector.schema import COLUMN_TYPES, SPAN_SCHEMA
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.tracing import Telemetry


def _row(**attributes: object) -> dict[str, object]:
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    return table_of(ended_spans(named)).to_pylist()[0]


def test_every_promoted_attribute_has_a_column_and_no_two_share_one() -> None:
    """The schema holds each known name once, beside the fixed columns."""
    columns = [attribute.column for attribute in c.PROMOTED]
    assert len(set(columns)) == len(columns)
    assert set(columns) < set(COLUMN_TYPES)
    assert len(SPAN_SCHEMA.names) == len(set(SPAN_SCHEMA.names))


def test_a_span_keeps_its_identity_times_and_place() -> None:
    """Ids are hex, times exact to the nanosecond, the rest words."""
    (span,) = ended_spans({c.NODE_ID: "a"})
    assert span.context is not None and span.start_time is not None and span.end_time is not None
    row = table_of([span]).to_pylist()[0]
    assert row["trace_id"] == f"{span.context.trace_id:032x}"
    assert row["start_unix_nano"] == span.start_time
    assert row["duration_ns"] == span.end_time - span.start_time
    assert (row["kind"], row["status_code"], row["parent_span_id"]) == ("INTERNAL", "UNSET", None)
    assert (row["run_id"], row["audit_seq"], row["scope_name"]) == ("r1", 0, c.SCOPE)


def test_values_keep_their_types() -> None:
    """Promoted values are typed, arrays are lists, the rest is exact JSON with flat keys."""
    row = _row(
        twinspan__node__parents=["a", "b"],
        twinspan__divergence__distances=[0.0, 0.25],
        twinspan__breaker__enforced=False,
        mine__deep__key=[1, 2],
        other=1.0,
    )
    assert row["node_parents"] == ["a", "b"]
    assert row["divergence_distances"] == [0.0, 0.25]
    assert row["breaker_enforced"] is False
    assert json.loads(str(row["attributes"])) == {"mine.deep.key": [1, 2], "other": 1.0}


def test_actions_share_one_map_of_json_values() -> None:
    """Booleans, numbers, text and arrays of an action can be told apart."""
    fields = _row(
        twinspan__action__admit=True, twinspan__action__tier=2, twinspan__action__orders=["CBC"]
    )["action_fields"]
    assert fields == [("admit", "true"), ("tier", "2"), ("orders", '["CBC"]')]


def test_a_value_of_the_wrong_type_goes_to_the_rest() -> None:
    """Somebody else's text under the name of a number spoils no column and is not lost."""
    table = table_of(ended_spans({"gen_ai.request.seed": "random"}, {"gen_ai.request.seed": 7}))
    first, second = table.to_pylist()
    assert (first["gen_ai_request_seed"], second["gen_ai_request_seed"]) == (None, 7)
    assert json.loads(first["attributes"]) == {"gen_ai.request.seed": "random"}


def test_links_and_events_are_kept_with_their_attributes() -> None:
    """A link's relation and edge are fields; an event keeps its own time."""
    telemetry = Telemetry([])
    run = telemetry.run("r1")
    target = SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1))
    link = Link(target, {c.LINK_RELATION: "data_dependency", c.LINK_EDGE: "a->b", "x": 1})
    span = run.start("invoke_node b", "node", {}, links=[link])
    span.add_event(c.EVENT_TRANSITION, {"to": "warning"}, timestamp=5_000_000_001)
    run.end(span)
    row = table_of([span]).to_pylist()[0]
    (kept,) = row["links"]
    assert (kept["relation"], kept["edge"], kept["attributes"]) == (
        "data_dependency",
        "a->b",
        '{"x":1}',
    )
    assert row["events"][0]["unix_nano"] == 5_000_000_001


def test_text_that_no_file_can_hold_is_replaced() -> None:
    """A lone surrogate from a foreign span costs one character, not a file."""
    telemetry = Telemetry([])
    lone = "\ud800"
    span = telemetry.tracer.start_span(f"n{lone}", attributes={"k": f"a{lone}", "error.type": lone})
    span.end()
    assert isinstance(span, ReadableSpan)
    row = table_of([span]).to_pylist()[0]
    assert row["name"] == "n\ufffd"
    assert json.loads(row["attributes"]) == {"k": "a\ufffd"}
    assert row["error_type"] == "\ufffd"


def test_a_builder_absorbs_a_later_one() -> None:
    """Rows of both, in order, whatever their attributes."""
    first, second = ended_spans({"a": 1, c.NODE_ID: "x"}), ended_spans({c.NODE_ID: "y"}, {"a": 2})
    builder, later = RowBuilder(), RowBuilder()
    for span in first:
        builder.add_span(span)
    for span in second:
        later.add_span(span)
    builder.absorb(later)
    assert builder.table().equals(table_of([*first, *second]))


def test_what_is_changed_on_an_ended_span_does_not_change_its_row() -> None:
    """The application's processors are handed the same span, maybe before its row is written."""
    (span,) = ended_spans({c.NODE_ID: "a"})
    builder = RowBuilder()
    builder.add_span(span)
    span._name = "redacted"
    span._attributes._dict[c.NODE_ID] = "redacted"  # type: ignore[union-attr]  # pyright: ignore
    row = builder.table().to_pylist()[0]
    assert (row["name"], row["node_id"]) == ("invoke_node a", "a")


_VALUES = st.one_of(
    st.booleans(),
    st.integers(min_value=-(2**63), max_value=2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.lists(st.text(), max_size=3),
    st.lists(st.integers(min_value=-(2**63), max_value=2**63 - 1), max_size=3),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["twinspan.node.id", "twinspan.network.step", "mine.a", "mine.b"]),
            _VALUES,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_what_goes_in_comes_out(spans: list[dict[str, object]]) -> None:
    """Whatever mixture of names and types a batch has, each value is in its column or the rest."""
    ended = ended_spans(*spans)
    rows = {row["span_id"]: row for row in table_of(ended).to_pylist()}
    assert len(rows) == len(ended)
    for span in ended:
        assert span.context is not None
        row = rows[f"{span.context.span_id:016x}"]
        rest = json.loads(row["attributes"])
        for key, value in (span.attributes or {}).items():
            plain = list(value) if isinstance(value, tuple) else value
            column = c.CATALOGUE[key].column if key in c.CATALOGUE else None
            stored = rest[key] if key in rest else row[str(column)]
            assert stored == plain


def test_spans_of_a_kind_stand_together() -> None:
    """A question for one kind reads one stretch of a file, whatever else each span carries."""
    kinds = ["probe", "node", "probe", "node", "probe"]
    memory = InMemorySpanExporter()
    run = Telemetry([SimpleSpanProcessor(memory)]).run("r1")
    for number, kind in enumerate(kinds):
        more = {"mine.x": number} if number % 2 else {}
        run.end(run.start(f"{kind} {number}", kind, {c.NODE_ID: f"n{number}", **more}))
    rows = table_of(memory.get_finished_spans()).to_pylist()
    assert [(row["span_type"], row["node_id"]) for row in rows] == [
        ("node", "n1"),
        ("node", "n3"),
        ("probe", "n0"),
        ("probe", "n2"),
        ("probe", "n4"),
    ]
    assert [json.loads(row["attributes"]).get("mine.x") for row in rows] == [1, 3, None, None, None]


def test_every_row_has_the_facts_of_its_own_span() -> None:
    """Kinds that take turns are put together; a table that is asked for again is the same."""
    spans = ended_spans(*({f"mine.{number % 3}": number} for number in range(9)))
    builder = RowBuilder()
    for span in spans:
        builder.add_span(span)
    table = builder.table()
    begun = {f"{span.context.span_id:016x}": span.start_time for span in spans if span.context}
    ids, starts = table.column("span_id").to_pylist(), table.column("start_unix_nano").to_pylist()
    assert dict(zip(ids, starts, strict=True)) == begun
    said = [int(next(iter(json.loads(text).values()))) for text in _texts(table)]
    assert said == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    assert table.column("audit_seq").to_pylist() == said
    assert builder.table().equals(table)


def _texts(table: pa.Table) -> list[str]:
    return [str(text) for text in table.column("attributes").to_pylist()]


def test_an_empty_batch_is_an_empty_table() -> None:
    """No spans give the schema without rows."""
    assert table_of([]).schema.equals(SPAN_SCHEMA)
    assert pa.Table.from_batches([], SPAN_SCHEMA).num_rows == table_of([]).num_rows == 0


def test_words_that_repeat_are_kept_once_also_within_lists(tmp_path: Path) -> None:
    """Parquet names the members of a list or map by a path; the column's own name packs nothing."""
    spans = ended_spans({c.NODE_PARENTS: ["a", "b"], f"{c.ACTION_PREFIX}admit": True})
    path = tmp_path / "part.parquet"
    write_part(path, pa.concat_tables([table_of(spans)] * 5))
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    packed = {each.path_in_schema for each in columns if "RLE_DICTIONARY" in each.encodings}
    assert {
        "node_parents.list.element",
        "action_fields.key_value.key",
        "action_fields.key_value.value",
    } <= packed
    assert "trace_id" in packed and "span_id" not in packed
