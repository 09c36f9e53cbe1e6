"""Sets a study's tables beside those that come with it, and beside what is asked of them.

The tables in `expected/` were made by `make study-small`. The same seed, program and processor give
the same cells. Another processor may round a law otherwise, and then

- a share, which carries its 95% interval, must lie in the interval that is expected, or have the
  expected share in its own;
- a rate of flips, which rests on few cases, must lie within .25, and any other number within .05
  or a fifth of the expected one, whichever is more;
- times are not compared, and neither is what follows from the rest: p-values, verdicts, counts of
  flips, kappa, the largest of many effect sizes.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from studies.breaker import STATED

EXPECTED: Final = Path(__file__).with_name("expected")
SHARE: Final = re.compile(r"(-?[\d.]+) \[(-?[\d.]+), (-?[\d.]+)\]")
LEFT_OUT: Final = (
    "seconds",
    "ms a score",
    "p_adjusted",
    "p over this control",
    "verdict",
    "flips",
    "kappa",
    "largest effect size",
)
"""Parts of the names of columns that are not compared."""

COARSE: Final = ("flip_rate", "floor", "excess")
WITHIN, RELATIVE, COARSELY = 0.05, 0.2, 0.25
ROUNDING: Final = 1e-9
"""A mean over the record is added up in whatever order its files are read."""

Verdict = Literal["same", "within", "outside", "missing"]
Rows = list[dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One thing that is asked of the studies.

    Attributes:
        what: in words.
        table: where it stands.
        row: cells by which its row is known.
        column: its column.
        most: the share may be at most this, within the error of the simulation.
        least: it must be at least this.
    """

    what: str
    table: str
    row: tuple[tuple[str, str], ...]
    column: str
    most: float | None = None
    least: float | None = None

    def holds(self, share: tuple[float, float, float]) -> bool:
        """Whether a share with its interval is as asked."""
        value, low, _ = share
        return (self.most is None or low <= self.most) and (
            self.least is None or value >= self.least
        )


ASKED: Final = (
    *(
        Asked(
            what=f"neutral edits, {way}: rejected at .05 in at most .05",
            table="neutral",
            row=(("way", f"{way}, random wording"),),
            column="rejected at .05",
            most=0.05,
        )
        for way in ("log-probabilities", "drawn words")
    ),
    Asked(
        what=f"biased desk, {STATED}: detected and its edge cut in at least .9",
        table="seeded",
        row=(("plan", STATED),),
        column="halted at the seeded edge",
        least=0.9,
    ),
    *(
        Asked(
            what=f"fair office, neutral axis, {plan}: halted in at most .05",
            table="breaker",
            row=(("axis", "neutral"), ("plan", plan)),
            column="halted",
            most=0.05,
        )
        for plan in ("fixed 10/5", "fixed 10/10", "adaptive")
    ),
)


def run(out: Path, expected: Path = EXPECTED) -> bool:
    """Print what was found beside what was expected and asked; whether all is well."""
    well = True
    for path in sorted(expected.glob("*.csv")):
        counts: Counter[Verdict] = Counter()
        for verdict, told in _compared(path, out / path.name):
            counts[verdict] += 1
            if verdict in ("outside", "missing"):
                print(f"{path.stem}: {told}")
        well = well and not counts["outside"] and not counts["missing"]
        print(
            f"{path.stem}: {counts['same']} cells the same, {counts['within']} within, "
            f"{counts['outside']} outside, {counts['missing']} missing"
        )
    for asked in ASKED:
        told, holds = _judged(asked, out)
        well = well and holds
        print(f"{'holds' if holds else 'FAILS'}: {asked.what}; found {told}")
    print("reproduced" if well else "not reproduced")
    return well


def _judged(asked: Asked, out: Path) -> tuple[str, bool]:
    path = out / f"{asked.table}.csv"
    rows = _read(path) if path.exists() else []
    found = [row[asked.column] for row in rows if all(row.get(k) == v for k, v in asked.row)]
    share = _share(found[0]) if found else None
    return (found[0], asked.holds(share)) if share else ("nothing", False)


def _compared(expected: Path, found: Path) -> Iterator[tuple[Verdict, str]]:
    if not found.exists():
        yield "missing", "there is no such table"
        return
    wanted, given = _read(expected), _read(found)
    for number, row in enumerate(wanted):
        for column, cell in row.items():
            if any(each in column for each in LEFT_OUT):
                continue
            within = COARSELY if column in COARSE else WITHIN
            if number >= len(given) or column not in given[number]:
                yield "missing", f"row {number + 1}, {column!r} is not there"
                continue
            other = given[number][column]
            told = f"row {number + 1}, {column!r}: {other} against {cell}"
            yield agreement(cell, other, within=within), told


def agreement(expected: str, found: str, *, within: float = WITHIN) -> Verdict:
    """How a cell agrees with the expected one.

    >>> agreement("0.050 [0.02, 0.11]", "0.100 [0.05, 0.17]"), agreement("0.2", "0.9")
    ('within', 'outside')
    """
    if expected == found:
        return "same"
    one, other = _share(expected), _share(found)
    if one and other:
        near = one[1] <= other[0] <= one[2] or other[1] <= one[0] <= other[2]
        return "within" if near else "outside"
    first, second = _number(expected), _number(found)
    if first is None or second is None:
        return "outside"
    if math.isclose(first, second, rel_tol=ROUNDING, abs_tol=ROUNDING):
        return "same"
    apart = abs(first - second)
    return "within" if apart <= max(within, RELATIVE * abs(first)) else "outside"


def _share(cell: str) -> tuple[float, float, float] | None:
    match = SHARE.fullmatch(cell)
    return None if match is None else (float(match[1]), float(match[2]), float(match[3]))


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _read(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
