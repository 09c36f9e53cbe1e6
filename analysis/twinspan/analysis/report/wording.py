"""Numbers and names in words."""

from __future__ import annotations

import math
from typing import Final

NOTHING: Final = "\u2013"
"""What stands for a value that is not known."""

MINUS: Final = "\u2212"
TIMES: Final = "\u00d7"
_RAISED: Final = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)


def number(value: float | None, digits: int = 3) -> str:
    r"""A number for people.

    >>> number(0.63111), number(341.77), number(20.0), number(0.000333)
    ('0.631', '342', '20', '0.000333')
    >>> number(2.78e-13) == "2.78\u00d710\u207b\u00b9\u00b3"
    True
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    plain = 0.01 <= abs(value) < 1
    text = f"{value:.{digits}f}" if plain else f"{value:.{digits}g}"
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        raised = str(int(exponent)).translate(_RAISED)
        text = f"{value:,.0f}" if 1 <= abs(value) < 1e6 else f"{mantissa}{TIMES}10{raised}"
    return text.replace("-", MINUS)


def percent(share: float | None) -> str:
    """A share as a percentage.

    >>> percent(0.97), percent(0.0866), percent(0.0)
    ('97%', '8.7%', '0%')
    """
    if share is None or not math.isfinite(share):
        return NOTHING
    value = 100 * share
    text = f"{value:.0f}" if value == 0 or abs(value) >= 10 else f"{value:.2g}"
    return f"{text}%".replace("-", MINUS)


def interval(low: float | None, high: float | None) -> str:
    """An interval, in words that cannot be taken for a subtraction.

    >>> interval(0.1, 0.25).split()  # on one line: the spaces do not break
    ['0.100', 'to', '0.250']
    """
    if low is None or high is None:
        return NOTHING
    return f"{number(low)} to {number(high)}".replace(" ", "\u00a0")


def many(count: int, one: str, more: str | None = None) -> str:
    """A count with its noun.

    >>> many(1, "run"), many(1200, "run"), many(2, "breach", "breaches")
    ('1 run', '1,200 runs', '2 breaches')
    """
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def spoken(name: str | None) -> str:
    """A name of the record in words.

    >>> spoken("monitor_at_limit")
    'monitor at limit'
    """
    return NOTHING if name is None else name.replace("_", " ")


def short_id(identifier: str) -> str:
    """The beginning of a long identifier.

    >>> short_id("9d453cacf56c4272afc0a8ccaea325a3")
    '9d453cac'
    """
    return identifier[:8] if len(identifier) == 32 else identifier
