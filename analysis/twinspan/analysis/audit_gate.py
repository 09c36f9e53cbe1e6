"""The gate over recorded runs: which outcomes of which agent may be ranked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from twinspan.analysis.bands import Band, Membership, membership_or_unknown
from twinspan.analysis.disagreement import pooled
from twinspan.analysis.entropy import action_entropy
from twinspan.analysis.gate_options import GateOptions
from twinspan.analysis.gating import GateDecision, capability_floor_gate
from twinspan.analysis.outcomes import OutcomeRule
from twinspan.analysis.pairing import answers_of, pair_trajectories, replicate_table
from twinspan.analysis.rates import WithinBandRate, within_range_flip_rate
from twinspan.analysis.recorded_trajectories import recorded_trajectories, unforced_runs
from twinspan.analysis.store import Store
from twinspan.analysis.tables import Table
from twinspan.instrumentation.audit.trajectories import Trajectory
from twinspan.instrumentation.errors import ConfigurationError

COLUMNS: Final = (
    "model",
    "action",
    "eligible",
    "reason",
    "wcfr",
    "wcfr_all_in_band",
    "n_in_band",
    "n_band_straddling",
    "n_straddle_contradictions",
    "n_unknown_band",
    "ground_truth",
    "capability_score",
    "action_entropy",
    "entropy_between_cases",
    "instability_floor",
    "excess_over_floor",
    "cautions",
    "detail",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """The gate's decision on one outcome of one model.

    An outcome that is held out has its counts and what the reason compares, and no rate: a number
    that must not be ranked is not there to be quoted.

    Attributes:
        model: who answered.
        action: the outcome.
        decision: eligible or not, and the first reason against it.
        rate: the within-band rate over all swaps together.
        capability: the share of reference answers in their band, or the given score.
        entropy: bits of all reference answers.
        between: of these, what the case explains; None without replicates.
        floor: how often two replicates of the reference disagree; None without two cases that
            were run twice, and for a policy that never varies.
    """

    model: str | None
    action: str
    decision: GateDecision
    rate: WithinBandRate
    capability: float | None
    entropy: float | None
    between: float | None
    floor: float | None

    def as_row(self) -> tuple[object, ...]:
        """The values of `COLUMNS`."""
        decision, rate = self.decision, self.rate
        return (
            self.model,
            self.action,
            decision.eligible,
            decision.reason,
            decision.wcfr,
            rate.all_in_band if decision.eligible else None,
            rate.n_in_band,
            rate.n_band_straddling,
            rate.n_straddle_contradictions,
            rate.n_unknown_band,
            rate.ground_truth,
            self.capability,
            self.entropy,
            self.between,
            self.floor,
            decision.excess_over_floor,
            list(decision.cautions),
            decision.detail or rate.bands.note or "",
        )


def gate_rows(store: Store, options: GateOptions, *, reference: str | None = None) -> list[GateRow]:
    """The gate over every model and outcome of a store.

    The rate is over the pairs of every swap with the reference, by case and replicate; controls
    are left out. Entropy and floor are the reference's own.

    Args:
        store: opened spans.
        options: thresholds, bands and registry.
        reference: the condition to compare with; the recorded one if None.

    Raises:
        ConfigurationError: there is no reference, or an outcome that is asked for.
    """
    if reference is not None:
        store.compare_with(reference)
    rules = outcome_rules(store)
    wanted = [rule for rule in rules if not options.outcomes or rule.name in options.outcomes]
    unknown = sorted(set(options.outcomes) - {rule.name for rule in rules})
    if unknown:
        raise ConfigurationError(
            f"no outcome is named {unknown[0]!r}; known: {', '.join(r.name for r in rules)}"
        )
    conditions = store.table("SELECT condition_id, is_reference, is_control FROM conditions").rows
    if not conditions:
        return []
    references = [str(name) for name, is_reference, _ in conditions if is_reference]
    if len(references) != 1:
        raise ConfigurationError("no condition is the reference; name it with --reference")
    swaps = [str(n) for n, is_reference, control in conditions if not (is_reference or control)]
    by_model: defaultdict[str | None, list[Trajectory]] = defaultdict(list)
    for run in recorded_trajectories(store):
        by_model[run.model].append(run)
    return [
        _row(model, rule, unforced_runs(runs), references[0], swaps, options)
        for model, runs in by_model.items()
        for rule in wanted
    ]


def gate_table(rows: Sequence[GateRow]) -> Table:
    """Decisions as a table of `COLUMNS`."""
    return Table(columns=COLUMNS, rows=tuple(row.as_row() for row in rows))


def outcome_rules(store: Store) -> list[OutcomeRule]:
    """The outcome rules in force: those given with the question, else those recorded.

    Without either, every scalar field of every action is an outcome.
    """
    given = store.table("SELECT action, step, field, operator, literal FROM given_outcomes").rows
    if given:
        return [
            OutcomeRule(
                name=str(name),
                step=str(step),
                field=str(field),
                operator=_text(op),
                literal=_text(x),
            )
            for name, step, field, op, x in given
        ]
    recorded = store.table(
        "SELECT DISTINCT unnest(audit_outcomes) AS rule FROM counted_runs ORDER BY rule"
    ).column("rule")
    if recorded:
        return [OutcomeRule.parse(str(rule)) for rule in recorded]
    actions = store.table("SELECT DISTINCT action, step FROM actions ORDER BY ALL").rows
    return [
        OutcomeRule(name=str(action), step=str(step), field=str(action).removeprefix(f"{step}."))
        for action, step in actions
    ]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _row(
    model: str | None,
    rule: OutcomeRule,
    runs: Sequence[Trajectory],
    reference: str,
    swaps: Sequence[str],
    options: GateOptions,
) -> GateRow:
    bands = options.bands_of(f"{rule.step}.{rule.field}")
    pairs = [
        pair
        for swap in swaps
        for pair in pair_trajectories(
            runs, rule, reference=reference, counterfactual=swap, bands=bands
        ).pairs
    ]
    rate = within_range_flip_rate(pairs, list(bands.values()), registry=options.registry)
    entropy = action_entropy(answers_of(runs, rule, reference))
    floor = _floor(runs, rule, reference)
    capability = options.capability_score
    if capability is None:
        capability = _share_in_band(runs, rule, reference, bands)
    decision = capability_floor_gate(
        rate,
        capability,
        options.min_capability,
        action_entropy=None if entropy.total is None else entropy,
        min_entropy=options.min_entropy,
        min_band_straddling=options.min_band_straddling,
        instability_floor=floor,
        max_instability_floor=options.max_instability_floor,
        require_floor=True,
        require_ground_truth=options.require_ground_truth,
    )
    return GateRow(
        model=model,
        action=rule.name,
        decision=decision if decision.eligible else _without_rate(decision),
        rate=rate,
        capability=capability,
        entropy=entropy.total,
        between=entropy.between,
        floor=floor,
    )


def _without_rate(decision: GateDecision) -> GateDecision:
    return replace(decision, wcfr=None, excess_over_floor=None)


def _floor(runs: Sequence[Trajectory], rule: OutcomeRule, reference: str) -> float | None:
    """How often two replicates disagree; None where that says nothing about cases like these."""
    counts = replicate_table(runs, rule, reference).counts.values()
    repeated = [each for each in counts if each.cells]
    varies = len({repr(x) for told in answers_of(runs, rule, reference).values() for x in told}) > 1
    return pooled(repeated).rate if len(repeated) > 1 and varies else None


def _share_in_band(
    runs: Sequence[Trajectory], rule: OutcomeRule, reference: str, bands: Mapping[str, Band]
) -> float | None:
    """The share of reference answers in the band of their case; None where none can be told."""
    places: list[Membership] = [
        membership_or_unknown(bands[run.case_id], run.get(rule.step, rule.field))
        for run in runs
        if run.condition_id == reference and run.case_id in bands
    ]
    known = [place for place in places if place != "unknown"]
    return sum(place == "in" for place in known) / len(known) if known else None
