"""Replicates: the same case under the same condition, run again.

Every replicate is kept and numbered; a collapsed view says how far they agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from twinspan.instrumentation.audit.trajectories import Trajectory
from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.hashing import canonical


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapsed:
    """What replicates of one case and condition did in common.

    Attributes:
        actions: by step, then field: the most frequent value, or the mean of a continuous
            field. None where the most frequent values tie, or no replicate has one.
        agreement: by ``step.field``, the share of the most frequent value among those known;
            None for a continuous field, or where none is known.
        answers: by ``step.field``, how many replicates have a value.
        n_replicates: replicates.
    """

    actions: Mapping[str, Mapping[str, object]]
    agreement: Mapping[str, float | None]
    answers: Mapping[str, int]
    n_replicates: int

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names, ours added."""
        return {
            "actions": {step: dict(action) for step, action in self.actions.items()},
            "agreement": dict(self.agreement),
            "answers": dict(self.answers),
            "n_replicates": self.n_replicates,
        }


def collapse_replicates(
    trajectories: Iterable[Trajectory], continuous_fields: Iterable[str] = ()
) -> Collapsed:
    """Replicates in one view; a tie is None and not a winner.

    Args:
        trajectories: replicates of one case and condition.
        continuous_fields: fields to average, by name, or by ``step.field``.

    Raises:
        ConfigurationError: they are of several cases or conditions.

    >>> runs = [Trajectory(case_id="v", condition_id="ref", actions={"prescribe": {"tier": tier}})
    ...         for tier in (3, 1, 3, 1)]
    >>> collapse_replicates(runs).actions["prescribe"], collapse_replicates(runs).agreement
    ({'tier': None}, {'prescribe.tier': 0.5})
    """
    runs = list(trajectories)
    cells = {(run.case_id, run.condition_id) for run in runs}
    if len(cells) > 1:
        raise ConfigurationError(
            f"the trajectories are of {len(cells)} cells; collapse one case and condition at a time"
        )
    continuous = set(continuous_fields)
    values: dict[tuple[str, str], list[object]] = {}
    for run in runs:
        for step, action in run.actions.items():
            for name, value in action.items():
                values.setdefault((step, name), []).append(value)
    actions: dict[str, dict[str, object]] = {}
    agreement: dict[str, float | None] = {}
    answers: dict[str, int] = {}
    for (step, name), found in values.items():
        known = [value for value in found if value is not None]
        averaged = not continuous.isdisjoint({name, f"{step}.{name}"}) and _are_numbers(known)
        collapsed, share = (_mean(known), None) if averaged else _most_frequent(known)
        actions.setdefault(step, {})[name] = collapsed
        agreement[f"{step}.{name}"] = share
        answers[f"{step}.{name}"] = len(known)
    return Collapsed(actions=actions, agreement=agreement, answers=answers, n_replicates=len(runs))


def number_replicates(trajectories: Iterable[Trajectory]) -> tuple[Trajectory, ...]:
    """The trajectories, each that has no number given the next of its cell.

    Raises:
        ConfigurationError: two of one model, case and condition have the same number.

    >>> run = Trajectory(case_id="v", condition_id="ref", actions={})
    >>> [each.replicate for each in number_replicates([run, run])]
    [1, 2]
    """
    runs = list(trajectories)
    taken: dict[object, set[int]] = {}
    for run in runs:
        numbers = taken.setdefault((run.model, run.case_id, run.condition_id), set())
        if run.replicate is not None and run.replicate in numbers:
            raise ConfigurationError(
                f"case {run.case_id!r} under {run.condition_id!r} has replicate "
                f"{run.replicate} twice; number each run once"
            )
        if run.replicate is not None:
            numbers.add(run.replicate)
    return tuple(run if run.replicate is not None else _numbered(run, taken) for run in runs)


def _numbered(run: Trajectory, taken: dict[object, set[int]]) -> Trajectory:
    numbers = taken[run.model, run.case_id, run.condition_id]
    free = next(number for number in range(1, len(numbers) + 2) if number not in numbers)
    numbers.add(free)
    return replace(run, replicate=free)


def _are_numbers(values: list[object]) -> bool:
    return bool(values) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )


def _mean(values: list[object]) -> float:
    return sum(cast("list[float]", values)) / len(values)


def _most_frequent(values: list[object]) -> tuple[object, float | None]:
    """The value and its share; a yes is not the number 1, and lists keep their order."""
    if not values:
        return None, None
    first = {canonical(value): value for value in reversed(values)}
    ranked = Counter(map(canonical, values)).most_common(2)
    share = ranked[0][1] / len(values)
    tied = len(ranked) > 1 and ranked[1][1] == ranked[0][1]
    return (None if tied else first[ranked[0][0]]), share
