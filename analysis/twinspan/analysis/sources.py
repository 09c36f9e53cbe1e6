"""Finds out what a source is: our folder, a file, somebody else's format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from twinspan.analysis.dialects import READERS, Problems, Reader, RowSink
from twinspan.analysis.dialects.json_files import is_named_json
from twinspan.analysis.dialects.otlp_json import OtlpJson
from twinspan.analysis.dialects.otlp_protobuf import SUFFIXES as PROTOBUF_SUFFIXES
from twinspan.collector.parts import (
    JOURNAL_PREFIX,
    JOURNAL_SUFFIX,
    NO_PARQUET,
    UNFINISHED_SUFFIX,
)
from twinspan.instrumentation.errors import NoSpans, SourceError

DATABASE_SUFFIXES: Final = frozenset({".duckdb", ".db", ".ddb"})
PARQUET_SUFFIX: Final = ".parquet"

UNKNOWN_FORM: Final = "a file of no form that holds spans was not read"
UNFINISHED: Final = "an unfinished part of a killed writer was not read"

KNOWN_FORMS: Final = (
    "a folder or file of recorded Parquet, OTLP JSON (.json, .jsonl) or protobuf (.pb), packed "
    "or not, FairMedAgent trajectories or a DuckDB file with a table spans"
)


@dataclass(slots=True, kw_only=True)
class Found:
    """What a source holds, ready for DuckDB.

    Attributes:
        source: the source as it was named.
        parquet: files of rows, converted ones included.
        database: a DuckDB file instead.
        problems: what could not be used.
        progress: told how many spans were read.
    """

    source: str
    parquet: list[Path] = field(default_factory=list[Path])
    database: Path | None = None
    problems: Problems = field(default_factory=Problems)
    progress: Callable[[int], None] | None = None


def find(source: Path, scratch: Path, progress: Callable[[int], None] | None = None) -> Found:
    """Look at a source; converts what are no tables into rows below `scratch`.

    Args:
        source: the place.
        scratch: a folder for the rows.
        progress: told how many spans were read, batch by batch.

    Raises:
        SourceError: if there is no such place, or it cannot be read.
        NoSpans: if it can be read and holds none.
    """
    if not source.exists():
        raise SourceError(f"there is nothing at {str(source)!r}; name {KNOWN_FORMS}")
    found = Found(source=str(source), progress=progress)
    if source.is_dir():
        _look_into_folder(source, scratch, found)
    else:
        _look_into_file(source, scratch, found)
    return found


def damaged(paths: Sequence[Path]) -> SourceError | None:
    """The error that names the first file that is no whole Parquet file; None if all are."""
    for path in paths:
        try:
            pq.ParquetFile(path).close()
        except NO_PARQUET:
            return SourceError(
                f"{str(path)!r} is damaged or no Parquet file; restore it, or move it away "
                "and its runs will read as incomplete"
            )
    return None


def _look_into_file(path: Path, scratch: Path, found: Found) -> None:
    if path.suffix == PARQUET_SUFFIX:
        found.parquet.append(path)
        return
    if path.suffix in DATABASE_SUFFIXES:
        found.database = path
        return
    reader = _reader_of(path)
    if reader is None:
        raise SourceError(f"{str(path)!r} holds no spans in a known form; name {KNOWN_FORMS}")
    _convert(reader, [path], scratch, found)


def _look_into_folder(folder: Path, scratch: Path, found: Found) -> None:
    # Journals first: one that goes away while we look has its spans in a part by then.
    _convert_journals(folder, scratch, found)
    parts = sorted(path for path in folder.rglob(f"*{PARQUET_SUFFIX}") if _is_shown(path, folder))
    found.parquet.extend(parts)
    unfinished = sum(1 for _ in folder.rglob(f".*{UNFINISHED_SUFFIX}"))
    found.problems.count(folder.name, UNFINISHED, unfinished)
    if not found.parquet:
        _convert_folder(folder, scratch, found)


def _is_shown(path: Path, folder: Path) -> bool:
    """Whether neither a file nor a folder around it is hidden: what is being removed is."""
    return not any(name.startswith(".") for name in path.relative_to(folder).parts)


def _convert_journals(folder: Path, scratch: Path, found: Found) -> None:
    sink = RowSink(scratch)
    for journal in sorted(folder.rglob(f"{JOURNAL_PREFIX}*{JOURNAL_SUFFIX}")):
        if journal.exists():
            OtlpJson().read([journal], sink, found.problems)
    found.parquet.extend(sorted(scratch.glob(f"*{PARQUET_SUFFIX}")))


def _convert_folder(folder: Path, scratch: Path, found: Found) -> None:
    by_reader: dict[str, list[Path]] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if not _may_hold_spans(path):
            continue
        reader = _reader_of(path)
        if reader is not None:
            by_reader.setdefault(reader.form, []).append(path)
        else:
            found.problems.count(path.name, UNKNOWN_FORM)
    if not by_reader:
        raise NoSpans(str(folder), hint=f"name {KNOWN_FORMS}")
    for reader in READERS:
        paths = by_reader.get(reader.form)
        if paths:
            _convert(reader, paths, scratch, found)


def _may_hold_spans(path: Path) -> bool:
    """Whether a file's name says that it is worth a look."""
    bare = Path(path.stem) if path.suffix == ".gz" else path
    return is_named_json(path) or bare.suffix in PROTOBUF_SUFFIXES


def _reader_of(path: Path) -> Reader | None:
    return next((reader for reader in READERS if reader.recognises(path)), None)


def _convert(reader: Reader, paths: Sequence[Path], scratch: Path, found: Found) -> None:
    folder = scratch / reader.form.replace(" ", "-")
    folder.mkdir(exist_ok=True)
    reader.read(paths, RowSink(folder, found.progress), found.problems)
    found.parquet.extend(sorted(folder.glob(f"*{PARQUET_SUFFIX}")))
    if not found.parquet:
        told = "; ".join(str(problem) for problem in found.problems.listed())
        raise NoSpans(found.source, hint=told or "the file is empty")
