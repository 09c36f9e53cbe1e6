"""Reads option values: from TOML, from an environment variable, from an argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast

from twinspan.instrumentation.errors import ConfigurationError, InvalidOption
from twinspan.instrumentation.narrowing import as_sequence
from twinspan.instrumentation.perturbation import Axis, builtin_axis, load_axes


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    items = as_sequence(value)
    if items is None or not all(isinstance(item, str) for item in items):
        raise TypeError
    return cast("tuple[str, ...]", tuple(items))


def _axes(value: object) -> tuple[Axis, ...]:
    items = _words(value) if isinstance(value, str) else as_sequence(value)
    if items is None:
        raise TypeError
    axes = [axis for item in items for axis in _axis(item)]
    if len({axis.name for axis in axes}) < len(axes):
        names = ", ".join(axis.name for axis in axes)
        raise ConfigurationError(f"axes has one name twice ({names}); name each axis once")
    return tuple(axes)


def _axis(item: object) -> Sequence[Axis]:
    if isinstance(item, Axis):
        return [item]
    if not isinstance(item, str):
        raise TypeError
    return load_axes(Path(item)) if item.endswith(".toml") else [builtin_axis(item)]


def _objects(value: object) -> tuple[object, ...]:
    if isinstance(value, str):
        return _words(value)
    return tuple(as_sequence(value) or (value,))


def _whole(value: object) -> int:
    if isinstance(value, str):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise TypeError
    return int(value)


def _real(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    return float(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _path(value: object) -> Path:
    if not isinstance(value, str | Path):
        raise TypeError
    return Path(value)


def _as_it_is(value: object) -> object:
    return value


_Reader = tuple[Callable[[object], object], str]

_WORDS: Final[_Reader] = (_words, 'list of names, like ["a", "b"]')
_WHOLE: Final[_Reader] = (_whole, "int; write a whole number, like 5")
_REAL: Final[_Reader] = (_real, "float; write a number, like 0.5")
_TEXT: Final[_Reader] = (_text, "text; write it in quotes")

_READERS: Final[Mapping[str, _Reader]] = MappingProxyType(
    {
        "tuple[Axis, ...]": (_axes, 'list of axes, like ["gender"]'),
        "tuple[str, ...]": _WORDS,
        "tuple[Control, ...]": _WORDS,
        "tuple[object, ...]": (_objects, "list"),
        "object | None": (_as_it_is, "value"),
        "int": _WHOLE,
        "int | None": _WHOLE,
        "float": _REAL,
        "float | None": _REAL,
        "Path | None": (_path, "path; write it in quotes"),
    }
)


def read_option(option: str, annotation: str, value: object) -> object:
    """An option's value in its own type.

    Args:
        option: its name.
        annotation: its type, as its dataclass spells it.
        value: what was given.

    Raises:
        ConfigurationError: if the value is none of that type; the message says what would be.

    >>> read_option("nodes", "tuple[str, ...]", "a, b"), read_option("reference", "int", "8")
    (('a', 'b'), 8)
    >>> read_option("reference", "int", 2.5)
    Traceback (most recent call last):
    ...
    twinspan.instrumentation.errors.InvalidOption: reference is 2.5, which is no int; write a ...
    """
    reader, kind = _READERS.get(annotation, _TEXT)
    try:
        return reader(value)
    except ConfigurationError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidOption(option, value, cure=f"which is no {kind}", joined=", ") from error
