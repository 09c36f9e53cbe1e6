"""The engine in force; without one, nodes and pipelines are the plain functions they were."""

from __future__ import annotations

from twinspan.instrumentation.engine import Engine

_active: list[Engine] = []


def engine() -> Engine | None:
    """What `instrument()` set up; None while uninstrumented."""
    return _active[-1] if _active else None


def activate(chosen: Engine | None) -> None:
    """Put an engine in force, or none."""
    _active[:] = [] if chosen is None else [chosen]
