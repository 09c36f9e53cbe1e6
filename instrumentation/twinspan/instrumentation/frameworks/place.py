"""Where in a run the running code stands, whichever framework runs it."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span

from twinspan.instrumentation.frameworks.handed import Handed
from twinspan.instrumentation.probing.guard import is_unobserved, unobserved
from twinspan.instrumentation.run import LiveRun


@dataclass(slots=True)
class Flow:
    """What the steps of one run share.

    Attributes:
        handed: what was handed on so far, and by whom.
        places: nodes of a framework with a notion of its own of where it is, by execution.
    """

    handed: Handed = field(default_factory=Handed)
    places: dict[str, Place] = field(default_factory=dict[str, "Place"])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _fired: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])

    def repeat_of(self, node: str, superstep: int) -> int:
        """How often a node has begun before in supersteps of that number; now once more.

        Supersteps are numbered anew within each node that holds others, and the wording of an
        earlier firing would bring the same evidence again.
        """
        with self._lock:
            self._fired[node, superstep] += 1
            return self._fired[node, superstep] - 1


_flows: weakref.WeakKeyDictionary[LiveRun, Flow] = weakref.WeakKeyDictionary()


def flow_of(run: LiveRun) -> Flow:
    """What the steps of a run share; made at the first of them."""
    return _flows.setdefault(run, Flow())


@dataclass(slots=True, kw_only=True)
class Place:
    """A run's root, or a node of it: whatever runs here belongs to it.

    Attributes:
        run: the run.
        node: the node around the running code, path-qualified; '' at the root.
        task_id: its execution; '' at the root.
        span: its span; None at the root.
    """

    run: LiveRun
    node: str = ""
    task_id: str = ""
    span: Span | None = None
    _steps: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def name(self, node: str) -> str:
        """A node's name, qualified by the nodes around it."""
        return f"{self.node}/{node}" if self.node else node

    def next_step(self) -> int:
        """The number of the next step here, from 1."""
        return next(self._steps)


_place: ContextVar[Place | None] = ContextVar("twinspan_place", default=None)


_elsewhere: list[Callable[[], Place | None]] = []
"""How frameworks with a notion of their own of where they are tell it."""


def tell_place(resolver: Callable[[], Place | None]) -> None:
    """Let a framework tell where the running code stands."""
    _elsewhere.append(resolver)


def forget_place(resolver: Callable[[], Place | None]) -> None:
    """Ask it no more."""
    if resolver in _elsewhere:
        _elsewhere.remove(resolver)


def current_place() -> Place | None:
    """Where the running code stands; None outside of any run.

    Frameworks nest: of several answers the innermost holds, which has the longest path.
    """
    place = _place.get()
    for resolver in _elsewhere:
        other = resolver()
        if other is not None and (place is None or len(other.node) > len(place.node)):
            place = other
    return place


@contextmanager
def standing_at(place: Place, context: Context) -> Generator[None]:
    """The block runs at a place, with its span current."""
    place_token = _place.set(place)
    span_token = otel_context.attach(context)
    try:
        yield
    finally:
        otel_context.detach(span_token)
        _place.reset(place_token)


__all__ = [
    "Flow",
    "Place",
    "current_place",
    "flow_of",
    "forget_place",
    "is_unobserved",
    "standing_at",
    "tell_place",
    "unobserved",
]
