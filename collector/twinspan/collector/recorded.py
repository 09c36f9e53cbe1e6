"""Recorded runs: what spans said, ready to be reckoned again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from opentelemetry.trace import SpanContext, TraceFlags

from twinspan.collector.decision import Reason
from twinspan.collector.records import ProbeRecord, record_of
from twinspan.collector.telling import options_of
from twinspan.collector.topology import AgentDAG
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.settings import BreakerOptions

Attributes = Mapping[str, Any]

TRACE_ID: Final = "trace_id"
SPAN_ID: Final = "span_id"
STARTED: Final = "start_unix_nano"
BESIDE: Final = (TRACE_ID, SPAN_ID, STARTED)
"""Fields of a recorded span beside its attributes."""

ANEW: Final = frozenset({"reconfigured", "lost"})
"""How a run went on whose control state began anew."""


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
    def place(self) -> tuple[str, int]:
        """Scope and index of the superstep."""
        return str(self.told.get(c.SUPERSTEP_SCOPE) or ""), int(self.told[c.SUPERSTEP_INDEX])

    @property
    def attempt(self) -> int:
        """How often the superstep had been halted before."""
        return int(self.told.get(c.SUPERSTEP_ATTEMPT) or 0)

    @property
    def is_repair(self) -> bool:
        """Whether it judged a repair of the superstep before."""
        return self.told.get(c.INTERVENTION_ID) is not None

    @property
    def is_reset(self) -> bool:
        """Whether a person let the run go on."""
        return bool(self.told.get(c.BREAKER_REASON) == Reason.RESET_BY_PERSON.value)

    @property
    def is_halt(self) -> bool:
        """Whether it stopped the run."""
        stops = self.told.get(c.BREAKER_DECISION) in ("halt", "reroute", "escalate")
        return stops and bool(self.told.get(c.BREAKER_ENFORCED))

    @property
    def kept(self) -> list[ProbeRecord]:
        """Scores of executions as they were."""
        return [record for record in self.records if record.intervention_id is None]

    @property
    def measured(self) -> list[ProbeRecord]:
        """Scores of repaired executions."""
        return [record for record in self.records if record.intervention_id is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPart:
    """What one process contributed to a run.

    Attributes:
        told: what its root span says; None if it is missing, or if a person's reset is all.
        supersteps: its decisions, in the order in which they were taken.
    """

    told: Attributes | None
    supersteps: tuple[RecordedSuperstep, ...]

    @property
    def begins_anew(self) -> bool:
        """Whether control began anew with it, by its own word."""
        return self.told is not None and self.told.get(c.RUN_RESUMED) in ANEW


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One run with its decisions, in the order in which they were taken.

    Attributes:
        run_id: the run.
        told: what its first root span says; empty where all are missing.
        parts: what each process contributed that worked on it, the first one first.
        probe_sets: all its probe sets, also those that no decision names.
    """

    run_id: str
    told: Attributes
    parts: tuple[RecordedPart, ...]
    probe_sets: tuple[ProbeRecord, ...]

    @property
    def supersteps(self) -> tuple[RecordedSuperstep, ...]:
        """All decisions."""
        return tuple(step for part in self.parts for step in part.supersteps)

    @property
    def last_told(self) -> Attributes:
        """What its last root span says; empty where all are missing."""
        told = [part.told for part in self.parts if part.told is not None]
        return told[-1] if told else {}

    @property
    def options(self) -> BreakerOptions:
        """The options in force at the beginning."""
        return options_of(self.told)

    @property
    def dag(self) -> AgentDAG:
        """The static graph, as far as the root span spells it out."""
        return dag_of(self.told)

    @property
    def axes(self) -> tuple[str, ...]:
        """The contrasts that could decide; one that was probed unannounced is among them."""
        return self.axes_of(self.told)

    def axes_of(self, told: Attributes) -> tuple[str, ...]:
        """The same, as another root span of the run announces them."""
        probed = (r.axis for r in self.probe_sets if not (r.is_control or r.is_screen))
        return tuple(dict.fromkeys([*(told.get(c.AUDIT_AXES) or ()), *probed]))

    @property
    def interventions(self) -> int:
        """Repairs that were judged."""
        return sum(step.is_repair for step in self.supersteps)


def dag_of(told: Attributes) -> AgentDAG:
    """The static graph that a root span spells out."""
    return _dag(tuple(told.get(c.GRAPH_EDGES) or ()), tuple(told.get(c.GRAPH_NODES) or ()))


@lru_cache(maxsize=16)
def _dag(edges: tuple[str, ...], nodes: tuple[str, ...]) -> AgentDAG:
    # Thousands of recorded runs are of a few graphs, and a graph is never changed.
    return AgentDAG([c.split_edge(edge) for edge in edges], nodes=list(nodes))


def run_of_spans(
    run_id: str,
    roots: Sequence[Attributes],
    decisions: Sequence[Attributes],
    probe_sets: Sequence[Attributes],
) -> RecordedRun:
    """Put a run together from its spans, which may come in any order.

    Args:
        run_id: the run.
        roots: attributes of its root spans, with `TRACE_ID`, `SPAN_ID` and `STARTED` beside them.
        decisions: the same of its decisions.
        probe_sets: the same of its probe sets.
    """
    records = {str(item[c.PROBE_SET_ID]): record_of(item, context_of(item)) for item in probe_sets}
    ordered = sorted(roots, key=lambda told: int(told[STARTED]))
    return RecordedRun(
        run_id=run_id,
        told=ordered[0] if ordered else {},
        parts=tuple(_parts(ordered, decisions, records)),
        probe_sets=tuple(records.values()),
    )


def _parts(
    roots: Sequence[Attributes],
    decisions: Sequence[Attributes],
    records: Mapping[str, ProbeRecord],
) -> Iterator[RecordedPart]:
    # A process that works on a run alone writes its decisions in a row; processes follow each
    # other as their first spans do.
    begun: dict[object, int] = {}
    for item in [*roots, *decisions]:
        writer, started = item.get(c.AUDIT_WRITER), int(item[STARTED])
        begun[writer] = min(started, begun.get(writer, started))
    for writer in sorted(begun, key=lambda each: (begun[each], str(each))):
        mine = [item for item in decisions if item.get(c.AUDIT_WRITER) == writer]
        mine.sort(key=lambda item: int(item.get(c.AUDIT_SEQ) or 0))
        root = next((told for told in roots if told.get(c.AUDIT_WRITER) == writer), None)
        yield RecordedPart(told=root, supersteps=tuple(_superstep(i, records) for i in mine))


def _superstep(told: Attributes, records: Mapping[str, ProbeRecord]) -> RecordedSuperstep:
    named = [str(item) for item in told.get(c.NETWORK_PROBE_SETS) or ()]
    found = tuple(records[item] for item in named if item in records)
    return RecordedSuperstep(
        span_id=str(told[SPAN_ID]), told=told, records=found, missing=len(named) - len(found)
    )


def context_of(item: Attributes) -> SpanContext:
    """The identity of a recorded span."""
    return SpanContext(
        trace_id=int(str(item[TRACE_ID]), 16),
        span_id=int(str(item[SPAN_ID]), 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
