"""Axes from TOML files, the user's and those that come with the package."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Final

from twinspan.instrumentation.errors import ConfigurationError, UnknownAxis
from twinspan.instrumentation.perturbation.axis import Axis
from twinspan.instrumentation.perturbation.definition import as_tables

BUILTIN_AXES: Final = ("age", "gender", "race_ethnicity", "religion")
"""Names of the illustrative axes: short English word lists to read, try and copy from."""


def load_axes(path: str | PathLike[str]) -> tuple[Axis, ...]:
    """The axes of a TOML file, one ``[[axis]]`` table each.

    Args:
        path: a UTF-8 file; :meth:`Axis.from_mapping` says what a table holds.

    Returns:
        The axes in the order of the file.

    Raises:
        ConfigurationError: the file cannot be read, is no TOML, holds no axis or the same one
            twice, or an axis in it has no meaning.
    """
    place = Path(path)
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"axis file {str(place)!r} cannot be read ({type(error).__name__}); "
            "name a readable UTF-8 file"
        ) from error
    return parse_axes(text, source=str(place))


def parse_axes(text: str, *, source: str = "axes") -> tuple[Axis, ...]:
    """The axes of a TOML text.

    Args:
        text: TOML with ``[[axis]]`` tables.
        source: what messages call the text.

    Raises:
        ConfigurationError: as :func:`load_axes`.

    >>> parse_axes('''
    ... [[axis]]
    ... name = "gender"
    ... groups = ["woman", "man"]
    ... [[axis.paired]]
    ... woman = ["she", "woman"]
    ... man = ["he", "man"]
    ... ''')[0].swap("Is she a woman?").payload
    'Is he a man?'
    """
    try:
        tables = as_tables(tomllib.loads(text).get("axis", ()), f"{source!r}: axis")
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{source!r} is no TOML: {error}; repair the file") from error
    if not tables:
        raise ConfigurationError(f"{source!r} holds no axis; write one [[axis]] table for each")
    axes = tuple(map(Axis.from_mapping, tables))
    names = [axis.name for axis in axes]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigurationError(f"{source!r} defines axis {min(twice)!r} twice; rename one")
    return axes


@cache
def builtin_axis(name: str) -> Axis:
    """One of the axes that come with the package, by name.

    They are illustrations: short English word lists that show how an axis is written. What an
    audit measures along an axis is only as good as its words, so no axis is ever a default.

    Raises:
        UnknownAxis: no such axis comes with the package.

    >>> builtin_axis("gender").groups
    ('woman', 'man')
    """
    if name not in BUILTIN_AXES:
        raise UnknownAxis(name, known=BUILTIN_AXES)
    text = (
        files("twinspan.instrumentation.perturbation")
        .joinpath("data", f"{name}.toml")
        .read_text(encoding="utf-8")
    )
    return parse_axes(text, source=f"{name}.toml")[0]
