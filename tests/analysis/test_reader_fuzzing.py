"""Whatever bytes a file holds, opening it gives spans, or one sentence: never another error.

`python tests/fuzz_readers.py` does the same by coverage, as long as it is let.
"""

from __future__ import annotations

import gzip
import json
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest
from every_type import ATTRIBUTES
from fuzz_readers import try_bytes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded_runs import ended_spans, table_of

from twinspan.collector.otlp_json import span_line

_few = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("resourceSpans", "scopeSpans", "spans", "resource", "scope", "attributes"),
                    *("key", "value", "stringValue", "intValue", "doubleValue", "arrayValue"),
                    *("kvlistValue", "values", "bytesValue", "traceId", "spanId", "parentSpanId"),
                    *("startTimeUnixNano", "endTimeUnixNano", "kind", "status", "code", "events"),
                    *("links", "droppedAttributesCount", "name", "timeUnixNano", "traceState"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def _line() -> bytes:
    return span_line(ended_spans(ATTRIBUTES)[0]).encode()


def _protobuf() -> bytes:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    return bytes(encode_spans(ended_spans(ATTRIBUTES)).SerializeToString())


def _parquet() -> bytes:
    import pyarrow.parquet as pq

    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        pq.write_table(table_of(ended_spans(ATTRIBUTES)), file.name)
        return Path(file.name).read_bytes()


SEEDS = {".jsonl": _line(), ".pb": _protobuf(), ".parquet": _parquet()}
SEEDS[".jsonl.gz"] = gzip.compress(SEEDS[".jsonl"])
SEEDS[".bin"] = struct.pack(">I", len(SEEDS[".pb"])) + SEEDS[".pb"]


@_few
@given(st.sampled_from([".json", ".jsonl", ".pb", ".parquet", ".duckdb", ".gz", ""]), st.binary())
def test_any_bytes_under_any_name(suffix: str, data: bytes) -> None:
    """Nothing of them is a span, and that is all."""
    try_bytes(data, suffix)


@_few
@given(st.sampled_from(sorted(SEEDS)), st.data())
def test_a_good_file_with_a_few_bytes_changed(suffix: str, data: st.DataObject) -> None:
    """As a disk or a transfer would change them: replaced, removed, repeated, cut."""
    content = bytearray(SEEDS[suffix])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        kind = data.draw(st.sampled_from(["replace", "remove", "repeat", "cut"]))
        if kind == "replace" and content:
            content[at] = data.draw(st.integers(0, 255))
        elif kind == "remove":
            del content[at : at + data.draw(st.integers(1, 20))]
        elif kind == "repeat":
            content[at:at] = content[at : at + 20]
        else:
            del content[at:]
    try_bytes(bytes(content), suffix)


@_few
@given(_json, st.sampled_from([None, 1]))
def test_json_of_the_right_words_in_any_shape(document: Any, indent: int | None) -> None:
    """The names of OTLP where nobody would put them."""
    text = json.dumps({"resourceSpans": document}, indent=indent)
    try_bytes(text.encode("utf-8", "replace"), ".json")


@_few
@given(st.data())
def test_a_good_line_with_one_value_replaced(data: st.DataObject) -> None:
    """Every place of a span holds something else once."""
    document = json.loads(SEEDS[".jsonl"])
    here: Any = document
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = data.draw(st.sampled_from(keys))
        deeper = here[key]
        if isinstance(deeper, dict | list) and deeper and data.draw(st.booleans()):
            here = deeper
            continue
        here[key] = data.draw(_json)
        break
    try_bytes((json.dumps(document) + "\n").encode("utf-8", "replace"), ".jsonl")


@pytest.mark.parametrize("name", [b"trace_id", b"span_type", b"attributes"])
def test_a_column_whose_name_is_no_text(name: bytes) -> None:
    """A byte of a footer that was changed: pyarrow cannot even name the file's columns."""
    broken = SEEDS[".parquet"].replace(name, b"\x9b" + name[1:])
    assert broken != SEEDS[".parquet"]
    try_bytes(broken, ".parquet")
