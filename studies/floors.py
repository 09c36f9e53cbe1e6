"""Floors of a real model by temperature, and what one swapped word moves beyond them.

Real sampling by the server, 0 included; the design is `floors.toml`, run as `twinspan audit` runs
any design, and read back from the recorded spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Never

from studies.desks import FAIR, Speaker
from studies.output import write
from studies.sizes import Size
from twinspan.analysis import open_store
from twinspan.analysis.audit_session import run_audit
from twinspan.analysis.flips import flip_report
from twinspan.analysis.floors import floor_table
from twinspan.analysis.tables import Table
from twinspan.instrumentation.audit.agents import CaseRequest
from twinspan.instrumentation.audit.configuration import read_configuration
from twinspan.instrumentation.audit.targets import FunctionCase
from twinspan.instrumentation.clients import OpenAICompatibleClient

DESIGN: Final = Path(__file__).with_name("floors.toml")
FLOOR_COLUMNS: Final = ("action", "flips", "cells", "floor with its interval", "kappa")
FLIP_COLUMNS: Final = (
    "action",
    "condition",
    "kind",
    "flip_rate",
    "floor",
    "excess",
    "p_adjusted",
    "verdict",
)


def unset(request: CaseRequest) -> Never:
    """Stands in the design for the agent that the study gives."""
    raise NotImplementedError("run `python -m studies floors`")


def run(client: OpenAICompatibleClient, size: Size, out: Path) -> None:
    """All temperatures, and their tables."""
    for temperature in size.temperatures:
        folder = out / "spans" / f"floors-{temperature:g}"
        design = read_configuration(DESIGN)
        speaker = Speaker(client, temperature=temperature)
        agent = _agent(speaker)
        design = replace(
            design,
            plan=replace(design.plan, replicates=size.replicates),
            make_agent=partial(FunctionCase, agent),
        )
        run_audit(design, folder)
        speaker.close()
    tell(size, out)


def tell(size: Size, out: Path) -> None:
    """The tables of what was recorded."""
    floors: list[tuple[object, ...]] = []
    flips: list[tuple[object, ...]] = []
    for temperature in size.temperatures:
        with open_store(out / "spans" / f"floors-{temperature:g}") as store:
            floors += [(temperature, *row) for row in _with_intervals(floor_table(store))]
            flips += sorted(_rows(flip_report(store).table(), FLIP_COLUMNS, temperature), key=str)
    table = Table(columns=("temperature", *FLOOR_COLUMNS), rows=tuple(floors))
    write(out, "floors", "Floors by temperature", table)
    table = Table(columns=("temperature", *FLIP_COLUMNS), rows=tuple(flips))
    write(out, "flips", "A swapped word and two controls, against the floor", table)


def _agent(speaker: Speaker) -> Callable[[CaseRequest], dict[str, dict[str, bool]]]:
    """Two desks as an agent of cases, with one yes or no for each word."""

    def agent(request: CaseRequest) -> dict[str, dict[str, bool]]:
        case = f"The applicant is {request.descriptor} who {request.narrative} and"
        desks = {"credit": FAIR["analyst_a"], "affordability": FAIR["analyst_b"]}
        said = {name: speaker.say(desk, case, seed=request.seed) for name, desk in desks.items()}
        return {
            name: {word: said[name] == word for word in desk.words} for name, desk in desks.items()
        }

    return agent


def _with_intervals(table: Table) -> Iterator[tuple[object, ...]]:
    """What has no floor, because nothing ever varied, has an empty cell."""
    for row in table.dicts():
        interval = (row["floor"], row["ci_low"], row["ci_high"])
        told = ""
        if None not in interval:
            told = "{:.3f} [{:.3f}, {:.3f}]".format(*interval)
        yield row["action"], row["flips"], row["cells"], told, row["kappa"]


def _rows(table: Table, columns: tuple[str, ...], first: object) -> list[tuple[object, ...]]:
    return [(first, *(row[name] for name in columns)) for row in table.dicts()]
