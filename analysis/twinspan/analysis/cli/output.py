"""What commands print: one table in four formats."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from typing import Any, Final, TypeVar, cast

import click

from twinspan.analysis.flip_verdicts import MEANINGS
from twinspan.analysis.store import Store
from twinspan.analysis.tables import Table

FORMATS: Final = ("table", "json", "ndjson", "csv")

_Command = TypeVar("_Command", bound=Callable[..., Any])


def format_option(
    formats: Sequence[str] = FORMATS,
) -> Callable[[_Command], _Command]:
    """The option `--format`, which every command that prints rows has."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(formats),
        default="table",
        show_default=True,
        help="How to print the rows; JSON is stable.",
    )


def tell_problems(store: Store) -> None:
    """Name on stderr what of a source could not be used."""
    for problem in store.problems:
        note(str(problem))


def note(text: str) -> None:
    """One line on stderr, beside the answer."""
    click.echo(f"twinspan: note: {text}", err=True)


def told_reasons(reasons: Iterable[object]) -> list[str]:
    """What the reasons of rows mean, each once with the number of rows that have it."""
    counts = Counter(reason for reason in reasons if reason in MEANINGS)
    return [f"{reason} ({count}): {MEANINGS[str(reason)]}" for reason, count in counts.items()]


def print_table(table: Table, form: str) -> None:
    """Print a table in one of `FORMATS`."""
    if form == "json":
        print_json([_plain_row(row) for row in table.dicts()])
    elif form == "ndjson":
        for row in table.dicts():
            click.echo(json.dumps(_plain_row(row), ensure_ascii=False))
    elif form == "csv":
        click.echo(_csv(table), nl=False)
    else:
        _print_for_people(table)


def print_json(document: object) -> None:
    """Print one JSON document, indented."""
    click.echo(json.dumps(plain(document), ensure_ascii=False, indent=2))


def plain(value: object) -> Any:
    """A value in JSON's terms: times in ISO form, NaN and infinities as null.

    >>> plain({"at": date(2026, 1, 2), "x": (1, float("nan"))})
    {'at': '2026-01-02', 'x': [1, None]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, dict):
        items = cast("dict[object, object]", value)
        return {str(key): plain(item) for key, item in items.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("Iterable[object]", value)]
    return str(value)


def _plain_row(row: dict[str, object]) -> dict[str, Any]:
    return {name: plain(value) for name, value in row.items()}


def cell(value: object, *, short: bool = False) -> str:
    """A value as the text of a cell; with `short` numbers are rounded for people.

    >>> cell(None), cell(True), cell(0.0866, short=True), cell(["a"])
    ('', 'true', '0.0866', '["a"]')
    """
    simple = plain(value)
    if simple is None:
        return ""
    if isinstance(simple, bool):
        return "true" if simple else "false"
    if isinstance(simple, float) and short:
        return f"{simple:.4g}"
    if isinstance(simple, list | dict):
        return json.dumps(simple, ensure_ascii=False)
    return str(simple)


def _csv(table: Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([cell(value) for value in row] for row in table.rows)
    return out.getvalue()


def _print_for_people(table: Table) -> None:
    rows = [[cell(value, short=True) for value in row] for row in table.rows]
    numeric = [_is_numeric(table, place) for place in range(len(table.columns))]
    if sys.stdout.isatty():
        _print_rich(table.columns, rows, numeric)
    else:
        _print_aligned(table.columns, rows, numeric)


def _is_numeric(table: Table, place: int) -> bool:
    values = [row[place] for row in table.rows if row[place] is not None]
    return bool(values) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )


def _print_rich(columns: Sequence[str], rows: list[list[str]], numeric: Sequence[bool]) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable()
    for name, is_number in zip(columns, numeric, strict=True):
        shown.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(text) for text in row))
    Console().print(shown)


def _print_aligned(columns: Sequence[str], rows: list[list[str]], numeric: Sequence[bool]) -> None:
    lines = [list(columns), *[[text.replace("\n", " ") for text in row] for row in rows]]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    for line in lines:
        padded = [
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(line, widths, numeric, strict=True)
        ]
        click.echo("  ".join(padded).rstrip())
