"""Where in a TOML text a key stands, so that a message can name the line.

The standard reader gives values without their places. A key is found by reading the headers of
tables and the beginnings of lines; what stands inside a value has the line of its key.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

Path = tuple[str | int, ...]

_HEADER: Final = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY: Final = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"))*)\s*=""")
_PART: Final = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_FENCES: Final = ('"""', "'''")


class TomlLines:
    '''The lines of a document's keys.

    >>> lines = TomlLines("""[agent]
    ... callable = "m:f"
    ... [[case]]
    ... id = "a"
    ... [[case]]
    ... id = "b"
    ... """)
    >>> lines.of(("agent", "callable")), lines.of(("case", 1, "id"))
    (2, 6)
    >>> lines.of(("agent", "missing")), lines.of(("nowhere",))
    (1, None)
    '''

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        self._read(text)

    def of(self, path: Path) -> int | None:
        """The line of a key, else of the table it would stand in; None if that is not there."""
        for length in range(len(path), 0, -1):
            line = self._lines.get(path[:length])
            if line is not None:
                return line
        return None

    def _read(self, text: str) -> None:
        table: Path = ()
        seen: Counter[Path] = Counter()
        fence: str | None = None
        for number, line in enumerate(text.splitlines(), start=1):
            if fence is not None:
                fence = None if line.count(fence) % 2 else fence
                continue
            if header := _HEADER.match(line):
                table = _opened(header, seen)
                self._lines.setdefault(table, number)
                if isinstance(table[-1], int):
                    self._lines.setdefault(table[:-1], number)
            elif key := _KEY.match(line):
                self._lines.setdefault(table + _parts(key.group(1)), number)
            fence = next((each for each in _FENCES if line.count(each) % 2), None)


def _opened(header: re.Match[str], seen: Counter[Path]) -> Path:
    """The table that a header opens; the last item of an array for names below it."""
    path: Path = ()
    parts = _parts(header.group(2))
    for place, part in enumerate(parts):
        path += (part,)
        if place == len(parts) - 1 and header.group(1) == "[[":
            seen[path] += 1
        if seen[path]:
            path += (seen[path] - 1,)
    return path


def _parts(name: str) -> Path:
    return tuple(part.strip("\"'") for part in _PART.findall(name))
