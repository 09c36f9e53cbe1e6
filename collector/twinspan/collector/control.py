"""The gate between supersteps: reduce, decide, have it on disk, answer."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from opentelemetry.sdk.trace import SpanProcessor

from twinspan.collector.allocation import inclusion_probabilities
from twinspan.collector.decision import BreakerDecision, BreakerState, Decision
from twinspan.collector.evidence import Evidence
from twinspan.collector.history_file import read_history
from twinspan.collector.intervention.escalation import tell_person
from twinspan.collector.intervention.proposals import Repairer
from twinspan.collector.intervention.routing import Route, route_intervention
from twinspan.collector.intervention.runner import Intervention, Tried
from twinspan.collector.intervention.setup import Repairs
from twinspan.collector.processor import ControlProcessor
from twinspan.collector.recorder import Recorder
from twinspan.collector.records import ProbeRecord
from twinspan.collector.resetting import reset_recorded, reset_state
from twinspan.collector.resuming import TakenUp, take_up
from twinspan.collector.run_control import (
    RunControl,
    measurement_of,
    options_for,
)
from twinspan.collector.run_files import read_run
from twinspan.collector.runs import Runs, RunState
from twinspan.collector.telling import cut_edges, halt_of, payload_of, run_configuration, tell
from twinspan.collector.topology import AgentDAG
from twinspan.collector.weights import DependencyWeights, dependency_weights
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import UnknownRun
from twinspan.instrumentation.gate import (
    PROCEED,
    Boundary,
    NodeWeight,
    RunPlan,
    Topology,
    Verdict,
)
from twinspan.instrumentation.run import topology_attributes
from twinspan.instrumentation.settings import BreakerOptions, Settings
from twinspan.instrumentation.tracing import RunTracer

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """What `decide` hands to `repair`.

    Attributes:
        decision: the decision.
        guilty: the scores whose payloads are frozen, the largest impact first.
        scored: all scores of the superstep.
    """

    decision: BreakerDecision
    guilty: tuple[ProbeRecord, ...]
    scored: tuple[ProbeRecord, ...]

    @property
    def kept(self) -> list[ProbeRecord]:
        """The scores of executions that are not repaired."""
        repaired = {record.task_id for record in self.guilty}
        return [record for record in self.scored if record.task_id not in repaired]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weighed:
    """A graph with what is known of it before a run."""

    dag: AgentDAG
    options: BreakerOptions
    weights: DependencyWeights
    nodes: Mapping[str, NodeWeight]
    probed_depth: int | None


def _attempt(attempt: int) -> dict[str, object]:
    return {c.SUPERSTEP_ATTEMPT: attempt} if attempt else {}


def _is_news(state: RunState, boundary: Boundary, records: Sequence[ProbeRecord]) -> bool:
    """Whether there is something to decide.

    A superstep that was decided may come again, after a crash or parted by an interrupt; without
    new scores its decision stands. What waits for a person goes on waiting.
    """
    return (
        any([record.delta is not None for record in records])
        or not state.control.has_decided(*boundary.place)
        or state.control.state.state is BreakerState.ESCALATED
    )


class ControlGate:
    """The collector behind the gate: state per run, decisions from spans alone.

    Args:
        settings: the options.
        recorder: where spans go; decisions are on its disk before they are enforced.
    """

    def __init__(self, settings: Settings, *, recorder: Recorder | None = None) -> None:
        self.settings = settings
        self.runs = Runs()
        self.recorder = recorder
        self._control = ControlProcessor(self.runs)
        self._repairs = Repairs.of(settings)
        self._weighed: dict[Topology, _Weighed] = {}
        self._unfinished: set[str] = set()
        self._told_at = 1
        file = settings.breaker.history
        self._history = None if file is None else read_history(file)

    @property
    def processors(self) -> Sequence[SpanProcessor]:
        """Control first, then the record."""
        if self.recorder is None:
            return (self._control,)
        return (self._control, self.recorder)

    @property
    def enforces(self) -> bool:
        """Whether verdicts stop or change runs."""
        return self.settings.breaker.mode != "shadow"

    # --- a run begins -------------------------------------------------------------------------

    def open_run(self, run: RunTracer, topology: Topology) -> RunPlan:
        """Weigh the graph, and give the run a state of its own."""
        graph = self._weigh(topology)
        dag, weighed, probed_depth = graph.dag, graph.weights, graph.probed_depth
        scaled, shares = weighed.scaled, weighed.shares
        labels = self.settings.probe.labels
        fresh = RunControl.begin(dag, scaled, labels, graph.options, probed_depth=probed_depth)
        taken = self._take_up(run, topology, fresh) if run.resumed else None
        state = RunState(tracer=run, control=fresh) if taken is None else taken.state
        self._make_room(self.runs.open(run.run_id, state))
        return RunPlan(
            weights=graph.nodes,
            rates=self._rates(shares),
            attributes={
                **run_configuration(fresh.options),
                c.GRAPH_CYCLIC: not weighed.acyclic,
                c.GRAPH_DEPTH: dag.depth or None,
                c.GRAPH_PROBED_DEPTH: probed_depth,
                c.GRAPH_NODE_COUNT: len(dag),
                c.AUDIT_AXES: list(self.settings.probe.labels),
                c.RUN_RESUMED: None if taken is None else taken.how,
            },
            node_attributes={} if self._history is None else self._history.attributes(shares),
            attempts=dict(state.halts),
            spent=state.spent,
            executed=Counter(state.decided.values()),
        )

    def _take_up(self, run: RunTracer, topology: Topology, fresh: RunControl) -> TakenUp:
        """The state of a run that goes on: from the record, else from memory, else anew."""
        kept = self.runs.take_up(run.run_id)
        if self.recorder is not None:
            self.recorder.flush(run.run_id)
            recorded = read_run(self.recorder.folder, run.run_id)
            if recorded is not None:
                return take_up(
                    recorded,
                    run,
                    fresh,
                    graph_id=topology_attributes(topology)[c.GRAPH_ID],
                )
        if kept is not None:
            kept.tracer = run
            return TakenUp(state=kept, how="memory")
        _logger.warning(
            "run %s goes on, and nothing is known of it here: its control begins anew; "
            "set `record` to a folder that all its processes share",
            run.run_id,
        )
        return TakenUp(state=RunState(tracer=run, control=fresh), how="lost")

    def _make_room(self, gone: Sequence[str]) -> None:
        """Let go of runs that never ended; told again only when there are twice as many."""
        for run_id in gone:
            self.run_ended(run_id)
        given_up = self.runs.given_up
        if given_up >= self._told_at:
            self._told_at = 2 * given_up
            _logger.warning(
                "%d run(s) never ended and were given up, %s the latest; "
                "one that goes on is not controlled",
                given_up,
                gone[-1],
            )

    def _rates(self, shares: Mapping[str, float]) -> dict[str, float]:
        """Probability of probing each node that may be probed."""
        options = self.settings.probe
        covered = {node: share for node, share in shares.items() if options.covers(node)}
        if options.probed_nodes is None or not covered:
            return {}
        expected = max(options.probed_nodes, options.minimum_rate * len(covered))
        return inclusion_probabilities(
            covered, expected=min(expected, len(covered)), minimum=options.minimum_rate
        )

    def _weigh(self, topology: Topology) -> _Weighed:
        known = self._weighed.get(topology)
        if known is None:
            options = self.settings.breaker
            dag = AgentDAG(topology.edges, nodes=topology.nodes)
            weights = dependency_weights(dag, options.weights, options.attenuation)
            known = _Weighed(
                dag=dag,
                options=options_for(dag, options),
                weights=weights,
                nodes={
                    node: NodeWeight(
                        scaled=weights.scaled[node],
                        share=weights.shares[node],
                        method=options.weights,
                    )
                    for node in dag.nodes
                },
                probed_depth=dag.depth_of(self.settings.probe.covers) or None,
            )
            self._weighed[topology] = known
        return known

    # --- a superstep is over ------------------------------------------------------------------

    def decide(self, boundary: Boundary) -> Verdict:
        """Take a superstep's scores in, decide, and write the decision down."""
        state = self.runs.get(boundary.run.run_id)
        if state is None or not self.settings.probe.axes:
            return PROCEED
        place = boundary.place
        records = self.runs.take_out(boundary.run.run_id, *place)
        attempt = state.halts.get(place, 0)
        if not attempt:
            records = state.undecided(records)
            if not _is_news(state, boundary, records):
                return PROCEED
        evidence, is_repair = state.control.take_in_executed(records, attempt=attempt)
        suspects = state.control.suspects(evidence)
        decision = self._decide(
            state, boundary, evidence, suspects, attempt=attempt, is_repair=is_repair
        )
        halted = decision.halted
        guilty = suspects if halted else ()
        tell(
            state,
            boundary,
            decision,
            evidence=evidence,
            guilty=guilty,
            extra=_attempt(attempt),
        )
        if attempt and not halted:
            del state.halts[place]
            state.note_decided(records)
        if not halted or not decision.enforced:
            return PROCEED
        incident = Incident(decision=decision, guilty=guilty, scored=evidence.scored)
        return self._stop(boundary, incident)

    def _decide(
        self,
        state: RunState,
        boundary: Boundary,
        evidence: Evidence,
        suspects: Sequence[ProbeRecord],
        *,
        repair: int | None = None,
        attempt: int = 0,
        is_repair: bool = False,
    ) -> BreakerDecision:
        edges = cut_edges(boundary, suspects)
        return state.control.decide(
            state.control.name(*boundary.place, repair=repair, attempt=attempt),
            measurement=measurement_of(
                evidence, repair=is_repair or repair is not None, bound=state.control.bound
            ),
            payload={record.node: payload_of(boundary, record.task_id) for record in suspects},
            edge=edges[0] if edges else None,
        )

    def _stop(self, boundary: Boundary, incident: Incident) -> Verdict:
        decision, guilty = incident.decision, incident.guilty
        if self.recorder is not None:
            self.recorder.commit(boundary.run.run_id)
        repairs = self.settings.breaker.mode == "repair" and bool(guilty)
        if not repairs:
            self._stopped(boundary)
        return Verdict(
            action="repair" if repairs else "halt",
            halt=halt_of(boundary, decision, guilty),
            ticket=incident,
            guilty=tuple(dict.fromkeys(record.task_id for record in guilty)),
        )

    # --- an intervention ----------------------------------------------------------------------

    def route(self, verdict: Verdict, run_id: str) -> Route | None:
        """How what `decide` froze is to be repaired; None for what was not frozen here."""
        state, incident = self.runs.get(run_id), verdict.ticket
        if state is None or not isinstance(incident, Incident):
            return None
        return route_intervention(
            incident.decision, state.control.spread, threshold=self.settings.breaker.breadth
        )

    @property
    def repairs(self) -> Repairs:
        """The repairs that are set up."""
        return self._repairs

    async def repair(
        self, boundary: Boundary, verdict: Verdict, *, first: Repairer | None = None
    ) -> Verdict:
        """Repair what was frozen, measure again, and let the machine judge the measurement.

        Args:
            boundary: the superstep.
            verdict: what `decide` said of it.
            first: the repair that is tried first, such as a panel that was asked already; as
                the options say if None.
        """
        state = self.runs.get(boundary.run.run_id)
        incident = verdict.ticket
        if state is None or not isinstance(incident, Incident):
            self._stopped(boundary)
            return Verdict(action="halt", halt=verdict.halt)
        route = route_intervention(
            incident.decision, state.control.spread, threshold=self.settings.breaker.breadth
        )
        order = [*([] if first is None else [first]), *self._repairs.order(route)]
        decision, held = incident.decision, dict[str, Tried]()
        tried: list[Tried] = []
        for number in range(state.control.machine.max_retries):
            repairer = order[min(number, len(order) - 1)]
            now = await self._intervene(
                state, boundary, incident, repairer=repairer, route=route, but=held
            )
            tried += now
            together = [*now, *held.values()]
            decision = self._recheck(state, boundary, together, incident)
            if not decision.halted:
                self._hand_over(state, together)
                payloads = {item.task_id: item.payload for item in together}
                return Verdict(action="repair", repairs=payloads)
            held = self._that_hold(together)
            if decision.decision is Decision.ESCALATE:
                tell_person(boundary, incident.guilty, rounds=state.interventions)
                break
        for item in held.values():
            item.close("unchanged", reason="others_failed")
        told = tuple(item.as_mapping() for item in tried)
        halt = halt_of(boundary, decision, incident.guilty, tried=told)
        if self.recorder is not None:
            self.recorder.commit(boundary.run.run_id)
        self._stopped(boundary)
        return Verdict(action="halt", halt=halt)

    def _stopped(self, boundary: Boundary) -> None:
        """The superstep stays halted; whoever executes it again makes another attempt."""
        state = self.runs.get(boundary.run.run_id)
        if state is not None:
            state.halts[boundary.place] = state.halts.get(boundary.place, 0) + 1
            for execution in boundary.executions:
                state.decided.pop(execution.task_id, None)

    async def _intervene(
        self,
        state: RunState,
        boundary: Boundary,
        incident: Incident,
        *,
        repairer: Repairer,
        route: Route,
        but: Collection[str],
    ) -> list[Tried]:
        """Repair the guilty executions, but those that are repaired already."""
        state.interventions += 1
        intervention = Intervention(
            settings=self.settings,
            runs=self.runs,
            boundary=boundary,
            round=state.interventions,
            repairer=repairer,
            route=route,
            verifier=self._repairs.verifier,
        )
        tried: list[Tried] = []
        for task_id in dict.fromkeys(record.task_id for record in incident.guilty):
            if task_id not in but:
                of_task = [record for record in incident.guilty if record.task_id == task_id]
                tried.append(await intervention.run(task_id, of_task))
        return tried

    def _recheck(
        self,
        state: RunState,
        boundary: Boundary,
        tried: Sequence[Tried],
        incident: Incident,
    ) -> BreakerDecision:
        """Take the new measurement in, and let the machine judge it; a failure counts as a try."""
        failed = any(item.failed for item in tried)
        measured = [] if failed else [record for item in tried for record in item.measured]
        evidence = state.control.take_in_again(incident.kept, measured)
        decision = self._decide(
            state,
            boundary,
            evidence,
            incident.guilty,
            repair=state.interventions,
            attempt=state.halts.get(boundary.place, 0),
        )
        tell(
            state,
            boundary,
            decision,
            evidence=evidence,
            guilty=incident.guilty,
            extra={
                c.INTERVENTION_ID: tried[0].intervention_id,
                **_attempt(state.halts.get(boundary.place, 0)),
            },
        )
        return decision

    def _that_hold(self, tried: Sequence[Tried]) -> dict[str, Tried]:
        """The repairs to keep for another round, by task; of the others is said why they ended.

        Where each of them is shown to be below the bound and the alarm goes on, none is kept.
        """
        bound = self.settings.breaker.equivalence
        holding = {item.task_id: item for item in tried if item.after.equivalent(bound)}
        for item in tried:
            if len(holding) == len(tried):
                item.close("unchanged", reason="alarm")
            elif item.task_id not in holding and not item.failed:
                item.close("unchanged", reason="not_below_bound")
        return holding if len(holding) < len(tried) else {}

    def _hand_over(self, state: RunState, repaired: Sequence[Tried]) -> None:
        for item in repaired:
            item.reason = "below_bound"
            state.handovers[item.task_id] = item

    def consumed(self, run_id: str, node: str, parents: Sequence[str], input_hash: str) -> None:
        """A reader has its payload: the interventions on it are over."""
        state = self.runs.get(run_id)
        if state is None or not state.handovers:
            return
        for task_id in parents:
            item = state.handovers.pop(task_id, None)
            if item is not None:
                item.close("cleared", reader=node, handed_hash=input_hash)

    # --- a run ends ---------------------------------------------------------------------------

    def close_run(self, run_id: str) -> Mapping[str, object]:
        """The run's last numbers; repaired payloads that nobody read are told so."""
        state = self.runs.close(run_id)
        if state is None:
            return {}
        for item in state.handovers.values():
            item.close("cleared")
        state.handovers.clear()
        if state.tracer.resumable and self.recorder is None:
            self.runs.keep(run_id, state)
        elif state.tracer.resumable:
            self._unfinished.add(run_id)
        control = state.control
        network = control.accumulator.state
        probed = bool(self.settings.probe.axes)
        return {
            c.NETWORK_SCORE: network.fast if network.step else None,
            c.MONITOR_VALUE: control.monitor.state.value if probed else None,
            c.BREAKER_STATE_TO: control.state.state.value if probed else None,
        }

    def run_ended(self, run_id: str) -> None:
        """Everything of the run goes to disk.

        The caller of a run that is over does not wait for it. Of one that may go on he does:
        another process may take it up next.
        """
        if self.recorder is None:
            return
        if run_id in self._unfinished:
            self._unfinished.discard(run_id)
            self.recorder.close_run(run_id)
        else:
            self.recorder.end_run(run_id)

    # --- a person ------------------------------------------------------------------------------

    def reset(self, run_id: str, *, by: str) -> BreakerDecision:
        """Let a stopped run go on: a decision of a person, chained and recorded like any other.

        Args:
            run_id: the run, live or stopped.
            by: who decides it, as they call themselves; it is recorded.

        Raises:
            UnknownRun: nothing is known of the run here.
            NothingToReset: the run is not stopped.
        """
        state = self.runs.get(run_id)
        if state is None and self.recorder is not None:
            return reset_recorded(self.recorder, run_id, by=by)
        state = state or self.runs.kept(run_id)
        if state is None:
            raise UnknownRun(run_id, where="this process, which keeps no record")
        decision = reset_state(state, by=by)
        if self.recorder is not None:
            self.recorder.commit(run_id)
        return decision

    def shutdown(self) -> None:
        """Flush the record."""
        if self.recorder is not None:
            self.recorder.shutdown()
