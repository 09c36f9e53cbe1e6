"""Numbers of findings, in words and as properties."""

from __future__ import annotations

from typing import cast


def named(value: object) -> tuple[str, ...]:
    """A value as the only item, or none.

    >>> named("a"), named(None)
    (('a',), ())
    """
    return () if value is None else (str(value),)


def short(value: object) -> str:
    """A number with three digits.

    >>> short(0.63111)
    '0.631'
    """
    return f"{cast(float, value):.3g}"


def or_unknown(value: object) -> str:
    """A count, or that it is unknown.

    >>> or_unknown(10)
    '10'
    """
    return "an unknown number of" if value is None else str(value)


def suffix(words: str, value: object) -> str:
    """Words and a number, or nothing.

    >>> suffix(", weight ", 0.5), suffix(", weight ", None)
    (', weight 0.5', '')
    """
    return "" if value is None else f"{words}{short(value)}"


def product(weight: float | None, delta: float | None) -> float | None:
    """w * delta; None where either is unknown."""
    return None if weight is None or delta is None else weight * delta


def interval(low: float | None, high: float | None) -> list[float] | None:
    """Both ends, or None."""
    return None if low is None or high is None else [low, high]


def arms(reference: object, counterfactual: object) -> dict[str, object] | None:
    """Samples per arm, or None."""
    if reference is None and counterfactual is None:
        return None
    return {"reference": reference, "counterfactual": counterfactual}
