"""A part holds what it was given, packed where there is something to pack."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_runs import ended_spans, table_of

from twinspan.collector.parts import write_part
from twinspan.instrumentation import conventions as c


@pytest.mark.parametrize(("lasting", "codec"), [(True, "ZSTD"), (False, "LZ4")])
def test_every_column_with_values_is_packed_and_no_other(
    tmp_path: Path, lasting: bool, codec: str
) -> None:
    """Lists, maps and structs count by the columns that Parquet makes of them."""
    (span,) = ended_spans(
        {
            c.NODE_ID: "a",
            c.NODE_PARENTS: ["b"],
            c.DIVERGENCE_DISTANCES: [0.5],
            f"{c.ACTION_PREFIX}admit": True,
        }
    )
    link = {"trace_id": "0", "span_id": "1", "relation": "r", "edge": "e", "attributes": "{}"}
    table = table_of([span])
    links = table.schema.get_field_index("links")
    table = table.set_column(links, "links", pa.array([[link]], table.schema.field("links").type))
    path = tmp_path / "part-a.parquet"
    write_part(path, table, lasting=lasting)

    group = pq.ParquetFile(path).metadata.row_group(0)
    chunks = [group.column(place) for place in range(group.num_columns)]
    packed = {chunk.path_in_schema for chunk in chunks if chunk.compression == codec}
    filled = {name for name in table.column_names if table.column(name).null_count == 0}
    assert {name.partition(".")[0] for name in packed} == filled
    assert {"links.list.element.edge", "action_fields.key_value.key"} <= packed
    others = [chunk for chunk in chunks if chunk.path_in_schema not in packed]
    assert {chunk.compression for chunk in others} <= {"UNCOMPRESSED"}
    assert not {chunk.path_in_schema.partition(".")[0] for chunk in others} & filled


@pytest.mark.parametrize("lasting", [True, False])
def test_a_part_gives_back_what_it_was_given(tmp_path: Path, lasting: bool) -> None:
    """Every value of every column, whatever its packing."""
    table = table_of(ended_spans({c.NODE_ID: "a", "mine": [1]}, {c.NODE_PARENTS: ["b", "c"]}))
    path = tmp_path / "part-a.parquet"
    write_part(path, table, lasting=lasting)
    read = pq.ParquetFile(path).read()
    assert read.to_pylist() == table.select(read.column_names).to_pylist()
