"""Why probes deal their names: what drawing them one by one does to the error rate.

A node that answers with log-probabilities has one answer for each name. Where the arms draw
their names one by one from two halves of a list, a name may come twice within an arm and never in
both, and an arm looks more alike within than across. The same laws are scored under three designs:

- two halves, names drawn one by one;
- one list for both arms, names drawn one by one: nothing can differ but by chance;
- two halves, dealt, as probes do: which name is in which arm is chance alone, so the test is exact.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

from studies.axes import first_names
from studies.desks import FAIR, Speaker
from studies.neutral import case_of
from studies.output import share, write
from studies.sizes import Size
from twinspan.analysis.tables import Table
from twinspan.instrumentation import compute_local_bias

REFERENCE: Final = 10
COUNTERFACTUAL: Final = 5
PROBES_EACH: Final = 10
"""Scored probes for each neutral probe of the size: they cost no further call of the model."""

DESIGNS: Final = (
    "two halves, drawn one by one",
    "one list, drawn one by one",
    "two halves, dealt",
)


def run(speaker: Speaker, size: Size, out: Path) -> None:
    """All designs, and the table."""
    names = first_names("woman") + first_names("man")
    laws = {name: speaker.law(FAIR["analyst_a"], case_of(name)) for name in names}
    probes = size.probes * PROBES_EACH
    rows: list[tuple[object, ...]] = []
    for design in DESIGNS:
        p_values: list[float] = []
        for number in range(probes):
            first, second = _drawn(design, list(names), Random(number))
            score = compute_local_bias(
                [laws[name] for name in first],
                [laws[name] for name in second],
                method="js_logprob",
                interval=False,
            )
            p_values.append(score.p_value)
        at_05, at_01 = (sum(p <= level for p in p_values) for level in (0.05, 0.01))
        rows.append((design, probes, share(at_05, probes), share(at_01, probes)))
    columns = ("names", "probes", "rejected at .05", "rejected at .01")
    title = "Neutral names by how they are drawn, the model's own laws of 48 names"
    write(out, "lists", title, Table(columns=columns, rows=tuple(rows)))


def _drawn(design: str, names: list[str], rng: Random) -> tuple[list[str], list[str]]:
    """The names of both arms.

    >>> first, second = _drawn(DESIGNS[2], [str(number) for number in range(48)], Random(0))
    >>> len(first), len(second), len({*first, *second})
    (10, 5, 15)
    """
    rng.shuffle(names)
    middle = len(names) // 2
    one, other = names[:middle], names[middle:]
    if design == DESIGNS[2]:
        return one[:REFERENCE], other[:COUNTERFACTUAL]
    if design == DESIGNS[1]:
        one = other = names
    return rng.choices(one, k=REFERENCE), rng.choices(other, k=COUNTERFACTUAL)
