"""The probing of one payload: rounds, sets, scores."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.divergence import resolve
from twinspan.instrumentation.errors import EstimatorError, SideEffectBlocked
from twinspan.instrumentation.joint import JointResult, joint_test
from twinspan.instrumentation.probing.budget import uniform_draw
from twinspan.instrumentation.probing.contrast import SCREEN, Contrast
from twinspan.instrumentation.probing.observation import Drawn, SetObserver
from twinspan.instrumentation.probing.plan import (
    COUNTERFACTUAL,
    NULL_RESAMPLE,
    STANDARD,
    Sample,
    derive_seed,
    plan_samples,
)
from twinspan.instrumentation.probing.results import Coverage, ProbeResult, SetResult
from twinspan.instrumentation.probing.rounds import NextRound, ProbeProgress, Round, Stopped
from twinspan.instrumentation.probing.runs import NodeRuns
from twinspan.instrumentation.probing.setup import ProbeSetup
from twinspan.instrumentation.probing.wording import Worder
from twinspan.instrumentation.scoring import BiasScore, compute_local_bias

SCORE_IN_THREAD_FROM: Final = 40
"""Samples from which on scoring leaves the event loop to others and uses a thread."""

BUDGET_SPENT: Final = "call_budget_spent"
NOT_IN_PAYLOAD: Final = "axis_not_in_payload"

SCORED: Final = frozenset({"ok", "error"})
"""Ends of a node run that give an outcome; a run that timed out is missing."""


@dataclass(slots=True)
class _Set:
    """A probe set that is being drawn."""

    label: str
    contrast: Contrast | None
    observer: SetObserver
    own: list[Drawn] = field(default_factory=list[Drawn])


class ProbeSession:
    """Probes one payload."""

    def __init__(self, setup: ProbeSetup, payload: Any) -> None:
        self._setup = setup
        self._options = setup.options
        self._runs = NodeRuns(setup)
        self._worder = Worder(
            self._options.axes,
            payload,
            random=self._options.wording == "random",
            seed=derive_seed(self._options.seed, *setup.labels),
        )
        self._sets: list[SetResult] = []
        self._calls = 0
        self._joint: JointResult | None = None

    # --- plans ------------------------------------------------------------------------------

    async def fixed(self) -> ProbeResult:
        """One round on every contrast, controls included."""
        (due,) = self._options.rounds.rounds
        contrasts = self._moving()
        if not contrasts:
            return self._result("probed")
        if not self._setup.budget.take(due.calls(len(contrasts))):
            self._refuse(contrasts, "budget", BUDGET_SPENT)
            return self._result("budget")
        await self._round(due, contrasts, number=0)
        return self._result("probed")

    async def adaptive(self) -> ProbeResult:
        """Rounds as long as evidence grows and calls are left."""
        plan = self._options.rounds
        known = {each.label: each for each in self._moving() if not each.is_control}
        if not known:
            return self._result("probed")
        draw = uniform_draw(self._options.seed, "audit", *self._setup.labels)
        progress = ProbeProgress.start(tuple(known), audited=draw < plan.audit_rate)
        while True:
            due = plan.next(progress, calls_left=self._setup.budget.left)
            if isinstance(due, Stopped) or not self._setup.budget.take(due.calls):
                break
            progress = await self._advance(progress, due, known)
        coverage: Coverage = due.coverage if isinstance(due, Stopped) else "budget"
        if coverage == "budget":
            self._refuse(tuple(known.values()), "budget", BUDGET_SPENT)
        return self._result(coverage)

    async def _advance(
        self, progress: ProbeProgress, due: NextRound, known: dict[str, Contrast]
    ) -> ProbeProgress:
        if due.combined:
            (found,) = await self._round(due.round, (), number=0)
            return progress.after_screen(1.0 if found.score is None else found.score.e_value)
        contrasts = tuple(known[label] for label in due.axes)
        results = await self._round(due.round, contrasts, number=progress.rounds)
        return progress.after_round(
            {item.axis: item.score.e_value for item in results if item.score is not None}
        )

    def _moving(self) -> tuple[Contrast, ...]:
        """The contrasts that change something; the others are told and cost nothing."""
        moving = [each for each in self._options.contrasts if self._worder.moves(each)]
        absent = [each for each in self._options.contrasts if each not in moving]
        self._refuse(absent, "no_op", NOT_IN_PAYLOAD)
        return tuple(moving)

    def _refuse(self, contrasts: Sequence[Contrast], outcome: str, reason: str) -> None:
        """Say of some contrasts, on spans, why they are not probed."""
        for contrast in contrasts:
            observer = self._setup.observer()
            observer.open_set(
                contrast.label, {c.PROBE_CONTRAST: contrast.kind, c.PROBE_DECISION: outcome}
            )
            observer.close_set(outcome, calls=0, score=None, reason=reason)
            self._sets.append(SetResult(axis=contrast.label, outcome=outcome, reason=reason))

    def _result(self, coverage: Coverage) -> ProbeResult:
        return ProbeResult(
            sets=tuple(self._sets), calls=self._calls, coverage=coverage, joint=self._joint
        )

    # --- one round ----------------------------------------------------------------------------

    async def _round(
        self, due: Round, contrasts: Sequence[Contrast], *, number: int
    ) -> list[SetResult]:
        """Draw a round's arms interleaved and score each contrast against the reference.

        Without contrasts the round is a screen.
        """
        drawing = [
            _Set(contrast.label, contrast, self._setup.observer()) for contrast in contrasts
        ] or [_Set(SCREEN, None, self._setup.observer())]
        samples = plan_samples(
            reference=due.reference,
            counterfactual=due.counterfactual,
            contrasts=[item.label for item in drawing],
            seed=derive_seed(
                self._options.seed,
                *self._setup.labels,
                "screen" if not contrasts else number,
            ),
        )
        self._open(drawing, due, number)
        try:
            results = await self._drawn(drawing, samples, number)
        except BaseException as error:
            outcome = "cancelled" if isinstance(error, asyncio.CancelledError) else "error"
            for item in drawing:
                item.observer.close_probes(item.own, None)
                item.observer.close_set(
                    outcome, calls=0, score=None, reason=type(error).__qualname__
                )
            raise
        self._sets += results
        return results

    def _open(self, drawing: Sequence[_Set], due: Round, number: int) -> None:
        for item in drawing:
            is_first = item is drawing[0]
            item.observer.open_set(
                item.label,
                {
                    c.PROBE_CONTRAST: SCREEN if item.contrast is None else item.contrast.kind,
                    c.PROBE_DECISION: "screened" if item.contrast is None else "probed",
                    c.PROBE_ROUND: number,
                    c.PROBE_WORDING: self._options.wording,
                    c.PROBE_REFERENCE_PLANNED: due.reference,
                    c.PROBE_COUNTERFACTUAL_PLANNED: due.counterfactual,
                    c.PROBE_REFERENCE_SET: None if is_first else drawing[0].observer.set_id,
                },
            )

    async def _drawn(
        self, drawing: Sequence[_Set], samples: Sequence[Sample], number: int
    ) -> list[SetResult]:
        by_label = {item.label: item for item in drawing}
        reference: list[Drawn] = []
        # In the order of the design, in which arms alternate: words that are dealt meet all alike.
        for sample in samples:
            is_own = sample.arm == COUNTERFACTUAL
            arm = by_label[sample.contrast].own if is_own else reference
            arm.append(self._worded(by_label, sample))
        first = drawing[0]
        # The first set's spans include the reference's.
        first.own = [*reference, *first.own]
        work = [(item.observer, item.label, drawn) for item in drawing for drawn in item.own]
        work.sort(key=lambda each: each[2].sample.position)
        await asyncio.gather(*(self._runs.draw(*each) for each in work))
        self._test_jointly(reference, drawing)
        return [await self._conclude(item, reference, number) for item in drawing]

    def _worded(self, by_label: dict[str, _Set], sample: Sample) -> Drawn:
        if sample.arm != COUNTERFACTUAL:
            return Drawn(sample, self._worder.reference(sample.seed))
        contrast = by_label[sample.contrast].contrast
        if contrast is None:
            return Drawn(sample, self._worder.screen(sample.seed))
        return Drawn(sample, self._worder.counterfactual(contrast, sample.seed))

    # --- scores -------------------------------------------------------------------------------

    async def _conclude(self, item: _Set, reference: Sequence[Drawn], number: int) -> SetResult:
        own = [drawn for drawn in item.own if drawn.is_counterfactual]
        drawn = [*reference, *own]
        score: BiasScore | None = None
        outcome, reason = _trouble(drawn)
        if reason is None:
            try:
                score = await self._score(item, drawn)
            except EstimatorError as error:
                outcome = "timeout" if outcome == "partial" else "error"
                reason = type(error).__qualname__
        calls = sum(each.calls for each in item.own)
        self._calls += calls
        item.observer.close_probes(item.own, score, of=drawn)
        item.observer.close_set(outcome, calls=calls, score=score, reason=reason)
        return SetResult(axis=item.label, outcome=outcome, score=score, reason=reason, round=number)

    async def _score(self, item: _Set, drawn: Sequence[Drawn]) -> BiasScore:
        arms: dict[str, list[Drawn]] = {STANDARD: [], NULL_RESAMPLE: [], COUNTERFACTUAL: []}
        for each in drawn:
            if each.status in SCORED:
                arms[each.sample.arm].append(each)
        pooled = [each for arm in arms.values() for each in arm]
        random_wording = self._options.wording == "random"

        def score() -> BiasScore:
            return compute_local_bias(
                [each.outcome for each in arms[STANDARD]],
                [each.outcome for each in arms[COUNTERFACTUAL]],
                noise_floor=[each.outcome for each in arms[NULL_RESAMPLE]],
                method=self._options.estimator,
                axis=item.label,
                kind=SCREEN if item.contrast is None else item.contrast.kind,
                null="randomised_wording" if random_wording else "same_input",
                order=[each.sample.position for each in pooled],
            )

        if len(drawn) < SCORE_IN_THREAD_FROM:
            return score()
        return await asyncio.to_thread(score)

    def _test_jointly(self, reference: Sequence[Drawn], drawing: Sequence[_Set]) -> None:
        """All axes of the round at once, where nothing is missing."""
        tested = [s for s in drawing if s.contrast is not None and not s.contrast.is_control]
        arms = {
            item.label: [drawn for drawn in item.own if drawn.is_counterfactual] for item in tested
        }
        pooled = [*reference, *(drawn for arm in arms.values() for drawn in arm)]
        if len(tested) < 2 or any(drawn.status not in SCORED for drawn in pooled):
            return
        outcomes = [drawn.outcome for drawn in pooled]
        try:
            distances = resolve(self._options.estimator, outcomes).matrix(outcomes)
        except EstimatorError:
            return
        sizes = {label: len(arm) for label, arm in arms.items()}
        self._joint = joint_test(distances, len(reference), sizes)


def _trouble(drawn: Sequence[Drawn]) -> tuple[str, str | None]:
    """A set's outcome before scoring, and why there can be no score."""
    if any(isinstance(item.error, SideEffectBlocked) for item in drawn):
        return "error", "side_effect_blocked"
    if all(item.status == "error" for item in drawn):
        return "error", f"every_run_raised:{type(drawn[0].error).__qualname__}"
    return ("partial" if any(item.status == "timeout" for item in drawn) else "ok"), None
