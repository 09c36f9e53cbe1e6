"""From trajectories to pairs: which runs are compared, by which outcome, within which band."""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from twinspan.analysis.bands import Band, Membership, membership_or_unknown
from twinspan.analysis.inference.answers import Answers
from twinspan.analysis.outcomes import OutcomeRule
from twinspan.analysis.pairs import Pair
from twinspan.analysis.replicate_table import ReplicateTable
from twinspan.instrumentation.audit.trajectories import Trajectory
from twinspan.instrumentation.errors import ConfigurationError

_COMPARISONS: Final[Mapping[str, Callable[[object, object], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": cast("Callable[[object, object], bool]", operator.le),
    ">=": cast("Callable[[object, object], bool]", operator.ge),
    "<": cast("Callable[[object, object], bool]", operator.lt),
    ">": cast("Callable[[object, object], bool]", operator.gt),
}
_EQUALITY: Final = ("==", "!=")


def decide(rule: OutcomeRule, value: object) -> object:
    """The outcome of one value of a rule's field.

    Numbers compare as numbers; of anything else only equality has a meaning, as in the views.

    Returns:
        The value itself for a rule without an operator; None for a missing value, and for a
        comparison that has no meaning.

    >>> rule = OutcomeRule.parse("high_acuity = triage.esi_acuity <= 2")
    >>> decide(rule, 2), decide(rule, 3), decide(rule, "two"), decide(rule, None)
    (True, False, None, None)
    """
    if value is None or rule.operator is None:
        return value
    number, literal = _number(value), _number(rule.literal)
    compare = _COMPARISONS[rule.operator]
    if number is not None and literal is not None:
        return compare(number, literal)
    if rule.operator in _EQUALITY:
        return compare(_text(value), rule.literal)
    return None


def outcome_of(rule: OutcomeRule, trajectory: Trajectory) -> object:
    """The outcome of a trajectory; None where its step or field is missing."""
    return decide(rule, trajectory.get(rule.step, rule.field))


def replicate_table(
    trajectories: Iterable[Trajectory], rule: OutcomeRule, condition: str
) -> ReplicateTable:
    """The outcomes of a condition as cases by replicates, for floors and batch effects.

    Args:
        trajectories: of one model, all numbered.
        rule: the outcome.
        condition: whose runs.

    Raises:
        ConfigurationError: a run has no number, or a case has a replicate twice.

    >>> run = Trajectory(case_id="v", condition_id="ref", actions={"a": {"b": True}}, replicate=1)
    >>> replicate_table([run], OutcomeRule.parse("x = a.b"), "ref").answers
    ((True,),)
    """
    runs = [run for run in trajectories if run.condition_id == condition]
    if any(run.replicate is None for run in runs):
        raise ConfigurationError("a run has no replicate number; use number_replicates first")
    return ReplicateTable.of(
        [(run.case_id, run.replicate, outcome_of(rule, run)) for run in runs], action=rule.name
    )


def answers_of(
    trajectories: Iterable[Trajectory], rule: OutcomeRule, condition: str
) -> dict[str, list[object]]:
    """The outcomes of a condition by case, in the order of the replicates, for tests.

    Where all runs are numbered, the answers of all cases are aligned: a case that lacks a
    replicate has None in its place. Otherwise they stand as they come.

    Raises:
        ConfigurationError: a case has a replicate twice.

    >>> runs = [Trajectory(case_id=case, condition_id="ref", replicate=number,
    ...                    actions={"a": {"b": True}})
    ...         for case, number in (("v", 1), ("v", 2), ("w", 2))]
    >>> answers_of(runs, OutcomeRule.parse("x = a.b"), "ref")
    {'v': [True, True], 'w': [None, True]}
    """
    runs = [run for run in trajectories if run.condition_id == condition]
    if all(run.replicate is not None for run in runs):
        table = replicate_table(runs, rule, condition)
        return {case: list(row) for case, row in zip(table.cases, table.answers, strict=True)}
    found: dict[str, list[object]] = {}
    for run in runs:
        found.setdefault(run.case_id, []).append(outcome_of(rule, run))
    return found


def arms_of(trajectories: Iterable[Trajectory], rule: OutcomeRule) -> dict[str, Answers]:
    """The outcomes of every condition by case."""
    listed = list(trajectories)
    conditions = dict.fromkeys(trajectory.condition_id for trajectory in listed)
    return {condition: answers_of(listed, rule, condition) for condition in conditions}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Pairs of two conditions, and what could not be paired.

    Attributes:
        pairs: one for each case and replicate that both conditions have.
        unmatched: case and replicate of runs that only one condition has.
    """

    pairs: tuple[Pair, ...]
    unmatched: tuple[tuple[str, int | None], ...]


def pair_trajectories(
    trajectories: Iterable[Trajectory],
    rule: OutcomeRule,
    *,
    reference: str,
    counterfactual: str,
    bands: Mapping[str, Band] | None = None,
    score: tuple[str, str] | None = None,
) -> Pairing:
    """Pairs of runs of one case and replicate under two conditions.

    The outcome is compared; the band is asked about the graded action that the outcome is made
    of, and whether it straddles the outcome's threshold. A graded action of a wrong kind is
    unknown to the band, not outside it.

    Args:
        trajectories: of one model.
        rule: the outcome.
        reference: the reference condition's id.
        counterfactual: the other one's.
        bands: by case, of the rule's field.
        score: step and field of a score, if there is one.

    Raises:
        ConfigurationError: two runs are of one case, condition and replicate.

    >>> runs = [Trajectory(case_id="v", condition_id=name, replicate=1,
    ...                    actions={"triage": {"esi_acuity": grade}})
    ...         for name, grade in (("ref", 2), ("swap", 3))]
    >>> rule = OutcomeRule.parse("high_acuity = triage.esi_acuity <= 2")
    >>> band = Band(sub_action="triage.esi_acuity", acceptable={2, 3})
    >>> pair, = pair_trajectories(runs, rule, reference="ref", counterfactual="swap",
    ...                           bands={"v": band}).pairs
    >>> pair.flipped, pair.in_band, pair.straddles_threshold
    (True, True, True)
    """
    runs = _by_run(trajectories, (reference, counterfactual))
    of_reference, of_other = runs[reference], runs[counterfactual]
    known = bands or {}
    return Pairing(
        pairs=tuple(
            _pair(run, of_other[key], rule, known.get(key[0]), score)
            for key, run in of_reference.items()
            if key in of_other
        ),
        unmatched=tuple(of_reference.keys() ^ of_other.keys()),
    )


_Key = tuple[str, int | None]


def _by_run(
    trajectories: Iterable[Trajectory], conditions: tuple[str, str]
) -> dict[str, dict[_Key, Trajectory]]:
    runs: defaultdict[str, dict[_Key, Trajectory]] = defaultdict(dict)
    for run in _in_order(trajectories):
        if run.condition_id not in conditions:
            continue
        key = (run.case_id, run.replicate)
        if key in runs[run.condition_id]:
            raise ConfigurationError(
                f"case {run.case_id!r} has replicate {run.replicate!r} twice under "
                f"{run.condition_id!r}; number the replicates, and pass one model at a time"
            )
        runs[run.condition_id][key] = run
    return runs


def _pair(
    reference: Trajectory,
    other: Trajectory,
    rule: OutcomeRule,
    band: Band | None,
    score: tuple[str, str] | None,
) -> Pair:
    places: list[Membership] = [
        _place(band, run.get(rule.step, rule.field)) for run in (reference, other)
    ]
    scores = [None if score is None else _number(run.get(*score)) for run in (reference, other)]
    return Pair(
        reference.case_id,
        action_ref=outcome_of(rule, reference),
        action_cf=outcome_of(rule, other),
        score_ref=scores[0],
        score_cf=scores[1],
        in_band_ref=_inside(places[0]),
        in_band_cf=_inside(places[1]),
        straddles_threshold=None if band is None else _straddles(band, rule),
        disputed="disputed" in places,
        replicate=reference.replicate,
    )


def _place(band: Band | None, value: object) -> Membership:
    return "unknown" if band is None else membership_or_unknown(band, value)


def _inside(place: Membership) -> bool | None:
    return None if place == "unknown" else place == "in"


def _straddles(band: Band, rule: OutcomeRule) -> bool:
    """Whether the band allows two outcomes; any two values, for a rule without a threshold."""
    if rule.operator is None:
        return len({repr(value) for value in band.values()}) > 1
    return band.straddles(lambda value: decide(rule, value) is True)


def _in_order(trajectories: Iterable[Trajectory]) -> list[Trajectory]:
    """By replicate, those without a number first, otherwise as given."""
    return sorted(trajectories, key=lambda run: (run.replicate is not None, run.replicate or 0))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(cast("float | str", value))
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _text(value: object) -> str:
    """A value as rules and views write it: true and false in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)
