"""Writes a decision down: one `update_network_score` span, chained to the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from opentelemetry.trace import Link
from opentelemetry.util.types import AttributeValue

from twinspan.collector.chain import decision_hash
from twinspan.collector.decision import BreakerDecision
from twinspan.collector.evidence import Evidence
from twinspan.collector.path_watch import PathWatch
from twinspan.collector.records import ProbeRecord
from twinspan.collector.runs import RunState
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.attributes import clean_attributes
from twinspan.instrumentation.errors import BiasHalt
from twinspan.instrumentation.gate import Boundary
from twinspan.instrumentation.settings import BreakerOptions
from twinspan.instrumentation.span_attributes import plain_attributes


def configuration(options: BreakerOptions) -> dict[str, object]:
    """The options in force, as run and decision spans carry them."""
    return {
        c.NETWORK_ALPHA_FAST: options.fast_alpha,
        c.NETWORK_ALPHA_SLOW: options.slow_alpha,
        c.NETWORK_REDUCTION: options.reduction,
        c.BREAKER_TRIGGER: options.trigger,
        c.BREAKER_THRESHOLD_ENTER: options.tau_enter,
        c.BREAKER_THRESHOLD_EXIT: options.tau_exit,
    }


@cache
def _fixed(options: BreakerOptions) -> Mapping[str, AttributeValue]:
    """The configuration as every decision span carries it, cleaned once."""
    return MappingProxyType(clean_attributes(configuration(options)))


def run_configuration(options: BreakerOptions) -> dict[str, object]:
    """Everything that a decision depends on besides spans, as the run span carries it."""
    return {
        **configuration(options),
        c.MONITOR_ALPHA: options.alpha,
        c.NETWORK_WEIGHTS: options.weights,
        c.NETWORK_ATTENUATION: options.attenuation,
        c.BREAKER_THRESHOLD_WARN: options.tau_warn,
        c.BREAKER_SCALING: options.scaling,
        c.BREAKER_MODE: options.mode,
        c.BREAKER_COOLDOWN: options.cooldown,
        c.BREAKER_MAX_RETRIES: options.max_retries,
        c.BREAKER_EQUIVALENCE: options.equivalence,
        c.BREAKER_BREADTH: options.breadth,
    }


OPTION_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "fast_alpha": c.NETWORK_ALPHA_FAST,
        "slow_alpha": c.NETWORK_ALPHA_SLOW,
        "reduction": c.NETWORK_REDUCTION,
        "trigger": c.BREAKER_TRIGGER,
        "tau_enter": c.BREAKER_THRESHOLD_ENTER,
        "tau_exit": c.BREAKER_THRESHOLD_EXIT,
        "tau_warn": c.BREAKER_THRESHOLD_WARN,
        "alpha": c.MONITOR_ALPHA,
        "weights": c.NETWORK_WEIGHTS,
        "attenuation": c.NETWORK_ATTENUATION,
        "scaling": c.BREAKER_SCALING,
        "mode": c.BREAKER_MODE,
        "cooldown": c.BREAKER_COOLDOWN,
        "max_retries": c.BREAKER_MAX_RETRIES,
        "equivalence": c.BREAKER_EQUIVALENCE,
        "breadth": c.BREAKER_BREADTH,
    }
)
"""The attribute of a run span that carries each of the breaker's options."""


def options_of(read: Mapping[str, Any]) -> BreakerOptions:
    """The options that a run span carries; the inverse of `run_configuration`.

    >>> chosen = BreakerOptions(mode="halt", alpha=0.01, cooldown=2)
    >>> options_of(run_configuration(chosen)) == chosen
    True
    """
    given = {name: read[key] for name, key in OPTION_KEYS.items() if read.get(key) is not None}
    return BreakerOptions(**given)


def _network(state: RunState, evidence: Evidence) -> dict[str, object]:
    control = state.control
    network, monitor = control.accumulator.state, control.monitor.state
    reduced = network.superstep if evidence.scored and control.on_scale else None
    step = network.step
    scored = step > 0
    return {
        c.NETWORK_STEP: step,
        c.NETWORK_INPUT: None if reduced is None else reduced.value,
        c.NETWORK_ESTIMATOR: network.estimator if scored else None,
        c.NETWORK_SCORE: network.fast if scored else None,
        c.NETWORK_SCORE_RAW: network.fast_average.raw if scored else None,
        c.NETWORK_SCORE_FAST: network.fast if scored else None,
        c.NETWORK_SCORE_SLOW: network.slow if scored else None,
        c.NETWORK_SCORE_STANDARDIZED: network.fast_standardised if scored else None,
        c.NETWORK_OBSERVED_WEIGHT: control.observed_share,
        c.NETWORK_PROBE_SETS: tuple([record.set_id for record in evidence.scored]),
        c.MONITOR_VALUE: monitor.value,
        c.MONITOR_ALPHA: monitor.alpha,
        c.MONITOR_THRESHOLD: monitor.limit,
        c.MONITOR_SPARSE: monitor.sparse,
        c.MONITOR_RESTART: monitor.restarts,
        **({} if control.paths is None else path_attributes(control.paths)),
    }


def path_attributes(paths: PathWatch) -> dict[str, object]:
    """What a decision says of the permuted paths."""
    return {c.PATH_RANKS: paths.ranks, c.PATH_FIRED: paths.fired}


def _decision(decision: BreakerDecision) -> dict[str, object]:
    return {
        c.BREAKER_STATE_FROM: decision.state_from.value,
        c.BREAKER_STATE_TO: decision.state_to.value,
        c.BREAKER_DECISION: decision.decision.value,
        c.BREAKER_REASON: decision.reason.value,
        c.BREAKER_MARGIN: decision.margin,
        c.BREAKER_MIXING_RATIO: decision.mixing_ratio,
        c.BREAKER_ENFORCED: decision.enforced,
    }


def _cut(boundary: Boundary, guilty: Sequence[ProbeRecord]) -> dict[str, object]:
    """What was cut: the edges out of the guilty nodes, and the payload that was frozen."""
    if not guilty:
        return {}
    edges = cut_edges(boundary, guilty)
    worst = guilty[0]
    payload = payload_of(boundary, worst.task_id)
    return {
        c.BREAKER_EDGE: edges[0],
        c.BREAKER_EDGES: edges,
        c.BREAKER_NODE: worst.node,
        c.BREAKER_AXIS: worst.axis,
        c.BREAKER_PAYLOAD_HASH: boundary.hasher(payload),
        c.MONITOR_GUILTY: [f"{record.node}|{record.axis}" for record in guilty],
    }


def cut_edges(boundary: Boundary, guilty: Sequence[ProbeRecord]) -> list[str]:
    """The edges out of the guilty nodes, the worst node's first.

    Where a payload leaves the graph, its reader is called `__end__`.
    """
    if not guilty:
        return []
    targets = {execution.task_id: execution.targets for execution in boundary.executions}
    edges = [
        c.edge_name(record.node, target)
        for record in guilty
        for target in targets.get(record.task_id, ()) or ("__end__",)
    ]
    return list(dict.fromkeys(edges))


def payload_of(boundary: Boundary, task_id: str) -> object:
    """What an execution of the superstep hands on."""
    for execution in boundary.executions:
        if execution.task_id == task_id:
            return execution.payload
    return None


def tell(
    state: RunState,
    boundary: Boundary,
    decision: BreakerDecision,
    *,
    evidence: Evidence,
    guilty: Sequence[ProbeRecord] = (),
    extra: Mapping[str, object] | None = None,
) -> None:
    """Write a decision as a span and chain it to the run's decision before."""
    halted = decision.halted
    span = boundary.run.start(
        c.SPAN_NETWORK,
        "network",
        {
            c.SUPERSTEP_INDEX: boundary.superstep,
            c.SUPERSTEP_SCOPE: boundary.scope,
            c.SUPERSTEP_NODES: boundary.nodes,
            **_network(state, evidence),
            **_decision(decision),
            **(_cut(boundary, guilty) if halted else {}),
            **(extra or {}),
        },
        fixed=_fixed(state.control.options),
        parent=boundary.parent,
        links=[Link(record.span, {c.LINK_RELATION: "aggregates"}) for record in evidence.scored],
    )
    if decision.transition:
        span.add_event(c.EVENT_TRANSITION, clean_attributes(_decision(decision)))
    state.place = boundary.place
    previous = state.previous_hash
    state.previous_hash = decision_hash(plain_attributes(span), previous)
    enforced_halt = halted and decision.enforced
    boundary.run.end(
        span,
        {c.AUDIT_PREV_HASH: previous, c.AUDIT_HASH: state.previous_hash},
        error=halt_of(boundary, decision, guilty) if enforced_halt else None,
    )


def halt_of(
    boundary: Boundary,
    decision: BreakerDecision,
    guilty: Sequence[ProbeRecord],
    *,
    tried: tuple[Mapping[str, object], ...] = (),
) -> BiasHalt:
    """The error that an enforced halt raises, with the repairs that were tried."""
    edges = cut_edges(boundary, guilty)
    return BiasHalt(
        run_id=boundary.run.run_id,
        edge=edges[0] if edges else f"superstep {boundary.superstep}",
        reason=decision.reason.value,
        frozen_payload=decision.frozen_payload,
        tried=tried,
    )
