"""The same spans in every shape in which OTLP JSON is found read as the same."""

from __future__ import annotations

import base64
import codecs
import gzip
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from foreign_spans import Program

from twinspan.analysis.store import open_store

Json = dict[str, Any]


def _traces() -> list[Json]:
    """Two traces, each with a run of two nodes and a call."""
    found: list[Json] = []
    for trace in (1, 2):
        program = Program(trace=trace)
        graph = program.oi_graph("g", (0, 99))
        first = program.oi_node(f"a:{trace}", 1, graph, (1, 8), output={"v": 1})
        program.oi_node(f"a:{trace}", 1, first, (2, 5), name="m", kind="LLM")
        program.oi_node(f"b:{trace}0", 2, graph, (10, 12))
        found.append(json.loads(program.line()))
    return found


def _single(documents: Sequence[Json]) -> Iterator[Json]:
    """Each span in a document of its own."""
    for document in documents:
        for resource in document["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    scoped = {"scope": scope["scope"], "spans": [span]}
                    yield {"resourceSpans": [{"resource": {}, "scopeSpans": [scoped]}]}


def _lines(documents: Sequence[Json] | Iterator[Json]) -> str:
    return "".join(json.dumps(document) + "\n" for document in documents)


def _changed(documents: Sequence[Json], change: Callable[[Json], None]) -> str:
    changed = list(_single(documents))
    for document in changed:
        change(document["resourceSpans"][0]["scopeSpans"][0]["spans"][0])
    return _lines(changed)


def _as_base64(span: Json) -> None:
    for name in ("traceId", "spanId", "parentSpanId"):
        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()


def _as_upper_case(span: Json) -> None:
    span["traceId"] = span["traceId"].upper()


def _as_numbers(span: Json) -> None:
    for name in ("startTimeUnixNano", "endTimeUnixNano"):
        span[name] = int(span[name])


def _as_words(span: Json) -> None:
    span["kind"] = "SPAN_KIND_INTERNAL"
    span["status"] = {"code": "STATUS_CODE_UNSET"}


def _one_object(documents: Sequence[Json], indent: int | None = None) -> str:
    resources = [resource for document in documents for resource in document["resourceSpans"]]
    return json.dumps({"resourceSpans": resources}, indent=indent)


def _several_resources(documents: Sequence[Json]) -> str:
    singles = list(_single(documents))
    for number, document in enumerate(singles):
        name = {"key": "service.name", "value": {"stringValue": f"service-{number}"}}
        document["resourceSpans"][0]["resource"] = {"attributes": [name]}
    return _one_object(singles) + "\n"


def _in_any_order_and_twice(documents: Sequence[Json]) -> str:
    singles = list(_single(documents))
    random.Random(1).shuffle(singles)
    return _lines([*singles, *singles[:3]])


def _protobuf_names(documents: Sequence[Json]) -> str:
    def snake(match: re.Match[str]) -> str:
        return re.sub("([A-Z])", lambda each: "_" + each.group(1).lower(), match.group(0))

    return re.sub(r'"[a-zA-Z]+":', snake, _lines(documents))


def _before_scopes(documents: Sequence[Json]) -> str:
    text = _lines(documents).replace('"scopeSpans"', '"instrumentationLibrarySpans"')
    return text.replace('"scope":', '"instrumentationLibrary":')


SHAPES: dict[str, Callable[[Sequence[Json]], str | bytes]] = {
    "a span on each line": lambda d: _lines(_single(d)),
    "one object": _one_object,
    "one object over many lines": lambda d: _one_object(d, indent=2),
    "several resources in one object": _several_resources,
    "ids in base64": lambda d: _changed(d, _as_base64),
    "ids in upper case": lambda d: _changed(d, _as_upper_case),
    "times as numbers": lambda d: _changed(d, _as_numbers),
    "enums as words": lambda d: _changed(d, _as_words),
    "any order, some twice": _in_any_order_and_twice,
    "names of protobuf": _protobuf_names,
    "names of before OTLP 1.0": _before_scopes,
    "a byte order mark": lambda d: codecs.BOM_UTF8 + _lines(d).encode(),
    "line ends of Windows": lambda d: _lines(d).replace("\n", "\r\n"),
    "packed": lambda d: gzip.compress(_lines(d).encode()),
    "packed line by line": lambda d: b"".join(gzip.compress(_lines([x]).encode()) for x in d),
    "the last line cut": lambda d: _lines(_single(d)) + _lines(d)[:90],
}


def _read(path: Path) -> tuple[object, ...]:
    with open_store(path) as store:
        return tuple(
            store.table(query).rows
            for query in (
                "SELECT run_id, node, superstep, outcome, parents FROM nodes ORDER BY ALL",
                "SELECT run_id, graph, outcome, node_count FROM runs ORDER BY ALL",
                "SELECT run_id, node FROM llm_calls ORDER BY ALL",
                "SELECT source, target, kind, executions FROM edges ORDER BY ALL",
            )
        )


@pytest.mark.parametrize("shape", SHAPES)
def test_the_shape_of_a_file_changes_nothing(shape: str, tmp_path: Path) -> None:
    """Nodes, runs, calls and edges are the same."""
    plain, other = tmp_path / "plain.jsonl", tmp_path / "other.json"
    plain.write_text(_lines(_traces()), encoding="utf-8")
    written = SHAPES[shape](_traces())
    other.write_bytes(written if isinstance(written, bytes) else written.encode())
    assert _read(other) == _read(plain)
    assert len(_read(plain)[0]) == 4  # type: ignore[arg-type]
