"""Connections to DuckDB, and how much memory they may take."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import duckdb

SMALL_MEGABYTES: Final = 384
"""What moving rows from file to file may take: what is more goes to disk for a while."""


def connect(scratch: Path, megabytes: int) -> duckdb.DuckDBPyConnection:
    """A connection that loads nothing by itself and spills into a folder.

    Args:
        scratch: a folder for what does not fit.
        megabytes: the most memory that it takes.
    """
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            "memory_limit": f"{megabytes}MB",
            "temp_directory": str(scratch / "spill"),
        }
    )
    connection.execute("SET TimeZone = 'UTC'")
    # DuckDB draws its own after two seconds, on stdout, into whatever reads our rows.
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET parquet_metadata_cache = true")
    return connection


@contextmanager
def connect_small() -> Generator[duckdb.DuckDBPyConnection]:
    """A connection for moving rows, which takes little memory however many they are."""
    with TemporaryDirectory(prefix="twinspan-") as scratch:
        connection = connect(Path(scratch), SMALL_MEGABYTES)
        try:
            yield connection
        finally:
            connection.close()


def memory_megabytes() -> int:
    """Half of the machine's memory, between 512 MB and 8 GB."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1024
    return max(512, min(8192, total // 2**21))
