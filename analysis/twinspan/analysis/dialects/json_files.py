"""JSON as files really are: on lines or over many, packed, padded, rotated, cut."""

from __future__ import annotations

import gzip
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

from twinspan.analysis.dialects.base import Problems

SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson"})

NOT_JSON: Final = "a line is not JSON and was skipped"
CUT: Final = "the last line is cut off and was skipped"
CUT_PACKED: Final = "the compressed file is cut off; what came before was read"
PADDING: Final = "a run of NUL bytes was skipped"

_SNIFF_BYTES: Final = 64 * 1024
_GZIP_MAGIC: Final = b"\x1f\x8b"
_BLANK: Final = b"\0 \t\r\n"


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
    except (OSError, EOFError):
        return b""


def documents(path: Path, problems: Problems) -> Iterator[object]:
    """Each JSON document of a file: one per line, or a single one over many lines.

    Raises:
        OSError: when the file cannot be opened.
    """
    with opened(path) as file:
        try:
            first = file.readline()
            if _begins_a_long_document(first):
                whole = first + file.read()
                document = _parsed(whole)
                lines = whole.splitlines(keepends=True) if document is None else []
                if document is not None:
                    yield document
                yield from _line_documents(iter(lines), path.name, problems)
                return
            yield from _line_documents(iter((first,)), path.name, problems)
            yield from _line_documents(file, path.name, problems)
        except EOFError:
            problems.count(path.name, CUT_PACKED)


def _begins_a_long_document(line: bytes) -> bool:
    """Whether a first line opens an object or list that it does not close."""
    bare = line.strip(_BLANK)
    return bare[:1] in (b"{", b"[") and line.endswith(b"\n") and _parsed(bare) is None


def _line_documents(lines: Iterator[bytes], name: str, problems: Problems) -> Iterator[object]:
    for line in lines:
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
    try:
        return json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
