"""Feeds the readers with bytes, led by coverage.

    make fuzz
    python tests/fuzz_readers.py CORPUS_FOLDER [-max_total_time=60]

An empty corpus begins with one good file of each form. Needs atheris, which is not everywhere to be
had; the arguments are libFuzzer's. Without it the tests of `test_reader_fuzzing` do as much as
Hypothesis can.
"""

from __future__ import annotations

import gzip
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


def begin_corpus(folder: Path) -> None:
    """One good file of each form, where there is nothing yet to change at random."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        return
    # Not above: everything that is imported before the fuzzing is instrumented, for minutes.
    import pyarrow.parquet as pq
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from recorded_runs import ended_spans, table_of

    from twinspan.collector.otlp_json import span_line
    from twinspan.instrumentation import conventions as c

    spans = ended_spans({c.NODE_ID: "a", c.NODE_WEIGHT: 0.5}, {c.NODE_PARENTS: ["a", "b"]})
    lines = "".join(map(span_line, spans)).encode()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "a.parquet"
        pq.write_table(table_of(spans), path, store_schema=False)
        parquet = path.read_bytes()
    good = {
        ".jsonl": lines,
        ".json": lines.splitlines()[0],
        ".pb": encode_spans(spans).SerializeToString(),
        ".gz": gzip.compress(lines),
        ".parquet": parquet,
    }
    for suffix, content in good.items():
        first = bytes([SUFFIXES.index(suffix)])
        (folder / f"good{suffix}").write_bytes(first + content)


def main() -> int:
    """Fuzz until libFuzzer's arguments say that it is enough."""
    try:
        atheris: Any = import_module("atheris")
    except ImportError:
        print("atheris is not installed; the tests fuzz with Hypothesis")
        return 1
    atheris.instrument_all()
    for given in sys.argv[1:2]:
        if not given.startswith("-"):
            begin_corpus(Path(given))

    def one(data: bytes) -> None:
        if data:
            try_bytes(data[1:], SUFFIXES[data[0] % len(SUFFIXES)])

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
