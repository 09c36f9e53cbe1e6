"""LOOCProbe: one node, run again on twins of its payload."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from opentelemetry import context as otel_context

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.divergence import Outcome
from twinspan.instrumentation.errors import (
    ConfigurationError,
    EstimatorError,
    SideEffectBlocked,
)
from twinspan.instrumentation.perturbation import Reading, Rendering
from twinspan.instrumentation.probing.answers import outcome_of
from twinspan.instrumentation.probing.contrast import Contrast
from twinspan.instrumentation.probing.guard import ProbeFrame, inside_probe
from twinspan.instrumentation.probing.observation import Drawn, SetObserver, now
from twinspan.instrumentation.probing.plan import (
    COUNTERFACTUAL,
    NULL_RESAMPLE,
    STANDARD,
    Sample,
    derive_seed,
    plan_samples,
)
from twinspan.instrumentation.scoring import BiasScore, compute_local_bias
from twinspan.instrumentation.settings import ProbeOptions

Node = Callable[[Any], Any] | Callable[[Any], Awaitable[Any]]
ObserverFactory = Callable[[], SetObserver]

SCORE_IN_THREAD_FROM: Final = 40
"""Samples from which on scoring leaves the event loop to others and uses a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """What a probe set came to.

    Attributes:
        axis: the axis that was varied.
        outcome: `ok`, `partial` (some runs are missing), `no_op` (the axis does not occur in
            the payload: nothing was varied, which is not "no bias"), `timeout` or `error`.
        score: the score; None where there is none, and `reason` says why.
        reason: why there is no score.
        calls: node runs that were spent.
    """

    axis: str
    outcome: str
    score: BiasScore | None
    reason: str | None
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """A probe's sets, in the order of the axes."""

    sets: tuple[SetResult, ...]

    @property
    def scores(self) -> tuple[BiasScore, ...]:
        """The scores there are."""
        return tuple(item.score for item in self.sets if item.score is not None)

    @property
    def failures(self) -> tuple[SetResult, ...]:
        """The sets without a score, each with its reason."""
        return tuple(item for item in self.sets if item.score is None)

    @property
    def calls(self) -> int:
        """Node runs that were spent."""
        return sum(item.calls for item in self.sets)


class LOOCProbe:
    """Leave-one-out counterfactual probe of one node.

    For each axis the node is run on renderings of its payload in the payload's own group (the
    reference: baseline and null re-samples) and in another group (the counterfactual), in an
    interleaved order. An axis with proxy words has a second contrast, `axis#proxy`; controls, if
    asked for, leave the attribute alone and change something else. With random wording every
    sample of every arm gets words of its own, so that the axis is the only systematic difference
    between the arms.

    A run that raises is an outcome of its own, since an error that only one group meets is a
    finding; a run that times out is missing, and the set `partial`.

    Args:
        node: takes a payload and returns an answer; plain or async. It must bear being run
            again and in parallel.
        options: axes, sample counts, wording, estimator, limits.
        frame: who is probed, for the code that runs inside; a tool asks it for permission.
        observer: makes the observer that writes spans; none outside of a run.

    >>> from twinspan.instrumentation.perturbation import builtin_axis
    >>> probe = LOOCProbe(
    ...     lambda text: "decline" if " she " in text else "approve",
    ...     options=ProbeOptions(axes=(builtin_axis("gender"),), reference=6, counterfactual=4),
    ... )
    >>> score = probe.run("Then she applied for a loan.").scores[0]
    >>> score.delta, round(score.p_value, 4)
    (1.0, 0.0048)
    """

    def __init__(
        self,
        node: Node,
        *,
        options: ProbeOptions,
        frame: ProbeFrame | None = None,
        observer: ObserverFactory | None = None,
    ) -> None:
        if not options.axes:
            raise ConfigurationError("a probe needs at least one axis; pass axes=('gender',)")
        self._node = node
        self._is_async = inspect.iscoroutinefunction(node)
        self._options = options
        self._frame = frame
        self._observer = observer or (lambda: SetObserver(None, None, None))

    def run(self, payload: Any) -> ProbeResult:
        """Probe from plain code; not for use inside a running event loop."""
        return asyncio.run(self.arun(payload))

    async def arun(self, payload: Any) -> ProbeResult:
        """Probe every contrast, one after another, with bounded concurrency within each."""
        return ProbeResult(
            sets=tuple([await self._probe(each, payload) for each in self._options.contrasts])
        )

    # --- one set ------------------------------------------------------------------------

    async def _probe(self, contrast: Contrast, payload: Any) -> SetResult:
        options = self._options
        name = "" if self._frame is None else self._frame.node
        samples = plan_samples(
            reference=options.reference,
            counterfactual=options.counterfactual,
            seed=derive_seed(options.seed, name, contrast.label),
        )
        observer = self._observer()
        observer.open_set(
            contrast.label,
            {
                c.PROBE_CONTRAST: contrast.kind,
                c.PROBE_WORDING: options.wording,
                c.PROBE_REFERENCE_PLANNED: options.reference,
                c.PROBE_COUNTERFACTUAL_PLANNED: options.counterfactual,
            },
        )
        drawn: list[Drawn] = []
        try:
            reading = contrast.axis.read(payload)
            drawn = [
                Drawn(sample, self._render(contrast, reading, payload, sample))
                for sample in samples
            ]
            if all(item.rendering.no_op for item in drawn if item.is_counterfactual):
                return self._close(observer, contrast, [], "no_op", reason="axis_not_in_payload")
            limit = asyncio.Semaphore(options.concurrency)
            await asyncio.gather(*(self._draw(observer, contrast, item, limit) for item in drawn))
            return await self._conclude(observer, contrast, drawn)
        except BaseException as error:
            outcome = "cancelled" if isinstance(error, asyncio.CancelledError) else "error"
            self._close(observer, contrast, drawn, outcome, reason=type(error).__qualname__)
            raise

    def _render(
        self, contrast: Contrast, reading: Reading, payload: Any, sample: Sample
    ) -> Rendering:
        rng = Random(sample.seed) if self._options.wording == "random" else None
        if sample.arm == COUNTERFACTUAL:
            return contrast.counterfactual(reading, payload, rng)
        return reading.reword(rng)

    async def _conclude(
        self, observer: SetObserver, contrast: Contrast, drawn: Sequence[Drawn]
    ) -> SetResult:
        blocked = next((d for d in drawn if isinstance(d.error, SideEffectBlocked)), None)
        if blocked is not None:
            return self._close(observer, contrast, drawn, "error", reason="side_effect_blocked")
        if all(item.status == "error" for item in drawn):
            kind = type(drawn[0].error).__qualname__
            return self._close(
                observer, contrast, drawn, "error", reason=f"every_run_raised:{kind}"
            )
        missing = any(item.status == "timeout" for item in drawn)
        try:
            score = await self._score(contrast, drawn)
        except EstimatorError as error:
            outcome = "timeout" if missing else "error"
            return self._close(observer, contrast, drawn, outcome, reason=type(error).__qualname__)
        return self._close(observer, contrast, drawn, "partial" if missing else "ok", score=score)

    async def _score(self, contrast: Contrast, drawn: Sequence[Drawn]) -> BiasScore:
        arms: dict[str, list[Drawn]] = {STANDARD: [], NULL_RESAMPLE: [], COUNTERFACTUAL: []}
        for item in drawn:
            if item.status != "timeout":
                arms[item.sample.arm].append(item)
        pooled = [item for arm in arms.values() for item in arm]
        random_wording = self._options.wording == "random"

        def score() -> BiasScore:
            return compute_local_bias(
                [item.outcome for item in arms[STANDARD]],
                [item.outcome for item in arms[COUNTERFACTUAL]],
                noise_floor=[item.outcome for item in arms[NULL_RESAMPLE]],
                method=self._options.estimator,
                axis=contrast.label,
                kind=contrast.kind,
                null="randomised_wording" if random_wording else "same_input",
                order=[item.sample.position for item in pooled],
            )

        if len(drawn) < SCORE_IN_THREAD_FROM:
            return score()
        return await asyncio.to_thread(score)

    @staticmethod
    def _close(
        observer: SetObserver,
        contrast: Contrast,
        drawn: Sequence[Drawn],
        outcome: str,
        *,
        score: BiasScore | None = None,
        reason: str | None = None,
    ) -> SetResult:
        calls = sum(item.calls for item in drawn)
        observer.close_probes(drawn, score)
        observer.close_set(outcome, calls=calls, score=score, reason=reason)
        return SetResult(
            axis=contrast.label, outcome=outcome, score=score, reason=reason, calls=calls
        )

    # --- one run of the node --------------------------------------------------------------

    async def _draw(
        self, observer: SetObserver, contrast: Contrast, item: Drawn, limit: asyncio.Semaphore
    ) -> None:
        async with limit:
            context = observer.open_probe(contrast.label, item)
            token = None if context is None else otel_context.attach(context)
            try:
                await self._attempt(observer, item)
            finally:
                item.ended = now()
                if token is not None:
                    otel_context.detach(token)

    async def _attempt(self, observer: SetObserver, item: Drawn) -> None:
        for _ in range(self._options.retries + 1):
            item.calls += 1
            try:
                answer = await asyncio.wait_for(self._invoke(item), timeout=self._options.timeout)
                item.outcome = outcome_of(answer, self._options.outcome)
                item.output_hash = observer.hash(item.outcome)
                item.status, item.error = "ok", None
                return
            except TimeoutError as error:
                item.status, item.error = "timeout", error
            except Exception as error:
                item.status, item.error = "error", error
                item.outcome = Outcome.error(type(error).__qualname__)
                if isinstance(error, SideEffectBlocked):
                    return

    async def _invoke(self, item: Drawn) -> Any:
        frame = self._frame
        mark = nullcontext() if frame is None else inside_probe(frame.of_arm(item.sample.arm))
        with mark:
            if self._is_async:
                return await self._node(item.rendering.payload)
            return await asyncio.to_thread(self._node, item.rendering.payload)
