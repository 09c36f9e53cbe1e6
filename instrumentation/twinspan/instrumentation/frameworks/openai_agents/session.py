"""One run of the SDK: which agent is at work, and from whom it took over."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from twinspan.instrumentation.frameworks.openai_agents.answers import answer_of, target_of
from twinspan.instrumentation.frameworks.openai_agents.rerun import Rerun
from twinspan.instrumentation.frameworks.openai_agents.revised import revised
from twinspan.instrumentation.frameworks.place import Place, flow_of
from twinspan.instrumentation.frameworks.stepwise import Step
from twinspan.instrumentation.gate import Topology
from twinspan.instrumentation.run import Parent


class Session:
    """The agents of one run, one after the other.

    Args:
        place: where the run takes place.
        is_root: whether the run is all there is: what its last agent says leaves the graph.
        given: what the application handed to the first agent.
        run: the SDK's own runner, not wrapped.
        options: the options of the run.
    """

    def __init__(
        self,
        place: Place,
        given: Any,
        *,
        is_root: bool,
        run: Callable[..., Any],
        options: dict[str, Any],
    ) -> None:
        self.place = place
        self.is_root = is_root
        self._run = run
        self._options = options
        self._parents, self._observed = flow_of(place.run).handed.parents_of(given)
        self._responses: dict[int, tuple[Any, Any]] = {}
        self._last: Step | None = None
        self.step: Step | None = None

    def at_work(self, agent: Any, payload: Any) -> Step | None:
        """The step of the agent whose model is called; begun at its first call."""
        if self.step is not None and self.step.node == self.place.name(agent.name):
            return self.step
        self._responses.clear()
        # A conversation that the server keeps would remember every probe.
        may_rerun = self._options.get("conversation_id") is None
        again = Rerun(self._run, agent, self._options, self._keep)
        self.step = Step.begin(
            self.place,
            agent.name,
            copy.deepcopy(payload),
            parents=self._taken_over(),
            observed=self._observed,
            rerun=again.answer if may_rerun else None,
            in_loop=True,
        )
        return self.step

    def _taken_over(self) -> tuple[Parent, ...]:
        if self._last is None or self._last.handed is None:
            return self._parents
        self._observed = True
        return (self._last.handed,)

    def _keep(self, answer: Any, response: Any) -> None:
        self._responses[id(answer)] = (answer, response)

    async def answered(self, step: Step, response: Any, handoffs: Sequence[Any]) -> Any:
        """Decide an agent's answer; the response that the SDK is to act on.

        Raises:
            BiasHalt: if the run is halted here.
        """
        answer = answer_of(response.output, handoffs)
        target = target_of(response.output, handoffs)
        self._last, self.step = step, None
        handed = await step.aclose(answer, targets=self._readers(target))
        if handed is answer:
            return response
        if id(handed) in self._responses:
            return self._responses[id(handed)][1] or response
        return revised(response, handed, handoffs)

    def _readers(self, target: str | None) -> tuple[str, ...] | None:
        if target is not None:
            return (self.place.name(target),)
        return () if self.is_root else None

    async def ended(self, final: Any) -> Any:
        """The run is over: an answer that no model gave is decided too.

        A tool's output may be the final one; then it is what the agent answered.
        """
        step, self.step = self.step, None
        if step is not None:
            self._last = step
            final = await step.aclose(final, targets=self._readers(None))
        return final

    def hand_out(self, *objects: Any) -> None:
        """What the application is given comes from the last agent."""
        if self._last is not None and self._last.handed is not None:
            for each in objects:
                flow_of(self.place.run).handed.note(each, self._last.handed)

    def failed(self, error: BaseException) -> None:
        """The run raised: whoever was at work did not answer."""
        step, self.step = self.step, None
        if step is not None:
            step.fail(error)


_session: ContextVar[Session | None] = ContextVar("twinspan_openai_session", default=None)


def current_session() -> Session | None:
    """The run of the SDK around the running code."""
    return _session.get()


session_variable = _session


def topology_of(agent: Any) -> Topology:
    """The agents that can be reached by handoffs, and the handoffs."""
    nodes: dict[str, None] = {}
    edges: dict[tuple[str, str], None] = {}
    due = [agent]
    while due:
        current = due.pop(0)
        if current is None or current.name in nodes:
            continue
        nodes[current.name] = None
        for handoff in getattr(current, "handoffs", None) or ():
            target = handoff if hasattr(handoff, "handoffs") else _agent_of(handoff)
            name = target.name if target is not None else getattr(handoff, "agent_name", None)
            if name is not None:
                edges[current.name, name] = None
                due.append(target)
    unlisted = [target for _, target in edges if target not in nodes]
    conditional = frozenset(edges)
    return Topology(
        name=agent.name,
        nodes=(*nodes, *dict.fromkeys(unlisted)),
        edges=tuple(edges),
        conditional=conditional,
    )


def _agent_of(handoff: Any) -> Any:
    reference = getattr(handoff, "_agent_ref", None)
    return None if reference is None else reference()
