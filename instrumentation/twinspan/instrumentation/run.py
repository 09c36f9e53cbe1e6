"""A run while it is live: its spans, its pending probes, its boundaries.

A framework's adapter reports what happens; everything that is not particular to a framework is
here.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import Link
from opentelemetry.util.types import AttributeValue

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.attributes import clean_attributes
from twinspan.instrumentation.current import RunContext, current
from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.gate import (
    ANYONE,
    PROCEED,
    Boundary,
    Execution,
    NodeWeight,
    OpenIncident,
    RunPlan,
    Topology,
    Verdict,
)
from twinspan.instrumentation.hashing import PayloadHasher, canonical
from twinspan.instrumentation.probing.budget import RunBudget, uniform_draw
from twinspan.instrumentation.probing.guard import unobserved
from twinspan.instrumentation.probing.model_call import NO_MODEL_CALL, ModelCall
from twinspan.instrumentation.probing.observation import ProbedNode, SetObserver
from twinspan.instrumentation.probing.plan import derive_seed
from twinspan.instrumentation.probing.probe import LOOCProbe
from twinspan.instrumentation.probing.recorded import recorded_probe
from twinspan.instrumentation.safety import harmless
from twinspan.instrumentation.settings import ProbeOptions
from twinspan.instrumentation.tracing import RunTracer
from twinspan.instrumentation.turnstile import Turnstile

MOST_EDGES_LISTED: Final = 100
"""Edges that a run span spells out; a larger graph gives its hash and its count."""

Pending = Future[Any] | asyncio.Task[Any]

Divert = Callable[[Boundary, Verdict], Verdict | None]
"""Takes frozen payloads out of a run's way; None where it cannot."""

EXEMPT_KINDS: Final = frozenset({"tool", "router"})
"""Kinds of nodes that are never probed: tools have side effects, our own nodes decide nothing."""


class Parent(NamedTuple):
    """An execution whose payload a node reads."""

    node: str
    task_id: str
    payload_hash: str
    span: trace.SpanContext | None


class NodeStart(NamedTuple):
    """A node execution that begins.

    A tuple, as others that are made for every node: a frozen dataclass takes three times as long.

    Attributes:
        node: the node, path-qualified.
        kind: `agent`, `function`, `router`, `tool` or `subgraph`.
        task_id: the execution.
        attempt: try of the execution, from 1.
        scope: '' for the root graph, else the task of the node that holds the subgraph.
        superstep: the superstep within the scope.
        parents: the executions it reads from.
        payload: what it reads.
        holder: span of the node that holds the subgraph; the run's span if None.
        edges_observed: whether the parents were seen; otherwise they are inferred.
        repeat: earlier executions of the node in an equally numbered superstep of the run.
        skipped: whether its answer was known, so that it does not run.
        can_rerun: whether it may be run again; a node that must not is exempt from probing.
    """

    node: str
    kind: str
    task_id: str
    attempt: int
    scope: str
    superstep: int
    parents: tuple[Parent, ...]
    payload: Any
    holder: Span | None = None
    edges_observed: bool = True
    repeat: int = 0
    skipped: bool = False
    can_rerun: bool = True


@dataclass(slots=True)
class NodeSpan:
    """A node's span and what belongs to it.

    Attributes:
        start: what began.
        span: its span.
        context: the context in which the span is current.
        probed: whether it was chosen to be probed.
        output_hash: hash of what it handed on; '' before it has ended well.
    """

    start: NodeStart
    span: Span
    context: Context
    probed: bool
    output_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeFacts:
    """What is true of every execution of a node in a run.

    Attributes:
        weight: its blast radius; None where no collector weighs.
        rate: probability with which it is probed; None where it never is.
        attributes: what all its spans say, cleaned.
    """

    weight: NodeWeight | None
    rate: float | None
    attributes: Mapping[str, AttributeValue]


class LiveRun:
    """One run of an agent graph, from its root span's start to its end."""

    def __init__(
        self,
        engine: Engine,
        tracer: RunTracer,
        topology: Topology,
        plan: RunPlan,
        root: Span,
    ) -> None:
        self.engine = engine
        self.tracer = tracer
        self.topology = topology
        self.hasher = PayloadHasher()
        self.context = trace.set_span_in_context(root, Context())
        self.interrupted = False
        limit = engine.settings.probe.budget
        self.budget = RunBudget(None if limit is None else max(0, limit - plan.spent))
        self._plan = plan
        self._root = root
        self._around = RunContext(root)
        self._lock = threading.Lock()
        self._pending: dict[tuple[str, int], list[Pending]] = {}
        self._facts: dict[str, _NodeFacts] = {}
        self._unlisted: dict[str, int] = {}
        self._deciding = Turnstile()
        self.incidents: dict[str, OpenIncident] = {}
        self._executed: Counter[tuple[str, int]] = Counter(plan.executed)
        self._closed_supersteps = 0
        self._closed = False

    @classmethod
    def open(
        cls,
        engine: Engine,
        topology: Topology,
        *,
        attributes: Mapping[str, object] | None = None,
        parent: Context | None = None,
        resumed: str | None = None,
        resumable: bool = False,
    ) -> LiveRun:
        """Begin a run below the caller's current span.

        Args:
            engine: settings, collector, telemetry.
            topology: the static graph.
            attributes: what else the root span says at its start.
            parent: context of the caller's span; the current one if None.
            resumed: id of the run that goes on, if it was begun before.
            resumable: whether the framework keeps what the run needs to go on after it stops.
        """
        tracer = engine.telemetry.run(resumed, resumed=resumed is not None)
        tracer.resumable = resumable
        plan, probe = RunPlan(), engine.settings.probe
        if engine.collector is not None:
            plan = engine.collector.open_run(tracer, topology)
        root = tracer.start(
            c.operation_name(c.SPAN_RUN, topology.name),
            "run",
            {
                c.GEN_AI_OPERATION: c.SPAN_RUN,
                c.GEN_AI_AGENT_NAME: topology.name,
                c.GEN_AI_WORKFLOW_NAME: topology.name,
                **topology_attributes(topology),
                c.PROBE_PLAN: probe.plan if probe.axes else None,
                c.PROBE_BUDGET: probe.budget,
                **plan.attributes,
                **(attributes or {}),
            },
            parent=parent,
        )
        return cls(engine, tracer, topology, plan, root)

    def current(self) -> AbstractContextManager[None]:
        """Make the run's span current for a block, so that what starts there hangs below it."""
        return self._around.current()

    @property
    def run_id(self) -> str:
        """The run's identity, on every span of it."""
        return self.tracer.run_id

    @property
    def is_closed(self) -> bool:
        """Whether the run is over."""
        return self._closed

    def weight(self, node: str) -> NodeWeight | None:
        """A node's blast radius, as the collector gave it.

        A node inside a subgraph weighs as much as the node that holds it, and takes no share
        of its own: shares sum to 1 over the graph that was weighed. Where the graph is not
        known beforehand, the k-th node that turns up takes 1 / (k (k + 1)) of what was set
        aside for such nodes.
        """
        known = self._plan.weights.get(node)
        if known is None and ANYONE in self._plan.weights:
            aside = self._plan.weights[ANYONE]
            with self._lock:
                place = self._unlisted.setdefault(node, len(self._unlisted) + 1)
            return replace(aside, share=aside.share / (place * (place + 1)))
        if known is None and "/" in node:
            holder = self.weight(node.rpartition("/")[0])
            return None if holder is None else replace(holder, share=0.0)
        return known

    # --- nodes ----------------------------------------------------------------------------

    def repeat_of(self, node: str, superstep: int) -> int:
        """How often a node was begun before in an equally numbered superstep.

        Several `Send`s do that, and a subgraph that is entered again counts from 1 again. Each
        must be worded anew: equal wordings bring equal evidence, which must not count twice.
        """
        with self._lock:
            before = self._executed.get((node, superstep), 0)
            self._executed[node, superstep] = before + 1
            return before

    def start_node(self, start: NodeStart) -> NodeSpan:
        """Open a node's span; the gate learns what the node has read."""
        facts = self._facts_of(start.node)
        input_hash = self.hasher(start.payload)
        operation = c.SPAN_AGENT if start.kind == "agent" else c.SPAN_NODE
        decision = self._probe_decision(start, facts.rate)
        parents = start.parents
        parent_tasks = [parent.task_id for parent in parents]
        span = self.tracer.start(
            c.operation_name(operation, start.node),
            "node",
            {
                c.GEN_AI_OPERATION: operation,
                c.NODE_KIND: start.kind,
                c.NODE_TASK_ID: start.task_id,
                c.NODE_ATTEMPT: start.attempt,
                c.NODE_PARENT_TASK_IDS: tuple(parent_tasks),
                c.NODE_PARENTS: tuple([parent.node for parent in parents]),
                c.NODE_PARENT_HASHES: tuple([parent.payload_hash for parent in parents]),
                c.NODE_EDGE_KIND: "observed" if start.edges_observed else "inferred",
                c.SUPERSTEP_SCOPE: start.scope,
                c.SUPERSTEP_INDEX: start.superstep,
                c.NODE_INPUT_HASH: input_hash,
                c.PROBE_DECISION: decision,
                **self._captured(start.payload),
            },
            fixed=facts.attributes,
            parent=self.context if start.holder is None else start.holder,
            links=[_link(parent, start.node) for parent in parents if parent.span],
        )
        if self.engine.collector is not None:
            self.engine.collector.consumed(self.run_id, start.node, parent_tasks, input_hash)
        return NodeSpan(start, span, trace.set_span_in_context(span), decision == "probed")

    def _captured(self, payload: Any) -> dict[str, object]:
        """What a node reads, where the content switch lets it out."""
        if not self.engine.settings.capture_content:
            return {}
        return {c.GEN_AI_INPUT_MESSAGES: canonical(payload)}

    def _facts_of(self, node: str) -> _NodeFacts:
        """What is true of every execution of a node, found out once."""
        known = self._facts.get(node)
        if known is None:
            weight, rate = self.weight(node), self._rate(node)
            attributes = _attributes_of(node, weight, rate)
            more = self._plan.node_attributes.get(node)
            known = self._facts[node] = _NodeFacts(
                weight=weight,
                rate=rate,
                attributes={**attributes, **clean_attributes(more)} if more else attributes,
            )
        return known

    def rate(self, node: str) -> float | None:
        """Probability with which a node is probed; None for one that never is."""
        return self._facts_of(node).rate

    def _rate(self, node: str) -> float | None:
        if not self.engine.settings.probe.covers(node):
            return None
        return self._plan.rates.get(node, 1.0)

    def _probe_decision(self, start: NodeStart, rate: float | None) -> str:
        if rate is None or start.kind in EXEMPT_KINDS or start.skipped or not start.can_rerun:
            return "exempt"
        if rate >= 1.0:
            return "probed"
        seed = self.engine.settings.probe.seed
        drawn = uniform_draw(seed, "probe", start.node, start.task_id) < rate
        return "probed" if drawn else "sampled_out"

    def end_node(
        self,
        node: NodeSpan,
        outcome: str,
        *,
        payload: Any = None,
        error: BaseException | None = None,
    ) -> None:
        """Close a node's span with what it handed on."""
        closing: dict[str, object] = {c.NODE_OUTCOME: outcome}
        if outcome in ("ok", "skipped"):
            text = canonical(payload)
            node.output_hash = self.hasher.of_text(text)
            closing[c.NODE_OUTPUT_HASH] = node.output_hash
            closing[c.NODE_OUTPUT_SIZE] = len(text)
            if self.engine.settings.capture_content:
                closing[c.GEN_AI_OUTPUT_MESSAGES] = text
        self.tracer.end(node.span, closing, error=error)

    # --- probes ---------------------------------------------------------------------------

    def launch_probes(self, node: NodeSpan, rerun: Callable[[Any], Any], *, in_loop: bool) -> None:
        """Begin to probe a node while it runs; its superstep will wait for the end.

        Args:
            node: the execution.
            rerun: runs the node again; async where `in_loop`, plain otherwise.
            in_loop: whether to probe on the running event loop, where the node lives.
        """
        if self._is_probed_at(node, "node"):
            self._launch(node, self.probe(node, rerun), node.start.payload, in_loop=in_loop)

    def launch_model_probes(
        self, node: NodeSpan, calls: Sequence[ModelCall], *, in_loop: bool
    ) -> None:
        """Begin to probe what a node asked its models, once it has ended.

        Args:
            node: the execution.
            calls: what it asked, in order; a node that asked nothing is told so.
            in_loop: whether to probe on the running event loop.
        """
        if not self._is_probed_at(node, "model"):
            return
        for number, call in enumerate(calls, start=1):
            asking = call.asking if in_loop else call.ask
            self._launch(node, self.probe(node, asking, number), call.asked, in_loop=in_loop)
        if not calls:
            self._tell_unprobed(node, NO_MODEL_CALL)

    def _is_probed_at(self, node: NodeSpan, level: str) -> bool:
        return node.probed and node.start.attempt == 1 and self.engine.settings.probe.level == level

    def _launch(self, node: NodeSpan, probe: LOOCProbe, payload: Any, *, in_loop: bool) -> None:
        work = _detached(probe.arun(payload), node.context)
        pending: Pending
        if in_loop:
            pending = asyncio.get_running_loop().create_task(work)
        else:
            pending = self.engine.loop.submit(work)
        with self._lock:
            key = (node.start.scope, node.start.superstep)
            self._pending.setdefault(key, []).append(pending)

    def _tell_unprobed(self, node: NodeSpan, reason: str) -> None:
        settings = self.engine.settings
        for contrast in settings.probe.contrasts:
            observer = SetObserver(
                self.tracer,
                self._probed_node(node),
                self.hasher,
                capture_content=settings.capture_content,
            )
            observer.open_set(
                contrast.label, {c.PROBE_CONTRAST: contrast.kind, c.PROBE_DECISION: "no_op"}
            )
            observer.close_set("no_op", calls=0, score=None, reason=reason)

    def drop_probes(self, scope: str, superstep: int) -> None:
        """Stop probing a superstep that came to nothing."""
        for item in self._take(scope, superstep):
            if isinstance(item, asyncio.Task):
                item.get_loop().call_soon_threadsafe(item.cancel)
            else:
                item.cancel()

    def _probed_node(self, node: NodeSpan, call: int = 0) -> ProbedNode:
        start, facts = node.start, self._facts_of(node.start.node)
        weight = facts.weight
        return ProbedNode(
            node=start.node,
            task_id=start.task_id,
            scope=start.scope,
            superstep=start.superstep,
            weight=None if weight is None else weight.scaled,
            share=None if weight is None else weight.share,
            rate=facts.rate or 1.0,
            repeat=start.repeat,
            call=call,
            parent=node.context,
            baseline_span_id=trace.format_span_id(node.span.get_span_context().span_id),
        )

    def probe(self, node: NodeSpan, rerun: Callable[[Any], Any], call: int = 0) -> LOOCProbe:
        """A probe of a node execution, or of a model call of it, that writes into this run."""
        return recorded_probe(
            rerun,
            self._probed_node(node, call),
            run=self.tracer,
            hasher=self.hasher,
            options=self._probe_options(node.start.scope, node.start.superstep),
            capture_content=self.engine.settings.capture_content,
            budget=self.budget,
        )

    def _probe_options(self, scope: str, superstep: int) -> ProbeOptions:
        """The options; a superstep that was halted is probed anew with samples of its own."""
        options = self.engine.settings.probe
        attempt = self._plan.attempts.get((scope, superstep), 0)
        if not attempt:
            return options
        return replace(options, seed=derive_seed(options.seed, "attempt", attempt))

    # --- boundaries -----------------------------------------------------------------------

    def close_superstep(
        self,
        scope: str,
        superstep: int,
        executions: Sequence[Execution],
        *,
        divert: Divert | None = None,
    ) -> Verdict:
        """Wait for a superstep's probes, then ask the gate; for plain code.

        Args:
            scope: the superstep's scope.
            superstep: its index.
            executions: its finished nodes.
            divert: takes a payload that is to be stopped out of the run's way, where the graph
                has nodes of its own for that; None leaves it to the gate.

        Raises:
            BiasHalt: if the user switched halting on and the breaker tripped.
        """
        pending = self._take(scope, superstep)
        if pending:
            wait_for_futures([item for item in pending if isinstance(item, Future)])
            self._note_failures(pending)
        boundary = self._boundary(scope, superstep, executions)
        with self._deciding.turn(timeout=self.engine.settings.probe.timeout):
            verdict = self._decide(boundary, divert, probed=bool(pending))
            if _is_to_repair(verdict) and self.engine.collector is not None:
                repairing = self.engine.collector.repair(boundary, verdict)
                with unobserved():
                    verdict = self.engine.loop.submit(_as_coroutine(repairing)).result()
        return _enforce(verdict)

    async def aclose_superstep(
        self,
        scope: str,
        superstep: int,
        executions: Sequence[Execution],
        *,
        divert: Divert | None = None,
    ) -> Verdict:
        """The same on an event loop.

        Raises:
            BiasHalt: if the user switched halting on and the breaker tripped.
        """
        pending = self._take(scope, superstep)
        for item in pending:
            waitable = asyncio.wrap_future(item) if isinstance(item, Future) else item
            await asyncio.wait([waitable])
        self._note_failures(pending)
        boundary = self._boundary(scope, superstep, executions)
        # Parallel subgraphs decide one after the other, in threads and on loops alike.
        async with self._deciding.aturn():
            verdict = self._decide(boundary, divert, probed=bool(pending))
            if _is_to_repair(verdict) and self.engine.collector is not None:
                with unobserved():
                    verdict = await self.engine.collector.repair(boundary, verdict)
        return _enforce(verdict)

    def finish_probes(self) -> None:
        """Wait for all probes of a run that stops and may go on; for plain code.

        What its nodes handed on is kept for whoever goes on, and so must be their scores.
        """
        pending = self._take_all()
        wait_for_futures([item for item in pending if isinstance(item, Future)])
        self._note_failures(pending)

    async def afinish_probes(self) -> None:
        """The same on an event loop."""
        pending = self._take_all()
        for item in pending:
            waitable = asyncio.wrap_future(item) if isinstance(item, Future) else item
            await asyncio.wait([waitable])
        self._note_failures(pending)

    def _take_all(self) -> list[Pending]:
        if not self.tracer.resumable:
            return []
        with self._lock:
            found = [item for pending in self._pending.values() for item in pending]
            self._pending.clear()
        return found

    def _take(self, scope: str, superstep: int) -> list[Pending]:
        with self._lock:
            return self._pending.pop((scope, superstep), [])

    def _note_failures(self, pending: Sequence[Pending]) -> None:
        for item in pending:
            with harmless(self.engine.failures, "a probe"):
                if not item.cancelled():
                    item.result()

    def _boundary(self, scope: str, superstep: int, executions: Sequence[Execution]) -> Boundary:
        return Boundary(
            run=self.tracer,
            hasher=self.hasher,
            parent=self.context,
            scope=scope,
            superstep=superstep,
            executions=tuple(executions),
        )

    def _decide(self, boundary: Boundary, divert: Divert | None, *, probed: bool) -> Verdict:
        if self.engine.collector is None:
            return PROCEED
        if self.incidents and not probed:
            return PROCEED  # nodes that mitigate bring nothing to decide on
        self._closed_supersteps += 1
        verdict = self.engine.collector.decide(boundary)
        if divert is None or verdict.action == "proceed":
            return verdict
        return divert(boundary, verdict) or verdict

    # --- the end --------------------------------------------------------------------------

    def close(self, outcome: str, error: BaseException | None = None) -> None:
        """End the run: nothing of it stays open, pending probes are cancelled."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            leftover = [item for pending in self._pending.values() for item in pending]
            self._pending.clear()
        for item in leftover:
            item.cancel()
        self._around.close()
        self.tracer.resumable = self.tracer.resumable and outcome != "completed"
        final: dict[str, object] = {}
        if self.engine.collector is not None:
            final.update(self.engine.collector.close_run(self.run_id))
        self.tracer.end_open({c.NODE_OUTCOME: "cancelled"}, keep=self._root)
        started = self.tracer.started
        final |= {
            c.RUN_OUTCOME: outcome,
            c.RUN_NODE_COUNT: started["node"],
            c.RUN_PROBE_COUNT: started["probe"],
            c.RUN_SUPERSTEP_COUNT: self._closed_supersteps,
            c.RUN_SPAN_COUNT: self.tracer.ended_count + 1,
            c.RUN_PROCESSOR_ERRORS: self.engine.failures.count,
        }
        self.tracer.end(self._root, final, error=error if outcome == "failed" else None)
        if self.engine.collector is not None:
            self.engine.collector.run_ended(self.run_id)
        self.tracer.telemetry.flush()


@lru_cache(maxsize=64)
def topology_attributes(topology: Topology) -> Mapping[str, object]:
    """What a run span says of its static graph; found out once for a graph."""
    edges = tuple(sorted(c.edge_name(*edge) for edge in topology.edges))
    content = "\n".join([*sorted(topology.nodes), *edges])
    listed = len(edges) <= MOST_EDGES_LISTED
    conditional = tuple(sorted(c.edge_name(*edge) for edge in topology.conditional))
    told = {
        c.GRAPH_ID: hashlib.sha256(content.encode()).hexdigest()[:16],
        c.GRAPH_EDGE_COUNT: len(edges),
        c.GRAPH_NODES: topology.nodes if listed else None,
        c.GRAPH_EDGES: edges if listed else None,
        c.GRAPH_CONDITIONAL_EDGES: conditional if listed else None,
    }
    return MappingProxyType(told)


@lru_cache(maxsize=1024)
def _attributes_of(
    node: str, weight: NodeWeight | None, rate: float | None
) -> Mapping[str, AttributeValue]:
    """What all spans of a node say, in this run and in the next one of the same graph."""
    told = {
        c.GEN_AI_AGENT_NAME: node,
        c.NODE_ID: node,
        c.NODE_WEIGHT: None if weight is None else weight.scaled,
        c.NODE_WEIGHT_SHARE: None if weight is None else weight.share,
        c.NODE_WEIGHT_METHOD: None if weight is None else weight.method,
        c.PROBE_SAMPLING_RATE: rate,
    }
    return MappingProxyType(clean_attributes(told))


def _link(parent: Parent, node: str) -> Link:
    assert parent.span is not None
    return Link(
        parent.span,
        {c.LINK_RELATION: "data_dependency", c.LINK_EDGE: c.edge_name(parent.node, node)},
    )


def _is_to_repair(verdict: Verdict) -> bool:
    return verdict.action == "repair" and not verdict.diverted


def _enforce(verdict: Verdict) -> Verdict:
    if verdict.action == "halt" and verdict.halt is not None:
        raise verdict.halt
    return verdict


async def _detached(work: Coroutine[Any, Any, Any], context: Context) -> Any:
    """Run a probe with the node's span current, in the task's own context."""
    with current(context):
        return await work


async def _as_coroutine(awaitable: Any) -> Any:
    return await awaitable


__all__ = ["LiveRun", "NodeSpan", "NodeStart", "Parent", "topology_attributes"]
