"""What a reader of some form of spans is asked for, and what it is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from opentelemetry.sdk.trace import ReadableSpan

from twinspan.collector.parts import PART_PREFIX, PART_SUFFIX, write_part
from twinspan.collector.rows import EventRow, LinkRow, RowBuilder, SpanFacts

PART_ROWS: Final = 40_000
"""Rows that are gathered before they go to a file: memory stays the same for any source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something of a source that could not be used, and how often.

    >>> print(Problem(source="a.jsonl", what="the last line is cut off", count=1))
    a.jsonl: the last line is cut off (1)
    """

    source: str
    what: str
    count: int

    def __str__(self) -> str:
        return f"{self.source}: {self.what} ({self.count})"


class Problems:
    """Counts what could not be used: junk is named, never skipped in silence.

    >>> problems = Problems()
    >>> problems.count("a.jsonl", "a line is not JSON")
    >>> problems.count("a.jsonl", "a line is not JSON")
    >>> [str(problem) for problem in problems.listed()]
    ['a.jsonl: a line is not JSON (2)']
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, source: str, what: str, times: int = 1) -> None:
        """Note one kind of junk in one source."""
        if times:
            self._counts[source, what] += times

    def listed(self) -> tuple[Problem, ...]:
        """Everything that was noted, in order of first appearance."""
        return tuple(
            Problem(source=source, what=what, count=count)
            for (source, what), count in self._counts.items()
        )


class Reader(Protocol):
    """Reads one form of file; a new form is a new module and a line in `READERS`."""

    @property
    def form(self) -> str:
        """What the form is called in messages."""
        ...

    def recognises(self, path: Path) -> bool:
        """Whether a file looks like this form; reads only its beginning."""
        ...

    def read(self, paths: Sequence[Path], sink: RowSink, problems: Problems) -> None:
        """Read files of this form into rows.

        Raises:
            SourceError: for a file that cannot be read at all.
        """
        ...


class RowSink:
    """Takes rows and keeps them in files of a folder, so that any source fits in memory.

    Attributes:
        folder: where the files go.
        rows: rows that were added.
    """

    def __init__(self, folder: Path, progress: Callable[[int], None] | None = None) -> None:
        self.folder = folder
        self._progress = progress
        self.rows = 0
        self._builder = RowBuilder()
        self._parts = 0

    def add(
        self,
        facts: SpanFacts,
        attributes: Mapping[str, object],
        *,
        events: Sequence[EventRow] = (),
        links: Sequence[LinkRow] = (),
    ) -> None:
        """Add one span."""
        self._builder.add(facts, attributes, events=events, links=links)
        self._added()

    def add_span(self, span: ReadableSpan) -> None:
        """Add one ended span of the SDK."""
        self._builder.add_span(span)
        self._added()

    def flush(self) -> None:
        """Have every row in a file."""
        if len(self._builder):
            name = f"{PART_PREFIX}read-{self._parts:05d}{PART_SUFFIX}"
            write_part(self.folder / name, self._builder.table(), lasting=False)
            self._parts += 1
            if self._progress is not None:
                self._progress(len(self._builder))
            self._builder = RowBuilder()

    def _added(self) -> None:
        self.rows += 1
        if len(self._builder) >= PART_ROWS:
            self.flush()
