"""The fast way to read OTLP JSON and the patient one read the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.analysis.dialects import Problems, RowSink
from twinspan.analysis.dialects.otlp_json import DocumentReading, OtlpJson
from twinspan.analysis.dialects.otlp_typed import typed_traces
from twinspan.collector.rows import EventRow, LinkRow, RowBuilder, SpanFacts


class Rows(RowSink):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__(Path())
        self.builder = RowBuilder()

    def add(
        self,
        facts: SpanFacts,
        attributes: Mapping[str, object],
        *,
        events: Any = (),
        links: Any = (),
    ) -> None:
        kept: tuple[list[EventRow], list[LinkRow]] = list(events), list(links)
        self.builder.add(facts, attributes, events=kept[0], links=kept[1])

    def table(self) -> pa.Table:
        return self.builder.table()


scalars = st.one_of(st.none(), st.booleans(), st.integers(-5, 2**70), st.text(max_size=3))
values: st.SearchStrategy[Any] = st.deferred(
    lambda: st.one_of(
        st.fixed_dictionaries({"stringValue": st.text(max_size=4)}),
        st.fixed_dictionaries({"intValue": st.one_of(st.integers(), st.just("17"), scalars)}),
        st.fixed_dictionaries({"doubleValue": st.sampled_from([0, 0.5, "NaN", "Infinity", "x"])}),
        st.fixed_dictionaries({"boolValue": st.booleans()}),
        st.fixed_dictionaries(
            {"arrayValue": st.fixed_dictionaries({"values": st.lists(values, max_size=2)})}
        ),
        st.fixed_dictionaries(
            {"kvlistValue": st.fixed_dictionaries({"values": st.lists(entries, max_size=2)})}
        ),
        st.fixed_dictionaries({"bytesValue": st.just("AAEC")}),
        st.just({}),
    )
)
entries: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries({"key": st.sampled_from(["a", "twinspan.node.id"]), "value": values}),
    st.fixed_dictionaries({"key": st.just("b")}),
    st.fixed_dictionaries({"value": values}),
)
ids = st.one_of(st.sampled_from(["0" * 16, "A1" * 8, "b2" * 16, "APBnqgupArc=", "zz", ""]), scalars)
times = st.one_of(st.sampled_from(["17", 18, "1796087772477882227", None]), scalars)
spans = st.fixed_dictionaries(
    {"traceId": st.one_of(st.just("b2" * 16), ids), "spanId": st.one_of(st.just("a1" * 8), ids)},
    optional={
        "parentSpanId": ids,
        "name": scalars,
        "kind": st.one_of(st.integers(0, 9), st.just("SPAN_KIND_SERVER"), scalars),
        "startTimeUnixNano": times,
        "endTimeUnixNano": times,
        "attributes": st.one_of(st.lists(entries, max_size=3), scalars),
        "status": st.one_of(st.fixed_dictionaries({"code": scalars}), st.just({}), scalars),
        "events": st.lists(st.fixed_dictionaries({"name": scalars, "timeUnixNano": times})),
        "links": st.lists(st.fixed_dictionaries({"traceId": ids, "spanId": ids})),
        "droppedLinksCount": scalars,
        "added.later": scalars,
    },
)
resources = st.fixed_dictionaries(
    {}, optional={"attributes": st.one_of(st.lists(entries, max_size=2), scalars)}
)
scopes = st.fixed_dictionaries(
    {"spans": st.lists(spans, max_size=3)},
    optional={"scope": st.one_of(st.just({"name": "s"}), scalars)},
)
documents = st.fixed_dictionaries(
    {
        "resourceSpans": st.lists(
            st.fixed_dictionaries(
                {"scopeSpans": st.lists(scopes, max_size=2)}, optional={"resource": resources}
            ),
            max_size=2,
        )
    }
)


def read(given: Sequence[object]) -> tuple[pa.Table, list[str]]:
    sink, problems = Rows(), Problems()
    reading = DocumentReading("a", sink, problems)
    for document in given:
        reading.add_document(document)
    return sink.table(), [str(each) for each in problems.listed()]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(documents, st.booleans()), min_size=1, max_size=3))
def test_both_ways_give_the_same_rows_and_name_the_same_junk(
    lines: list[tuple[Any, bool]],
) -> None:
    """Whatever shape a span has, and however lines of the one and the other kind are mixed."""
    texts = [json.dumps(document).encode() for document, _ in lines]
    patient = [json.loads(text) for text in texts]
    fast = [
        typed_traces(text) or slow if typed else slow
        for text, slow, (_, typed) in zip(texts, patient, lines, strict=True)
    ]
    assert read(fast) == read(patient)


def test_usual_lines_take_the_fast_way(tmp_path: Path) -> None:
    """And unusual ones among them do not stop it."""
    span = {"traceId": "b2" * 16, "spanId": "a1" * 8, "name": "n"}
    usual = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    assert typed_traces(json.dumps(usual).encode()) is not None
    older = {"resourceSpans": [{"instrumentationLibrarySpans": [{"spans": [span]}]}]}
    assert typed_traces(json.dumps(older).encode()) is None
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in (usual, older, usual)) + "\n\0\0\n")
    sink, problems = Rows(), Problems()
    OtlpJson().read([path], sink, problems)
    assert sink.table().num_rows == 3
    assert [str(each) for each in problems.listed()] == [
        "a.jsonl: a run of NUL bytes was skipped (1)"
    ]
