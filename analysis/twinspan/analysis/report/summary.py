"""The verdict on everything that was recorded, in plain sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twinspan.analysis.flip_verdicts import MEANINGS
from twinspan.analysis.floors import POOLED
from twinspan.analysis.report.facts import Audit, Counts, RunRow, RunStory, Score, Verdict
from twinspan.analysis.report.wording import NOTHING, interval, many, number, percent, spoken
from twinspan.analysis.trail_records import Breach, Contribution, InterventionFact


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A verdict, its headline, and the sentences under it."""

    verdict: Verdict
    headline: str
    sentences: tuple[str, ...]


def summary_of(
    rows: Sequence[RunRow], counts: Counts, stories: Sequence[RunStory], audit: Audit | None
) -> Summary:
    """What is to be said first."""
    verdict = _verdict(rows, audit)
    sentences = [
        *_hole_sentences(rows),
        *_breach_sentences(counts, stories),
        *_quiet_sentences(counts, stories),
        *_audit_sentences(audit),
    ]
    return Summary(
        verdict=verdict,
        headline=_headline(verdict, rows, counts, audit),
        sentences=tuple(sentences),
    )


def _verdict(rows: Sequence[RunRow], audit: Audit | None) -> Verdict:
    """Holes in the record come first: with them nothing is clear."""
    found = {row.verdict for row in rows}
    if "incomplete" in found:
        return "incomplete"
    if "flagged" in found or any(row.breaches for row in rows):
        return "flagged"
    if audit is not None and audit.findings:
        return "flagged"
    if "clear" in found or (audit is not None and _was_tested(audit)):
        return "clear"
    return "inconclusive"


def _was_tested(audit: Audit) -> bool:
    """Whether a swap was compared that could have been found."""
    told = {row.verdict for row in audit.disparities.items if not row.is_control}
    return bool(told - {"inconclusive"})


def _headline(verdict: Verdict, rows: Sequence[RunRow], counts: Counts, audit: Audit | None) -> str:
    if verdict == "incomplete":
        broken = sum(row.check.verdict == "mismatch" for row in rows)
        if broken:
            return f"The record of {many(broken, 'run')} does not add up: do not rely on it."
        holes = sum(row.verdict == "incomplete" for row in rows)
        return (
            f"The record of {many(holes, 'run')} is incomplete: nothing here can be called clear."
        )
    if verdict == "flagged" and counts.breaches:
        return _flagged_headline(rows, counts)
    if verdict == "flagged" and audit is not None and audit.findings:
        outcomes = len({row.action for row in audit.findings})
        conditions = len({row.condition for row in audit.findings})
        return (
            f"{many(outcomes, 'outcome')} {'changes' if outcomes == 1 else 'change'} with whom a "
            f"case is about, beyond the floor, under {many(conditions, 'condition')}."
        )
    if verdict == "flagged":
        return _flagged_headline(rows, counts)
    if verdict == "clear" and not counts.probe_sets and audit is not None:
        return _audit_headline(audit)
    if verdict == "clear":
        return "No payload had to be stopped in what was measured."
    if audit is not None:
        return _audit_headline(audit)
    return "Nothing was measured, so nothing can be said about bias."


def _audit_headline(audit: Audit) -> str:
    if audit.reason is not None:
        return "No agent was probed; repeated runs show how stable its actions are."
    told = [row for row in audit.disparities.items if not row.is_control]
    if all(row.verdict == "inconclusive" for row in told):
        return "The audit cannot tell: nothing could have been found with these runs."
    return "No condition changes an outcome beyond the floor and the controls."


def _flagged_headline(rows: Sequence[RunRow], counts: Counts) -> str:
    where = many(sum(row.breaches > 0 for row in rows), "run")
    one = counts.breaches == 1
    what = "One biased payload" if one else many(counts.breaches, "biased payload")
    if not counts.enforced:
        return f"{what} in {where} would have been stopped (shadow mode: all went on)."
    if counts.enforced < counts.breaches:
        return f"{what} in {where}: {counts.enforced} stopped, the others only told (shadow mode)."
    return (
        f"{what} in {where} {'was' if counts.breaches == 1 else 'were'} stopped before being read."
    )


# --- the record -----------------------------------------------------------------------------------


def _hole_sentences(rows: Sequence[RunRow]) -> Iterator[str]:
    kinds = Counter(row.check.verdict for row in rows)
    if kinds["mismatch"]:
        yield (
            f"In {many(kinds['mismatch'], 'run')} a number does not follow from the raw spans, or "
            "a decision was altered or removed; see the record below."
        )
    if kinds["incomplete"]:
        yield f"In {many(kinds['incomplete'], 'run')} spans are missing; what they said is unknown."


# --- breaches -------------------------------------------------------------------------------------


def _breach_sentences(counts: Counts, stories: Sequence[RunStory]) -> Iterator[str]:
    for story in stories[:1]:
        for breach in story.breaches.items[:1]:
            yield from breach_sentences(breach, story.scores.items)
    if counts.breaches > 1:
        yield f"This is the gravest of {many(counts.breaches, 'breach', 'breaches')}."


def breach_sentences(breach: Breach, scores: Sequence[Score]) -> Iterator[str]:
    """A breach in plain words: what was seen, what was done, what came of it."""
    worst = worst_of(breach)
    if worst is not None:
        yield _seen(worst, scores)
    yield _stopped(breach)
    for each in breach.interventions:
        yield _repaired(each)


def worst_of(breach: Breach) -> Contribution | None:
    """The contribution that a breach is about."""
    named = [
        each
        for each in breach.contributions
        if (each.node, each.axis) == (breach.node, breach.axis)
    ]
    return next(iter([*named, *breach.contributions]), None)


def _seen(worst: Contribution, scores: Sequence[Score]) -> str:
    score = next((each for each in scores if each.span_id == worst.span_id), None)
    between = interval(worst.ci_low, worst.ci_high)
    excess = number(worst.delta) + ("" if between == NOTHING else f" ({between})")
    if score is None or score.cross is None or score.floor is None or score.estimator != "action":
        return (
            f"{worst.node} reacts to {worst.axis}: its answers differ across the swap by "
            f"{excess} more than among repeated runs."
        )
    return (
        f"{worst.node} reacts to {worst.axis}: exchanging it on the same payload gave a different "
        f"answer in {percent(score.cross)} of comparisons, against {percent(score.floor)} among "
        f"repeated runs; the excess is {excess}."
    )


def _stopped(breach: Breach) -> str:
    decision = breach.decision
    edges = ", ".join(breach.edges) or "an edge that is not named"
    verb = {"halt": "stopped", "reroute": "rerouted", "escalate": "handed to a person"}
    did = verb.get(decision.decision, decision.decision)
    why = f" ({spoken(decision.reason)})" if decision.reason else ""
    if decision.enforced is False:
        return f"In shadow mode the payload went on; it would have been {did} at {edges}{why}."
    return f"The payload was {did} at {edges}{why}, before its consumer read it."


def _repaired(fact: InterventionFact) -> str:
    where = f" of {fact.node}" if fact.node else ""
    if fact.outcome == "escalated":
        return f"No repair{where} held, so a person is asked."
    what = f"A repair by {spoken(fact.strategy)}" if fact.strategy else "A repair"
    if fact.score_after is None:
        again = "it was not measured again"
    else:
        before, after = number(fact.score_before), number(fact.score_after)
        again = f"measured again, the excess went from {before} to {after}"
    why = f" ({spoken(fact.reason)})" if fact.reason and fact.outcome != "cleared" else ""
    ended = f": {spoken(fact.outcome)}{why}" if fact.outcome else ", its outcome is not recorded"
    return f"{what}{where}{ended}; {again}."


# --- no breach ------------------------------------------------------------------------------------


def _quiet_sentences(counts: Counts, stories: Sequence[RunStory]) -> Iterator[str]:
    if not counts.probe_sets:
        return
    made = f" made {many(counts.calls, 'run')} of nodes" if counts.calls else ""
    yield (
        f"{many(counts.probe_sets, 'probe set')}{made}; "
        f"{counts.scored:,} gave a score, {counts.above_floor:,} of these "
        f"{'says' if counts.above_floor == 1 else 'say'} that a node reacts."
    )
    if counts.breaches:
        return
    limits = [
        (point.monitor, point.monitor_limit)
        for story in stories
        for point in story.points.items
        if point.monitor is not None and point.monitor_limit is not None
    ]
    if limits:
        monitor, limit = max(limits, key=lambda each: each[0] / each[1])
        yield f"The evidence M reached {number(monitor)} at most; a halt needs {number(limit)}."


# --- audits ---------------------------------------------------------------------------------------


def _audit_sentences(audit: Audit | None) -> Iterator[str]:
    if audit is None:
        return
    pooled = next((row for row in audit.floors.items if row.action == POOLED), None)
    if pooled is not None and pooled.floor is not None:
        yield (
            f"Two runs of the same case disagree in {percent(pooled.floor)} of comparisons "
            f"({percent(pooled.ci_low)} to {percent(pooled.ci_high)}): a difference between "
            "groups that is no larger means nothing."
        )
    swaps = [each for each in audit.disparities.items if not each.is_control]
    told = [each for each in swaps if each.verdict != "inconclusive"]
    over = [each for each in told if each.p_adjusted is not None and each.p_adjusted <= audit.alpha]
    if told:
        yield (
            f"{len(over):,} of {many(len(told), 'comparison')} with the reference "
            f"condition {'lies' if len(over) == 1 else 'lie'} beyond the floor (p adjusted for all "
            f"of them at most {audit.alpha:g})."
        )
    mute = [each for each in swaps if each.verdict == "inconclusive"]
    for reason in dict.fromkeys(each.reason for each in mute):
        count = sum(each.reason == reason for each in mute)
        yield f"{many(count, 'comparison')} cannot be judged: {MEANINGS[reason]}."
    yield from _finding_sentences(audit)
    yield from (f"{warning[0].upper()}{warning[1:]}." for warning in audit.warnings)


def _finding_sentences(audit: Audit) -> Iterator[str]:
    """The clearest disparity in words, and how far it may be called one."""
    found = audit.findings
    for row in found[:1]:
        yield (
            f"{row.condition} changes {row.action}: answers differ from {row.reference}'s in "
            f"{percent(row.flip_rate)} of comparisons, against {percent(row.floor)} among repeated "
            f"runs. {MEANINGS[row.reason].capitalize()}."
        )
    held = [row for row in audit.disparities.items if row.verdict == "within_controls"]
    if held:
        yield (
            f"{many(len(held), 'comparison')} beyond the floor "
            f"{'is' if len(held) == 1 else 'are'} no finding: an edit that means nothing moves "
            "answers as far."
        )
