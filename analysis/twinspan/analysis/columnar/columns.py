"""Columns of recorded spans as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Bools = NDArray[np.bool_]
Array: TypeAlias = "pa.Array[Any]"


class Numbers(NamedTuple):
    """A column of numbers.

    Attributes:
        values: the numbers, NaN where there is none.
        odd: rows whose number is there and is NaN.
    """

    values: Floats
    odd: Bools


class Words(NamedTuple):
    """A column of text.

    Attributes:
        codes: place of each row's text in `words`, -1 where there is none.
        words: the different texts.
    """

    codes: Places
    words: tuple[str, ...]

    def codes_of(self, asked: Sequence[str]) -> Places:
        """The codes that some texts have here, -2 for those that do not occur."""
        known = {word: code for code, word in enumerate(self.words)}
        return np.array([known.get(word, -2) for word in asked], dtype=np.intp)

    def ranked(self) -> Words:
        """The same with codes in the order of the texts."""
        order = sorted(range(len(self.words)), key=self.words.__getitem__)
        ranks = np.full(len(order) + 1, -1, dtype=np.intp)
        ranks[order] = np.arange(len(order))
        return Words(ranks[self.codes], tuple(self.words[place] for place in order))


def numbers(column: Array) -> Numbers:
    """A column of numbers or truth values.

    >>> numbers(pa.array([1.0, None, 3.0])).values
    array([ 1., nan,  3.])
    """
    doubles = cast("pa.DoubleArray", column.cast(pa.float64()))
    values = _numpy(doubles, np.float64)
    return Numbers(values, np.isnan(values) & there(column))


def words(column: Array) -> Words:
    """A column of text.

    >>> words(pa.array(["b", None, "a", "b"]))
    Words(codes=array([ 0, -1,  1,  0]), words=('b', 'a'))
    """
    # Its stubs do not know what comes of an array of any type.
    encoded = cast("Any", column).dictionary_encode()
    codes = _numpy(cast("Array", encoded.indices).fill_null(-1), np.intp)
    return Words(codes, tuple(map(str, encoded.dictionary.to_pylist())))


def there(column: Array) -> Bools:
    """Which rows have a value.

    >>> there(pa.array([1, None]))
    array([ True, False])
    """
    if not column.null_count:
        return np.ones(len(column), dtype=np.bool_)
    return _numpy(cast("Array", column.is_valid()), np.bool_)


class Lists(NamedTuple):
    """A column of lists.

    Attributes:
        values: what all lists hold, one after the other.
        lengths: how much of it each row has; 0 where there is no list.
    """

    values: Array
    lengths: Places


def lists(column: Array) -> Lists:
    """A column of lists.

    >>> lists(pa.array([[1, 2], None, [], [3]])).lengths
    array([2, 0, 0, 1])
    """
    lengths = cast("Array", pc.list_value_length(column)).fill_null(0)
    return Lists(cast("Array", pc.list_flatten(column)), _numpy(lengths, np.intp))


def plain(column: Array) -> list[Any]:
    """A column as Python's own values.

    >>> plain(pa.array([[0.5], None, []]))
    [[0.5], None, []]
    """
    if not (pa.types.is_list(column.type) and pa.types.is_floating(column.type.value_type)):
        return column.to_pylist()
    # Number by number, distances would cost more than everything else.
    values, lengths = lists(column)
    listed: list[float] = values.to_numpy(zero_copy_only=False).tolist()
    ends = np.cumsum(lengths)
    pieces = zip((ends - lengths).tolist(), ends.tolist(), there(column).tolist(), strict=True)
    return [listed[start:end] if present else None for start, end, present in pieces]


def _numpy(column: Array, kind: type[Any]) -> NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False)).astype(kind, copy=False)
