"""JSON as files really are: on lines or over many, packed, padded, rotated, cut."""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, cast

from twinspan.analysis.dialects.base import Problems
from twinspan.analysis.dialects.json_stream import Broken, Cursor, pieces

try:
    from orjson import loads as _orjson_loads
except ImportError:  # it only makes an import faster
    _fast_loads: Callable[[bytes], object] | None = None
else:
    _fast_loads = _orjson_loads

SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson"})

NOT_JSON: Final = "a line is not JSON and was skipped"
CUT: Final = "the last line is cut off and was skipped"
CUT_OBJECT: Final = "the object is cut off; what came before was read"
BROKEN_OBJECT: Final = "an object is broken off; what came before was read"
CUT_PACKED: Final = "the compressed file is cut off; what came before was read"
DAMAGED_PACKED: Final = "the compressed file is damaged; what came before was read"
PADDING: Final = "a run of NUL bytes was skipped"

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of a first line from which on it is read in pieces."""

_SNIFF_BYTES: Final = 64 * 1024
_GZIP_MAGIC: Final = b"\x1f\x8b"
_BLANK: Final = b"\0 \t\r\n"

PACKED_JUNK: Final = (zlib.error, gzip.BadGzipFile)
"""What unpacking raises for bytes that nobody packed."""

UNPACKING_ERRORS: Final = (OSError, EOFError, *PACKED_JUNK)
"""Whatever reading a file that may be packed raises."""


def is_named_json(path: Path) -> bool:
    """Whether a file's name says JSON, packed or not.

    >>> is_named_json(Path("a.jsonl.gz")), is_named_json(Path("a.csv"))
    (True, False)
    """
    name = Path(path.stem) if path.suffix == ".gz" else path
    return name.suffix in SUFFIXES


@contextmanager
def opened(path: Path) -> Generator[BinaryIO]:
    """A file's bytes, unpacked where it is gzip, whatever its name says."""
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP_MAGIC
        raw.seek(0)
        yield cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw


def head(path: Path) -> bytes:
    """The beginning of a file, unpacked; empty where it cannot be read."""
    try:
        with opened(path) as file:
            return file.read(_SNIFF_BYTES)
    except UNPACKING_ERRORS:
        return b""


def documents(path: Path, problems: Problems) -> Iterator[object]:
    """Each JSON document of a file: one per line, or a single one over many lines.

    Raises:
        OSError: when the file cannot be opened.
    """

    def whole(beginning: bytes, file: BinaryIO) -> Iterator[object]:
        text = beginning + file.read()
        document = _parsed(text)
        if document is not None:
            yield document
            return
        lines = text.splitlines(keepends=True)
        yield from _line_documents(iter(lines), path.name, problems)

    return _documents(path, problems, whole)


def trace_documents(
    path: Path, problems: Problems, typed: Callable[[bytes], object] | None = None
) -> Iterator[object]:
    """Each OTLP JSON document of a file; one that is long comes in pieces.

    Args:
        path: the file.
        problems: told of what is no document.
        typed: decodes a line of the usual shape faster; None for any other line.

    Raises:
        OSError: when the file cannot be opened.
    """

    def streamed(beginning: bytes, file: BinaryIO) -> Iterator[object]:
        cursor = Cursor(file, beginning)
        try:
            yield from pieces(cursor)
        except Broken:
            problems.count(path.name, CUT_OBJECT if cursor.ended else BROKEN_OBJECT)
            cursor.skip_line()
        lines = chain(cursor.rest().splitlines(keepends=True), file)
        yield from _line_documents(lines, path.name, problems, typed)

    return _documents(path, problems, streamed, typed)


def _documents(
    path: Path,
    problems: Problems,
    long_one: Callable[[bytes, BinaryIO], Iterator[object]],
    typed: Callable[[bytes], object] | None = None,
) -> Iterator[object]:
    with opened(path) as file:
        try:
            first = _first_line(file)
            if _begins_a_long_document(first):
                yield from long_one(first, file)
                return
            yield from _line_documents(chain((first,), file), path.name, problems, typed)
        except EOFError:
            problems.count(path.name, CUT_PACKED)
        except PACKED_JUNK:
            problems.count(path.name, DAMAGED_PACKED)


def _first_line(file: BinaryIO) -> bytes:
    """The first line that holds anything, as far as a line may go."""
    line = file.readline(LONGEST_LINE)
    while line and not line.strip(_BLANK):
        line = file.readline(LONGEST_LINE)
    return line


def _begins_a_long_document(line: bytes) -> bool:
    """Whether a first line opens an object or list that it does not close.

    A line that was cut by a rotation ends anywhere; one that is written over many lines ends
    where a reader would break it.
    """
    bare = line.strip(_BLANK)
    if bare[:1] not in (b"{", b"["):
        return False
    broken = line.endswith(b"\n") and bare[-1:] in (b"{", b"[", b",", b":")
    return len(line) >= LONGEST_LINE or (broken and _parsed(bare) is None)


def _line_documents(
    lines: Iterator[bytes],
    name: str,
    problems: Problems,
    typed: Callable[[bytes], object] | None = None,
) -> Iterator[object]:
    for line in lines:
        document = None if typed is None else typed(line)
        if document is not None:
            yield document
            continue
        bare = line.strip(_BLANK)
        if b"\0" in line:
            problems.count(name, PADDING)
        if not bare:
            continue
        document = _parsed(bare)
        if document is not None:
            yield document
        else:
            problems.count(name, NOT_JSON if line.endswith(b"\n") else CUT)


def _parsed(text: bytes) -> object:
    """A document; None where the text is none."""
    text = text.removeprefix(codecs.BOM_UTF8)
    if _fast_loads is not None:
        try:
            return _fast_loads(text)
        except ValueError:
            pass  # NaN, lone surrogates, broken UTF-8: the library is more patient
    try:
        return json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
