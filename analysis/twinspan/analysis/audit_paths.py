"""What becomes of a disparity along a trajectory: propagation, forced flips, accumulation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from twinspan.analysis.audit_gate import outcome_rules
from twinspan.analysis.inference.accumulation import Accumulation, trajectory_accumulation
from twinspan.analysis.inference.propagation import (
    InterventionalPropagation,
    Propagation,
    disparity_propagation,
    interventional_propagation,
)
from twinspan.analysis.outcomes import OutcomeRule
from twinspan.analysis.pairing import answers_of, outcome_of, pair_trajectories
from twinspan.analysis.pairs import Pair
from twinspan.analysis.recorded_trajectories import (
    arms_of_runs,
    forced_steps,
    recorded_trajectories,
    unforced_runs,
)
from twinspan.analysis.store import Store
from twinspan.instrumentation.audit.trajectories import Trajectory

_RERENDER: Final = "rerender"
_HELD: Final = ("held", "ref")
"""How the name of an arm begins that forces the reference's action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PropagationRow:
    """Whether a later outcome flips more often where an earlier one has.

    Attributes:
        model: who answered.
        upstream: the earlier outcome.
        downstream: the later one.
        found: all swaps together, beside the re-render control if there is one.
    """

    model: str | None
    upstream: str
    downstream: str
    found: Propagation


@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedRow:
    """What forcing an earlier step to flip does to a later outcome.

    Attributes:
        model: who answered.
        held: the arm in which the step was forced alike for everybody.
        flipped: the arm in which it was forced otherwise for the swap.
        action: the later outcome.
        found: the effect.
    """

    model: str | None
    held: str
    flipped: str
    action: str
    found: InterventionalPropagation


@dataclass(frozen=True, slots=True, kw_only=True)
class AccumulationRow:
    """Whether a swap's shifts along the trajectory add up or cancel.

    Attributes:
        model: who answered.
        condition: the swap.
        found: of its yes-or-no outcomes; up is towards yes.
    """

    model: str | None
    condition: str
    found: Accumulation


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPaths:
    """Everything that is said of trajectories; empty where there is one step or one condition."""

    propagation: tuple[PropagationRow, ...] = ()
    forced: tuple[ForcedRow, ...] = ()
    accumulation: tuple[AccumulationRow, ...] = ()


def audit_paths(store: Store, *, reference: str | None = None) -> AuditPaths:
    """Propagation and accumulation of every model of a store.

    Args:
        store: opened spans.
        reference: the condition to compare with; the recorded one if None.
    """
    if reference is not None:
        store.compare_with(reference)
    told = store.table("SELECT condition_id, kind, is_reference, is_control FROM conditions").rows
    references = [str(name) for name, _, is_reference, _ in told if is_reference]
    swaps = sorted(str(n) for n, _, is_reference, control in told if not (is_reference or control))
    if len(references) != 1 or not swaps:
        return AuditPaths()
    rerender = next((str(name) for name, kind, _, _ in told if kind == _RERENDER), None)
    rules = outcome_rules(store)
    found = [
        _Runs(model, runs, rules, references[0], swaps, rerender)
        for model, runs in _by_model(store).items()
    ]
    return AuditPaths(
        propagation=tuple(row for runs in found for row in runs.propagation()),
        forced=tuple(row for runs in found for row in runs.forced()),
        accumulation=tuple(row for runs in found for row in runs.accumulation()),
    )


def _by_model(store: Store) -> dict[str | None, list[Trajectory]]:
    by_model: defaultdict[str | None, list[Trajectory]] = defaultdict(list)
    for run in recorded_trajectories(store):
        by_model[run.model].append(run)
    return by_model


class _Runs:
    """The runs of one model."""

    def __init__(
        self,
        model: str | None,
        runs: Sequence[Trajectory],
        rules: Sequence[OutcomeRule],
        reference: str,
        swaps: Sequence[str],
        rerender: str | None,
    ) -> None:
        self._model = model
        self._arms = arms_of_runs(runs)
        self._unforced = unforced_runs(runs)
        self._rules = _in_step_order(rules, runs)
        self._reference = reference
        self._swaps = swaps
        self._rerender = rerender

    def propagation(self) -> Iterator[PropagationRow]:
        """Every outcome after every other one of an earlier step."""
        runs = self._unforced
        steps = list(dict.fromkeys(rule.step for rule in self._rules))
        for upstream in self._rules:
            for downstream in self._rules:
                if not runs or steps.index(upstream.step) >= steps.index(downstream.step):
                    continue
                yield PropagationRow(
                    model=self._model,
                    upstream=upstream.name,
                    downstream=downstream.name,
                    found=disparity_propagation(
                        self._pairs(runs, upstream, self._swaps),
                        self._pairs(runs, downstream, self._swaps),
                        self._pairs(runs, downstream, [self._rerender]) if self._rerender else None,
                    ),
                )

    def forced(self) -> Iterator[ForcedRow]:
        """One arm holds, the one whose name says so or else the first; every other one flips."""
        forcing = [arm for arm in self._arms if arm is not None and forced_steps(self._arms[arm])]
        forcing.sort(key=lambda arm: (not arm.startswith(_HELD), arm))
        for flipped in forcing[1:]:
            held = forcing[0]
            steps = forced_steps(self._arms[held])
            last = max(self._place(step) for step in steps)
            for rule in self._rules:
                if self._place(rule.step) <= last:
                    continue
                yield ForcedRow(
                    model=self._model,
                    held=held,
                    flipped=flipped,
                    action=rule.name,
                    found=interventional_propagation(
                        self._across(held, flipped, rule), self._across(held, held, rule)
                    ),
                )

    def accumulation(self) -> Iterator[AccumulationRow]:
        """Shifts of the yes-or-no outcomes of every swap."""
        runs = self._unforced
        yes_no = [rule for rule in self._rules if _is_yes_no(runs, rule)]
        for swap in self._swaps if runs and len(yes_no) > 1 else ():
            shifts = {
                rule.name: _shifts(
                    answers_of(runs, rule, self._reference), answers_of(runs, rule, swap)
                )
                for rule in yes_no
            }
            yield AccumulationRow(
                model=self._model, condition=swap, found=trajectory_accumulation(shifts)
            )

    def _pairs(
        self, runs: Sequence[Trajectory], rule: OutcomeRule, conditions: Sequence[str]
    ) -> list[Pair]:
        """Pairs of all conditions; one replicate of a case is one run of each of them."""
        found: list[Pair] = []
        for condition in conditions:
            paired = pair_trajectories(
                runs, rule, reference=self._reference, counterfactual=condition
            )
            found += [_labelled(pair, condition) for pair in paired.pairs]
        return found

    def _across(self, held: str, arm: str, rule: OutcomeRule) -> list[Pair]:
        """The reference of one arm beside the swaps of another."""
        reference = [run for run in self._arms[held] if run.condition_id == self._reference]
        found: list[Pair] = []
        for swap in self._swaps:
            others = [run for run in self._arms[arm] if run.condition_id == swap]
            paired = pair_trajectories(
                [*reference, *others], rule, reference=self._reference, counterfactual=swap
            )
            found += [_labelled(pair, swap) for pair in paired.pairs]
        return found

    def _place(self, step: str) -> int:
        steps = list(dict.fromkeys(rule.step for rule in self._rules))
        return steps.index(step) if step in steps else -1


def _labelled(pair: Pair, condition: str) -> Pair:
    """A pair whose replicate says which condition it is of."""
    return Pair(
        pair.case_id,
        action_ref=pair.action_ref,
        action_cf=pair.action_cf,
        replicate=f"{condition}/{pair.replicate}",
    )


def _in_step_order(rules: Sequence[OutcomeRule], runs: Sequence[Trajectory]) -> list[OutcomeRule]:
    told = [list(run.actions) for run in runs]
    longest = max(told, key=len) if told else []
    return sorted(
        (rule for rule in rules if rule.step in longest), key=lambda rule: longest.index(rule.step)
    )


def _is_yes_no(runs: Sequence[Trajectory], rule: OutcomeRule) -> bool:
    values = {repr(outcome_of(rule, run)) for run in runs} - {"None"}
    return bool(values) and values <= {"True", "False"}


def _shifts(
    reference: Mapping[str, Sequence[object]], other: Mapping[str, Sequence[object]]
) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for case in reference:
        first, second = _share(reference[case]), _share(other.get(case, ()))
        found[case] = None if first is None or second is None else second - first
    return found


def _share(answers: Sequence[object]) -> float | None:
    known = [answer is True for answer in answers if answer is not None]
    return sum(known) / len(known) if known else None
