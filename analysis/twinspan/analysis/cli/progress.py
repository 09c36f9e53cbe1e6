"""What long work shows on a terminal, and only there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial

Tell = Callable[[int], None]
"""Told of a number of spans that something has happened to."""


@contextmanager
def counted_spans(*done: str) -> Generator[tuple[Tell, ...]]:
    """Counters of spans on a terminal, nothing elsewhere; one for each word.

    Args:
        done: what has happened to the spans that are counted, like "read" and "written".
    """
    if not sys.stderr.isatty():
        yield tuple(_nothing for _ in done)
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.completed:,.0f} spans {task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks = [bar.add_task(word, total=None) for word in done]
        yield tuple(partial(bar.advance, task) for task in tasks)


def _nothing(spans: int) -> None:
    """Say nothing: nobody is looking."""
