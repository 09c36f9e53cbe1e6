"""The nodes of explicit mode: breaker, release, router, repair, skeptic, panel, person.

Each finds its incident in the run that it belongs to, and tells the graph by a `Command` where
to go on. All that travels in the state is plain data.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from langchain_core.runnables import RunnableLambda
from langgraph.config import get_config
from langgraph.types import Command, Send, interrupt

from twinspan.collector.control import ControlGate
from twinspan.collector.intervention.panel import heard
from twinspan.collector.intervention.proposals import Repairer
from twinspan.collector.intervention.strategies import PanelRepair
from twinspan.collector.langgraph.gathered import GatheredPanel, case_of, plain, review_of
from twinspan.collector.langgraph.state import BiasState, Incident
from twinspan.instrumentation.errors import BiasHalt, ConfigurationError, TwinspanError
from twinspan.instrumentation.frameworks.langgraph.explicit import (
    BREAKER_SUFFIX,
    FROZEN,
    INCIDENTS,
    RELEASE_SUFFIX,
    REVIEWS,
)
from twinspan.instrumentation.frameworks.langgraph.names import CHECKPOINTER
from twinspan.instrumentation.frameworks.langgraph.scope import current_holder
from twinspan.instrumentation.frameworks.langgraph.writes import GOTO
from twinspan.instrumentation.gate import OpenIncident, Verdict
from twinspan.instrumentation.narrowing import as_mapping
from twinspan.instrumentation.run import LiveRun

ROUTER: Final = "bias.router"
REPAIR: Final = "bias.repair"
SKEPTIC: Final = "bias.skeptic"
PANEL: Final = "bias.panel"
PERSON: Final = "bias.person"

RELEASE: Final = "release"
"""A person's answer that lets the frozen payload pass."""


def breaker_of(node: str) -> str:
    """The breaker behind a node.

    >>> breaker_of("analyst")
    'analyst.breaker'
    """
    return node + BREAKER_SUFFIX


def release_of(node: str) -> str:
    """Where a node's payload goes on to its readers.

    >>> release_of("analyst")
    'analyst.release'
    """
    return node + RELEASE_SUFFIX


def make_breaker(node: str) -> Callable[[BiasState], Command[Any]]:
    """The breaker behind a node: it lets pass, or hands the incident to the router."""

    def breaker(state: BiasState) -> Command[Any]:
        incident = (state.get(INCIDENTS) or {}).get(node)
        if incident is None or incident["outcome"] != "open":
            return Command(goto=release_of(node))
        frozen = (state.get(FROZEN) or {}).get(node)
        return Command(goto=Send(ROUTER, {"incident": incident, "frozen": frozen}))

    return breaker


def release(state: Any) -> dict[str, Any]:
    """Hand on: the node's own edges begin here."""
    return {}


# --- mitigation ----------------------------------------------------------------------------------


def route(state: dict[str, Any]) -> Command[Any]:
    """Choose the repair: a panel is asked by `Send`, everything else is one node."""
    told: Incident = state["incident"]
    run, gate, incident = _here(told)
    if gate.settings.breaker.mode == "halt":
        return Command(goto=Send(PERSON, state))
    found = gate.route(incident.verdict, run.run_id)
    first = None if found is None else gate.repairs.order(found)[0]
    if not isinstance(first, PanelRepair):
        return Command(goto=Send(REPAIR, state))
    seats = range(len(first.panel.skeptics))
    return Command(goto=[Send(SKEPTIC, {"incident": told, "seat": seat}) for seat in seats])


async def ask_skeptic(state: dict[str, Any]) -> dict[str, Any]:
    """One skeptic's review of a frozen answer."""
    told: Incident = state["incident"]
    _, gate, incident = _here(told)
    panel = _panel(gate).panel
    seated = panel.skeptics[int(state["seat"])]
    review = await heard(seated, case_of(gate, incident), timeout=panel.timeout)
    said = {"incident": told["id"], "seat": state["seat"], **plain(review)}
    return {REVIEWS: [said]}


async def weigh(state: BiasState) -> Command[Any]:
    """Weigh the skeptics' reviews of every open incident, measure their revisions, hand on."""
    commands: list[Command[Any]] = []
    for told in (state.get(INCIDENTS) or {}).values():
        said = [each for each in state.get(REVIEWS) or [] if each["incident"] == told["id"]]
        if not said or told["outcome"] != "open":
            continue
        _, gate, _ = _here(told)
        ordered = sorted(said, key=lambda each: int(each["seat"]))
        chosen = _panel(gate)
        gathered = GatheredPanel(chosen.panel, [review_of(each) for each in ordered])
        frozen = (state.get(FROZEN) or {}).get(told["node"])
        commands.append(await _repaired(told, frozen, PanelRepair(panel=gathered)))
    return _together(commands)


async def repair(state: dict[str, Any]) -> Command[Any]:
    """Try the configured repairs of one incident and measure each of them."""
    return await _repaired(state["incident"], state["frozen"], None)


async def _repaired(told: Incident, frozen: Any, first: Repairer | None) -> Command[Any]:
    run, gate, incident = _here(told)
    verdict = await gate.repair(incident.boundary, incident.verdict, first=first)
    payload = verdict.repairs.get(incident.execution.task_id)
    if verdict.action != "repair" or payload is None:
        escalated: Incident = {**told, "outcome": "escalated"}
        given = {"incident": escalated, "frozen": frozen, "tried": _tries(verdict)}
        return Command(goto=Send(PERSON, given), update={INCIDENTS: {told["node"]: escalated}})
    run.incidents.pop(incident.id, None)
    gate.consumed(
        run.run_id, release_of(told["node"]), [told["task_id"]], incident.boundary.hasher(payload)
    )
    return _going_on(told, "repaired", payload)


def ask_person(state: dict[str, Any]) -> Command[Any]:
    """Ask a person, by LangGraph's `interrupt`, what is to become of a payload.

    The question has the incident, the frozen payload and the repairs that were tried. The answer
    is `release` (the frozen payload goes on after all), `stop`, or a mapping with `do` or with
    the `payload` that goes on instead, and with `by`, who decided. The run's control is reset by
    that person, on record.

    Raises:
        BiasHalt: if the person stops the run, or no checkpointer keeps it for one.
    """
    told: Incident = state["incident"]
    holder = current_holder.get()
    if not _is_saved():
        raise _halt(told)
    answer = interrupt({**told, "frozen": state["frozen"], "tried": state.get("tried") or []})
    said = as_mapping(answer) or {"do": answer}
    payload = as_mapping(said.get("payload"))
    if payload is None and said.get("do") != RELEASE:
        raise _halt(told)
    if holder is not None:
        holder.run.incidents.pop(told["id"], None)
        _reset(holder.run, str(said.get("by", "person")))
    if payload is not None:
        return _going_on(told, "replaced", payload)
    return _going_on(told, "released", state["frozen"])


def _is_saved() -> bool:
    """Whether a checkpointer keeps the run until a person has answered."""
    inner = get_config().get("configurable") or {}
    return inner.get(CHECKPOINTER) is not None


# --- parts ---------------------------------------------------------------------------------------


def _here(told: Incident) -> tuple[LiveRun, ControlGate, OpenIncident]:
    holder = current_holder.get()
    incident = None if holder is None else holder.run.incidents.get(told["id"])
    gate = None if holder is None else holder.run.engine.collector
    if holder is None or incident is None or not isinstance(gate, ControlGate):
        raise ConfigurationError(
            f"incident {told['id']!r} is not of this run; run the graph from its last decision "
            "on, with twinspan instrumented"
        )
    return holder.run, gate, incident


def _panel(gate: ControlGate) -> PanelRepair:
    panel = gate.repairs.panel
    assert panel is not None
    return panel


def _tries(verdict: Verdict) -> list[dict[str, object]]:
    tried = () if verdict.halt is None else verdict.halt.tried
    return [dict(each) for each in tried]


def _going_on(told: Incident, outcome: str, payload: Any) -> Command[Any]:
    node = told["node"]
    update = {key: value for key, value in dict(payload).items() if key != GOTO}
    ended: dict[str, Any] = {
        INCIDENTS: {node: {**told, "outcome": outcome}},
        FROZEN: {node: None},
    }
    return Command(goto=release_of(node), update={**update, **ended})


def _together(commands: list[Command[Any]]) -> Command[Any]:
    if len(commands) == 1:
        return commands[0]
    updates = [pair for command in commands for pair in dict(command.update or {}).items()]
    goto = [target for command in commands for target in _targets(command.goto)]
    return Command(goto=goto, update=updates)


def _targets(goto: Any) -> list[Any]:
    return [goto] if isinstance(goto, str | Send) else list(goto)


def _halt(told: Incident) -> BiasHalt:
    holder = current_holder.get()
    run_id = "" if holder is None else holder.run.run_id
    known = None if holder is None else holder.run.incidents.get(told["id"])
    if known is not None and known.verdict.halt is not None:
        return known.verdict.halt
    edge = f"{told['node']}->{release_of(told['node'])}"
    return BiasHalt(run_id=run_id, edge=edge, reason=told["reason"])


def _reset(run: LiveRun, by: str) -> None:
    gate = run.engine.collector
    if isinstance(gate, ControlGate):
        try:
            gate.reset(run.run_id, by=by)
        except TwinspanError:
            return  # nothing of the run's control is known here: there is nothing to reset


def _on_any_loop(work: Callable[[Any], Awaitable[Any]]) -> RunnableLambda[Any, Any]:
    """An async node for plain runs too."""

    def plainly(state: Any) -> Any:
        holder = current_holder.get()
        assert holder is not None
        return holder.run.engine.loop.submit(_called(work, state)).result()

    return RunnableLambda(plainly, work, name=getattr(work, "__name__", None))


async def _called(work: Callable[[Any], Awaitable[Any]], state: Any) -> Any:
    return await work(state)


MITIGATION_NODES: Final[dict[str, tuple[Any, tuple[str, ...]]]] = {
    ROUTER: (route, (REPAIR, SKEPTIC, PERSON)),
    REPAIR: (_on_any_loop(repair), (PERSON,)),
    SKEPTIC: (_on_any_loop(ask_skeptic), ()),
    PANEL: (_on_any_loop(weigh), (PERSON,)),
    PERSON: (ask_person, ()),
}
"""The shared nodes, and where they go beside the releases."""
