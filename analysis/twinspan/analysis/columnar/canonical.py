"""The canonical text of many spans at once, as `twinspan.collector.chain` writes that of one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Final

import numpy as np
import pyarrow as pa

from twinspan.analysis.columnar.columns import (
    Array,
    Bools,
    Floats,
    Places,
    lists,
    numbers,
    there,
)
from twinspan.analysis.columnar.spans import Spans

_encode: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


def canonical_texts(spans: Spans, leave_out: Iterable[str]) -> list[str]:
    """Each span's attributes as JSON, the names in their order, those without a value left out.

    Args:
        spans: the spans; attributes without a column of their own do not count.
        leave_out: names that do not belong to the text.
    """
    names = sorted(set(spans.used()).difference(leave_out))
    columns = [spans.column(name) for name in names]
    present = np.column_stack([there(column) for column in columns]) if names else _nothing(spans)
    values = [_texts(column) for column in columns]
    shapes, shape = np.unique(present, axis=0, return_inverse=True)
    found = [""] * len(spans)
    for number, shown in enumerate(shapes):
        rows = np.flatnonzero(shape.ravel() == number).tolist()
        kept = np.flatnonzero(shown).tolist()
        form = "{" + ",".join(f"{_encode(names[place])}:%s" for place in kept) + "}"
        picked = [[values[place][row] for row in rows] for place in kept]
        for row, pieces in zip(rows, zip(*picked, strict=True), strict=True):
            found[row] = form % pieces
    return found


def _nothing(spans: Spans) -> Bools:
    return np.zeros((len(spans), 0), dtype=np.bool_)


def _texts(column: Array) -> Sequence[str]:
    """Every value of a column as JSON; anything for a missing one."""
    if pa.types.is_floating(column.type):
        return _number_texts(numbers(column).values)
    if pa.types.is_list(column.type):
        return _list_texts(*lists(column))
    values = column.to_pylist()
    # Most columns of a run say the same again and again.
    known = {value: _encode(value) for value in set(values)}
    return [known[value] for value in values]


def _list_texts(values: Array, lengths: Places) -> Sequence[str]:
    texts = _texts(values)
    ends = np.cumsum(lengths)
    pieces = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    return [f"[{','.join(texts[start:end])}]" for start, end in pieces]


def _number_texts(values: Floats) -> Sequence[str]:
    # By their bits: 0.0 and -0.0 are equal, and written differently.
    bits, place = np.unique(values.view(np.int64), return_inverse=True)
    found: list[float] = bits.view(np.float64).tolist()
    texts = [repr(value) if isfinite(value) else _encode(value) for value in found]
    places: list[int] = place.tolist()
    return [texts[each] for each in places]
