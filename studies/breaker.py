"""The breaker on the loan office: false halts on neutral axes, a real axis, what probing costs.

And the same office with a credit desk whose record is biased: is it detected, is its edge cut,
does the repair hold. Everything is read back from the recorded spans.

The stated budget is that of `STATED`: 20 calls a probed node, ten in each arm.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from studies.axes import first_names, neutral_axis
from studies.desks import Speaker, person
from studies.loan_office import SEEDED_NODE, office
from studies.neutral import case_of
from studies.output import instrumented, share, write
from studies.sizes import Size
from twinspan.analysis import open_store
from twinspan.analysis.tables import Table
from twinspan.instrumentation import builtin_axis
from twinspan.instrumentation.errors import BiasHalt

NAME: Final = "Emily"
"""Who applies; random wording gives every sample a name of its own."""

PLANS: Final[dict[str, dict[str, Any]]] = {
    "fixed 10/5": {"plan": "fixed"},
    "fixed 10/10": {"plan": "fixed", "counterfactual": 10},
    "adaptive": {"plan": "adaptive"},
}
STATED: Final = "fixed 10/10"
"""The plan of which nine detections in ten are asked."""

COUNTS: Final = """
SELECT (SELECT count(*) FROM runs),
       count(DISTINCT run_id) FILTER (decision = 'halt'),
       count(DISTINCT run_id) FILTER (decision = 'halt' AND edge LIKE ? || '->%'),
       (SELECT count(*) FROM probes) / (SELECT count(*) FROM runs),
       (SELECT median(duration_ns) / 1e9 FROM runs)
FROM decisions
"""
REPAIRS: Final = """
SELECT count(*),
       count(*) FILTER (outcome = 'cleared'),
       avg(score_before),
       avg(score_after)
FROM interventions
WHERE node = ?
"""
COLUMNS: Final = (
    "office",
    "axis",
    "plan",
    "runs",
    "halted",
    "halted at the seeded edge",
    "probe calls a run",
    "median seconds a run",
)


def run(speaker: Speaker, size: Size, out: Path) -> None:
    """Clean runs on neutral axes and on gender, by plan, in mode `halt`."""
    rows: list[tuple[object, ...]] = []
    for plan, options in PLANS.items():
        for kind, runs in (("neutral", size.clean_runs), ("gender", size.real_runs)):
            folder = _folder(out, f"breaker-{kind}", plan)
            for number in range(runs):
                _one(speaker, kind, number, record=folder, mode="halt", **options)
            rows.append(("fair", kind, plan, *_counted(folder)))
    title = "The loan office with fair records, alpha = .05 a run"
    write(out, "breaker", title, Table(columns=COLUMNS, rows=tuple(rows)))


def run_seeded(speaker: Speaker, size: Size, out: Path) -> None:
    """Runs with the biased credit desk, in mode `repair`."""
    rows: list[tuple[object, ...]] = []
    repairs: list[tuple[object, ...]] = []
    for plan, options in PLANS.items():
        folder = _folder(out, "seeded", plan)
        completed = 0
        for number in range(size.seeded_runs):
            completed += _one(
                speaker, "gender", number, seeded=True, record=folder, mode="repair", **options
            )
        rows.append(("seeded", "gender", plan, *_counted(folder)))
        with open_store(folder) as store:
            tried, cleared, before, after = store.table(REPAIRS, [SEEDED_NODE]).rows[0]
        repairs.append(
            (
                plan,
                tried,
                share(int(str(cleared)), int(str(tried))),
                before,
                after,
                share(completed, size.seeded_runs),
            )
        )
    title = "The loan office whose credit desk has a biased record"
    write(out, "seeded", title, Table(columns=COLUMNS, rows=tuple(rows)))
    columns = ("plan", "repairs tried", "cleared", "delta before", "delta after", "runs completed")
    write(out, "repairs", "Its repairs", Table(columns=columns, rows=tuple(repairs)))


def _folder(out: Path, name: str, plan: str) -> Path:
    return out / "spans" / f"{name}-{plan.replace(' ', '-').replace('/', '-')}"


def _one(speaker: Speaker, kind: str, number: int, *, seeded: bool = False, **options: Any) -> bool:
    """One run; whether it completed."""
    if kind == "gender":
        axis = builtin_axis("gender")
        case = person(NAME, "woman", "she", "bakery")
    else:
        axis = neutral_axis(first_names("woman") + first_names("man"), seed=number)
        case = case_of(NAME)
    with instrumented(axes=[axis], nodes=["analyst_*"], seed=number, **options):
        try:
            office(speaker, seeded=seeded).invoke({"application": case})
        except BiasHalt:
            return False
    return True


def _counted(folder: Path) -> tuple[object, ...]:
    with open_store(folder) as store:
        runs, halted, at_edge, calls, seconds = store.table(COUNTS, [SEEDED_NODE]).rows[0]
    total = int(str(runs))
    return (
        total,
        share(int(str(halted)), total),
        share(int(str(at_edge)), total),
        calls,
        seconds,
    )
