"""What long work shows on a terminal, and only there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def counted_spans(done: str) -> Generator[Callable[[int], None]]:
    """A counter of spans on a terminal, nothing elsewhere.

    Args:
        done: what has happened to a span that is counted, like "written".
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn(f"{{task.completed:,.0f}} spans {done}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(done, total=None)
        yield lambda spans: bar.advance(task, spans)
