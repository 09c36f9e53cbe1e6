"""A step of a run: one node, from what it reads to what may be handed on.

For frameworks without supersteps of their own a completed node is a superstep. The gate stands
where the node is left: nobody has its answer before it is decided.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Literal

from opentelemetry.context import Context

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.errors import BiasHalt, ConfigurationError
from twinspan.instrumentation.frameworks.place import (
    Place,
    flow_of,
    standing_at,
    unobserved,
)
from twinspan.instrumentation.gate import ANYONE, Execution, Topology, Verdict
from twinspan.instrumentation.run import LiveRun, NodeSpan, NodeStart, Parent
from twinspan.instrumentation.safety import harmless

Targets = tuple[str, ...] | None
"""The readers of an answer; None for those that the graph knows."""

Kind = Literal["agent", "function", "router", "tool", "subgraph"]

_CANCELLED: Final = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)


def outcome_of(error: BaseException) -> str:
    """How a node ended that raised."""
    if isinstance(error, BiasHalt):
        return "halted"
    return "cancelled" if isinstance(error, _CANCELLED) else "error"


@contextmanager
def run_of(
    engine: Engine, topology: Topology, attributes: Mapping[str, object] | None = None
) -> Generator[Place | None]:
    """A run for the block; None where twinspan itself failed to open one."""
    opened: list[LiveRun] = []
    with harmless(engine.failures, "starting a run"):
        opened.append(LiveRun.open(engine, topology, attributes=attributes))
    if not opened:
        yield None
        return
    (run,) = opened
    place = Place(run=run)
    try:
        with standing_at(place, run.context):
            yield place
    except BaseException as error:
        outcome = outcome_of(error)
        _close(run, "failed" if outcome == "error" else outcome, error)
        raise
    else:
        _close(run, "interrupted" if run.interrupted else "completed", None)


def _close(run: LiveRun, outcome: str, error: BaseException | None) -> None:
    with harmless(run.engine.failures, "ending a run"):
        run.close(outcome, error)


class Step:
    """One execution of a node.

    Args:
        place: where it runs.
        node: its name, not yet qualified.
        payload: what it reads.
        parents: whose answers it reads.
        kind: `agent` where it may be probed and `function` elsewhere, if None.
        observed: whether the parents are known and not guessed.
        rerun: runs it again on a payload; async where `in_loop`. None for a node that must not.
        in_loop: whether it lives on the running event loop.

    Attributes:
        handed: what it handed on, as its readers see it; None until then.
    """

    def __init__(
        self,
        place: Place,
        node: str,
        payload: Any,
        *,
        parents: tuple[Parent, ...] = (),
        kind: Kind | None = None,
        observed: bool = True,
        rerun: Callable[[Any], Any] | None = None,
        in_loop: bool = False,
    ) -> None:
        self._place = place
        self._run = place.run
        self._flow = flow_of(place.run)
        self.handed: Parent | None = None
        self._rerun = rerun
        self._in_loop = in_loop
        self._payload = payload
        self.node = place.name(node)
        self.task_id = uuid.uuid4().hex
        self._slot = free_slot(place)
        self.superstep = place.next_step() if self._slot is None else self._slot.superstep
        covered = self._run.engine.settings.probe.covers(self.node)
        self._span: NodeSpan = self._run.start_node(
            NodeStart(
                node=self.node,
                kind=kind or ("agent" if covered else "function"),
                task_id=self.task_id,
                attempt=1,
                scope=place.task_id,
                superstep=self.superstep,
                parents=parents,
                payload=payload,
                holder=place.span,
                edges_observed=observed,
                repeat=self._flow.repeat_of(self.node, self.superstep),
                can_rerun=rerun is not None,
            )
        )
        self._inner = Place(
            run=self._run, node=self.node, task_id=self.task_id, span=self._span.span
        )
        if rerun is not None:
            self._run.launch_probes(self._span, rerun, in_loop=in_loop)

    @classmethod
    def begin(cls, place: Place, node: str, payload: Any, **options: Any) -> Step | None:
        """The step; None where the run is over, or twinspan itself failed."""
        begun: Step | None = None
        with harmless(place.run.engine.failures, "starting a node"):
            if not place.run.is_closed:
                begun = cls(place, node, payload, **options)
        return begun

    @property
    def run(self) -> LiveRun:
        """The run that it belongs to."""
        return self._run

    @property
    def scope(self) -> str:
        """Where its superstep is numbered."""
        return self._place.task_id

    @property
    def context(self) -> Context:
        """The context in which the node runs."""
        return self._span.context

    @property
    def place(self) -> Place:
        """What runs inside the node belongs here."""
        return self._inner

    @contextmanager
    def running(self, *, pauses: tuple[type[BaseException], ...] = ()) -> Generator[None]:
        """The node runs in the block; where it raises, the step is over.

        Args:
            pauses: what it raises to wait for a person.
        """
        try:
            with standing_at(self._inner, self._span.context):
                yield
        except pauses:
            self._over("interrupted", None)
            self._run.interrupted = True
            raise
        except BaseException as error:
            self.fail(error)
            raise

    def fail(self, error: BaseException) -> None:
        """The node raised."""
        self._over(outcome_of(error), _failure(error))

    def _over(self, outcome: str, error: BaseException | None) -> None:
        with harmless(self._run.engine.failures, "ending a node"):
            self._run.drop_probes(self._place.task_id, self.superstep)
            self._run.end_node(self._span, outcome, error=error)

    # --- the gate ---------------------------------------------------------------------------------

    def close(self, answer: Any, *, targets: Targets = None, received: Any = None) -> Any:
        """Hand the answer on: it, or the one that replaces it.

        In a group the answer is given back as it is; the group hands it on.

        Args:
            answer: what the node answered.
            targets: the nodes that will read it; those that the graph knows if None.
            received: objects that the node was given and may pass on.

        Raises:
            BiasHalt: if the run is halted here.
        """
        if self._slot is not None:
            self._slot.put(self, answer, received)
            return answer
        (handed,) = close_together([(self, answer, received)], targets)
        return handed

    async def aclose(self, answer: Any, *, targets: Targets = None, received: Any = None) -> Any:
        """The same on an event loop.

        Raises:
            BiasHalt: if the run is halted here.
        """
        if self._slot is not None:
            self._slot.put(self, answer, received)
            return answer
        (handed,) = await aclose_together([(self, answer, received)], targets)
        return handed

    def settle(self, answer: Any, targets: Targets) -> Execution:
        """The node is over; its answer waits at the gate."""
        self._run.end_node(self._span, "ok", payload=answer)
        # What a node asks its models is seen in LangGraph only; elsewhere the record says so.
        self._run.launch_model_probes(self._span, (), in_loop=self._in_loop)
        return Execution(
            node=self.node,
            task_id=self.task_id,
            received=self._payload,
            payload=answer,
            targets=self.readers() if targets is None else targets,
            rerun=None if self._rerun is None else self._again,
        )

    def readers(self) -> tuple[str, ...]:
        """Who may read the answer, as far as the graph tells."""
        topology = self._run.topology
        if self.node not in topology.nodes:
            return (ANYONE,)
        return tuple(target for source, target in topology.edges if source == self.node)

    async def _again(self, payload: Any) -> Any:
        assert self._rerun is not None
        with unobserved():
            if self._in_loop:
                return await self._rerun(payload)
            return await asyncio.to_thread(self._rerun, payload)

    def hand_on(self, answer: Any, verdict: Verdict | None, received: Any) -> Any:
        """The answer, or what replaces it, on its way to whoever reads it."""
        if verdict is not None:
            answer = verdict.repairs.get(self.task_id, answer)
        self.note_handed(answer, received=received)
        return answer

    def note_handed(self, answer: Any, *parts: Any, received: Any = None) -> None:
        """Remember what leaves the step, so that whoever reads it is seen to read it.

        Args:
            answer: what was handed on, as the gate saw it.
            parts: the objects that travel, where they are others than the answer.
            received: objects that the node was given and may pass on.
        """
        with harmless(self._run.engine.failures, "handing a payload on"):
            self.handed = parent = Parent(
                node=self.node,
                task_id=self.task_id,
                payload_hash=self._run.hasher(answer),
                span=self._span.span.get_span_context(),
            )
            for part in parts or (answer,):
                self._flow.handed.note(part, parent, received)


def _failure(error: BaseException) -> BaseException | None:
    return error if outcome_of(error) == "error" else None


# --- supersteps -----------------------------------------------------------------------------

Answered = tuple[Step, Any, Any]
"""A step, its answer, and the objects that it had been given."""


def close_together(answered: Sequence[Answered], targets: Targets = None) -> list[Any]:
    """Decide finished steps as one superstep, and hand their answers on.

    Raises:
        BiasHalt: if the run is halted here.
    """
    first = answered[0][0]
    run = first.run
    verdict: Verdict | None = None
    with harmless(run.engine.failures, "a boundary"):
        executions = [step.settle(answer, targets) for step, answer, _ in answered]
        verdict = run.close_superstep(first.scope, first.superstep, executions)
    return [step.hand_on(answer, verdict, received) for step, answer, received in answered]


async def aclose_together(answered: Sequence[Answered], targets: Targets = None) -> list[Any]:
    """The same on an event loop.

    Raises:
        BiasHalt: if the run is halted here.
    """
    first = answered[0][0]
    run = first.run
    verdict: Verdict | None = None
    with harmless(run.engine.failures, "a boundary"):
        executions = [step.settle(answer, targets) for step, answer, _ in answered]
        verdict = await run.aclose_superstep(first.scope, first.superstep, executions)
    return [step.hand_on(answer, verdict, received) for step, answer, received in answered]


class Group:
    """Steps that are one superstep: the first step of each member."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.superstep = place.next_step()
        self._lock = threading.Lock()
        self._answered: dict[int, Answered] = {}

    def put(self, member: int, answered: Answered) -> None:
        """A member's step has answered."""
        with self._lock:
            self._answered[member] = answered

    @property
    def _ordered(self) -> list[int]:
        return sorted(self._answered)

    def close(self, answers: Sequence[Any]) -> list[Any]:
        """Decide, and put what is handed on in its place among the members' answers."""
        due = [self._answered[member] for member in self._ordered]
        return self._merged(answers, close_together(due) if due else [])

    async def aclose(self, answers: Sequence[Any]) -> list[Any]:
        """The same on an event loop."""
        due = [self._answered[member] for member in self._ordered]
        return self._merged(answers, await aclose_together(due) if due else [])

    def _merged(self, answers: Sequence[Any], handed: Sequence[Any]) -> list[Any]:
        merged = list(answers)
        for member, replaced in zip(self._ordered, handed, strict=True):
            if replaced is self._answered[member][1]:
                continue
            if merged[member] is not self._answered[member][1]:
                raise ConfigurationError(
                    "a node's answer was repaired, but its call in `parallel` gives something "
                    "else; hand `parallel` the nodes' own calls"
                )
            merged[member] = replaced
        return merged

    def abandon(self) -> None:
        """A member failed: nothing is handed on."""
        run = self.place.run
        with harmless(run.engine.failures, "ending a node"):
            for step, answer, _ in self._answered.values():
                step.settle(answer, ())
            run.drop_probes(self.place.task_id, self.superstep)


@dataclass(slots=True)
class Slot:
    """A member's place in its group, for one step."""

    group: Group
    member: int
    is_used: bool = False

    @property
    def superstep(self) -> int:
        """The group's superstep."""
        return self.group.superstep

    def put(self, step: Step, answer: Any, received: Any) -> None:
        """The step has answered."""
        self.group.put(self.member, (step, answer, received))


_slot: ContextVar[Slot | None] = ContextVar("twinspan_slot", default=None)


@contextmanager
def member_of(group: Group | None, member: int) -> Generator[None]:
    """The first step of the block belongs to a group."""
    token = _slot.set(None if group is None else Slot(group, member))
    try:
        yield
    finally:
        _slot.reset(token)


def free_slot(place: Place) -> Slot | None:
    """The slot that a step which begins here takes."""
    slot = _slot.get()
    if slot is None or slot.is_used or slot.group.place is not place:
        return None
    slot.is_used = True
    return slot
