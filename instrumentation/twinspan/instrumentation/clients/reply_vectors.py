"""Vectors in replies to embedding requests."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.clients.reply_fields import (
    count_or_none,
    kind_of,
    malformed,
    real,
)
from twinspan.instrumentation.narrowing import as_mapping, as_sequence


def read_embeddings(reply: object, count: int) -> NDArray[np.float64]:
    """The vectors in an `/embeddings` reply, one row per text, in the texts' order.

    Read in the protocol's form, as a bare list (older llama.cpp), with one row nested in
    another, and base64-coded.

    Raises:
        MalformedReply: for missing, ragged or non-finite vectors.

    >>> read_embeddings({"data": [{"index": 0, "embedding": [1, 2]}]}, 1)
    array([[1., 2.]])
    """
    body = as_mapping(reply)
    rows = as_sequence(body.get("data") if body is not None else reply)
    if rows is None or len(rows) != count:
        found = "no" if rows is None else str(len(rows))
        raise malformed(f"the reply has {found} vectors for {count} texts")
    vectors = [_vector(row, number) for number, row in enumerate(_in_order(rows))]
    if len({len(vector) for vector in vectors}) > 1:
        raise malformed("the reply's vectors differ in length")
    return np.stack(vectors)


def _in_order(rows: Sequence[object]) -> Sequence[object]:
    indices = [_index(row) for row in rows]
    if None in indices:
        return rows
    if sorted(indices, key=lambda index: index or 0) != list(range(len(rows))):
        raise malformed("the reply's vectors are not numbered from 0 without gaps")
    return [rows[indices.index(place)] for place in range(len(rows))]


def _index(row: object) -> int | None:
    fields = as_mapping(row)
    return count_or_none(fields.get("index")) if fields is not None else None


def _vector(row: object, number: int) -> NDArray[np.float64]:
    fields = as_mapping(row)
    value = fields.get("embedding") if fields is not None else row
    if isinstance(value, str):
        vector = _from_base64(value)
    else:
        vector = _from_numbers(value, number)
    if not len(vector) or not np.isfinite(vector).all():
        raise malformed(f"vector {number} of the reply is empty or not finite")
    return vector


def _from_numbers(value: object, number: int) -> NDArray[np.float64]:
    items = as_sequence(value)
    if items is not None and len(items) == 1 and as_sequence(items[0]) is not None:
        items = as_sequence(items[0])
    if items is None:
        raise malformed(f"vector {number} of the reply is {kind_of(value)}")
    return np.array([real(item, "a coordinate") for item in items], dtype=np.float64)


def _from_base64(value: str) -> NDArray[np.float64]:
    try:
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").astype(np.float64)
    except (binascii.Error, ValueError):
        raise malformed("a vector of the reply is no base64 of 32-bit floats") from None
