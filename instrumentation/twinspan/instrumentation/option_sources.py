"""Where options come from, so that an error can name the place: a file's line, a variable."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.narrowing import as_mapping

Sections = Mapping[str, Sequence[str]]
"""The names of the options of every section."""


@dataclass(frozen=True, slots=True)
class Given:
    """An option as somebody gave it.

    Attributes:
        value: the value, as it was written.
        place: file and line, or variable; '' for an argument.
    """

    value: object
    place: str = ""


def variable(section: str, option: str) -> str:
    """The environment variable of an option.

    >>> variable("breaker", "alpha")
    'TWINSPAN_BREAKER_ALPHA'
    """
    return f"TWINSPAN_{section}_{option}".upper()


def from_arguments(arguments: Mapping[str, object], sections: Sections) -> dict[str, Given]:
    """Options that were given by name.

    Raises:
        ConfigurationError: if there is no such option.
    """
    known = [option for options in sections.values() for option in options]
    for option in arguments:
        if option not in known:
            raise _unknown(option, known)
    return {name: Given(value) for name, value in arguments.items() if value is not None}


def from_environment(environ: Mapping[str, str], sections: Sections) -> dict[str, Given]:
    """Options that the environment gives; an empty variable is as good as none.

    Raises:
        ConfigurationError: if a variable of ours names no option.
    """
    known = {
        variable(section, option): option
        for section, options in sections.items()
        for option in options
    }
    prefixes = tuple(variable(section, "") for section in sections)
    for name in environ:
        if name.startswith(prefixes) and name not in known:
            raise _unknown(name, list(known), "in the environment", "variable")
    return {
        option: Given(environ[name], name) for name, option in known.items() if environ.get(name)
    }


def from_file(path: Path, sections: Sections) -> dict[str, Given]:
    """The options of a `twinspan.toml`.

    Raises:
        ConfigurationError: if the file cannot be read, is no TOML, or names what there is not;
            the message has the file, the line and the cure.
    """
    text, content = _toml(path)
    found: dict[str, Given] = {}
    for section, values in content.items():
        named = _place(path, text, section)
        if section not in sections:
            if _homes(section, sections):
                raise _misplaced(section, "outside a section", sections, named)
            raise _unknown(f"[{section}]", [f"[{each}]" for each in sections], f"in {named}")
        options = as_mapping(values)
        if options is None:
            raise ConfigurationError(
                f"{named}: {section!r} stands for a section; "
                f"write [{section}] and its options below"
            )
        for option, value in cast("Mapping[str, object]", options).items():
            place = _place(path, text, section, option)
            if option not in sections[section]:
                if _homes(option, sections):
                    raise _misplaced(option, f"in [{section}]", sections, place)
                raise _unknown(option, sections[section], f"in {place}")
            found[option] = Given(value, place)
    return found


def _toml(path: Path) -> tuple[str, dict[str, object]]:
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {str(path)!r}: {error.strerror}; name an existing twinspan.toml"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{str(path)!r} is no text in UTF-8; save it as such") from error
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"line (\d+)", str(error))
        line = where.group(1) if where else len(text.splitlines())
        told = str(error).partition(" (at ")[0]
        raise ConfigurationError(
            f"{str(path)!r}, line {line}, is no TOML: {told}; "
            'write options as name = "value" or name = 1'
        ) from error


def _place(path: Path, text: str, section: str, option: str | None = None) -> str:
    line = line_of(text, section, option)
    return f"{str(path)!r}" + ("" if line is None else f", line {line}")


def line_of(text: str, section: str, option: str | None = None) -> int | None:
    r"""The line of a TOML text in which a section begins, or in which it gives an option.

    >>> line_of("[probe]\n\nnodes = ['a']\n", "probe", "nodes")
    3
    >>> line_of("breaker.alpha = 0.1", "breaker", "alpha"), line_of("", "probe")
    (1, None)
    """
    current, first = "", None
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[+\s*[\"']?([^\"'\]]+?)[\"']?\s*\]", line)
        current = current if header is None else header.group(1)
        begins = re.match(rf"\s*[\"']?{re.escape(section)}[\"']?\s*[.=]", line) and current == ""
        if first is None and (begins or (header is not None and current == section)):
            first = number
        if option is not None and (current == section or begins):
            key = rf"(?:^|[\s.{{,])[\"']?{re.escape(option)}[\"']?\s*="
            if re.search(key, line):
                return number
    return first


def _homes(option: str, sections: Sections) -> list[str]:
    """The sections that have an option."""
    return [name for name, options in sections.items() if option in options]


def _misplaced(option: str, where: str, sections: Sections, place: str) -> ConfigurationError:
    home = _homes(option, sections)[0]
    return ConfigurationError(
        f"there is no option {option!r} {where}, {place}; it belongs to [{home}]"
    )


def _unknown(
    what: str, known: Sequence[str], where: str = "", kind: str = "option"
) -> ConfigurationError:
    cure = "; ".join(_cures(what, known))
    return ConfigurationError(f"there is no {kind} {what!r}{where and ' '}{where}; {cure}")


def _cures(what: str, known: Sequence[str]) -> Iterator[str]:
    close = difflib.get_close_matches(what, known, n=1)
    yield f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
