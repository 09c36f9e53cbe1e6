"""Recorded runs as the collector's own values, to be reckoned again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from opentelemetry.trace import SpanContext, TraceFlags

from twinspan.analysis.store import Store
from twinspan.collector.records import ProbeRecord, record_of
from twinspan.collector.schema import PROMOTED_COLUMNS
from twinspan.collector.telling import options_of
from twinspan.collector.topology import AgentDAG
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.settings import BreakerOptions

Attributes = Mapping[str, Any]

ID_COLUMNS = ("trace_id", "span_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSuperstep:
    """A decision that was recorded, with the probe sets it rests on.

    Attributes:
        span_id: the decision's span, 16 hex characters.
        told: everything the span says.
        records: the probe sets it names, in its order.
        missing: how many of those it names are not in the record.
    """

    span_id: str
    told: Attributes
    records: tuple[ProbeRecord, ...]
    missing: int

    @property
    def is_repair(self) -> bool:
        """Whether it judged a repair of the superstep before."""
        return self.told.get(c.INTERVENTION_ID) is not None

    @property
    def kept(self) -> list[ProbeRecord]:
        """Scores of executions as they were."""
        return [record for record in self.records if record.intervention_id is None]

    @property
    def measured(self) -> list[ProbeRecord]:
        """Scores of repaired executions."""
        return [record for record in self.records if record.intervention_id is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One run with its decisions, in the order in which they were taken.

    Attributes:
        run_id: the run.
        told: what its root span says.
        supersteps: its decisions.
        probe_sets: all its probe sets, also those that no decision names.
    """

    run_id: str
    told: Attributes
    supersteps: tuple[RecordedSuperstep, ...]
    probe_sets: tuple[ProbeRecord, ...]

    @property
    def options(self) -> BreakerOptions:
        """The options in force."""
        return options_of(self.told)

    @property
    def dag(self) -> AgentDAG:
        """The static graph, as far as the root span spells it out."""
        edges = [c.split_edge(edge) for edge in self.told.get(c.GRAPH_EDGES) or ()]
        return AgentDAG(edges, nodes=list(self.told.get(c.GRAPH_NODES) or ()))

    @property
    def axes(self) -> tuple[str, ...]:
        """The contrasts that could decide; one that was probed unannounced is among them."""
        probed = (r.axis for r in self.probe_sets if not (r.is_control or r.is_screen))
        return tuple(dict.fromkeys([*(self.told.get(c.AUDIT_AXES) or ()), *probed]))


def recorded_runs(store: Store, run_id: str | None = None) -> list[RecordedRun]:
    """Every run that has a root span, in the order of their beginning."""
    roots = typed_spans(store, "run", run_id, "start_unix_nano")
    sets = _by_run(typed_spans(store, "probe_set", run_id, "audit_seq"))
    decisions = _by_run(typed_spans(store, "network", run_id, "audit_seq"))
    return [
        _run(told, sets.get(str(told[c.RUN_ID]), []), decisions.get(str(told[c.RUN_ID]), []))
        for told in roots
    ]


def _run(
    told: Attributes, sets: Sequence[Attributes], decisions: Sequence[Attributes]
) -> RecordedRun:
    records = {str(item[c.PROBE_SET_ID]): record_of(item, _context(item)) for item in sets}
    return RecordedRun(
        run_id=str(told[c.RUN_ID]),
        told=told,
        supersteps=tuple(_superstep(item, records) for item in decisions),
        probe_sets=tuple(records.values()),
    )


def _superstep(told: Attributes, records: Mapping[str, ProbeRecord]) -> RecordedSuperstep:
    named = [str(item) for item in told.get(c.NETWORK_PROBE_SETS) or ()]
    found = tuple(records[item] for item in named if item in records)
    return RecordedSuperstep(
        span_id=str(told["span_id"]), told=told, records=found, missing=len(named) - len(found)
    )


def _context(item: Attributes) -> SpanContext:
    return SpanContext(
        trace_id=int(str(item["trace_id"]), 16),
        span_id=int(str(item["span_id"]), 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def typed_spans(store: Store, span_type: str, run_id: str | None, order: str) -> list[Attributes]:
    """Attributes of spans of one type under their own names, with `ID_COLUMNS` beside them.

    Args:
        store: opened spans.
        span_type: the type.
        run_id: one run; all of them if None.
        order: columns to order by.
    """
    known = list(PROMOTED_COLUMNS)
    columns = ", ".join(f'"{PROMOTED_COLUMNS[name]}"' for name in known)
    where = "" if run_id is None else "AND run_id = ?"
    rows = store.table(
        f"SELECT {columns}, {', '.join(ID_COLUMNS)}, attributes FROM spans "
        f"WHERE span_type = ? {where} ORDER BY {order}, span_id",
        [span_type, *([] if run_id is None else [run_id])],
    ).rows
    return [_attributes([*known, *ID_COLUMNS], row) for row in rows]


def _attributes(names: Sequence[str], row: Sequence[object]) -> Attributes:
    rest = cast("Mapping[str, Any]", json.loads(str(row[-1] or "{}")))
    named = {name: value for name, value in zip(names, row, strict=False) if value is not None}
    return {**named, **rest}


def _by_run(items: Sequence[Attributes]) -> dict[str, list[Attributes]]:
    found: dict[str, list[Attributes]] = {}
    for item in items:
        found.setdefault(str(item.get(c.RUN_ID)), []).append(item)
    return found
