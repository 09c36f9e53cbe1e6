"""What instrumentation asks of a collector: the edge gate.

The ground floor knows nobody. It reports where it stands (a run opens, a superstep is over, a
node reads its payload, a run closes) and does what the answer says. Scores do not pass through
here: they reach a collector only as ended spans, by the processors it brings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from opentelemetry.context import Context
from opentelemetry.sdk.trace import SpanProcessor

from twinspan.instrumentation.hashing import PayloadHasher
from twinspan.instrumentation.tracing import RunTracer

if TYPE_CHECKING:
    from twinspan.instrumentation.errors import BiasHalt
    from twinspan.instrumentation.settings import Settings

ENTRY_POINT_GROUP: Final = "twinspan_collector"

ANYONE: Final = "*"
"""Reader of a payload, and node of a graph, that is not known beforehand."""

Rerun = Callable[[Any], Awaitable[Any]]
"""Runs a node again on a payload and returns its answer, without side effects on the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The static graph of a run.

    Attributes:
        name: the graph's name.
        nodes: its nodes, path-qualified.
        edges: its edges as (source, target), conditional ones included.
        conditional: those of the edges that are taken on a condition.
    """

    name: str
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    conditional: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWeight:
    """A node's blast radius: `scaled` with the graph's largest at 1, `share` summing to 1."""

    scaled: float
    share: float
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A collector's answer to a run that opens.

    Attributes:
        weights: blast radius by node.
        rates: probability of probing each node; 1 where a node is missing.
        attributes: what the run's root span says.
        node_attributes: what else all spans of a node say, by node.
        attempts: supersteps that were halted and are executed again, by scope and index, with
            how often they were halted: their probes are to draw samples of their own.
        spent: node runs that the probes of a run that goes on have cost already.
        executed: how often each node of such a run was probed and decided, by node and index of
            the superstep.
    """

    weights: Mapping[str, NodeWeight] = field(default_factory=dict[str, NodeWeight])
    rates: Mapping[str, float] = field(default_factory=dict[str, float])
    attributes: Mapping[str, object] = field(default_factory=dict[str, object])
    node_attributes: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, Mapping[str, object]]
    )
    attempts: Mapping[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    spent: int = 0
    executed: Mapping[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])


class Execution(NamedTuple):
    """One finished node of a superstep.

    Attributes:
        node: the node, path-qualified.
        task_id: this execution of it.
        received: the payload it read.
        payload: what it hands on.
        targets: the nodes that will read it; empty where the run ends.
        rerun: runs the node again; None for a node that must not be.
    """

    node: str
    task_id: str
    received: Any
    payload: Any
    targets: tuple[str, ...]
    rerun: Rerun | None = None


class Boundary(NamedTuple):
    """A superstep whose nodes and probe sets are all over, before anyone reads their payloads."""

    run: RunTracer
    hasher: PayloadHasher
    parent: Context
    scope: str
    superstep: int
    executions: tuple[Execution, ...]

    @property
    def place(self) -> tuple[str, int]:
        """Scope and index of the superstep."""
        return self.scope, self.superstep

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the superstep, in the order in which they were planned."""
        return tuple([execution.node for execution in self.executions])


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to be done at a boundary.

    `proceed` also stands for a decision that is only told, in shadow mode. `repair` carries the
    payloads that replace the frozen ones, by task; it has them only once
    `Collector.repair` was awaited. `guilty` names the tasks whose payloads are frozen;
    `diverted` payloads go to mitigation nodes of the graph, not to their readers.
    """

    action: Literal["proceed", "repair", "halt"] = "proceed"
    repairs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    halt: BiasHalt | None = None
    ticket: object = None
    guilty: tuple[str, ...] = ()
    diverted: bool = False


PROCEED: Final = Verdict()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIncident:
    """A frozen payload that is on its way through mitigation nodes of the graph itself.

    Attributes:
        id: the incident.
        boundary: the superstep at which it was frozen.
        verdict: what was decided there.
        execution: the execution whose payload is frozen.
    """

    id: str
    boundary: Boundary
    verdict: Verdict
    execution: Execution


class Collector(Protocol):
    """What listens to spans and answers at the gate."""

    @property
    def processors(self) -> Sequence[SpanProcessor]:
        """The span processors it lives on, control before record."""
        ...

    @property
    def enforces(self) -> bool:
        """Whether a verdict may stop or change a run; false in shadow mode."""
        ...

    def open_run(self, run: RunTracer, topology: Topology) -> RunPlan:
        """Begin a run's state, or take up one that goes on (`run.resumed`).

        Called before the root span starts.
        """
        ...

    def decide(self, boundary: Boundary) -> Verdict:
        """Reduce a superstep, decide, and have the decision on disk before it returns."""
        ...

    async def repair(self, boundary: Boundary, verdict: Verdict) -> Verdict:
        """Repair and re-measure what `decide` froze; returns `repair` or `halt`."""
        ...

    def consumed(self, run_id: str, node: str, parents: Sequence[str], input_hash: str) -> None:
        """A node has read its payload: repaired ones among `parents` have been handed on."""
        ...

    def close_run(self, run_id: str) -> Mapping[str, object]:
        """End a run's state; returns what its root span says at its end.

        A run that is `resumable` may go on later, here or in another process.
        """
        ...

    def run_ended(self, run_id: str) -> None:
        """The root span has ended: everything of the run may go to disk."""
        ...

    def shutdown(self) -> None:
        """Flush and let go of every resource."""
        ...


def load_collector(settings: Settings) -> Collector | None:
    """The installed collector, found by its entry point; None where there is none.

    Raises:
        ConfigurationError: if the collector refuses the settings.
    """
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        factory: Callable[[Settings], Collector] = entry.load()
        return factory(settings)
    return None
