"""Plain values: when two are the same, and when one is no number at all."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import NonFiniteSample

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number; a bool is not.

    >>> is_number(2), is_number(0.5), is_number(True), is_number("2")
    (True, True, False, False)
    """
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a value is a list, tuple or other sequence; text is not.

    >>> is_sequence([1]), is_sequence("text")
    (True, False)
    """
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    """Whether a value is a mapping."""
    return isinstance(value, Mapping)


def is_set(value: object) -> TypeGuard[Set[object]]:
    """Whether a value is a set."""
    return isinstance(value, Set)


def identity(value: object) -> Hashable:
    """A key that is equal for equal values, also of kinds that cannot be hashed.

    ``True`` and ``1`` are different values here; the order of a mapping's keys is not.

    >>> identity({"a": [1], "b": 2}) == identity({"b": 2, "a": [1]})
    True
    >>> identity(True) == identity(1)
    False
    """
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        return identity(cast(object, value.tolist()))
    if isinstance(value, np.generic):
        return identity(cast(object, value.item()))
    if isinstance(value, bool):
        return ("bool", value)
    if is_mapping(value):
        pairs = ((identity(key), identity(item)) for key, item in value.items())
        return ("mapping", frozenset(pairs))
    if is_set(value):
        return ("set", frozenset(identity(item) for item in value))
    if is_sequence(value):
        return ("sequence", tuple(identity(item) for item in value))
    return value if isinstance(value, Hashable) else ("object", repr(value))


def mismatches(values: Sequence[object]) -> Floats:
    """1 where two values differ and 0 where they are the same.

    >>> mismatches(["a", "b", "a"]).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    seen: dict[Hashable, int] = {}
    codes = np.array([seen.setdefault(identity(value), len(seen)) for value in values])
    different: Bools = codes[:, np.newaxis] != codes
    return different.astype(np.float64)


def require_finite(samples: Sequence[object]) -> None:
    """Refuse NaN and infinity anywhere inside samples.

    Raises:
        NonFiniteSample: with the index of the first bad sample.

    >>> require_finite([{"dose": 5.0}, [1.0, 2.0]])
    """
    for index, sample in enumerate(samples):
        if not _is_finite(sample):
            raise NonFiniteSample("pooled", index=index)


def require_finite_rows(matrix: Floats) -> None:
    """Refuse NaN and infinity in the rows of a matrix.

    Raises:
        NonFiniteSample: with the index of the first bad row.

    >>> require_finite_rows(np.zeros((2, 3)))
    """
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(bad):
        raise NonFiniteSample("pooled", index=int(bad[0]))


def _is_finite(value: object) -> bool:
    if isinstance(value, str | int):
        return True
    if isinstance(value, float | np.floating):
        return math.isfinite(cast(float, value))
    if isinstance(value, np.ndarray):
        array = cast(NDArray[Any], value)
        return bool(np.isfinite(array).all()) if array.dtype.kind in "fc" else True
    if is_mapping(value):
        return all(_is_finite(item) for item in value.values())
    if is_sequence(value) or is_set(value):
        return all(_is_finite(item) for item in value)
    return True
