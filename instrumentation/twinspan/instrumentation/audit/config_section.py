"""One table of a configuration file, read key by key with the line in every refusal."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path as File
from typing import Any, Final, TypeVar, cast

from twinspan.instrumentation.audit.toml_lines import Path, TomlLines
from twinspan.instrumentation.errors import ConfigurationError

T = TypeVar("T")
_MISSING: Final = object()


class Section:
    r"""A table of a TOML document, and where it stands.

    Every key that is read is remembered, so that `close` can refuse the ones nobody read.

    >>> section = Section.parse("name = 'a'\nreplicats = 3\n", File("audit.toml"))
    >>> section.text("name"), section.whole("replicates", 1, least=1)
    ('a', 1)
    >>> section.close()
    Traceback (most recent call last):
    ...
    twinspan.instrumentation.errors.ConfigurationError: audit.toml, line 2: there is no key ...
    """

    def __init__(
        self, values: Mapping[str, Any], *, file: File, lines: TomlLines, path: Path = ()
    ) -> None:
        self.values = values
        self.file = file
        self.path = path
        self._lines = lines
        self._known: set[str] = set()

    @classmethod
    def parse(cls, text: str, file: File) -> Section:
        """The root table of a document.

        Raises:
            ConfigurationError: it is no TOML; the message names the line.
        """
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationError(f"{file} is no TOML: {error}; mend that line") from error
        return cls(values, file=file, lines=TomlLines(text))

    @classmethod
    def read(cls, file: str | PathLike[str]) -> Section:
        """The root table of a file.

        Raises:
            ConfigurationError: it cannot be read, or is no TOML.
        """
        path = File(file)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            cause = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
            raise ConfigurationError(
                f"{str(path)!r} cannot be read ({cause}); name a TOML file"
            ) from error
        return cls.parse(text, path)

    # --- what a message says ------------------------------------------------------------------

    def where(self, key: str | None = None) -> str:
        """File and line of a key, or of the table."""
        line = self._lines.of(self.path if key is None else (*self.path, key))
        return f"{self.file}" if line is None else f"{self.file}, line {line}"

    def error(self, message: str, key: str | None = None) -> ConfigurationError:
        """An error that names file and line."""
        return ConfigurationError(f"{self.where(key)}: {message}")

    @contextmanager
    def at(self, key: str | None = None) -> Generator[None]:
        """Say where it stands in the file if what is made of a key is refused."""
        try:
            yield
        except ConfigurationError as error:
            if str(error).startswith(str(self.file)):
                raise
            raise self.error(str(error), key) from error

    # --- reading ------------------------------------------------------------------------------

    def __contains__(self, key: str) -> bool:
        self._known.add(key)
        return key in self.values

    def raw(self, key: str) -> Any:
        """A value as TOML gives it; None if it is not there."""
        self._known.add(key)
        return self.values.get(key)

    def text(self, key: str, default: str | object = _MISSING) -> str:
        """A text that is not blank."""
        fits: Callable[[Any], bool] = lambda v: isinstance(v, str) and bool(v.strip())  # noqa: E731
        return str(self._get(key, default, "a text", fits))

    def optional_text(self, key: str) -> str | None:
        """A text that is not blank, or None if the key is not there."""
        return self.text(key) if key in self else None

    def flag(self, key: str, default: bool = False) -> bool:
        """A yes or no."""
        return bool(self._get(key, default, "true or false", lambda v: isinstance(v, bool)))

    def whole(self, key: str, default: int | object = _MISSING, *, least: int = 0) -> int:
        """A whole number of at least `least`."""
        return int(
            self._get(
                key,
                default,
                f"a whole number of {least} or more",
                lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= least,
            )
        )

    def number(
        self,
        key: str,
        default: float | object = _MISSING,
        *,
        least: float = 0.0,
        most: float | None = None,
    ) -> float:
        """A number within a range, both ends included."""
        span = f"a number of {least:g} or more" if most is None else f"from {least:g} to {most:g}"
        return float(
            self._get(
                key,
                default,
                span,
                lambda v: (
                    isinstance(v, int | float)
                    and not isinstance(v, bool)
                    and v >= least
                    and (most is None or v <= most)
                ),
            )
        )

    def texts(self, key: str, default: Sequence[str] = ()) -> tuple[str, ...]:
        """A list of texts."""
        found = self._get(
            key,
            list(default),
            "a list of texts",
            lambda v: _lists(v, str),
        )
        return tuple(found)

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """One of several words."""
        found = self.text(key, default)
        if found not in choices:
            raise self.error(f"{key} is {found!r}; take one of {', '.join(choices)}", key)
        return found

    def section(self, key: str) -> Section:
        """A table; an empty one if it is not there."""
        found = self._get(key, {}, "a table", lambda v: isinstance(v, dict))
        return self._below(found, key)

    def sections(self, key: str) -> tuple[Section, ...]:
        """A list of tables; empty if it is not there."""
        found = self._get(
            key,
            [],
            f"a list of tables; write [[{key}]] above each",
            lambda v: _lists(v, dict),
        )
        return tuple(self._below(each, key, place) for place, each in enumerate(found))

    def mapping(self, key: str) -> dict[str, Any]:
        """A table as plain data."""
        return dict(self._get(key, {}, "a table", lambda v: isinstance(v, dict)))

    def ignore(self, *keys: str) -> None:
        """Keys that somebody else reads."""
        self._known.update(keys)

    def close(self) -> None:
        """Refuse the first key that nobody has read.

        Raises:
            ConfigurationError: there is one; the closest known key is named.
        """
        for key in self.values:
            if key not in self._known:
                close = difflib.get_close_matches(key, sorted(self._known), n=1)
                cure = (
                    f"did you mean {close[0]!r}?"
                    if close
                    else f"known: {', '.join(sorted(self._known))}"
                )
                raise self.error(f"there is no key {key!r}; {cure}", key)

    def _get(self, key: str, default: Any, what: str, fits: Callable[[Any], bool]) -> Any:
        self._known.add(key)
        if key not in self.values:
            if default is _MISSING:
                raise self.error(f"{_named(self.path)}{key} is missing; give {what}")
            return default
        value = self.values[key]
        if not fits(value):
            raise self.error(f"{key} is {_shown(value)}; give {what}", key)
        return value

    def _below(self, values: object, *path: str | int) -> Section:
        return Section(
            cast("Mapping[str, Any]", values),
            file=self.file,
            lines=self._lines,
            path=self.path + path,
        )


def _lists(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, kind) for each in cast("list[object]", value)
    )


def _named(path: Path) -> str:
    names = ".".join(str(part) for part in path if isinstance(part, str))
    return f"[{names}] " if names else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
