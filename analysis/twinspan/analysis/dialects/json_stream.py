"""One OTLP JSON object of any size, handed on in pieces that fit in memory.

Every value that is small is decoded by the library at once; only on the way to the spans, through
`resourceSpans` and `scopeSpans`, the text is walked here, so that no list of spans is ever whole.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

PIECE_SPANS: Final = 500
"""Spans of a piece."""

CHUNK_BYTES: Final = 1 << 20
"""Bytes that are read at once; doubled while a single value is longer."""

Json = dict[str, Any]

_decode: Final = json.JSONDecoder().raw_decode
_BEHIND: Final = frozenset(",:]} \t\r\n\0")
"""What may stand behind a value."""

_SPACE: Final = " \t\r\n\0\ufeff"


class Broken(ValueError):
    """Text that is no JSON, or ends too early."""


class Cursor:
    """A place in a text that is read as it is needed.

    Attributes:
        ended: whether all of the file is in memory, so that a failure is a cut.
    """

    def __init__(self, file: BinaryIO, beginning: bytes = b"") -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = self._decoder.decode(beginning)
        self._at = 0
        self.ended = False

    def peek(self) -> str:
        """The next character that is not space; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill(CHUNK_BYTES):
                return ""

    def take(self, expected: str) -> None:
        """Step over one character.

        Raises:
            Broken: if another one stands there.
        """
        if self.peek() != expected:
            raise Broken
        self._at += 1

    def value(self) -> Any:
        """The next value as a whole.

        Raises:
            Broken: if there is none.
        """
        size = CHUNK_BYTES
        self.peek()
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except (ValueError, RecursionError):
                value, end = None, -1
            # What ends with the text may go on behind it: 12 of 123, 0 of 0.5.
            if end >= 0 and (self.ended or self._text[end : end + 1] in _BEHIND):
                self._at = end
                return value
            if not self._fill(size) and end < 0:
                raise Broken
            size *= 2

    def items(self) -> Iterator[None]:
        """Stands at each item of a list in turn; whoever is told must step over it."""
        self.take("[")
        while self.peek() != "]":
            yield
            if self.peek() != "]":
                self.take(",")
        self.take("]")

    def members(self) -> Iterator[str]:
        """Stands at each member's value of an object in turn; whoever is told steps over it."""
        self.take("{")
        while self.peek() != "}":
            key = self.value()
            if not isinstance(key, str):
                raise Broken
            self.take(":")
            yield key
            if self.peek() != "}":
                self.take(",")
        self.take("}")

    def skip_line(self) -> None:
        """Step to the next line of what is in memory, or behind it."""
        place = self._text.find("\n", self._at)
        self._at = len(self._text) if place < 0 else place + 1

    def rest(self) -> bytes:
        """What is in memory and was not stepped over."""
        return self._text[self._at :].encode()

    def _fill(self, size: int) -> bool:
        if self.ended:
            return False
        read = self._file.read(size)
        self.ended = not read
        self._text = self._text[self._at :] + self._decoder.decode(read, self.ended)
        self._at = 0
        return True


def pieces(cursor: Cursor) -> Iterator[Json]:
    """The spans of one object, or of a list of such objects, as small documents.

    Raises:
        Broken: where the text is no JSON or ends; the pieces before were good.
    """
    if cursor.peek() == "[":
        for _ in cursor.items():
            yield from _traces(cursor)
    else:
        yield from _traces(cursor)


def _traces(cursor: Cursor) -> Iterator[Json]:
    if cursor.peek() != "{":
        yield cursor.value()
        return
    found = False
    for key in cursor.members():
        if key in ("resourceSpans", "resource_spans") and cursor.peek() == "[":
            found = True
            for _ in cursor.items():
                yield from _of_resource(cursor)
        else:
            cursor.value()
    if not found:
        yield {}  # an object that holds no spans, to be counted as one


def _of_resource(cursor: Cursor) -> Iterator[Json]:
    """Pieces of one entry. Spans that stand before their resource are taken whole."""
    if cursor.peek() != "{":
        yield {"resourceSpans": [cursor.value()]}
        return
    told: Json = {}
    for key in cursor.members():
        if key in ("scopeSpans", "scope_spans") and "resource" in told and cursor.peek() == "[":
            for _ in cursor.items():
                for scoped in _of_scope(cursor):
                    yield {
                        "resourceSpans": [{"resource": told["resource"], "scopeSpans": [scoped]}]
                    }
        else:
            told[key] = cursor.value()
    if told.keys() & {"scopeSpans", "scope_spans"}:
        yield {"resourceSpans": [told]}


def _of_scope(cursor: Cursor) -> Iterator[Json]:
    if cursor.peek() != "{":
        yield cursor.value()
        return
    told: Json = {}
    for key in cursor.members():
        if key == "spans" and "scope" in told and cursor.peek() == "[":
            spans: list[Any] = []
            for _ in cursor.items():
                spans.append(cursor.value())
                if len(spans) == PIECE_SPANS:
                    yield {**told, "spans": spans}
                    spans = []
            if spans:
                yield {**told, "spans": spans}
        else:
            told[key] = cursor.value()
    if "spans" in told:
        yield told
