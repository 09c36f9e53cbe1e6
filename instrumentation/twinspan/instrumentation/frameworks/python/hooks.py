"""Switches nodes and pipelines on, and lets a run reach into the threads that it starts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from opentelemetry import context as otel_context
from wrapt import wrap_function_wrapper

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.frameworks.place import Place, current_place, standing_at
from twinspan.instrumentation.frameworks.python import active

_HOOKED: Final = ((ThreadPoolExecutor, "submit"), (threading.Thread, "start"))


def _carrying(place: Place, work: Callable[..., Any]) -> Callable[..., Any]:
    """The same work, at the place of whoever asked for it; its other context stays its own."""
    context = otel_context.get_current()

    def carried(*args: Any, **kwargs: Any) -> Any:
        with standing_at(place, context):
            return work(*args, **kwargs)

    return carried


def _submit(wrapped: Any, pool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    place = current_place()
    if place is None or not args:
        return wrapped(*args, **kwargs)
    return wrapped(_carrying(place, args[0]), *args[1:], **kwargs)


def _start(wrapped: Any, thread: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    place = current_place()
    if place is not None and not _outlives_its_starter(thread):
        thread.run = _carrying(place, thread.run)
    return wrapped(*args, **kwargs)


def _outlives_its_starter(thread: threading.Thread) -> bool:
    """Whether a thread serves whoever comes: a pool's, whose work brings its place, or ours."""
    target = getattr(thread, "_target", None)
    return getattr(target, "__name__", "") == "_worker" or thread.name.startswith("twinspan")


def install(engine: Engine) -> None:
    """Switch on."""
    active.activate(engine)
    for (owner, name), wrapper in zip(_HOOKED, (_submit, _start), strict=True):
        wrap_function_wrapper(owner, name, wrapper)


def uninstall() -> None:
    """Switch off, and put the threads back as they were."""
    active.activate(None)
    for owner, name in _HOOKED:
        original = getattr(owner.__dict__.get(name), "__wrapped__", None)
        if original is not None:
            setattr(owner, name, original)
