"""Every span, event and attribute name that twinspan writes, with its type and meaning.

Nothing else in the project spells a name. Each constant is entered in `CATALOGUE`, from which
the recorder takes its columns and the documentation its table. Standard names (`gen_ai.*`,
`error.type`, `test.suite.*`) stand at the end: they belong to OpenTelemetry, we only use them.

A name is set either when its span starts (so that samplers and live processors see it) or
before it ends; the meaning says "at start" where it matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

ValueType = Literal["string", "int", "double", "boolean", "string[]", "int[]", "double[]"]
"""What an attribute may hold; arrays are homogeneous."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute key: its name, the type of its value and what it says."""

    name: str
    type: ValueType
    meaning: str

    @property
    def column(self) -> str:
        """The column that holds it in recorded files.

        >>> CATALOGUE["twinspan.probe.axis"].column
        'probe_axis'
        >>> CATALOGUE["gen_ai.request.model"].column
        'gen_ai_request_model'
        """
        return self.name.removeprefix(NAMESPACE + ".").replace(".", "_")


NAMESPACE: Final = "twinspan"
SCHEMA_VERSION_VALUE: Final = "1"
SCOPE: Final = "twinspan.instrumentation"

_catalogue: dict[str, Attribute] = {}
CATALOGUE: Final[Mapping[str, Attribute]] = MappingProxyType(_catalogue)


def _key(name: str, type_: ValueType, meaning: str) -> str:
    _catalogue[name] = Attribute(name, type_, meaning)
    return name


# --- span names -------------------------------------------------------------------------
# A name is the operation and, after a blank, the low-cardinality thing it was done to.

SPAN_AUDIT: Final = "audit"
SPAN_PLAN: Final = "plan"
SPAN_RUN: Final = "invoke_workflow"
SPAN_AGENT: Final = "invoke_agent"
SPAN_NODE: Final = "invoke_node"
SPAN_PROBE: Final = "probe"
SPAN_NETWORK: Final = "update_network_score"
SPAN_INTERVENTION: Final = "intervene"
SPAN_ATTEMPT: Final = "measure_repair"

# --- event names ------------------------------------------------------------------------

EVENT_TRANSITION: Final = "twinspan.breaker.transition"
EVENT_EVALUATION: Final = "gen_ai.evaluation.result"

# --- every span -------------------------------------------------------------------------

SCHEMA_VERSION: Final = _key(
    "twinspan.schema.version", "string", "version of this set of names; at start of a root"
)
RUN_ID: Final = _key("twinspan.run.id", "string", "the run a span belongs to; at start")
SPAN_TYPE: Final = _key(
    "twinspan.span.type",
    "string",
    "audit, plan, run, node, probe_set, probe, network, intervention, review, attempt or "
    "llm_call; at start",
)
AUDIT_SEQ: Final = _key(
    "twinspan.audit.seq", "int", "number of the span within run and writer, from 0 without gaps"
)
AUDIT_WRITER: Final = _key("twinspan.audit.writer", "string", "the writing process of a run")
TRUNCATED: Final = _key("twinspan.truncated", "string[]", "attributes whose text was cut")
UNDEFINED: Final = _key(
    "twinspan.undefined", "string[]", "attributes that had no finite value, as key=reason"
)

# --- an audit: a designed set of runs -----------------------------------------------------

AUDIT_ID: Final = _key("twinspan.audit.id", "string", "the audit a run belongs to; at start")
AUDIT_NAME: Final = _key("twinspan.audit.name", "string", "the audit's name; at start")
AUDIT_MODE: Final = _key("twinspan.audit.mode", "string", "live, offline or replay; at start")
AUDIT_AXES: Final = _key("twinspan.audit.axes", "string[]", "axes under audit; at start")
AUDIT_CASE_COUNT: Final = _key("twinspan.audit.case.count", "int", "cases in the design")
AUDIT_REPLICATE_COUNT: Final = _key(
    "twinspan.audit.replicate.count", "int", "replicates of each case and condition"
)
AUDIT_SEED: Final = _key("twinspan.audit.seed", "int", "seed of the design's random order")
AUDIT_PLAN_HASH: Final = _key(
    "twinspan.audit.plan.hash", "string", "hash of the design, fixed before results"
)
AUDIT_OUTCOMES: Final = _key(
    "twinspan.audit.outcomes", "string[]", "how outcomes follow from actions, as name=rule"
)
AUDIT_VERDICT: Final = _key(
    "twinspan.audit.verdict", "string", "clear, flagged, inconclusive or incomplete"
)
AUDIT_EXPECTED_PROBES: Final = _key(
    "twinspan.audit.expected.probe.count", "int", "probes that were announced"
)
AUDIT_OBSERVED_PROBES: Final = _key(
    "twinspan.audit.observed.probe.count", "int", "probes that ended"
)
AUDIT_EXPECTED_RUNS: Final = _key(
    "twinspan.audit.expected.run.count", "int", "runs that the plan has; at start"
)
AUDIT_OBSERVED_RUNS: Final = _key(
    "twinspan.audit.observed.run.count", "int", "runs of the plan that are recorded"
)
AUDIT_WORDING: Final = _key(
    "twinspan.audit.wording",
    "string",
    "random (each run its own words) or same (an audit reacts to the edit); at start",
)
AUDIT_PREV_HASH: Final = _key(
    "twinspan.audit.prev_hash", "string", "hash of the run's preceding decision"
)
AUDIT_HASH: Final = _key(
    "twinspan.audit.hash", "string", "hash of a decision's canonical content and prev_hash"
)

# --- where a run stands in an audit's design ------------------------------------------------

CASE_ID: Final = _key("twinspan.case.id", "string", "the case a run works on; at start")
CONDITION_ID: Final = _key(
    "twinspan.condition.id", "string", "the descriptor condition of a run; at start"
)
CONDITION_KIND: Final = _key(
    "twinspan.condition.kind",
    "string",
    "reference, swap, intersection, or a control: rerender, sham_attribute, rare_token, "
    "no_descriptor; at start",
)
CONDITION_AXIS: Final = _key(
    "twinspan.condition.axis",
    "string",
    "attributes that differ from the reference, joined by +; at start",
)
REPLICATE_INDEX: Final = _key(
    "twinspan.replicate.index", "int", "which repetition of case and condition; at start"
)
RUN_ORDER: Final = _key(
    "twinspan.run.order", "int", "place of a run in the random order of its audit; at start"
)
SOURCE_NAME: Final = _key(
    "twinspan.source.name", "string", "file and position an imported run came from"
)

# --- a graph run --------------------------------------------------------------------------

RUN_ARM: Final = _key("twinspan.run.arm", "string", "arm of a whole-run audit; at start")
RUN_OUTCOME: Final = _key(
    "twinspan.run.outcome", "string", "completed, halted, interrupted, cancelled or failed"
)
RUN_NODE_COUNT: Final = _key("twinspan.run.node.count", "int", "node spans of the run")
RUN_PROBE_COUNT: Final = _key("twinspan.run.probe.count", "int", "probe spans of the run")
RUN_SUPERSTEP_COUNT: Final = _key(
    "twinspan.run.superstep.count", "int", "supersteps that were closed"
)
RUN_SPAN_COUNT: Final = _key(
    "twinspan.run.span.count", "int", "twinspan's spans of this run and writer, this one included"
)
RUN_PROCESSOR_ERRORS: Final = _key(
    "twinspan.run.processor.errors", "int", "failures of twinspan itself during the run"
)
RUN_RESUMED: Final = _key(
    "twinspan.run.resumed",
    "string",
    "of a run that goes on: where its control state came from: recorded or memory; reconfigured "
    "or lost if it begins anew; at start",
)
GRAPH_ID: Final = _key("twinspan.graph.id", "string", "hash of the static topology; at start")
GRAPH_NODES: Final = _key("twinspan.graph.nodes", "string[]", "static nodes; at start")
GRAPH_EDGES: Final = _key("twinspan.graph.edges", "string[]", "static edges, a->b; at start")
GRAPH_CONDITIONAL_EDGES: Final = _key(
    "twinspan.graph.conditional_edges", "string[]", "static edges taken on a condition; at start"
)
GRAPH_EDGE_COUNT: Final = _key("twinspan.graph.edge.count", "int", "static edges; at start")
GRAPH_NODE_COUNT: Final = _key("twinspan.graph.node.count", "int", "static nodes; at start")
GRAPH_DEPTH: Final = _key(
    "twinspan.graph.depth", "int", "nodes on the longest path; absent with a cycle; at start"
)
GRAPH_PROBED_DEPTH: Final = _key(
    "twinspan.graph.probed_depth",
    "int",
    "supersteps in which a node that may be probed can run; absent with a cycle or if none is "
    "known; at start",
)
GRAPH_CYCLIC: Final = _key("twinspan.graph.cyclic", "boolean", "the topology has a cycle; at start")

# --- a node execution ---------------------------------------------------------------------

NODE_ID: Final = _key("twinspan.node.id", "string", "node, qualified by its path; at start")
NODE_KIND: Final = _key(
    "twinspan.node.kind", "string", "agent, function, router, tool or subgraph; at start"
)
NODE_TASK_ID: Final = _key("twinspan.node.task.id", "string", "this execution; at start")
NODE_ATTEMPT: Final = _key("twinspan.node.attempt", "int", "try of the execution, from 1; at start")
NODE_PARENT_TASK_IDS: Final = _key(
    "twinspan.node.parent.task.ids", "string[]", "executions whose output was read; at start"
)
NODE_PARENTS: Final = _key(
    "twinspan.node.parents", "string[]", "nodes of those executions, in the same order; at start"
)
NODE_PARENT_HASHES: Final = _key(
    "twinspan.node.parent.hashes", "string[]", "hash of what each of them handed on; at start"
)
NODE_EDGE_KIND: Final = _key(
    "twinspan.node.edge.kind", "string", "observed or inferred: how the parents are known"
)
NODE_WEIGHT: Final = _key(
    "twinspan.node.weight", "double", "blast radius, the graph's largest being 1; at start"
)
NODE_WEIGHT_SHARE: Final = _key(
    "twinspan.node.weight.share", "double", "blast radius as a share of the graph's; at start"
)
NODE_WEIGHT_METHOD: Final = _key(
    "twinspan.node.weight.method", "string", "katz, out_degree or betweenness; at start"
)
NODE_HISTORY_BIASED: Final = _key(
    "twinspan.node.history.biased",
    "double",
    "recorded runs in which the node's own probes found it biased, and the prior's; at start",
)
NODE_HISTORY_CLEAR: Final = _key(
    "twinspan.node.history.clear", "double", "the same for runs without a finding; at start"
)
NODE_BIAS_PROBABILITY: Final = _key(
    "twinspan.node.history.probability", "double", "P(biased | history), 0 to 1; at start"
)
NODE_RISK: Final = _key(
    "twinspan.node.risk",
    "double",
    "blast radius' share times P(biased | history): orders nodes, decides nothing; at start",
)
NODE_OUTCOME: Final = _key(
    "twinspan.node.outcome",
    "string",
    "ok, error, retried, interrupted, cancelled, halted or skipped",
)
NODE_FORCED: Final = _key(
    "twinspan.node.forced", "boolean", "the action was given, nobody was asked; at start"
)
NODE_DESCRIPTOR_SHOWN: Final = _key(
    "twinspan.node.descriptor.shown", "boolean", "what was asked says whom it is about; at start"
)
ORDER_COUNT: Final = _key("twinspan.order.count", "int", "things that an agent ordered")
ORDER_UNRESOLVED_COUNT: Final = _key(
    "twinspan.order.unresolved.count", "int", "orders that met no fixture"
)
ORDER_AMBIGUOUS_COUNT: Final = _key(
    "twinspan.order.ambiguous.count", "int", "orders that could have meant several fixtures"
)
ORDER_UNRESOLVED: Final = _key(
    "twinspan.order.unresolved", "string[]", "orders that met no fixture; where texts are recorded"
)
ORDER_AMBIGUITIES: Final = _key(
    "twinspan.order.ambiguities",
    "string[]",
    "JSON of each order that could have meant several fixtures; where texts are recorded",
)
ANSWER_VIOLATIONS: Final = _key(
    "twinspan.answer.violations", "string[]", "where an answer does not fit its schema, and how"
)
NODE_TOOLS: Final = _key("twinspan.node.tools", "string[]", "tools that the execution called")
NODE_INPUT_HASH: Final = _key("twinspan.node.input.hash", "string", "keyed hash of the payload")
NODE_OUTPUT_HASH: Final = _key("twinspan.node.output.hash", "string", "keyed hash of the answer")
NODE_OUTPUT_SIZE: Final = _key("twinspan.node.output.size", "int", "characters of the answer")
SUPERSTEP_INDEX: Final = _key(
    "twinspan.superstep.index", "int", "superstep within its scope; need not begin at 0; at start"
)
SUPERSTEP_SCOPE: Final = _key(
    "twinspan.superstep.scope", "string", "'' for the root graph, else the holder's task; at start"
)
SUPERSTEP_ATTEMPT: Final = _key(
    "twinspan.superstep.attempt",
    "int",
    "how often the superstep was halted before it was executed again; absent for none",
)
SUPERSTEP_NODES: Final = _key(
    "twinspan.superstep.nodes", "string[]", "nodes of the superstep; at start"
)

# --- a probe set: one node on one axis -----------------------------------------------------

PROBE_DECISION: Final = _key(
    "twinspan.probe.decision", "string", "probed, screened, sampled_out, budget, no_op or exempt"
)
PROBE_SAMPLING_RATE: Final = _key(
    "twinspan.probe.sampling.rate", "double", "probability with which the node was probed"
)
PROBE_SET_ID: Final = _key("twinspan.probe.set.id", "string", "the probe set; at start")
PROBE_AXIS: Final = _key("twinspan.probe.axis", "string", "axis that was varied; at start")
PROBE_CONTRAST: Final = _key(
    "twinspan.probe.contrast",
    "string",
    "attribute_swap, proxy_swap, screen, or a control: sham, rare_token, neutral_edit; at start",
)
PROBE_LEVEL: Final = _key(
    "twinspan.probe.level",
    "string",
    "model where a node's models were asked again and not the node was run; at start",
)
PROBE_CALL: Final = _key(
    "twinspan.probe.call.index", "int", "which of a node's model calls was probed, from 1; at start"
)
PROBE_WORDING: Final = _key(
    "twinspan.probe.wording",
    "string",
    "random (each sample its own words) or same (reacts to the edit); at start",
)
PROBE_ROUND: Final = _key(
    "twinspan.probe.round", "int", "round of adaptive probing, from 0; at start"
)
PROBE_REFERENCE_SET: Final = _key(
    "twinspan.probe.reference.set.id", "string", "the set whose reference samples serve this one"
)
PROBE_PLAN: Final = _key(
    "twinspan.probe.plan", "string", "fixed, adaptive or thorough; on the run, at start"
)
PROBE_BUDGET: Final = _key(
    "twinspan.probe.budget", "int", "node runs that a run may spend on probes; on the run, at start"
)
PROBE_BASELINE_SPAN: Final = _key(
    "twinspan.probe.baseline.span_id", "string", "the node span that is probed; at start"
)
PROBE_ESTIMATOR: Final = _key(
    "twinspan.probe.estimator", "string", "distance in force; never mixed; at start"
)
PROBE_ESTIMATOR_VERSION: Final = _key(
    "twinspan.probe.estimator.version", "string", "version of that distance; at start"
)
PROBE_REFERENCE_PLANNED: Final = _key(
    "twinspan.probe.reference.planned", "int", "reference samples that were asked for; at start"
)
PROBE_COUNTERFACTUAL_PLANNED: Final = _key(
    "twinspan.probe.counterfactual.planned", "int", "counterfactual samples asked for; at start"
)
PROBE_CALL_COUNT: Final = _key("twinspan.probe.call.count", "int", "node runs that were spent")
PROBE_OUTCOME: Final = _key(
    "twinspan.probe.outcome", "string", "ok, partial, timeout, cancelled, error, no_op or budget"
)
DIVERGENCE_CROSS: Final = _key(
    "twinspan.divergence.counterfactual.mean",
    "double",
    "C: mean distance between the arms, 0 to 1",
)
DIVERGENCE_WITHIN_REFERENCE: Final = _key(
    "twinspan.divergence.null.mean", "double", "W_x: mean distance within the reference, 0 to 1"
)
DIVERGENCE_WITHIN_COUNTERFACTUAL: Final = _key(
    "twinspan.divergence.counterfactual.within",
    "double",
    "W_y: mean distance within the counterfactual arm, 0 to 1",
)
DIVERGENCE_NULL_STDDEV: Final = _key(
    "twinspan.divergence.null.stddev", "double", "standard deviation of delta over its orbit"
)
DIVERGENCE_REFERENCE_COUNT: Final = _key(
    "twinspan.divergence.null.count", "int", "reference samples in the score"
)
DIVERGENCE_COUNTERFACTUAL_COUNT: Final = _key(
    "twinspan.divergence.counterfactual.count", "int", "counterfactual samples in the score"
)
DIVERGENCE_DISTANCES: Final = _key(
    "twinspan.divergence.distances",
    "double[]",
    "upper triangle of the distance matrix by rows, reference arm first",
)
FLOOR_VALUE: Final = _key(
    "twinspan.floor.value", "double", "(W_x + W_y) / 2: disagreement without the axis"
)
FLOOR_QUANTILE: Final = _key("twinspan.floor.quantile", "double", "quantile that a floor states")
FLOOR_SOURCE: Final = _key("twinspan.floor.source", "string", "measured, cached or pooled")
EFFECT_VALUE: Final = _key(
    "twinspan.effect.value", "double", "delta = C - floor: excess disagreement, unclipped"
)
EFFECT_STANDARDIZED: Final = _key(
    "twinspan.effect.standardized", "double", "delta in orbit standard deviations; grows with n"
)
EFFECT_METHOD: Final = _key("twinspan.effect.method", "string", "how p and e were computed")
EFFECT_CI_LOWER: Final = _key("twinspan.effect.ci.lower", "double", "lower end for delta")
EFFECT_CI_UPPER: Final = _key("twinspan.effect.ci.upper", "double", "upper end for delta")
EFFECT_CI_LEVEL: Final = _key("twinspan.effect.ci.level", "double", "nominal coverage")
EFFECT_P_VALUE: Final = _key("twinspan.effect.p_value", "double", "exact permutation p")
EFFECT_E_VALUE: Final = _key("twinspan.effect.e_value", "double", "e-value, orbit mean exactly 1")
EFFECT_UNDEFINED: Final = _key(
    "twinspan.effect.undefined.reason", "string", "why a standardized effect is absent"
)
EFFECT_VERDICT_REASON: Final = _key(
    "twinspan.effect.verdict.reason",
    "string",
    "reacts_to_axis, reacts_to_edit, not_above_noise, too_few_samples, no_op or only_errors",
)
EFFECT_DEPENDENCE_P: Final = _key(
    "twinspan.effect.dependence_p",
    "double",
    "p of 'samples do not depend on their order'; small means that p and e cannot be trusted",
)

# --- a probe: one run of the node on one rendering -------------------------------------------

PROBE_ARM: Final = _key(
    "twinspan.probe.arm", "string", "standard, null_resample, counterfactual or a control; at start"
)
PROBE_REPLICATE: Final = _key(
    "twinspan.probe.replicate", "int", "number of the sample within its arm, from 0; at start"
)
PROBE_POSITION: Final = _key(
    "twinspan.probe.position", "int", "place in the interleaved order of the set; at start"
)
PROBE_SEED: Final = _key("twinspan.probe.seed", "int", "seed of the sample's wording; at start")
PROBE_DIVERGENCE: Final = _key(
    "twinspan.probe.divergence", "double", "mean distance to the reference arm, 0 to 1"
)
PROBE_FLIP: Final = _key(
    "twinspan.probe.flip", "boolean", "the outcome differs from the reference's most frequent"
)
PROBE_INPUT_HASH: Final = _key("twinspan.probe.input.hash", "string", "keyed hash of the rendering")
PROBE_OUTPUT_HASH: Final = _key("twinspan.probe.output.hash", "string", "keyed hash of the answer")
PROBE_CACHE_HIT: Final = _key("twinspan.probe.cache.hit", "boolean", "taken from the cache")
PERTURBATION_KIND: Final = _key(
    "twinspan.perturbation.kind",
    "string",
    "identity, attribute_swap, proxy_swap, sham, rare_token, neutral or neutral_edit; at start",
)
PERTURBATION_ID: Final = _key(
    "twinspan.perturbation.id", "string", "axis and groups, gender:woman>man; at start"
)
PERTURBATION_TARGETS: Final = _key(
    "twinspan.perturbation.targets", "string[]", "JSON pointers of the edited strings; at start"
)
PERTURBATION_EDIT_COUNT: Final = _key(
    "twinspan.perturbation.edit.count", "int", "edits that were made; at start"
)
PERTURBATION_FROM: Final = _key(
    "twinspan.perturbation.from", "string[]", "words replaced; content, opt-in"
)
PERTURBATION_TO: Final = _key(
    "twinspan.perturbation.to", "string[]", "words put in; content, opt-in"
)

# --- a superstep: the network's score and the decision ----------------------------------------

NETWORK_ALPHA_FAST: Final = _key(
    "twinspan.network.alpha.fast", "double", "weight of the newest superstep in B_fast; at start"
)
NETWORK_ALPHA_SLOW: Final = _key(
    "twinspan.network.alpha.slow", "double", "weight of the newest superstep in B_slow; at start"
)
NETWORK_REDUCTION: Final = _key(
    "twinspan.network.reduction", "string", "how a superstep's scores become one; at start"
)
NETWORK_WEIGHTS: Final = _key(
    "twinspan.network.weights", "string", "how nodes were weighed; on the run, at start"
)
NETWORK_ATTENUATION: Final = _key(
    "twinspan.network.attenuation", "double", "Katz attenuation per edge; on the run, at start"
)
NETWORK_STEP: Final = _key("twinspan.network.step", "int", "supersteps reduced so far, from 1")
NETWORK_INPUT: Final = _key(
    "twinspan.network.input", "double", "the superstep's reduced score, before smoothing"
)
NETWORK_ESTIMATOR: Final = _key(
    "twinspan.network.estimator",
    "string",
    "whose scale the network score is on; scores on another one go to the monitor alone",
)
NETWORK_SCORE: Final = _key("twinspan.network.score", "double", "B_net, that is B_fast")
NETWORK_SCORE_RAW: Final = _key(
    "twinspan.network.score.raw", "double", "B_fast without bias correction"
)
NETWORK_SCORE_FAST: Final = _key("twinspan.network.score.fast", "double", "B_fast, bias-corrected")
NETWORK_SCORE_SLOW: Final = _key("twinspan.network.score.slow", "double", "B_slow, bias-corrected")
NETWORK_SCORE_STANDARDIZED: Final = _key(
    "twinspan.network.score.standardized", "double", "B_fast over its standard deviation"
)
NETWORK_OBSERVED_WEIGHT: Final = _key(
    "twinspan.network.observed.weight", "double", "share of the graph's weight probed so far"
)
NETWORK_PROBE_SETS: Final = _key(
    "twinspan.network.probe.sets", "string[]", "probe sets that were reduced"
)
MONITOR_VALUE: Final = _key("twinspan.monitor.value", "double", "M_t, the run's evidence")
MONITOR_ALPHA: Final = _key(
    "twinspan.monitor.alpha", "double", "bound on the probability of any false halt in a run"
)
MONITOR_THRESHOLD: Final = _key("twinspan.monitor.threshold", "double", "M_t that halts, 1/alpha_k")
MONITOR_DENSE: Final = _key("twinspan.monitor.dense", "double", "evidence for spreading bias")
MONITOR_SPARSE: Final = _key("twinspan.monitor.sparse", "double", "evidence for one guilty node")
MONITOR_RESTART: Final = _key("twinspan.monitor.restart", "int", "restarts after repairs, from 0")
MONITOR_GUILTY: Final = _key(
    "twinspan.monitor.guilty", "string[]", "node and axis cells named at a halt, node|axis"
)
PATH_RANKS: Final = _key(
    "twinspan.path.ranks",
    "double[]",
    "per axis, as on the run: share of the permuted paths at least as high as the observed one",
)
PATH_FIRED: Final = _key("twinspan.path.fired", "string[]", "axes whose observed path was stopped")
BREAKER_STATE_FROM: Final = _key(
    "twinspan.breaker.state.from",
    "string",
    "normal, warning, intervention, recovery or escalated",
)
BREAKER_STATE_TO: Final = _key("twinspan.breaker.state.to", "string", "state after the decision")
BREAKER_DECISION: Final = _key(
    "twinspan.breaker.decision", "string", "proceed, warn, halt, reroute or escalate"
)
BREAKER_REASON: Final = _key("twinspan.breaker.reason", "string", "from a closed list")
BREAKER_TRIGGER: Final = _key(
    "twinspan.breaker.trigger", "string", "monitor, threshold, both, either or path; at start"
)
BREAKER_THRESHOLD_ENTER: Final = _key(
    "twinspan.breaker.threshold.enter", "double", "B_fast that trips; at start"
)
BREAKER_THRESHOLD_EXIT: Final = _key(
    "twinspan.breaker.threshold.exit", "double", "B_fast below which recovery ends; at start"
)
BREAKER_THRESHOLD_WARN: Final = _key(
    "twinspan.breaker.threshold.warn", "double", "B_slow that warns; on the run, at start"
)
BREAKER_SCALING: Final = _key(
    "twinspan.breaker.scaling", "string", "constant, warmup or deviation; on the run, at start"
)
BREAKER_MODE: Final = _key(
    "twinspan.breaker.mode", "string", "shadow, halt or repair; on the run, at start"
)
BREAKER_COOLDOWN: Final = _key(
    "twinspan.breaker.cooldown", "int", "supersteps of recovery; on the run, at start"
)
BREAKER_MAX_RETRIES: Final = _key(
    "twinspan.breaker.retries.max", "int", "interventions before escalation; on the run, at start"
)
BREAKER_EQUIVALENCE: Final = _key(
    "twinspan.breaker.equivalence",
    "double",
    "delta that a repair must be shown to stay below; on the run, at start",
)
BREAKER_BREADTH: Final = _key(
    "twinspan.breaker.breadth",
    "double",
    "share of leaning nodes from which on a leaning is shared; on the run, at start",
)
BREAKER_MARGIN: Final = _key(
    "twinspan.breaker.margin", "double", "B_fast minus the threshold in force"
)
BREAKER_MIXING_RATIO: Final = _key(
    "twinspan.breaker.mixing_ratio", "double", "advisory share of oversight, 0 to 1"
)
BREAKER_EDGE: Final = _key("twinspan.breaker.edge", "string", "the edge that was cut, a->b")
BREAKER_EDGES: Final = _key("twinspan.breaker.edges", "string[]", "all edges that were cut")
BREAKER_NODE: Final = _key("twinspan.breaker.node", "string", "the node whose payload was frozen")
BREAKER_AXIS: Final = _key("twinspan.breaker.axis", "string", "the axis of the frozen payload")
BREAKER_PAYLOAD_HASH: Final = _key(
    "twinspan.breaker.payload.hash", "string", "keyed hash of the frozen payload"
)
BREAKER_ENFORCED: Final = _key(
    "twinspan.breaker.enforced", "boolean", "false in shadow mode: the decision is only told"
)
BREAKER_RESET_BY: Final = _key(
    "twinspan.breaker.reset.by", "string", "who let a stopped run go on, as they call themselves"
)

# --- an intervention ---------------------------------------------------------------------------

INTERVENTION_ID: Final = _key("twinspan.intervention.id", "string", "the intervention; at start")
INTERVENTION_STRATEGY: Final = _key(
    "twinspan.intervention.strategy", "string", "blind_rerun, skeptics, madera or human; at start"
)
INTERVENTION_TRIGGER_TASK: Final = _key(
    "twinspan.intervention.trigger.task.id", "string", "the execution whose payload is repaired"
)
INTERVENTION_ROUND: Final = _key("twinspan.intervention.round", "int", "try, from 1")
INTERVENTION_SCORE_BEFORE: Final = _key(
    "twinspan.intervention.score.before", "double", "delta of the frozen payload's node"
)
INTERVENTION_SCORE_AFTER: Final = _key(
    "twinspan.intervention.score.after", "double", "delta re-measured on the repaired procedure"
)
INTERVENTION_OUTCOME: Final = _key(
    "twinspan.intervention.outcome", "string", "cleared, unchanged, escalated or failed"
)
INTERVENTION_ROLE: Final = _key(
    "twinspan.intervention.role", "string", "role of a skeptic within an intervention"
)
INTERVENTION_EDGE: Final = _key(
    "twinspan.intervention.edge", "string", "the edge on which the repaired payload goes, a->b"
)
INTERVENTION_PAYLOAD_HASH: Final = _key(
    "twinspan.intervention.payload.hash", "string", "keyed hash of the repaired payload"
)
INTERVENTION_HANDED_HASH: Final = _key(
    "twinspan.intervention.handed.hash",
    "string",
    "keyed hash of the whole input the consumer then read",
)

INTERVENTION_REASON: Final = _key(
    "twinspan.intervention.reason",
    "string",
    "why it came to its outcome: below_bound, not_below_bound, alarm, timeout, cannot_rerun, "
    "no_neutral_words, panel_rejected, panel_stands, panel_undecided, no_fitting_revision, "
    "no_better_attempt, nothing_changed, not_measured, refuted, others_failed, "
    "retries_exhausted, or error: and its kind",
)
INTERVENTION_UPPER_AFTER: Final = _key(
    "twinspan.intervention.upper.after", "double", "upper end for the re-measured delta"
)
INTERVENTION_CANDIDATE: Final = _key(
    "twinspan.intervention.candidate",
    "string",
    "the candidate repair that was measured or chosen, without names of reviewers",
)

# What follows is rare: recorded files keep it in the JSON rest, not in columns of its own.

ROUTE_STRATEGY: Final = _key(
    "twinspan.route.strategy", "string", "what the routing rule says: skeptics, madera or none"
)
ROUTE_REASON: Final = _key(
    "twinspan.route.reason", "string", "broad, entrenched, nothing_over_floor or not_halted"
)
ROUTE_AXIS: Final = _key("twinspan.route.axis", "string", "axis on which most nodes lean")
ROUTE_BIASED: Final = _key(
    "twinspan.route.biased.count", "int", "nodes over their floor on that axis so far"
)
ROUTE_NODES: Final = _key("twinspan.route.node.count", "int", "nodes of the graph")
ROUTE_THRESHOLD: Final = _key(
    "twinspan.route.threshold", "double", "breadth from which on a leaning is shared"
)
PANEL_DECISION: Final = _key(
    "twinspan.panel.decision", "string", "rejected, revised, stands or undecided; advice only"
)
PANEL_CONFIDENCE: Final = _key(
    "twinspan.panel.confidence", "double", "share of the weight behind that decision"
)
PANEL_WEIGHTING: Final = _key("twinspan.panel.weighting", "string", "uniform or trust")
REVIEW_STANCE: Final = _key("twinspan.review.stance", "string", "stands, revise, reject or abstain")
REVIEW_WHY: Final = _key(
    "twinspan.review.why", "string", "why it abstains, from a closed list or error: and its kind"
)
REVIEW_FORM: Final = _key(
    "twinspan.review.form", "string", "how the verdict was read: json, line or none"
)
REVIEW_PROVENANCE: Final = _key(
    "twinspan.review.provenance", "string", "where the judgement comes from; at start"
)
REVIEW_CONFIDENCE: Final = _key(
    "twinspan.review.confidence", "double", "the reviewer's own, 0 to 1; absent if unstated"
)
REVIEW_QUOTED: Final = _key("twinspan.review.quoted.count", "int", "passages it quotes")
REVIEW_CHECKED: Final = _key(
    "twinspan.review.checked.count", "int", "those of them that are in what it was shown"
)
REVIEW_CREDIBILITY: Final = _key("twinspan.review.trust.credibility", "double", "C of T")
REVIEW_RELIABILITY: Final = _key("twinspan.review.trust.reliability", "double", "R of T")
REVIEW_INTIMACY: Final = _key("twinspan.review.trust.intimacy", "double", "I of T")
REVIEW_SELF: Final = _key("twinspan.review.trust.self_orientation", "double", "S of T")
REVIEW_TRUST: Final = _key("twinspan.review.trust.value", "double", "T = (C + R + I) / S")
REVIEW_WEIGHT: Final = _key("twinspan.review.weight", "double", "what it weighs in the vote")
ATTEMPT_DELTA: Final = _key(
    "twinspan.attempt.delta", "double", "largest delta of the candidate over the axes"
)
ATTEMPT_UPPER: Final = _key("twinspan.attempt.upper", "double", "upper end for it")
ATTEMPT_BELOW_BOUND: Final = _key(
    "twinspan.attempt.below_bound", "boolean", "the whole interval lies below the bound"
)
ATTEMPT_BOUND: Final = _key("twinspan.attempt.bound", "double", "that bound; at start")
VERIFIER_VERDICT: Final = _key(
    "twinspan.verifier.verdict", "string", "verified, refuted or unverified: facts, not bias"
)
VERIFIER_REASON: Final = _key(
    "twinspan.verifier.reason", "string", "the factual reason, in a word of the verifier's list"
)

# --- links ------------------------------------------------------------------------------------

LINK_RELATION: Final = _key(
    "twinspan.link.relation",
    "string",
    "data_dependency, aggregates, caused_by, retry_of or part_of_audit",
)
LINK_EDGE: Final = _key("twinspan.link.edge", "string", "the edge a link stands for, a->b")

# --- actions: one attribute per field of a structured step ---------------------------------------

ACTION_PREFIX: Final = "twinspan.action."
"""Prefix of the fields of a step's action, `twinspan.action.admit`; any scalar or array."""

# --- OpenTelemetry's own names ---------------------------------------------------------------

GEN_AI_OPERATION: Final = _key("gen_ai.operation.name", "string", "GenAI operation; at start")
GEN_AI_AGENT_NAME: Final = _key("gen_ai.agent.name", "string", "agent or graph; at start")
GEN_AI_WORKFLOW_NAME: Final = _key(
    "gen_ai.workflow.name", "string", "graph, for readers of older conventions; at start"
)
GEN_AI_CONVERSATION_ID: Final = _key(
    "gen_ai.conversation.id", "string", "the framework's thread, if it has one"
)
GEN_AI_EVALUATION_NAME: Final = _key("gen_ai.evaluation.name", "string", "what was evaluated")
GEN_AI_EVALUATION_SCORE: Final = _key("gen_ai.evaluation.score.value", "double", "its value")
GEN_AI_EVALUATION_LABEL: Final = _key(
    "gen_ai.evaluation.score.label", "string", "above_floor, within_floor or inconclusive"
)
GEN_AI_PROVIDER: Final = _key("gen_ai.provider.name", "string", "provider of a model")
GEN_AI_REQUEST_MODEL: Final = _key("gen_ai.request.model", "string", "model asked for")
GEN_AI_REQUEST_TEMPERATURE: Final = _key("gen_ai.request.temperature", "double", "temperature")
GEN_AI_REQUEST_SEED: Final = _key("gen_ai.request.seed", "int", "seed asked for")
GEN_AI_INPUT_TOKENS: Final = _key("gen_ai.usage.input_tokens", "int", "tokens read")
GEN_AI_OUTPUT_TOKENS: Final = _key("gen_ai.usage.output_tokens", "int", "tokens written")
GEN_AI_INPUT_MESSAGES: Final = _key(
    "gen_ai.input.messages", "string", "what went in; content, opt-in"
)
GEN_AI_OUTPUT_MESSAGES: Final = _key(
    "gen_ai.output.messages", "string", "what came out; content, opt-in"
)
ERROR_TYPE: Final = _key("error.type", "string", "class of a real failure")
TEST_SUITE_NAME: Final = _key("test.suite.name", "string", "the audit as a test suite")
TEST_SUITE_STATUS: Final = _key(
    "test.suite.run.status", "string", "success, failure, aborted or timed_out"
)

CONTENT: Final = frozenset(
    {PERTURBATION_FROM, PERTURBATION_TO, GEN_AI_INPUT_MESSAGES, GEN_AI_OUTPUT_MESSAGES}
)
"""Keys that hold words of a prompt or an answer; written only when the content switch is on."""

_RARE: Final = tuple(
    f"{NAMESPACE}.{group}." for group in ("route", "panel", "review", "attempt", "verifier")
)

PROMOTED: Final[tuple[Attribute, ...]] = tuple(
    attribute
    for attribute in CATALOGUE.values()
    if attribute.name not in {LINK_RELATION, LINK_EDGE} and not attribute.name.startswith(_RARE)
)
"""Attributes that recorded files keep in a typed column of their own; links keep theirs."""


def operation_name(operation: str, subject: str) -> str:
    """A span's name: the operation and what it was done to.

    >>> operation_name(SPAN_PROBE, "analyst_a")
    'probe analyst_a'
    """
    return f"{operation} {subject}"


def edge_name(source: str, target: str) -> str:
    """An edge in one word, as attributes carry it.

    >>> edge_name("planner", "reviewer")
    'planner->reviewer'
    """
    return f"{source}->{target}"


def split_edge(edge: str) -> tuple[str, str]:
    """The two ends of an edge's name.

    >>> split_edge("planner->reviewer")
    ('planner', 'reviewer')
    """
    source, _, target = edge.partition("->")
    return source, target
