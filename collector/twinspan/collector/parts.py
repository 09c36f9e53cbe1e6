"""Whole files of recorded spans, and where they lie.

A Parquet file without its footer cannot be read at all, so a part is written under a temporary
name and renamed when it is complete. What must survive the next instruction is first appended to
a journal: one line costs a fraction of a file, and the journal goes away once its spans are in a
part.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final, cast
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from twinspan.collector.schema import REQUIRED_COLUMNS, ROW_GROUP_ROWS, SCHEMA_VERSION_KEY
from twinspan.instrumentation.conventions import SCHEMA_VERSION_VALUE

NO_RUN: Final = "_none"
"""Folder of spans that belong to no run: somebody else's, handed to our recorder."""

MANY_RUNS: Final = "_many"
"""Folder of imported spans of more runs than should have a folder each."""

PART_PREFIX: Final = "part-"
PART_SUFFIX: Final = ".parquet"
JOURNAL_PREFIX: Final = "journal-"
JOURNAL_SUFFIX: Final = ".jsonl"
UNFINISHED_SUFFIX: Final = ".unfinished"

NO_PARQUET: Final = (OSError, pa.ArrowException, UnicodeError)
"""What pyarrow raises on a file that is no whole Parquet file, or whose footer is damaged."""

ZSTD_LEVEL: Final = 2
"""The first level that codes letters by their frequency: a fifth less text for 1 us a span."""

_NAME_BYTES: Final = 120
"""Bytes kept of a run's name in a folder's name; a file system allows 255 for all of it."""

_ALWAYS: Final = REQUIRED_COLUMNS | {"span_type"}
"""Columns that every file has: by the last one a table is known to be of this layout."""

# Its stubs do not know that `use_dictionary` takes names.
_writer: Final = cast("Callable[..., pq.ParquetWriter]", pq.ParquetWriter)

# Numbers, hashes and ids hardly repeat: a dictionary of them is work for nothing.
_NO_DICTIONARY: Final = frozenset(
    {
        "span_id",
        "start_time",
        "start_unix_nano",
        "duration_ns",
        "audit_seq",
        "probe_input_hash",
        "probe_output_hash",
        "node_input_hash",
        "node_output_hash",
        "probe_divergence",
        "gen_ai_input_messages",
        "gen_ai_output_messages",
        "events",
        "links",
        "divergence_distances",
        "path_ranks",
        "node_parent_hashes",
        "node_parent_task_ids",
        "network_probe_sets",
    }
)


# Rows are found by these; the smallest and largest of anything else would never be asked for.
_SOUGHT: Final = [
    "trace_id",
    "start_time",
    "start_unix_nano",
    "run_id",
    "span_type",
    "audit_seq",
    "audit_hash",
    "case_id",
    # Where all of it is missing, DuckDB leaves out what is done about it.
    "audit_id",
    "node_id",
    "probe_set_id",
    "probe_axis",
    "probe_arm",
]


def run_folder(run_id: str | None) -> str:
    """The folder's name of a run, escaped as Hive partitions are.

    >>> run_folder("a/b:1"), run_folder(None)
    ('run=a%2Fb%3A1', 'run=_none')
    """
    escaped = quote(run_id, safe="") if run_id else NO_RUN
    if len(escaped) > _NAME_BYTES:
        # The run's id stays whole in its rows; here it only has to be unique.
        escaped = escaped[:_NAME_BYTES].rpartition("%")[0] + f"~{_digest(escaped)}"
    return f"run={escaped}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def partition(folder: Path, run_id: str | None, unix_nano: int) -> Path:
    """Where the spans of a run lie that started on a day, counted in UTC.

    >>> partition(Path("SPANS"), "r1", 0).as_posix()
    'SPANS/date=1970-01-01/run=r1'
    """
    day = datetime.fromtimestamp(unix_nano // 1_000_000_000, UTC).date()
    return folder / f"date={day.isoformat()}" / run_folder(run_id)


def sync_folder(folder: Path) -> None:
    """Have a folder's entries on disk, so that a new file in it is found after a crash."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder with its parents; every new entry is on disk when it returns."""
    missing = [folder, *folder.parents]
    missing = missing[: next((i for i, path in enumerate(missing) if path.is_dir()), 0)]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync_folder(path.parent)


def write_part(path: Path, table: pa.Table, *, lasting: bool = True) -> None:
    """Write one part: complete under its name and on disk, or not there at all.

    Args:
        path: its name.
        table: its rows.
        lasting: False for a file that its writer itself reads next and removes: packed less,
            not waited for, and without the columns that have no value.

    Raises:
        OSError: when the file cannot be written; what was begun is removed.
    """
    unfinished = path.with_name(f".{path.name}{UNFINISHED_SUFFIX}")
    try:
        with unfinished.open("wb") as file:
            # Many readers take the columns of one file for those of all.
            _write_parquet(file, table if lasting else _with_values(table), lasting=lasting)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        unfinished.rename(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    if lasting:
        sync_folder(path.parent)


def _write_parquet(file: BinaryIO, table: pa.Table, *, lasting: bool) -> None:
    # Every packed column costs a compressor of its own, and in most there is nothing to pack.
    filled = _with_values(table)
    leaves = {name: [*_leaves(name, filled.column(name).type)] for name in filled.column_names}
    packed = [*chain.from_iterable(leaves.values())]
    # Arrow's own copy of the schema would be a third of a small file; Parquet's says it all.
    with _writer(
        file,
        table.schema,
        compression=dict.fromkeys(packed, "zstd" if lasting else "lz4"),
        compression_level=dict.fromkeys(packed, ZSTD_LEVEL) if lasting else None,
        use_dictionary=[
            *chain.from_iterable(leaves[name] for name in leaves.keys() - _NO_DICTIONARY)
        ],
        write_statistics=_SOUGHT,
        store_schema=False,
    ) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        writer.add_key_value_metadata({SCHEMA_VERSION_KEY: SCHEMA_VERSION_VALUE})


def _leaves(name: str, kind: Any) -> Iterator[str]:
    """The columns that Parquet keeps for one of ours, by the names it knows them by.

    >>> list(_leaves("links", pa.list_(pa.struct([("edge", pa.string())]))))
    ['links.list.element.edge']
    """
    if pa.types.is_map(kind):
        yield from _leaves(f"{name}.key_value.key", kind.key_type)
        yield from _leaves(f"{name}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{name}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for inner in cast("Iterable[Any]", kind):
            yield from _leaves(f"{name}.{inner.name}", inner.type)
    else:
        yield name


def _with_values(table: pa.Table) -> pa.Table:
    return table.select(
        [
            name
            for name, column in zip(table.column_names, table.columns, strict=True)
            if name in _ALWAYS or column.null_count < table.num_rows
        ]
    )


def append_journal(path: Path, lines: str) -> None:
    """Append whole lines to a journal and have them on disk.

    Raises:
        OSError: when they are not.
    """
    new = not path.exists()
    with path.open("ab") as file:
        file.write(lines.encode())
        file.flush()
        os.fsync(file.fileno())
    if new:
        sync_folder(path.parent)
