"""Answers of arms, case by case, in the form in which tests take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import UnsuitableValue
from twinspan.instrumentation.hashing import canonical

Floats = NDArray[np.float64]

Answers = Mapping[str, Sequence[object]]
"""The answers of one arm by case, one per replicate; None for a missing one."""

Distance = Literal["flip", "absolute"]
"""``flip`` is 1 for different answers; ``absolute`` the distance of two numbers."""


class Pooled(NamedTuple):
    """The answers of one case from several arms.

    Attributes:
        values: one list per arm.
    """

    values: tuple[list[object], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Answers per arm."""
        return tuple(len(arm) for arm in self.values)

    @property
    def binary(self) -> bool:
        """Whether all answers are yes or no."""
        return all(
            isinstance(value, bool | int) and value in (0, 1)
            for arm in self.values
            for value in arm
        )

    @property
    def numeric(self) -> bool:
        """Whether all answers are numbers or yes and no."""
        return all(isinstance(value, int | float) for arm in self.values for value in arm)


class Shared(NamedTuple):
    """Cases that all arms have, and what was left out."""

    cases: dict[str, Pooled]
    n_left_out: int
    n_missing: int


def shared_cases(arms: Sequence[Answers]) -> Shared:
    """Cases with an answer in every arm, missing answers dropped and counted.

    >>> shared_cases([{"a": [True, None], "b": [True]}, {"a": [False], "b": []}])
    Shared(cases={'a': Pooled(values=([True], [False]))}, n_left_out=1, n_missing=1)
    """
    every = dict.fromkeys(case for arm in arms for case in arm)
    cases: dict[str, Pooled] = {}
    missing = 0
    for case in every:
        told = [[value for value in arm.get(case, ()) if value is not None] for arm in arms]
        missing += sum(len(arm.get(case, ())) for arm in arms) - sum(map(len, told))
        if all(told):
            cases[case] = Pooled(tuple(told))
    return Shared(cases, len(every) - len(cases), missing)


def distances(pooled: Pooled, distance: Distance) -> Floats:
    """Pairwise distances of all answers of a case, first arm first.

    Raises:
        UnsuitableValue: ``absolute`` was asked of an answer that is no number.

    >>> distances(Pooled(([1, 3], [2])), "absolute").tolist()
    [[0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    flat = [value for arm in pooled.values for value in arm]
    if distance == "absolute":
        numbers = numbers_of(pooled)
        apart: Floats = np.abs(numbers[:, None] - numbers[None, :])
        return apart
    codes: dict[object, int] = {}
    places = np.array([codes.setdefault(_key(value), len(codes)) for value in flat])
    different: Floats = (places[:, None] != places[None, :]).astype(np.float64)
    return different


def numbers_of(pooled: Pooled) -> Floats:
    """All answers of a case as numbers, first arm first.

    Raises:
        UnsuitableValue: an answer is no number.
    """
    flat = [value for arm in pooled.values for value in arm]
    for value in flat:
        if not isinstance(value, int | float):
            raise UnsuitableValue("an answer", value, cure="take distance='flip' for categories")
    return np.array(flat, dtype=np.float64)


def _key(value: object) -> object:
    """Equal answers have equal keys; True and 1 are one answer, as they are in a comparison."""
    if isinstance(value, list | dict | tuple):
        return canonical(cast(object, value))
    return value
