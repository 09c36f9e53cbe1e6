"""Sends recorded spans to an OTLP/HTTP endpoint, in batches that it accepts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx

from twinspan.analysis.jaeger.readable import readable_resource, readable_span
from twinspan.analysis.store import Store
from twinspan.instrumentation.errors import NotSent, SourceError

DEFAULT_ENDPOINT: Final = "http://localhost:4318"
"""Where Jaeger listens for OTLP over HTTP."""

BATCH_BYTES: Final = 2 * 1024 * 1024
"""A request holds about so much; a server takes 20 MiB, some proxies 4."""

TIMEOUT_SECONDS: Final = 30.0

Batch = dict[tuple[str, str | None, str | None], list[dict[str, Any]]]
"""Spans by their resource (as JSON), scope and scope's version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What was sent.

    Attributes:
        spans: spans.
        traces: ids of their traces, in the order of their beginning.
    """

    spans: int
    traces: tuple[str, ...]


def send_spans(
    store: Store,
    endpoint: str = DEFAULT_ENDPOINT,
    *,
    run_id: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Sent:
    """Send the spans of a store as Jaeger shows them best.

    Args:
        store: opened spans.
        endpoint: base URL of an OTLP/HTTP endpoint.
        run_id: one run, with whatever else is in its traces; everything if None.
        progress: told of every batch's number of spans.

    Raises:
        SourceError: if there is no such run.
        NotSent: if nobody answers there, or the spans are refused.
    """
    if run_id is not None and run_id not in store.run_ids():
        raise SourceError(f"{store.source!r} has no run {run_id!r}; `twinspan sql` lists runs")
    sent, traces = 0, dict[str, None]()
    with httpx.Client(timeout=TIMEOUT_SECONDS) as client:
        for batch in _batches(store, run_id):
            _post(client, endpoint, batch)
            count = sum(map(len, batch.values()))
            sent += count
            traces.update((span["traceId"], None) for spans in batch.values() for span in spans)
            if progress is not None:
                progress(count)
    return Sent(spans=sent, traces=tuple(traces))


def _batches(store: Store, run_id: str | None) -> Iterator[Batch]:
    batch: Batch = {}
    size = 0
    for rows in _traces(store, run_id):
        known = frozenset(str(row["span_id"]) for row in rows)
        for row in rows:
            resource = json.dumps(readable_resource(row))
            span = readable_span(row, known)
            batch.setdefault((resource, row["scope_name"], row["scope_version"]), []).append(span)
            size += len(json.dumps(span))
            if size >= BATCH_BYTES:
                yield batch
                batch, size = {}, 0
    if batch:
        yield batch


def _traces(store: Store, run_id: str | None) -> Iterator[Sequence[Mapping[str, Any]]]:
    """The rows of each trace, a few traces in memory at a time."""
    where, parameters = "", list[object]()
    if run_id is not None:
        where = "WHERE trace_id IN (SELECT trace_id FROM spans WHERE run_id = ?)"
        parameters = [run_id]
    reader = store.arrow(
        f"SELECT * FROM spans {where} ORDER BY trace_id, start_unix_nano, span_id", parameters
    )
    rows: list[Mapping[str, Any]] = []
    for batch in reader:
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            if rows and row["trace_id"] != rows[0]["trace_id"]:
                yield rows
                rows = []
            rows.append(row)
    if rows:
        yield rows


def _post(client: httpx.Client, endpoint: str, batch: Batch) -> None:
    document = {"resourceSpans": [_entry(*key, spans) for key, spans in batch.items()]}
    url = f"{endpoint.rstrip('/')}/v1/traces"
    try:
        answer = client.post(url, json=document)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NotSent(url, cause=str(error) or type(error).__name__) from error
    if not answer.is_success:
        raise NotSent(url, cause=f"status {answer.status_code}")


def _entry(
    resource: str, scope: str | None, version: str | None, spans: list[dict[str, Any]]
) -> dict[str, Any]:
    named = {"name": scope or "", "version": version or ""}
    return {
        "resource": json.loads(resource),
        "scopeSpans": [{"scope": named, "spans": spans}],
    }
