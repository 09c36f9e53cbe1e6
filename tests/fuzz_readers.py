"""Feeds the readers with bytes, led by coverage.

    python tests/fuzz_readers.py [CORPUS_FOLDER] [-max_total_time=60]

Needs atheris, which is not everywhere to be had; the arguments are libFuzzer's. Without it the
tests of `test_reader_fuzzing` do as much as Hypothesis can.
"""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from twinspan.analysis.store import open_store
from twinspan.instrumentation.errors import SourceError

SUFFIXES: Final = (".jsonl", ".json", ".pb", ".bin", ".gz", ".parquet", ".zst")


def try_bytes(data: bytes, suffix: str) -> None:
    """Open bytes as a file; anything but spans or a sentence is an error of ours."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        path.write_bytes(data)
        try:
            with open_store(path) as store:
                store.table("SELECT * FROM spans")
                store.table("SELECT * FROM runs")
        except SourceError as error:
            assert str(error) and "Traceback" not in str(error)


def main() -> int:
    """Fuzz until libFuzzer's arguments say that it is enough."""
    try:
        atheris: Any = import_module("atheris")
    except ImportError:
        print("atheris is not installed; the tests fuzz with Hypothesis")
        return 1
    atheris.instrument_all()

    def one(data: bytes) -> None:
        if data:
            try_bytes(data[1:], SUFFIXES[data[0] % len(SUFFIXES)])

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
