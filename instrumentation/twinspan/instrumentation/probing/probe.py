"""LOOCProbe: one node, run again on twins of its payload."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.probing.budget import RunBudget
from twinspan.instrumentation.probing.guard import ProbeFrame
from twinspan.instrumentation.probing.observation import SetObserver
from twinspan.instrumentation.probing.results import ProbeResult
from twinspan.instrumentation.probing.session import ProbeSession
from twinspan.instrumentation.probing.setup import Node, ObserverFactory, ProbeSetup
from twinspan.instrumentation.settings import ProbeOptions


class LOOCProbe:
    """Leave-one-out counterfactual probe of one node.

    For each axis the node is run on renderings of its payload in the payload's own group (the
    reference: baseline and null re-samples, shared by all axes) and in another group (the
    counterfactual), in an interleaved order. An axis with proxy words has a second contrast,
    `axis#proxy`; controls, if asked for, leave the attribute alone and change something else.
    With random wording every sample of every arm gets words of its own, so that the axis is the
    only systematic difference between the arms.

    A run that raises is an outcome of its own, since an error that only one group meets is a
    finding; a run that times out is missing, and the set `partial`.

    Args:
        node: takes a payload and returns an answer; plain or async. It must bear being run
            again and in parallel. To have another model judge the payload, pass a function
            that asks that one.
        options: axes, sample counts or plan, wording, estimator, limits.
        frame: who is probed, for the code that runs inside; a tool asks it for permission.
        observer: makes the observer that writes spans; none outside of a run.
        budget: node runs that may be spent, shared with other probes of the run.

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
        budget: RunBudget | None = None,
    ) -> None:
        if not options.axes:
            raise ConfigurationError("a probe needs at least one axis; pass axes=('gender',)")
        self._setup = ProbeSetup(
            node=node,
            is_async=inspect.iscoroutinefunction(node),
            options=options,
            frame=frame,
            observer=observer or (lambda: SetObserver(None, None, None)),
            budget=budget or RunBudget(options.budget),
        )

    def run(self, payload: Any) -> ProbeResult:
        """Probe from plain code; not for use inside a running event loop."""
        return asyncio.run(self.arun(payload))

    async def arun(self, payload: Any) -> ProbeResult:
        """Probe every axis, with bounded concurrency, in one round or in as many as pay."""
        session = ProbeSession(self._setup, payload)
        if self._setup.options.rounds.adaptive:
            return await session.adaptive()
        return await session.fixed()
