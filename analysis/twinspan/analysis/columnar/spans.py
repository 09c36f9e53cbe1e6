"""Control spans of whole runs, batch by batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from twinspan.analysis.columnar.columns import (
    Array,
    Bools,
    Lists,
    Numbers,
    Places,
    Words,
    lists,
    numbers,
    plain,
    there,
    words,
)
from twinspan.analysis.columnar.segments import starts_of
from twinspan.analysis.store import Store
from twinspan.collector.recorded import (
    BESIDE,
    SPAN_ID,
    STARTED,
    Attributes,
    RecordedRun,
    run_of_spans,
)
from twinspan.collector.schema import COLUMN_TYPES, PROMOTED_COLUMNS
from twinspan.instrumentation import conventions as c

REST: Final = "attributes"
"""The column of attributes that have none of their own, as JSON."""

RUNS_AT_ONCE: Final = 256
"""Runs that are worked on together: enough to fill batches, few enough to be held."""

CONTROL_TYPES: Final = ("run", "probe_set", "network", "intervention", "review", "attempt")
"""Spans that control rests on, a fraction of all."""

NEEDED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "network": (c.SUPERSTEP_INDEX,),
        "probe_set": (
            c.PROBE_SET_ID,
            c.NODE_ID,
            c.NODE_TASK_ID,
            c.SUPERSTEP_SCOPE,
            c.SUPERSTEP_INDEX,
            c.PROBE_AXIS,
        ),
    }
)
"""By type, the attributes without which a decision or a score has no place."""

_nulls: Final = cast("Callable[[int, pa.DataType], Array]", pa.nulls)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spans:
    """Some spans of a batch, as columns that are asked for by their attributes' names.

    Attributes:
        columns: those of all spans of the batch, by their names, without empty ones.
        rows: which spans are meant, in which order.
        run: place of each one's run in the batch.
    """

    columns: Mapping[str, Array]
    rows: Places
    run: Places
    _read: dict[str, Array] = field(default_factory=dict[str, Array])

    def __len__(self) -> int:
        return len(self.run)

    def column(self, name: str) -> Array:
        """One column, whole; without a value where the record does not have it."""
        known = self._read.get(name)
        if known is None:
            column = PROMOTED_COLUMNS.get(name, name)
            there = self.columns.get(column)
            known = (
                _nulls(len(self), COLUMN_TYPES[column]) if there is None else there.take(self.rows)
            )
            self._read[name] = known
        return known

    def numbers(self, name: str) -> Numbers:
        """A column of numbers or truth values."""
        return numbers(self.column(name))

    def words(self, name: str) -> Words:
        """A column of text."""
        return words(self.column(name))

    def lists(self, name: str) -> Lists:
        """A column of lists."""
        return lists(self.column(name))

    def there(self, name: str) -> Bools:
        """Which spans have an attribute."""
        return there(self.column(name))

    def used(self) -> list[str]:
        """The attributes with a column of their own that any of the spans has."""
        if not len(self):
            return []
        named = [name for name, column in PROMOTED_COLUMNS.items() if column in self.columns]
        return [name for name in named if self.column(name).null_count < len(self)]

    def take(self, places: Places) -> Spans:
        """Some of the spans, in the order that is given."""
        return Spans(columns=self.columns, rows=self.rows[places], run=self.run[places])

    def attributes(self) -> list[dict[str, Any]]:
        """What each span says, under its own names, with `BESIDE` beside it."""
        if not len(self):
            return []
        names = [*self.used(), *BESIDE]
        columns = [plain(self.column(name)) for name in names]
        told = [
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
            for row in zip(*columns, strict=True)
        ]
        for each, rest in zip(told, self.rest(), strict=True):
            each.update(rest)
        return told

    def rest(self) -> list[dict[str, Any]]:
        """The attributes of each span that have no column of their own."""
        texts = self.column(REST).to_pylist()
        return [{} if text in (None, "{}") else json.loads(str(text)) for text in texts]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunBatch:
    """All control spans of some runs.

    Attributes:
        run_ids: the runs.
        by_type: their spans by type, those of a run in the order of their numbers.
    """

    run_ids: tuple[str, ...]
    by_type: dict[str, Spans]

    def __len__(self) -> int:
        return len(self.run_ids)

    def of(self, runs: Sequence[int]) -> RunBatch:
        """Some of the runs."""
        places = np.full(len(self), -1, dtype=np.intp)
        places[np.asarray(runs, dtype=np.intp)] = np.arange(len(runs))
        some: dict[str, Spans] = {}
        for kind, spans in self.by_type.items():
            rows = np.flatnonzero(places[spans.run] >= 0)
            taken = spans.take(rows)
            some[kind] = Spans(columns=taken.columns, rows=taken.rows, run=places[taken.run])
        return RunBatch(run_ids=tuple(self.run_ids[run] for run in runs), by_type=some)

    def by_run(self, kind: str) -> list[list[dict[str, Any]]]:
        """What the spans of one type say, those of each run by themselves."""
        spans = self.by_type[kind]
        found: list[list[dict[str, Any]]] = [list() for _ in self.run_ids]
        runs: list[int] = spans.run.tolist()
        for run, told in zip(runs, spans.attributes(), strict=True):
            found[run].append(told)
        return found

    def runs_with(self, kind: str) -> list[int]:
        """Places of the runs that have a span of a type."""
        return sorted(set(self.by_type[kind].run.tolist()))

    def recorded(self) -> list[RecordedRun]:
        """The runs as the collector knows them; what their root says is empty without one."""
        kinds = (self.by_run(kind) for kind in ("run", "network", "probe_set"))
        return [
            run_of_spans(
                run_id,
                sorted(roots, key=_began),
                [told for told in decisions if not lacking(told)],
                [told for told in sets if not lacking(told)],
            )
            for run_id, roots, decisions, sets in zip(self.run_ids, *kinds, strict=True)
        ]

    def placeless(self) -> Iterator[tuple[str, str, str]]:
        """Run, span and attribute of each decision or score that `recorded` has to leave out."""
        for kind in NEEDED:
            for run_id, spans in zip(self.run_ids, self.by_run(kind), strict=True):
                for told in spans:
                    for name in lacking(told):
                        yield run_id, str(told[SPAN_ID]), name


def lacking(told: Attributes) -> list[str]:
    """What a span should say and does not."""
    needed = NEEDED.get(str(told.get(c.SPAN_TYPE)), ())
    return [name for name in needed if told.get(name) is None]


def _began(told: Attributes) -> tuple[int, str]:
    return int(told[STARTED]), str(told[SPAN_ID])


def run_batches(
    store: Store, run_id: str | None = None, only: Collection[str] | None = None
) -> Iterator[RunBatch]:
    """All runs, some at a time, in the order of their ids.

    Args:
        store: opened spans.
        run_id: one run; all of them if None.
        only: attributes that are asked for; all of them if None. Reading is much of the work.
    """
    for table in _whole_runs(_control_spans(store, run_id, only)):
        yield _batch(table)


def _control_spans(
    store: Store, run_id: str | None, only: Collection[str] | None
) -> Iterator[pa.Table]:
    columns = ", ".join(f'"{column}"' for column in _columns(store, only))
    types = ", ".join(f"'{kind}'" for kind in CONTROL_TYPES)
    which, given = ("IS NOT NULL", []) if run_id is None else ("= ?", [run_id])
    batches = store.arrow(
        f"SELECT {columns} FROM spans WHERE span_type IN ({types}) AND run_id {which} "
        "ORDER BY run_id, audit_seq, span_id",
        given,
    )
    for batch in batches:
        yield pa.Table.from_batches([batch])


def _columns(store: Store, only: Collection[str] | None) -> list[str]:
    asked = [column for name, column in PROMOTED_COLUMNS.items() if only is None or name in only]
    known = [*asked, *BESIDE, REST]
    needed = {PROMOTED_COLUMNS[c.RUN_ID], PROMOTED_COLUMNS[c.SPAN_TYPE], *BESIDE}
    return [name for name in known if name in store.present or name in needed]


def _whole_runs(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows, cut where a run ends, at most `RUNS_AT_ONCE` of them together."""
    waiting: pa.Table | None = None
    for table in tables:
        waiting = table if waiting is None else pa.concat_tables([waiting, table])
        starts = _run_starts(waiting)
        while len(starts) > RUNS_AT_ONCE:
            end = int(starts[RUNS_AT_ONCE])
            yield waiting.slice(0, end)
            waiting, starts = waiting.slice(end), starts[RUNS_AT_ONCE:] - end
    if waiting is not None and len(waiting):
        yield waiting


def _run_starts(table: pa.Table) -> Places:
    return starts_of(words(_whole(table, PROMOTED_COLUMNS[c.RUN_ID])).codes)


def _batch(rows: pa.Table) -> RunBatch:
    # What none of these spans has need not be looked at for each type of them.
    filled = [name for name in rows.column_names if rows.column(name).null_count < len(rows)]
    columns = {name: _whole(rows, name) for name in filled}
    run_ids = words(columns[PROMOTED_COLUMNS[c.RUN_ID]])
    kinds = words(columns[PROMOTED_COLUMNS[c.SPAN_TYPE]])
    by_type: dict[str, Spans] = {}
    for kind, code in zip(CONTROL_TYPES, kinds.codes_of(CONTROL_TYPES).tolist(), strict=True):
        chosen = np.flatnonzero(kinds.codes == code)
        by_type[kind] = Spans(columns=columns, rows=chosen, run=run_ids.codes[chosen])
    return RunBatch(run_ids=run_ids.words, by_type=by_type)


def _whole(table: pa.Table, column: str) -> Array:
    whole = cast("Array | pa.ChunkedArray[Any]", table.column(column).combine_chunks())
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
