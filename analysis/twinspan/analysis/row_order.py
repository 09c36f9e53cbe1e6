"""The order of rows within a file.

Each run is together in a group of rows, so that one run is found at once. Within such a group
spans of one kind are together: whoever asks for one kind need not read what the others say.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twinspan.collector.schema import ROW_GROUP_ROWS

ROW_ORDER: Final = ("run_id", "audit_writer", "audit_seq", "start_unix_nano", "span_id")
"""The columns that say which rows are in a group, and in which order those of a kind are."""


def in_order(table: pa.Table) -> pa.Table:
    """The rows of a file in their order.

    >>> rows = {"run_id": ["b", "a", "a"], "audit_writer": ["w", "w", "w"],
    ...         "audit_seq": [0, 1, 0], "start_unix_nano": [1, 2, 3], "span_id": ["1", "2", "3"],
    ...         "span_type": ["node", "node", "probe"]}
    >>> in_order(pa.table(rows)).column("span_id").to_pylist()
    ['2', '1', '3']
    """
    places = _sorted(table.select(ROW_ORDER))
    kinds = table.column("span_type").take(places)
    number = np.arange(table.num_rows)
    keys = {"group": number // ROW_GROUP_ROWS, "kind": kinds, "number": number}
    return table.take(places.take(_sorted(pa.table(keys))))  # pyright: ignore[reportUnknownMemberType]


def _sorted(keys: pa.Table) -> pa.UInt64Array:
    """The places of rows ordered by all columns, one after the other."""
    by = [(name, "ascending") for name in keys.column_names]
    return pc.sort_indices(keys, sort_keys=by)  # type: ignore[arg-type]  # pyright: ignore
