"""Recomputes what interventions say of themselves: routes, trust, votes, choices, measurements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from twinspan.analysis.columnar.spans import RunBatch
from twinspan.analysis.recorded import RecordedRun
from twinspan.collector.intervention.measured import Measured
from twinspan.collector.intervention.routing import Leaning, Spread, route_of
from twinspan.collector.intervention.trust import Trust, Weighed, tally, vote_weight
from twinspan.collector.intervention.verdicts import Review, Stance
from twinspan.collector.records import ProbeRecord
from twinspan.instrumentation import conventions as c

Attributes = Mapping[str, Any]

Place = tuple[str, int]


class Check(NamedTuple):
    """A recorded value beside what the raw spans give."""

    span_id: str
    what: str
    recorded: object
    recomputed: object


@dataclass(frozen=True, slots=True, kw_only=True)
class InterventionSpans:
    """The spans of all interventions of some runs, by run."""

    interventions: Mapping[str, Sequence[Attributes]]
    reviews: Mapping[str, Sequence[Attributes]]
    attempts: Mapping[str, Sequence[Attributes]]

    @classmethod
    def of(cls, batch: RunBatch) -> InterventionSpans:
        """Those of a batch of runs."""
        kinds = ("intervention", "review", "attempt")
        found = [dict(zip(batch.run_ids, batch.by_run(kind), strict=True)) for kind in kinds]
        return cls(interventions=found[0], reviews=found[1], attempts=found[2])


def intervention_checks(run: RecordedRun, spans: InterventionSpans) -> Iterator[Check]:
    """Everything that can be recomputed of one run's interventions."""
    if not spans.interventions.get(run.run_id):
        return
    reviews = _by(c.INTERVENTION_ID, spans.reviews.get(run.run_id, ()))
    attempts = _by(c.INTERVENTION_ID, spans.attempts.get(run.run_id, ()))
    told_at = {_place(told) for told in spans.interventions[run.run_id]}
    spreads = _spreads(run, told_at)
    for told in spans.interventions.get(run.run_id, ()):
        own = str(told[c.INTERVENTION_ID])
        sets = [record for record in run.probe_sets if record.intervention_id == own]
        yield from _route(told, spreads)
        yield from _measured(told, _final(sets))
        yield from _handed_on(told, run, _final(sets))
        yield from _panel(told, reviews.get(own, ()))
        yield from _attempts(attempts.get(own, ()), sets)
        yield from _chosen(told, attempts.get(own, ()))


# --- routes -------------------------------------------------------------------------------------


def _spreads(run: RecordedRun, places: Collection[Place]) -> dict[Place, Spread]:
    """Who leant when some supersteps were decided; without what was decided more than once."""
    leaning = Leaning()
    found: dict[Place, Spread] = {}
    again: set[Place] = set()
    for step in run.supersteps:
        place = _place(step.told)
        if step.is_repair:
            continue
        leaning.note(step.records)
        if place not in places:
            continue
        again |= {place} & found.keys()
        found[place] = leaning.spread(len(run.dag))
    return {place: spread for place, spread in found.items() if place not in again}


def _route(told: Attributes, spreads: Mapping[Place, Spread]) -> Iterator[Check]:
    spread = spreads.get(_place(told))
    if spread is None or told.get(c.ROUTE_STRATEGY) is None or not spread.total:
        return
    route = route_of(spread, threshold=float(told[c.ROUTE_THRESHOLD]))
    span = str(told["span_id"])
    yield Check(span, c.ROUTE_STRATEGY, told[c.ROUTE_STRATEGY], route.strategy)
    yield Check(span, c.ROUTE_REASON, told.get(c.ROUTE_REASON), route.reason)
    yield Check(span, c.ROUTE_AXIS, told.get(c.ROUTE_AXIS), spread.axis)
    yield Check(span, c.ROUTE_BIASED, told.get(c.ROUTE_BIASED), spread.biased)
    yield Check(span, c.ROUTE_NODES, told.get(c.ROUTE_NODES), spread.total)


# --- measurements -------------------------------------------------------------------------------


def _final(sets: Iterable[ProbeRecord]) -> list[ProbeRecord]:
    """The probe sets that decided, without words that the payload does not have."""
    return [each for each in sets if each.candidate is None and each.outcome != "no_op"]


def _measured(told: Attributes, sets: Sequence[ProbeRecord]) -> Iterator[Check]:
    if told.get(c.INTERVENTION_SCORE_AFTER) is None:
        return
    again, span = Measured.of(sets), str(told["span_id"])
    after, upper = told[c.INTERVENTION_SCORE_AFTER], told.get(c.INTERVENTION_UPPER_AFTER)
    yield Check(span, c.INTERVENTION_SCORE_AFTER, after, again.delta)
    yield Check(span, c.INTERVENTION_UPPER_AFTER, upper, again.upper)


def _handed_on(told: Attributes, run: RecordedRun, sets: Sequence[ProbeRecord]) -> Iterator[Check]:
    """A payload was handed on where a decision on its own measurement let it pass, else not."""
    outcome = told.get(c.INTERVENTION_OUTCOME)
    if outcome not in ("cleared", "unchanged"):
        return
    own = {each.set_id for each in sets}
    passed = any(
        step.told.get(c.BREAKER_DECISION) in ("proceed", "warn")
        for step in run.supersteps
        if own & set(cast("Sequence[str]", step.told.get(c.NETWORK_PROBE_SETS) or ()))
    )
    recomputed = "cleared" if passed else "unchanged"
    yield Check(str(told["span_id"]), c.INTERVENTION_OUTCOME, outcome, recomputed)


def _attempts(attempts: Sequence[Attributes], sets: Sequence[ProbeRecord]) -> Iterator[Check]:
    for told in attempts:
        own = [each for each in sets if each.candidate == told.get(c.INTERVENTION_CANDIDATE)]
        again, span = Measured.of(own), str(told["span_id"])
        below = again.equivalent(float(told[c.ATTEMPT_BOUND]))
        yield Check(span, c.ATTEMPT_DELTA, told.get(c.ATTEMPT_DELTA), again.delta)
        yield Check(span, c.ATTEMPT_UPPER, told.get(c.ATTEMPT_UPPER), again.upper)
        if told.get(c.ATTEMPT_BELOW_BOUND) is not None:
            yield Check(span, c.ATTEMPT_BELOW_BOUND, told[c.ATTEMPT_BELOW_BOUND], below)


def _chosen(told: Attributes, attempts: Sequence[Attributes]) -> Iterator[Check]:
    """The candidate that measured best was chosen, unless a verifier had a say."""
    chosen = told.get(c.INTERVENTION_CANDIDATE)
    deltas = {
        each[c.INTERVENTION_CANDIDATE]: each[c.ATTEMPT_DELTA]
        for each in attempts
        if each.get(c.ATTEMPT_DELTA) is not None
    }
    if chosen not in deltas or told.get(c.VERIFIER_VERDICT) is not None:
        return
    best = deltas[chosen] == min(deltas.values())
    yield Check(str(told["span_id"]), c.INTERVENTION_CANDIDATE, True, best)


# --- panels -------------------------------------------------------------------------------------


def _panel(told: Attributes, reviews: Sequence[Attributes]) -> Iterator[Check]:
    weighting = told.get(c.PANEL_WEIGHTING)
    if weighting is None:
        return
    weighed = [_weighed(each, str(weighting)) for each in reviews]
    for each, again in zip(reviews, weighed, strict=True):
        span = str(each["span_id"])
        yield Check(span, c.REVIEW_TRUST, each.get(c.REVIEW_TRUST), again.trust.value)
        yield Check(span, c.REVIEW_WEIGHT, each.get(c.REVIEW_WEIGHT), again.weight)
    summed, span = tally(weighed), str(told["span_id"])
    yield Check(span, c.PANEL_DECISION, told.get(c.PANEL_DECISION), summed.decision)
    yield Check(span, c.PANEL_CONFIDENCE, told.get(c.PANEL_CONFIDENCE), summed.confidence)


def _weighed(told: Attributes, weighting: str) -> Weighed:
    quotes = ("",) * int(told.get(c.REVIEW_CHECKED) or 0)
    review = Review(
        stance=cast("Stance", told[c.REVIEW_STANCE]),
        confidence=told.get(c.REVIEW_CONFIDENCE),
        checked=quotes,
    )
    trust = Trust.of(review, float(told[c.REVIEW_RELIABILITY]))
    return Weighed(review=review, trust=trust, weight=vote_weight(review, trust, weighting))


def _place(told: Attributes) -> Place:
    return str(told.get(c.SUPERSTEP_SCOPE, "")), int(told[c.SUPERSTEP_INDEX])


def _by(key: str, items: Iterable[Attributes]) -> dict[str, list[Attributes]]:
    found: defaultdict[str, list[Attributes]] = defaultdict(list)
    for item in items:
        found[str(item.get(key))].append(item)
    return dict(found)
