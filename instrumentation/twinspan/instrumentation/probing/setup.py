"""What the parts of one probe share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from twinspan.instrumentation.probing.budget import RunBudget
from twinspan.instrumentation.probing.guard import ProbeFrame
from twinspan.instrumentation.probing.observation import SetObserver
from twinspan.instrumentation.settings import ProbeOptions

Node = Callable[[Any], Any] | Callable[[Any], Awaitable[Any]]
ObserverFactory = Callable[[], SetObserver]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSetup:
    """A node with everything that is needed to probe it.

    Attributes:
        node: takes a payload and returns an answer.
        is_async: whether it is a coroutine function.
        options: axes, sample counts or plan, wording, estimator, limits.
        frame: who is probed, for the code that runs inside.
        observer: makes the observer that writes spans.
        budget: node runs that may be spent.
    """

    node: Node
    is_async: bool
    options: ProbeOptions
    frame: ProbeFrame | None
    observer: ObserverFactory
    budget: RunBudget

    @property
    def labels(self) -> tuple[str, ...]:
        """What tells this probe from the run's others, in seeds and draws.

        The superstep is among them: with the wording of an earlier firing, a node that always
        answers alike would bring the same evidence again, which must not be multiplied.
        """
        return () if self.frame is None else (self.frame.node, self.frame.firing)
