"""Recorded runs as the collector's own values, to be reckoned again."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from twinspan.analysis.store import Store
from twinspan.collector.recorded import (
    SPAN_ID,
    STARTED,
    TRACE_ID,
    Attributes,
    RecordedPart,
    RecordedRun,
    RecordedSuperstep,
    run_of_spans,
)
from twinspan.collector.schema import PROMOTED_COLUMNS
from twinspan.instrumentation import conventions as c

BESIDE: Final = (TRACE_ID, SPAN_ID, STARTED)
"""Columns that are no attributes."""


def recorded_runs(store: Store, run_id: str | None = None) -> list[RecordedRun]:
    """Every run that has a root span, in the order of their beginning."""
    roots = _by_run(typed_spans(store, "run", run_id, STARTED))
    sets = _by_run(typed_spans(store, "probe_set", run_id, "audit_seq"))
    decisions = _by_run(typed_spans(store, "network", run_id, "audit_seq"))
    return [run_of_spans(each, roots[each], decisions[each], sets[each]) for each in [*roots]]


def decided_runs(store: Store, run_id: str | None = None) -> list[RecordedRun]:
    """Every run that has decisions, root span or not, without its probe sets."""
    roots = _by_run(typed_spans(store, "run", run_id, STARTED))
    decisions = _by_run(typed_spans(store, "network", run_id, STARTED))
    return [run_of_spans(each, roots[each], decisions[each], ()) for each in [*decisions]]


def typed_spans(store: Store, span_type: str, run_id: str | None, order: str) -> list[Attributes]:
    """Attributes of spans of one type under their own names, with `BESIDE` beside them.

    Args:
        store: opened spans.
        span_type: the type.
        run_id: one run; all of them if None.
        order: columns to order by.
    """
    where = "WHERE span_type = ?" if run_id is None else "WHERE span_type = ? AND run_id = ?"
    parameters = [span_type] if run_id is None else [span_type, run_id]
    known = _columns_in_use(store, where, parameters)
    columns = "".join(f'"{PROMOTED_COLUMNS[name]}", ' for name in known)
    rows = store.table(
        f"SELECT {columns}{', '.join(BESIDE)}, attributes FROM spans {where} "
        f"ORDER BY {order}, span_id",
        parameters,
    ).rows
    return [_attributes([*known, *BESIDE], row) for row in rows]


def _columns_in_use(store: Store, where: str, parameters: Sequence[object]) -> list[str]:
    """Attributes that any of the spans has: empty columns would cost most of the reading."""
    counted = ", ".join(f'count("{column}")' for column in PROMOTED_COLUMNS.values())
    (counts,) = store.table(f"SELECT {counted} FROM spans {where}", parameters).rows
    return [name for name, count in zip(PROMOTED_COLUMNS, counts, strict=True) if count]


def _attributes(names: Sequence[str], row: Sequence[object]) -> Attributes:
    rest = cast("Mapping[str, Any]", json.loads(str(row[-1] or "{}")))
    named = {name: value for name, value in zip(names, row, strict=False) if value is not None}
    return {**named, **rest}


def _by_run(items: Sequence[Attributes]) -> defaultdict[str, list[Attributes]]:
    found: defaultdict[str, list[Attributes]] = defaultdict(list)
    for item in items:
        found[str(item.get(c.RUN_ID))].append(item)
    return found


__all__ = [
    "BESIDE",
    "RecordedPart",
    "RecordedRun",
    "RecordedSuperstep",
    "decided_runs",
    "recorded_runs",
    "typed_spans",
]
