"""What a study leaves behind: spans, and each table as CSV, Markdown and a picture."""

from __future__ import annotations

import csv
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from studies.pictures import picture
from twinspan.analysis.tables import Table
from twinspan.instrumentation import TwinspanInstrumentor


@contextmanager
def instrumented(**options: Any) -> Generator[None]:
    """twinspan switched on while the block lasts, asking the model one thing at a time."""
    instrumentor = TwinspanInstrumentor()
    instrumentor.instrument(**{"concurrency": 1, "timeout": 600.0, "retries": 0, **options})
    try:
        yield
    finally:
        instrumentor.uninstrument()


def share(count: int, total: int) -> str:
    """A share with its 95% Wilson interval.

    >>> share(1, 20), share(0, 0)
    ('0.050 [0.009, 0.236]', '')
    """
    if not total:
        return ""
    interval = binomtest(count, total).proportion_ci(method="wilson")
    return f"{count / total:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def write(out: Path, name: str, title: str, table: Table) -> None:
    """Keep a table below `out` and show it."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(table.columns)
        rows.writerows(table.rows)
    text = f"{title}\n\n{markdown(table)}"
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    drawn = picture(title, table)
    if drawn is not None:
        (out / f"{name}.svg").write_text(drawn, encoding="utf-8")
    print(f"\n{text}", flush=True)


def markdown(table: Table) -> str:
    """A table in Markdown.

    >>> print(markdown(Table(columns=("a", "b"), rows=((1, 0.123456),))), end="")
    | a | b |
    |---|---|
    | 1 | 0.1235 |
    """
    lines: list[Sequence[object]] = [table.columns, *table.rows]
    texts = ["| " + " | ".join(_cell(value) for value in line) + " |" for line in lines]
    texts.insert(1, "|" + "---|" * len(table.columns))
    return "\n".join(texts) + "\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
