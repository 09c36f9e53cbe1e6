"""Reads a run's decisions and scores back from the recorder's own files.

For a run that goes on in another process, and for a person's reset. Whatever else spans are read
for is the analysis' affair.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from twinspan.collector.parts import (
    JOURNAL_PREFIX,
    JOURNAL_SUFFIX,
    MANY_RUNS,
    NO_PARQUET,
    PART_PREFIX,
    PART_SUFFIX,
    run_folder,
)
from twinspan.collector.recorded import (
    BESIDE,
    SPAN_ID,
    STARTED,
    TRACE_ID,
    Attributes,
    RecordedRun,
    run_of_spans,
)
from twinspan.collector.schema import PROMOTED_COLUMNS
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import RecordError

NEEDED: Final = frozenset({"run", "network", "probe_set"})
"""Span types that control rests on."""

# Their stubs do not know every type they take.
_read_schema: Final = cast("Callable[..., pa.Schema]", pq.read_schema)  # pyright: ignore[reportUnknownMemberType]
_read_table: Final = cast("Callable[..., pa.Table]", pq.read_table)  # pyright: ignore[reportUnknownMemberType]

_VALUES: Final[dict[str, Any]] = {
    "stringValue": str,
    "intValue": int,
    "doubleValue": float,
    "boolValue": bool,
}


def read_run(folder: Path, run_id: str) -> RecordedRun | None:
    """A run as it is on disk; None where nothing of it is.

    Args:
        folder: where a recorder writes.
        run_id: the run.

    Raises:
        RecordError: a file of the run cannot be read.
    """
    spans: dict[str, Attributes] = {}
    for path in _files_of(folder, run_id):
        try:
            found = {str(told[SPAN_ID]): told for told in _spans_of(path, run_id)}
        except (*NO_PARQUET, ValueError, KeyError) as error:
            raise RecordError(f"cannot read {str(path)!r}: {error}") from error
        spans |= found
    mine = [told for told in spans.values() if told.get(c.RUN_ID) == run_id]
    if not mine:
        return None
    of: dict[str, list[Attributes]] = {name: [] for name in NEEDED}
    for told in mine:
        of[str(told[c.SPAN_TYPE])].append(told)
    return run_of_spans(run_id, of["run"], of["network"], of["probe_set"])


def _files_of(folder: Path, run_id: str) -> Iterator[Path]:
    """The files in which spans of a run may be: its own, and those of many short runs."""
    for name in (run_folder(run_id), run_folder(MANY_RUNS)):
        for place in sorted(folder.glob(f"date=*/{name}")):
            yield from sorted(place.iterdir())


def _spans_of(path: Path, run_id: str) -> Iterator[Attributes]:
    if path.name.startswith(PART_PREFIX) and path.name.endswith(PART_SUFFIX):
        yield from _of_part(path, run_id)
    elif path.name.startswith(JOURNAL_PREFIX) and path.name.endswith(JOURNAL_SUFFIX):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield from _of_line(line)


# --- parts ------------------------------------------------------------------------------------


def _of_part(path: Path, run_id: str) -> Iterator[Attributes]:
    # A part leaves out columns in which it has no value.
    columns = set(_read_schema(path).names)
    if not {"span_type", "run_id"} <= columns:
        return
    wanted = [("run_id", "==", run_id), ("span_type", "in", sorted(NEEDED))]
    table = _read_table(path, filters=wanted)
    named = {name: column for name, column in PROMOTED_COLUMNS.items() if column in columns}
    for row in table.to_pylist():
        told = {name: row[column] for name, column in named.items() if row[column] is not None}
        rest = cast("dict[str, Any]", json.loads(row.get("attributes") or "{}"))
        yield {**told, **rest, **{name: row[name] for name in BESIDE}}


# --- journals -----------------------------------------------------------------------------------


def _of_line(line: str) -> Iterator[Attributes]:
    """The spans of one line of OTLP JSON; a line that a crash cut short has none."""
    try:
        message = json.loads(line)
    except ValueError:
        return
    for resource in message["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                told = {item["key"]: _value(item["value"]) for item in span["attributes"]}
                if told.get(c.SPAN_TYPE) in NEEDED:
                    yield {
                        **told,
                        TRACE_ID: span["traceId"],
                        SPAN_ID: span["spanId"],
                        STARTED: int(span["startTimeUnixNano"]),
                    }


def _value(value: Mapping[str, Any]) -> Any:
    ((kind, content),) = value.items()
    if kind == "arrayValue":
        return [_value(item) for item in content.get("values", ())]
    return _VALUES[kind](content)
