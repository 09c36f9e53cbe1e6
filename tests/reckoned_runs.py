"""Runs at random, decided by the collector's own control and written down as it writes them.

Made without an agent: the shapes, the distances and what happens are drawn, so that thousands of
different runs cost seconds. Whoever recomputes them must come to what stands in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import comb
from pathlib import Path
from typing import Any, Final

import numpy as np
from opentelemetry.trace import INVALID_SPAN_CONTEXT

from twinspan.collector.chain import GENESIS, decision_hash
from twinspan.collector.control_state import WATCHING
from twinspan.collector.decision import BreakerDecision
from twinspan.collector.evidence import Evidence, evidence_of
from twinspan.collector.parts import write_part
from twinspan.collector.reckoning import goes_on_anew
from twinspan.collector.records import ProbeRecord, record_of
from twinspan.collector.rows import RowBuilder, SpanFacts
from twinspan.collector.run_control import RunControl, measurement_of
from twinspan.collector.telling import path_attributes, run_configuration
from twinspan.collector.topology import AgentDAG
from twinspan.collector.weights import DependencyWeights, dependency_weights
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.orbit import stake_triangle
from twinspan.instrumentation.probing.contrast import SCREEN
from twinspan.instrumentation.settings import BreakerOptions

AXES: Final = ("gender", "age", "origin")
ODD: Final = ("path", "reset", "anew", "graph untold")
"""What only few runs have."""

Told = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class MadeRun:
    """One run while it is made.

    Attributes:
        spans: what its spans say, in the order in which they ended.
        kinds: what happened in it, by name.
    """

    rng: np.random.Generator
    run_id: str
    dag: AgentDAG
    weights: DependencyWeights
    axes: tuple[str, ...]
    options: BreakerOptions
    control: RunControl
    probed_depth: int | None
    writer: str = "w1"
    spans: list[Told] = field(default_factory=list[Told])
    kinds: set[str] = field(default_factory=set[str])
    previous: str = GENESIS
    resumed: str | None = None

    def chance(self, share: float) -> bool:
        """Whether something that happens with a probability does."""
        return bool(self.rng.random() < share)

    def identifier(self) -> str:
        """Hex digits at random."""
        return self.rng.bytes(8).hex()

    def write(self, kind: str, told: Mapping[str, object]) -> Told:
        """Write a span down."""
        own = [each for each in self.spans if each[c.AUDIT_WRITER] == self.writer]
        span = {
            c.RUN_ID: self.run_id,
            c.SPAN_TYPE: kind,
            c.AUDIT_SEQ: len(own),
            c.AUDIT_WRITER: self.writer,
            **{name: value for name, value in told.items() if value is not None},
        }
        self.spans.append(span)
        return span


def made_run(rng: np.random.Generator, run_id: str, odd: str | None = None) -> MadeRun:
    """A run at random.

    Args:
        rng: where its dice come from.
        run_id: its id.
        odd: one of `ODD` that is to happen in it.
    """
    dag = _graph(rng)
    axes = tuple(rng.permutation(AXES)[: rng.integers(1, 4)].tolist())
    options = _options(rng, path=odd == "path")
    weights = dependency_weights(dag, options.weights, options.attenuation)
    probed_depth = _probed(rng, dag)
    control = RunControl.begin(dag, weights.scaled, axes, options, probed_depth=probed_depth)
    run = MadeRun(
        rng=rng,
        run_id=run_id,
        dag=dag,
        weights=weights,
        axes=axes,
        options=control.options,
        control=control,
        probed_depth=probed_depth,
        kinds={odd} if odd else set(),
    )
    supersteps = _supersteps(run)
    stops = int(rng.integers(1, len(supersteps) + 1)) if run.chance(0.3) and not odd else None
    for place, nodes in enumerate(supersteps, start=1):
        if place == stops or (odd == "anew" and place == len(supersteps)):
            _stop_and_go_on(run, anew=odd == "anew")
        _superstep(run, place, nodes)
    _root(run)
    return run


def _graph(rng: np.random.Generator) -> AgentDAG:
    size = int(rng.integers(1, 6))
    names = [f"n{number}" for number in range(size)]
    edges = [
        (names[i], names[j]) for i in range(size) for j in range(i + 1, size) if rng.random() < 0.5
    ]
    if size > 1 and rng.random() < 0.2:
        edges += [(names[1], names[0]), (names[0], names[1])]
    return AgentDAG(edges, nodes=names)


def _probed(rng: np.random.Generator, dag: AgentDAG) -> int | None:
    return None if not dag.depth or rng.random() < 0.5 else int(rng.integers(1, dag.depth + 1))


def _options(rng: np.random.Generator, *, path: bool) -> BreakerOptions:
    thresholds = rng.random() < 0.7
    enter = float(rng.uniform(0.1, 0.6))
    given: dict[str, Any] = {
        "tau_enter": enter if thresholds else None,
        "tau_exit": enter * 0.6 if thresholds else None,
        "tau_warn": enter * 0.4 if thresholds and rng.random() < 0.5 else None,
        "scaling": str(rng.choice(["constant", "warmup", "deviation"])) if thresholds else None,
        "trigger": str(rng.choice(["monitor", "threshold", "either", "both"])),
        "reduction": str(rng.choice(["impact_sum", "impact_max", "weighted_mean", "max"])),
        "weights": str(rng.choice(["katz", "out_degree"])),
        "mode": str(rng.choice(["shadow", "halt", "repair"])),
        "fast_alpha": float(rng.choice([0.7, 0.3, 1.0])),
        "alpha": float(rng.choice([0.05, 0.2, 0.5])),
        "cooldown": int(rng.integers(0, 3)),
        "max_retries": int(rng.integers(1, 4)),
        "equivalence": float(rng.choice([0.2, 0.9])),
    }
    if not thresholds:
        given["trigger"] = "monitor"
    if path:
        given["trigger"] = "path"
    return BreakerOptions(**{name: value for name, value in given.items() if value is not None})


def _supersteps(run: MadeRun) -> list[list[str]]:
    """Nodes that ran together; with a cycle some run again."""
    names = list(run.dag.nodes)
    count = int(run.rng.integers(1, 6))
    if run.dag.is_acyclic:
        order = list(run.dag.topological_order())
        cuts = sorted(set(run.rng.integers(0, len(order), size=count).tolist()) | {0, len(order)})
        return [order[a:b] for a, b in pairwise(cuts)]
    return [[name for name in names if run.chance(0.6)] for _ in range(count)]


# --- probe sets -----------------------------------------------------------------------------------


def _sets(run: MadeRun, place: int, nodes: Sequence[str], **more: Any) -> list[ProbeRecord]:
    """The probe sets of some nodes: on some axes, in some rounds, screened, or without a score."""
    found: list[ProbeRecord] = []
    for node in nodes:
        for task in ("t1", "t2") if run.chance(0.1) else ("t1",):
            if run.chance(0.15):
                continue
            if len(run.axes) > 1 and run.chance(0.2) and not more:
                found.append(_set(run, place, node, task, "all", contrast=SCREEN))
                run.kinds.add("screen")
            for axis in run.axes:
                for number in range(int(run.rng.choice([0, 1, 1, 1, 2]))):
                    found.append(_set(run, place, node, task, axis, round=number, **more))
    order = run.rng.permutation(len(found)).tolist()
    return [found[each] for each in order]


def _set(
    run: MadeRun,
    place: int,
    node: str,
    task: str,
    axis: str,
    *,
    contrast: str = "attribute_swap",
    round: int = 0,
    intervention: str | None = None,
) -> ProbeRecord:
    rng = run.rng
    n, m = (int(each) for each in rng.choice([[3, 3], [5, 5], [4, 2], [6, 3]]))
    distances = _distances(run, n, m)
    scored = not run.chance(0.1)
    found = stake_triangle(distances, n)
    told: Told = {
        c.PROBE_SET_ID: run.identifier(),
        c.NODE_ID: node,
        c.NODE_TASK_ID: f"{task}-{node}-{place}",
        c.SUPERSTEP_SCOPE: "",
        c.SUPERSTEP_INDEX: place,
        c.PROBE_AXIS: axis,
        c.PROBE_OUTCOME: "ok" if scored else "no_op",
        c.PROBE_CONTRAST: contrast,
        c.PROBE_ROUND: round,
        c.PROBE_ESTIMATOR: "action",
        c.DIVERGENCE_REFERENCE_COUNT: n,
        c.DIVERGENCE_COUNTERFACTUAL_COUNT: m,
        c.NODE_WEIGHT: run.weights.scaled[node],
        c.NODE_WEIGHT_SHARE: run.weights.shares[node],
        c.PROBE_SAMPLING_RATE: 0.5 if run.chance(0.1) else None,
        c.INTERVENTION_ID: intervention,
    }
    if scored:
        told |= {
            c.EFFECT_VALUE: found.delta,
            c.EFFECT_P_VALUE: found.p,
            c.EFFECT_E_VALUE: found.e,
            c.EFFECT_CI_UPPER: None if run.chance(0.1) else found.delta + 0.2,
            c.DIVERGENCE_DISTANCES: distances,
        }
    return record_of(run.write("probe_set", told), INVALID_SPAN_CONTEXT)


def _distances(run: MadeRun, n: int, m: int) -> list[float]:
    """All alike, of a few values or of any; some with a bias that nobody could overlook."""
    rng, total = run.rng, n + m
    kind = rng.choice(["alike", "few", "any"])
    if kind == "alike":
        flat = np.zeros(comb(total, 2))
    else:
        flat = (
            rng.choice([0.0, 0.5, 1.0], comb(total, 2))
            if kind == "few"
            else rng.random(comb(total, 2))
        )
    if run.chance(0.4):
        first, second = np.triu_indices(total, 1)
        apart = (first < n) != (second < n)
        flat = np.where(apart, np.maximum(flat, 0.8), flat * 0.3)
    return [float(each) for each in flat]


# --- what happens ---------------------------------------------------------------------------------


def _superstep(run: MadeRun, place: int, nodes: Sequence[str]) -> None:
    records = _sets(run, place, nodes)
    evidence, is_repair = run.control.take_in_executed(records, attempt=0)
    decision = _decide(run, place, evidence, repair=None, is_repair=is_repair)
    _tell(run, place, records, decision)
    repairs = 0
    while run.control.state.state not in WATCHING and run.options.mode != "shadow":
        if "reset" in run.kinds and run.chance(0.5):
            _reset(run, place)
            _executed_again(run, place, nodes)
            break
        if repairs == 3 or not run.chance(0.8):
            break
        repairs += 1
        _repair(run, place, nodes, records)


def _repair(run: MadeRun, place: int, nodes: Sequence[str], records: Sequence[ProbeRecord]) -> None:
    run.kinds.add("repair")
    own = run.identifier()
    repaired = [node for node in nodes if run.chance(0.6)]
    kept = [record for record in records if record.node not in repaired]
    measured = _sets(run, place, repaired, intervention=own)
    evidence = run.control.take_in_again(kept, measured)
    number = sum(span.get(c.INTERVENTION_ID) is not None for span in _decisions(run)) + 1
    decision = _decide(run, place, evidence, repair=number, is_repair=True)
    _tell(run, place, [*kept, *measured], decision, {c.INTERVENTION_ID: own})


def _reset(run: MadeRun, place: int) -> None:
    decision = run.control.reset("", place)
    _tell(run, place, [], decision)


def _executed_again(run: MadeRun, place: int, nodes: Sequence[str]) -> None:
    records = _sets(run, place, nodes)
    evidence, is_repair = run.control.take_in_executed(records, attempt=1)
    decision = _decide(run, place, evidence, attempt=1, is_repair=is_repair)
    _tell(run, place, records, decision, {c.SUPERSTEP_ATTEMPT: 1})


def _decide(
    run: MadeRun,
    place: int,
    evidence: Evidence,
    *,
    repair: int | None = None,
    attempt: int = 0,
    is_repair: bool,
) -> BreakerDecision:
    control = run.control
    name = control.name("", place, repair=repair, attempt=attempt)
    how = measurement_of(evidence, repair=is_repair, bound=control.bound)
    return control.decide(name, measurement=how)


def _stop_and_go_on(run: MadeRun, *, anew: bool) -> None:
    """Another process works on the run from here on; perhaps with control that begins anew."""
    _root(run)
    run.writer, run.resumed = "w2", "recorded"
    run.kinds.add("resumed")
    if anew:
        run.resumed = "reconfigured"
        run.options = replace(run.options, alpha=0.1)
        fresh = RunControl.begin(
            run.dag, run.weights.scaled, run.axes, run.options, probed_depth=run.probed_depth
        )
        run.control = goes_on_anew(fresh, run.control)


# --- what is written ------------------------------------------------------------------------------


def _decisions(run: MadeRun) -> Iterator[Told]:
    return (span for span in run.spans if span[c.SPAN_TYPE] == "network")


def _tell(
    run: MadeRun,
    place: int,
    records: Sequence[ProbeRecord],
    decision: BreakerDecision,
    extra: Mapping[str, object] | None = None,
) -> None:
    control = run.control
    network, monitor = control.accumulator.state, control.monitor.state
    scored = evidence_of(records, control.monitor.axes).scored
    told = {
        c.SUPERSTEP_INDEX: place,
        c.SUPERSTEP_SCOPE: "",
        c.SUPERSTEP_NODES: sorted({record.node for record in records}) or None,
        c.NETWORK_STEP: network.step,
        c.NETWORK_SCORE_FAST: network.fast if network.step else None,
        c.NETWORK_SCORE_SLOW: network.slow if network.step else None,
        c.NETWORK_SCORE_RAW: network.fast_average.raw if network.step else None,
        c.NETWORK_OBSERVED_WEIGHT: control.observed_share,
        c.NETWORK_PROBE_SETS: [record.set_id for record in scored],
        c.MONITOR_VALUE: monitor.value,
        c.MONITOR_THRESHOLD: monitor.limit,
        c.MONITOR_SPARSE: monitor.sparse,
        c.BREAKER_STATE_FROM: decision.state_from.value,
        c.BREAKER_STATE_TO: decision.state_to.value,
        c.BREAKER_DECISION: decision.decision.value,
        c.BREAKER_REASON: decision.reason.value,
        c.BREAKER_MARGIN: decision.margin,
        c.BREAKER_ENFORCED: decision.enforced,
        **({} if control.paths is None else path_attributes(control.paths)),
        **(extra or {}),
    }
    span = run.write("network", told)
    span[c.AUDIT_PREV_HASH] = run.previous
    content = {name: value for name, value in span.items() if name != c.AUDIT_PREV_HASH}
    run.previous = span[c.AUDIT_HASH] = decision_hash(content, run.previous)


def _root(run: MadeRun) -> None:
    own = [each for each in run.spans if each[c.AUDIT_WRITER] == run.writer]
    untold = "graph untold" in run.kinds
    run.write(
        "run",
        {
            **run_configuration(run.options),
            c.RUN_RESUMED: run.resumed,
            c.RUN_SPAN_COUNT: len(own) + 1,
            c.AUDIT_AXES: list(run.axes),
            c.GRAPH_NODES: None if untold else list(run.dag.nodes),
            c.GRAPH_EDGES: None if untold else [c.edge_name(a, b) for a, b, _ in run.dag.edges],
            c.GRAPH_NODE_COUNT: len(run.dag),
            c.GRAPH_DEPTH: run.dag.depth,
            c.GRAPH_PROBED_DEPTH: run.probed_depth,
        },
    )


def write_runs(path: Path, runs: Sequence[MadeRun], rng: np.random.Generator) -> None:
    """Write the spans of some runs as one part, a process's spans after those of the one before."""
    builder = RowBuilder()
    for run in runs:
        trace, begun = rng.bytes(16).hex(), int(rng.integers(10**18, 2 * 10**18))
        for place, told in enumerate(run.spans):
            facts = SpanFacts(
                trace, rng.bytes(8).hex(), None, None, told[c.SPAN_TYPE], "INTERNAL", "UNSET", None,
                (begun + place) // 1000, begun + place, 9, None, None, None, "{}",
            )  # fmt: skip
            builder.add(facts, told)
    write_part(path, builder.table())
