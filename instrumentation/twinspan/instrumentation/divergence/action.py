"""Structured actions: Gower's mean of the distances of their fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, Literal, TypeGuard
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.divergence.outcome import with_outcomes
from twinspan.instrumentation.divergence.values import (
    identity,
    is_mapping,
    is_number,
    is_sequence,
    is_set,
    mismatches,
    require_finite,
)
from twinspan.instrumentation.errors import ConfigurationError, EstimatorError

Floats = NDArray[np.float64]
FieldKind = Literal["nominal", "numeric", "set"]


class _Absent(Enum):
    """The value of a field that a sample does not have: a value like any other."""

    MISSING = 1


_MISSING: Final = _Absent.MISSING


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """How one field of an action is compared.

    Attributes:
        kind: ``nominal`` (same or not), ``numeric`` (difference over range) or ``set``
            (Jaccard distance of its items).
        low: smallest value of a numeric field; with ``high`` it fixes the range, so that
            scores of different probe sets share a scale. Otherwise the range of the samples
            at hand is used.
        high: largest value of a numeric field.
        weight: share in the mean relative to other fields; 0 leaves the field out, which
            suits identifiers and time stamps.

    Raises:
        ConfigurationError: the range is empty, half given, or the weight is negative.

    >>> Field(kind="numeric", low=0, high=10).weight
    1.0
    """

    kind: FieldKind = "nominal"
    low: float | None = None
    high: float | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.weight < np.inf:
            raise ConfigurationError(f"weight {self.weight!r} is not 0 or more")
        if (self.low is None) != (self.high is None):
            raise ConfigurationError("a range needs both low and high, or neither")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ConfigurationError(f"range {self.low!r} to {self.high!r} is empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEstimator:
    r"""Gower distance of mappings: the weighted mean distance of their fields (Gower 1971).

    Nested mappings are flattened to dotted names, lists are compared as sets, a missing field
    is a value of its own. Kinds of fields that are not declared are read off the pooled
    samples: numbers are numeric, lists and sets are sets, all else is nominal.

    Attributes:
        fields: declarations by dotted name; a dot inside a key is written ``\.``.

    Two of three fields agree, the third differs by a quarter of its range:

    >>> declared = ActionEstimator(fields={"dose": Field(kind="numeric", low=0, high=20)})
    >>> first = {"admit": True, "unit": "icu", "dose": 5}
    >>> declared.matrix([first, first | {"dose": 10}]).round(4).tolist()
    [[0.0, 0.0833], [0.0833, 0.0]]
    """

    fields: Mapping[str, Field] = field(default_factory=lambda: MappingProxyType({}))

    name: str = field(default="action", init=False)
    scale: str = field(default="1 = every field differs fully", init=False)

    @property
    def version(self) -> str:
        """'1', and a digest of the declarations where there are any: they set the scale."""
        if not self.fields:
            return "1"
        return f"1+{crc32(repr(sorted(self.fields.items())).encode()):08x}"

    def matrix(self, samples: Sequence[object]) -> Floats:
        """N x N distances.

        Args:
            samples: N mappings or dataclass instances; anything else is an action with the
                one field ``value``.

        Raises:
            EstimatorError: no field has any weight.
            NonFiniteSample: a field holds NaN or infinity.
        """
        return with_outcomes(samples, self._between)

    def _between(self, samples: Sequence[object]) -> Floats:
        actions = [flatten(sample) for sample in samples]
        require_finite(actions)
        total, weights = np.zeros((len(actions), len(actions))), 0.0
        for name in sorted({name for action in actions for name in action}):
            values = [action.get(name, _MISSING) for action in actions]
            declared = self.fields.get(name) or Field(kind=_kind_of(values))
            if declared.weight:
                total += declared.weight * _field_distances(values, declared)
                weights += declared.weight
        if not weights:
            raise EstimatorError("no field of these actions has a weight; declare one above 0")
        return total / weights


def flatten(action: object) -> dict[str, object]:
    """An action's fields by dotted name.

    >>> flatten({"name": "prescribe", "arguments": {"drug": "X", "days": 5}})
    {'name': 'prescribe', 'arguments.drug': 'X', 'arguments.days': 5}
    """
    if dataclasses.is_dataclass(action) and not isinstance(action, type):
        action = dataclasses.asdict(action)
    if not is_mapping(action):
        return {"value": action}
    return dict(_fields("", action))


def _fields(prefix: str, mapping: Mapping[object, object]) -> Iterator[tuple[str, object]]:
    for key, value in mapping.items():
        name = prefix + str(key).replace(".", "\\.")
        if is_mapping(value) and value:
            yield from _fields(name + ".", value)
        else:
            yield name, _MISSING if value is None else value


def _kind_of(values: Sequence[object]) -> FieldKind:
    present = [value for value in values if value is not _MISSING]
    if present and all(is_number(value) for value in present):
        return "numeric"
    if present and all(_is_items(value) for value in present):
        return "set"
    return "nominal"


def _field_distances(values: Sequence[object], declared: Field) -> Floats:
    if declared.kind == "numeric":
        return _numeric(values, declared)
    if declared.kind == "set":
        return _jaccard(values)
    return mismatches(values)


def _numeric(values: Sequence[object], declared: Field) -> Floats:
    is_value = np.array([is_number(value) for value in values])
    numbers = np.array([value if is_number(value) else 0.0 for value in values], np.float64)
    span = _span(numbers[is_value], declared)
    gaps = np.abs(np.subtract.outer(numbers, numbers))
    scaled = np.minimum(gaps / span, 1.0) if span else np.zeros_like(gaps)
    # What is no number in a numeric field is as far from numbers as can be.
    return np.where(np.logical_and.outer(is_value, is_value), scaled, _others(values, is_value))


def _span(numbers: Floats, declared: Field) -> float:
    if declared.low is not None and declared.high is not None:
        return declared.high - declared.low
    return float(np.ptp(numbers)) if len(numbers) else 0.0


def _jaccard(values: Sequence[object]) -> Floats:
    is_items = np.array([_is_items(value) for value in values])
    held = _incidence([value if _is_items(value) else () for value in values])
    shared = held @ held.T
    union = np.add.outer(held.sum(axis=1), held.sum(axis=1)) - shared
    distances = 1.0 - np.divide(shared, union, out=np.ones_like(shared), where=union > 0)
    return np.where(np.logical_and.outer(is_items, is_items), distances, _others(values, is_items))


def _is_items(value: object) -> TypeGuard[Collection[object]]:
    return is_sequence(value) or is_set(value)


def _incidence(sets: Sequence[Collection[object]]) -> Floats:
    """1 where a set (a row) holds an item (a column)."""
    columns: dict[Hashable, int] = {}
    cells = [
        (row, columns.setdefault(identity(item), len(columns)))
        for row, items in enumerate(sets)
        for item in items
    ]
    held = np.zeros((len(sets), len(columns)))
    for row, column in cells:
        held[row, column] = 1.0
    return held


def _others(values: Sequence[object], is_kind: NDArray[np.bool_]) -> Floats:
    """Mismatches in which all values of the declared kind count as one."""
    return mismatches(
        [None if there else value for value, there in zip(values, is_kind, strict=True)]
    )
