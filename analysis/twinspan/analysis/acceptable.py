"""What a band accepts: listed values, or everything from one number to another.

The two are different types, and nothing is guessed. ``(1, 5)`` may mean the numbers 1 and 5 or
the numbers from 1 to 5; it is refused with both ways to say which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, cast

from twinspan.instrumentation.errors import ConfigurationError, UnsuitableValue

_MOST_VALUES: Final = 100_000
"""Integers of a range that a threshold is asked about; more mean a range without ends."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Listed values; an action is acceptable if it equals one of them.

    Yes or no and numbers are kept apart: ``True`` is not the number 1.

    Raises:
        ConfigurationError: there is no value, or yes or no and numbers are mixed.
        UnsuitableValue: a value is a list, a dictionary or something else that can change.

    >>> OneOf([2, 3]).holds(3), OneOf(["home", "ward"]).holds("icu")
    (True, False)
    """

    values: frozenset[object]

    def __init__(self, values: Iterable[object]) -> None:
        listed = list(values)
        for value in listed:
            if not isinstance(value, bool | int | float | str):
                raise UnsuitableValue(
                    "an acceptable value", value, cure="list numbers, texts, or True and False"
                )
        if not listed or len({isinstance(value, bool) for value in listed}) > 1:
            raise ConfigurationError(
                f"the acceptable values {listed!r} are none, or mix numbers with True and False; "
                "list values of one kind"
            )
        object.__setattr__(self, "values", frozenset(listed))

    def holds(self, action: object) -> bool:
        """Whether an action is one of the values.

        Raises:
            UnsuitableValue: a yes or no is held against values that are none, or the other way.
        """
        _refuse_other_kind(action, takes_bool=any(isinstance(v, bool) for v in self.values))
        return action in self.values

    def each(self) -> Iterator[object]:
        """The values, in no order."""
        return iter(self.values)

    def as_plain(self) -> list[object]:
        """The values as plain data, sorted."""
        return sorted(self.values, key=lambda value: (isinstance(value, str), value))


@dataclass(frozen=True, slots=True)
class Between:
    """Every number from one to another, both included.

    Raises:
        ConfigurationError: an end is no finite number, or the first is above the second.

    >>> Between(1, 14).holds(14), Between(1, 14).holds(15)
    (True, False)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        for end in (self.low, self.high):
            if isinstance(end, bool) or not isinstance(cast(object, end), int | float):
                raise UnsuitableValue("an end of a range", end, cure="give two numbers")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ConfigurationError(
                f"a range from {self.low!r} to {self.high!r} has no number in it; "
                "give finite ends, the smaller first"
            )

    def holds(self, action: object) -> bool:
        """Whether a number lies in the range.

        Raises:
            UnsuitableValue: the action is no finite number.
        """
        _refuse_other_kind(action, takes_bool=False)
        if not isinstance(action, int | float) or not math.isfinite(action):
            raise UnsuitableValue("the action", action, cure="a range is of numbers")
        return self.low <= action <= self.high

    def each(self) -> Iterator[float]:
        """The integers of the range, and its ends where they are none."""
        first, last = math.ceil(self.low), math.floor(self.high)
        if last - first >= _MOST_VALUES:
            raise ConfigurationError(
                f"a range from {self.low!r} to {self.high!r} has more than {_MOST_VALUES} whole "
                "numbers; give a band closer to what is decided"
            )
        if self.low != first:
            yield self.low
        yield from range(first, last + 1)
        if self.high not in (last, self.low):
            yield self.high

    def as_plain(self) -> dict[str, float]:
        """The ends as plain data."""
        return {"min": self.low, "max": self.high}


Acceptable = OneOf | Between

AcceptableLike = (
    Acceptable
    | AbstractSet[object]
    | range
    | Mapping[str, object]
    | list[object]
    | tuple[object, ...]
)
"""What `acceptable` understands."""


def acceptable(given: AcceptableLike) -> Acceptable:
    """Read what a band accepts.

    Args:
        given: a set, or a list or tuple that cannot be taken for a range, for listed values;
            ``range(1, 6)`` for its numbers; ``{"min": 1, "max": 5}`` for everything between.

    Raises:
        ConfigurationError: a pair of growing numbers, which looks like a range; a mapping
            without both ends; nothing at all.
        UnsuitableValue: a text, or something else that is none of these.

    >>> acceptable({2, 3}), acceptable({"min": 1, "max": 14})
    (OneOf(values=frozenset({2, 3})), Between(low=1, high=14))
    >>> acceptable((1, 5))
    Traceback (most recent call last):
    ...
    twinspan.instrumentation.errors.ConfigurationError: (1, 5) may mean two values or a range; \
write {1, 5} for the two, or {"min": 1, "max": 5} for everything between
    """
    if isinstance(given, OneOf | Between):
        return given
    if isinstance(given, Mapping):
        return _range(given)
    if isinstance(given, list | tuple):
        _refuse_ambiguous(given)
        return OneOf(given)
    if isinstance(cast(object, given), AbstractSet | range):
        return OneOf(given)
    raise UnsuitableValue(
        "what a band accepts",
        given,
        cure='write {2, 3} for values or {"min": 1, "max": 5} for a range',
    )


def in_band(action: object, given: AcceptableLike | None) -> bool | None:
    """Whether an action is acceptable.

    Args:
        action: the graded action itself, not a yes or no made of it.
        given: as in `acceptable`, or None where no band is known.

    Returns:
        None where the action or the band is unknown; never False for the unknown.

    Raises:
        UnsuitableValue: a yes or no is held against a band of grades, which would be read as
            the grades 0 and 1; a text against a range.
        ConfigurationError: as in `acceptable`.

    >>> in_band(2, {1, 2, 3}), in_band(6, {"min": 1, "max": 5}), in_band(None, {1, 2})
    (True, False, None)
    """
    if action is None or given is None:
        return None
    return acceptable(given).holds(action)


def band_straddles(
    given: AcceptableLike | None, threshold: Callable[[Any], object] | None
) -> bool | None:
    """Whether a band allows both sides of a threshold, so that a flip within it is possible.

    Args:
        given: as in `acceptable`, or None.
        threshold: says for one acceptable value on which side it lies, or None.

    Returns:
        None where either is unknown.

    Raises:
        ConfigurationError: as in `acceptable`, or the range has more than 100,000 numbers.

    >>> band_straddles({2, 3}, lambda grade: grade <= 2)
    True
    >>> band_straddles({"min": 1, "max": 30}, lambda days: days <= 30)
    False
    """
    if given is None or threshold is None:
        return None
    return len({bool(threshold(value)) for value in acceptable(given).each()}) == 2


def _range(given: Mapping[str, object]) -> Between:
    low, high = given.get("min"), given.get("max")
    if low is None or high is None or set(given) != {"min", "max"}:
        raise ConfigurationError(
            f"a range is written {{'min': 1, 'max': 5}}, but {dict(given)!r} was given; "
            "state both ends and nothing else"
        )
    return Between(cast(float, low), cast(float, high))


def _refuse_ambiguous(given: list[object] | tuple[object, ...]) -> None:
    if len(given) != 2:
        return
    low, high = given
    if any(isinstance(end, bool) or not isinstance(end, int | float) for end in given):
        return
    if cast(float, low) < cast(float, high):
        raise ConfigurationError(
            f"{given!r} may mean two values or a range; write {{{low!r}, {high!r}}} for the two, "
            f'or {{"min": {low!r}, "max": {high!r}}} for everything between'
        )


def _refuse_other_kind(action: object, *, takes_bool: bool) -> None:
    if isinstance(action, bool) != takes_bool:
        raise UnsuitableValue(
            "the action",
            action,
            cure="hold a bool against a band of True and False, and a grade against one of grades",
        )
