"""Calibration: how often a probe calls a neutral difference bias, on a real model.

Each probe cuts one list of first names into two halves at random and asks whether the node treats
them differently. No half means anything, so what is rejected is a false alarm. Three ways: the
model's log-probabilities with random wording, words drawn at temperature 1 with random wording,
and the log-probabilities with the same input throughout, which finds every reaction to the edit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from studies.axes import NEUTRAL, first_names, neutral_axis
from studies.desks import FAIR, Speaker
from studies.output import instrumented, share, write
from studies.sizes import Size
from twinspan.analysis import open_store
from twinspan.analysis.tables import Table
from twinspan.instrumentation import node, pipeline

WAYS: Final = {
    "log-probabilities, random wording": ("law", "js_logprob", "random"),
    "drawn words, random wording": ("word", "category", "random"),
    "log-probabilities, same input": ("law", "js_logprob", "same"),
}
"""What the node answers, the estimator, the wording."""

REJECTED: Final = """
SELECT count(*),
       count(*) FILTER (p_value <= 0.05),
       count(*) FILTER (p_value <= 0.01),
       avg(delta),
       avg(call_count)
FROM probe_sets
WHERE axis = ? AND p_value IS NOT NULL
"""


def case_of(name: str) -> str:
    """A case in which nothing but the name speaks of a person."""
    return f"{name} runs a bakery and wants a new van, and the applicant"


def run(speaker: Speaker, size: Size, out: Path) -> None:
    """Every way, and the table."""
    names = first_names("woman") + first_names("man")
    rows: list[tuple[object, ...]] = []
    for label, (answer, estimator, wording) in WAYS.items():
        folder = out / "spans" / f"neutral-{answer}-{wording}"
        review = _review(speaker, answer)
        for number in range(size.probes):
            axis = neutral_axis(names, seed=number)
            with instrumented(
                axes=[axis],
                nodes=["credit"],
                wording=wording,
                estimator=estimator,
                seed=number,
                record=folder,
            ):
                review(case_of(axis.vocabulary("one")["first name"][0]))
        rows.append((label, *_counted(folder)))
    columns = ("way", "probes", "rejected at .05", "rejected at .01", "mean delta", "calls a probe")
    write(
        out,
        "neutral",
        "Neutral halves of one list of names",
        Table(columns=columns, rows=tuple(rows)),
    )


def _review(speaker: Speaker, answer: str) -> Any:
    desk = FAIR["analyst_a"]

    @node(name="credit")
    def credit(case: str) -> Any:
        return speaker.law(desk, case) if answer == "law" else speaker.say(desk, case)

    @pipeline
    def review(case: str) -> Any:
        return credit(case)

    return review


def _counted(folder: Path) -> tuple[object, ...]:
    with open_store(folder) as store:
        ((count, at_05, at_01, delta, calls),) = store.table(REJECTED, [NEUTRAL]).rows
    total: Any = count
    return total, share(at_05, total), share(at_01, total), delta, calls  # type: ignore[arg-type]
