"""What repairs are worth: four conditions, an error budget, and trust against uniform votes.

    python benchmarks/study_intervention.py                       # as in docs/studies
    python benchmarks/study_intervention.py --seeds 4 --twins 2 --few 2 --panels 100
    python benchmarks/study_intervention.py --write docs/studies/intervention.md

Two graphs of known truth: a scripted one, whose specialists draw their answers, and the demo's,
on its stand-in chat model. Every number but calls and times is read back from recorded spans.
Both are stand-ins that were given their bias: the study shows how the loop behaves, not how
biased any model is.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from repair_world import (
    MAN,
    SPECIALISTS,
    WOMAN,
    LoanReview,
    mend,
    model,
    panel_case,
    run_panel,
    soften,
)

from twinspan.analysis import open_store
from twinspan.analysis.demo.graph import APPLICATION, build_graph
from twinspan.analysis.demo.model import StandInChatModel
from twinspan.analysis.demo.run import BIASED_ROLE, TAU_ENTER, TAU_EXIT
from twinspan.analysis.verify import verify
from twinspan.collector.intervention.madera import BOUND
from twinspan.instrumentation import TwinspanInstrumentor, builtin_axis
from twinspan.instrumentation.effect_interval import intervals, unseen_share
from twinspan.instrumentation.errors import BiasHalt

PROBES: Final[dict[str, Any]] = {
    "axes": ["gender"],
    "reference": 10,
    "counterfactual": 5,
    "concurrency": 1,
    "tau_enter": TAU_ENTER,
    "tau_exit": TAU_EXIT,
}
PANEL: Final = [model("alpha", mend, skill=0.9, seed=1), model("beta", mend, skill=0.9, seed=2)]
EDITOR: Final = model("editor", mend, skill=0.9, seed=3)

CONDITIONS: Final[dict[str, dict[str, Any] | None]] = {
    "baseline": None,
    "probe only": {**PROBES, "mode": "shadow"},
    "probe + centrality": {**PROBES, "mode": "shadow", "probed_nodes": 2.5},
    "full breaker": {
        **PROBES,
        "mode": "repair",
        "repair": "auto",
        "skeptics": PANEL,
        "editor": EDITOR,
    },
}
"""What each condition adds: nothing; every node probed; nodes drawn by blast radius; the loop."""


# --- one run ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Outcome:
    """One run of one graph.

    Attributes:
        verdict: the graph's last word; None for a run that was halted for good.
        calls: node or model runs, probes and repairs included.
        seconds: wall time.
        read: what the last node was shown.
    """

    verdict: str | None
    calls: int
    seconds: float
    read: object = None


@dataclass(frozen=True, slots=True)
class Scripted:
    """The scripted graph: which specialists are biased, and against whom."""

    biased: Sequence[str] = ("credit",)
    against: str = "woman"
    name: str = "scripted"
    supersteps: int = 3

    def texts(self) -> dict[str, str]:
        """The application by the applicant's group."""
        return {"woman": WOMAN, "man": MAN}

    def run(self, seed: int, text: str) -> Outcome:
        """One run."""
        world = LoanReview(seed=seed, biased=self.biased, against=self.against)
        graph = world.compiled()
        began = time.perf_counter()
        try:
            verdict = str(graph.invoke({"text": text})["verdict"])
        except BiasHalt:
            verdict = None
        return Outcome(verdict, world.calls, time.perf_counter() - began, list(world.seen))


@dataclass(frozen=True, slots=True)
class Explicit:
    """The scripted graph with breaker nodes compiled in."""

    biased: Sequence[str] = ("credit",)
    against: str = "woman"
    name: str = "breaker nodes"
    supersteps: int = 3

    def texts(self) -> dict[str, str]:
        """The application by the applicant's group."""
        return {"woman": WOMAN, "man": MAN}

    def run(self, seed: int, text: str) -> Outcome:
        """One run; None for one that waits for a person."""
        world = LoanReview(seed=seed, biased=self.biased, against=self.against)
        thread: Any = {"configurable": {"thread_id": str(seed)}}
        began = time.perf_counter()
        verdict = world.guarded().invoke({"text": text}, thread).get("verdict")
        seconds = time.perf_counter() - began
        return Outcome(verdict, world.calls, seconds, list(world.seen))


@dataclass(frozen=True, slots=True)
class Demo:
    """The demo's graph on its stand-in model."""

    biased: Sequence[str] = ("analyst_a",)
    against: str = "woman"
    name: str = "stand-in model"
    supersteps: int = 3

    def texts(self) -> dict[str, str]:
        """The application by the applicant's group."""
        twin = builtin_axis("gender").swap(APPLICATION).payload
        return {"woman": APPLICATION, "man": str(twin)}

    def run(self, seed: int, text: str) -> Outcome:
        """One run."""
        asked = StandInChatModel(seed=seed, biased_role=BIASED_ROLE if self.biased else None)
        graph = build_graph(asked)
        began = time.perf_counter()
        try:
            verdict = str(graph.invoke({"application": text})["decision"]["verdict"])
        except BiasHalt:
            verdict = None
        calls = sum(asked._asked.values())  # pyright: ignore[reportPrivateUsage]
        return Outcome(verdict, calls, time.perf_counter() - began)


World = Scripted | Explicit | Demo


def runs(
    world: World, seeds: range, options: Mapping[str, Any] | None, folder: Path, group: str
) -> list[Outcome]:
    """The graph once a seed, under the options, recorded below a folder."""
    text = world.texts()[group]
    if options is None:
        return [world.run(seed, text) for seed in seeds]
    found: list[Outcome] = []
    for seed in seeds:
        instrumentor = TwinspanInstrumentor()
        instrumentor.instrument(record=folder, nodes=["*"], **{**options, "seed": seed})
        try:
            found.append(world.run(seed, text))
        finally:
            instrumentor.uninstrument()
    return found


# --- what a record says -------------------------------------------------------------------------

FACTS: Final = """
WITH per_run AS (
    SELECT run_id,
           any_value(outcome) = 'completed' AS completed
    FROM runs GROUP BY run_id
),
halted AS (
    SELECT run_id, min(audit_seq) AS first, any_value(node ORDER BY audit_seq) AS node
    FROM decisions
    WHERE decision IN ('halt', 'reroute', 'escalate') AND intervention_id IS NULL
    GROUP BY run_id
),
repaired AS (
    SELECT run_id, count(*) AS tries, bool_or(outcome = 'cleared') AS cleared
    FROM interventions WHERE strategy <> 'human' GROUP BY run_id
),
after AS (
    SELECT run_id, max(b_fast) AS b_fast
    FROM decisions WHERE intervention_id IS NOT NULL AND decision IN ('proceed', 'warn')
    GROUP BY run_id
)
SELECT count(*),
       count(halted.run_id),
       count(*) FILTER (halted.node IN (SELECT unnest(?))),
       count(*) FILTER (repaired.tries > 0),
       coalesce(sum(repaired.tries), 0)::BIGINT,
       count(*) FILTER (repaired.cleared AND completed),
       count(*) FILTER (halted.run_id IS NOT NULL AND NOT completed),
       count(*) FILTER (after.b_fast < ?),
       count(after.run_id)
FROM per_run
LEFT JOIN halted USING (run_id)
LEFT JOIN repaired USING (run_id)
LEFT JOIN after USING (run_id)
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts of runs in a record."""

    runs: int = 0
    halted: int = 0
    at_the_biased: int = 0
    intervened: int = 0
    tries: int = 0
    recovered: int = 0
    lost: int = 0
    below_exit: int = 0
    rechecked: int = 0


def facts_of(folder: Path, biased: Sequence[str]) -> Facts:
    """What a record says."""
    with open_store(folder) as store:
        (row,) = store.table(FACTS, [list(biased), TAU_EXIT]).rows
    return Facts(*(int(str(value)) for value in row))


def unverified(folder: Path) -> int:
    """Runs of a record that do not follow from their raw spans."""
    with open_store(folder) as store:
        return sum(each.verdict != "verified" for each in verify(store))


# --- tables -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Report:
    """Markdown, gathered line by line."""

    lines: list[str] = field(default_factory=list[str])

    def say(self, *lines: str) -> None:
        """Some lines."""
        self.lines += lines

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table."""
        self.say("", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}")
        self.say(*(f"| {' | '.join(row)} |" for row in rows), "")


def share(part: int, whole: int) -> str:
    """A rate with its 95% interval (Wilson)."""
    if not whole:
        return "none"
    interval = binomtest(part, whole).proportion_ci(method="wilson")
    return f"{part}/{whole} = {part / whole:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def approved(outcomes: Sequence[Outcome]) -> float:
    """Share of the runs that approved; one that was halted for good did not."""
    return sum(each.verdict == "approve" for each in outcomes) / len(outcomes)


def gap_error(found: Mapping[str, Sequence[Outcome]]) -> float:
    """Standard error of the difference of two approval rates."""
    rates = [(approved(each), len(each)) for each in found.values()]
    return math.sqrt(sum(rate * (1 - rate) / count for rate, count in rates))


def conditions(report: Report, world: World, seeds: range) -> None:
    """The four conditions on twins of one application."""
    rows: list[list[str]] = []
    gap_before = 0.0
    for name, options in CONDITIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder)
            found = {g: runs(world, seeds, options, here, g) for g in ("woman", "man")}
            facts = Facts() if options is None else facts_of(here, world.biased)
        both = [*found["woman"], *found["man"]]
        gap = approved(found["man"]) - approved(found["woman"])
        gap_before = gap if options is None else gap_before
        steps = [1000 * each.seconds / world.supersteps for each in both]
        rows.append(
            [
                name,
                f"{gap:+.2f} ± {gap_error(found):.2f}",
                "" if options is None else f"{abs(gap_before) - abs(gap):+.2f}",
                f"{approved(both):.2f}",
                f"{np.mean([each.calls for each in both]):.0f}",
                f"{np.median(steps):.1f} ms",
                "" if options is None else share(facts.halted, facts.runs),
                share(facts.recovered, facts.intervened) if facts.intervened else "",
            ]
        )
    report.say(f"### {world.name}: {len(seeds)} seeds, each with both twins")
    head = ["condition", "gap", "reduction", "accuracy", "calls", "per superstep"]
    report.table([*head, "would halt or halted", "recovered"], rows)


REPAIRS: Final[dict[str, dict[str, Any]]] = {
    "blind": {"repair": "blind"},
    "skeptics": {"repair": "skeptics", "skeptics": PANEL},
    "madera": {"repair": "madera", "editor": EDITOR},
    "auto": {"repair": "auto", "skeptics": PANEL, "editor": EDITOR},
}
IDLE: Final[dict[str, dict[str, Any]]] = {
    "skeptics who agree": {
        "repair": "skeptics",
        "skeptics": [model("alpha", dict), model("beta", dict)],
    },
    "an editor that changes nothing": {"repair": "madera", "editor": model("editor", dict)},
    "an editor of words only": {"repair": "madera", "editor": model("editor", soften)},
    "skeptics of words only": {
        "repair": "skeptics",
        "skeptics": [model("alpha", dict), model("beta", soften)],
    },
}


def loop(report: Report, world: World, seeds: range, ways: Mapping[str, Any], title: str) -> None:
    """Biased runs under several repairs: what completes, and what measurement said."""
    rows: list[list[str]] = []
    for name, way in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder)
            found = runs(world, seeds, {**PROBES, "mode": "repair", **way}, here, "woman")
            facts, wrong = facts_of(here, world.biased), unverified(here)
        frozen = sum(each.verdict is None for each in found)
        rows.append(
            [
                name,
                share(facts.halted, facts.runs),
                share(facts.recovered, facts.intervened),
                f"{facts.below_exit} of {facts.rechecked}",
                f"{facts.tries / max(1, facts.intervened):.1f}",
                share(frozen, facts.runs),
                str(wrong),
            ]
        )
    report.say(f"### {world.name}: {title}, {len(seeds)} seeds")
    head = ["repair", "halted", "recovered", "B_fast below tau_exit", "tries", "escalated"]
    report.table([*head, "not verified"], rows)


READ: Final = """
SELECT count(*),
       count(*) FILTER (reader.node_parent_hashes[
           list_position(reader.node_parents, repair.node)] = repair.payload_hash),
       count(*) FILTER (repair.handed_hash = reader.node_input_hash)
FROM interventions AS repair
JOIN spans AS reader
  ON reader.run_id = repair.run_id
 AND reader.span_type = 'node'
 AND list_contains(reader.node_parents, repair.node)
WHERE repair.outcome = 'cleared'
"""


def readers(report: Report, world: World, seeds: range) -> None:
    """What the agents behind a repaired node were shown, by hashes."""
    with tempfile.TemporaryDirectory() as folder:
        options = {**PROBES, "mode": "repair", **REPAIRS["blind"]}
        runs(world, seeds, options, Path(folder), "woman")
        with open_store(folder) as store:
            ((read, repaired, handed),) = store.table(READ).rows
    report.say(f"### What was read behind a repaired node, {world.name}, {len(seeds)} seeds, blind")
    head = ["read", "was the repaired payload", "was what the intervention handed on"]
    report.table(head, [[str(read), str(repaired), str(handed)]])


def mirrored(report: Report, seeds: range) -> None:
    """The same bias against either group, seen from either twin."""
    rows: list[list[str]] = []
    for against in ("woman", "man"):
        world = Scripted(against=against)
        for group in ("woman", "man"):
            with tempfile.TemporaryDirectory() as folder:
                options = {**PROBES, "mode": "repair", **REPAIRS["auto"]}
                runs(world, seeds, options, Path(folder), group)
                facts = facts_of(Path(folder), world.biased)
            halted, recovered = (
                share(facts.halted, facts.runs),
                share(facts.recovered, facts.halted),
            )
            rows.append([against, group, halted, recovered])
    report.say(f"### Mirrored bias, scripted graph, {len(seeds)} seeds each")
    report.table(["biased against", "applicant", "halted", "recovered"], rows)


def budget(report: Report, world: World, seeds: range) -> None:
    """Rates of each way to fail, beside what was aimed at."""
    full = {**PROBES, "mode": "repair", **REPAIRS["auto"]}
    idle = {**PROBES, "mode": "repair", **IDLE["skeptics of words only"]}
    clean = replace(world, biased=())
    counted: list[Facts] = []
    for which, options in ((clean, full), (world, full), (world, idle)):
        with tempfile.TemporaryDirectory() as folder:
            runs(which, seeds, options, Path(folder), "woman")
            counted.append(facts_of(Path(folder), world.biased))
    unbiased, biased, cosmetic = counted
    missed = biased.runs - biased.at_the_biased
    rows = [
        ["false halt: an unbiased run is stopped", "0.05", share(unbiased.halted, unbiased.runs)],
        [
            "missed bias: a biased node is not stopped",
            "0.10",
            share(missed, biased.runs),
        ],
        [
            "failed repair: a stopped run does not complete",
            "0.10",
            share(biased.lost, biased.halted),
        ],
        [
            "wrong repair: a payload as biased as before is handed on",
            "0.05",
            share(cosmetic.recovered, cosmetic.halted),
        ],
    ]
    report.say(f"### Error budget, {world.name}, {len(seeds)} seeds each")
    report.table(["failure", "target", "measured"], rows)


PANELS: Final[dict[str, dict[str, float]]] = {
    "the dissenter quotes the facts, the others do not": {"evidence": 1.0},
    "half of the dissenters do": {"evidence": 0.5},
    "nobody does": {"evidence": 0.0},
    "the others quote facts too, and are wrong": {"evidence": 1.0, "misled": 1.0},
    "only the others do": {"evidence": 0.0, "misled": 1.0},
}


def panels(report: Report, count: int) -> None:
    """One right dissenter against a wrong majority: votes by either weighting, and measurement."""
    rows: list[list[str]] = []
    for name, chances in PANELS.items():
        right = dict.fromkeys(("uniform", "trust"), 0)
        kept = measured = 0
        rng = np.random.default_rng(20261130)
        for _ in range(count):
            case = panel_case(rng, size=int(rng.integers(3, 8)), **chances)
            for weighting in ("uniform", "trust"):
                outcome = run_panel(case, weighting)
                right[weighting] += outcome.vote_is_right
            kept += outcome.kept
            measured += outcome.handed_on == case.dissenter
        uniform, trust = (right[each] / count for each in ("uniform", "trust"))
        numbers = [f"{each:.3f}" for each in (uniform, trust)]
        rows.append(
            [
                name,
                *numbers,
                f"{trust - uniform:+.3f}",
                str(count - kept),
                f"{measured / count:.3f}",
            ]
        )
    report.say(f"### Panels of 3 to 7 in which one is alone, confident and right, {count:,} each")
    head = ["who shows evidence", "uniform vote right", "trust vote right", "gain of trust"]
    report.table([*head, "silenced", "right one handed on"], rows)


HEAD: Final = """# What repairs are worth

Measured by `python benchmarks/study_intervention.py{arguments}`; rates with 95% Wilson
intervals. Two graphs of known truth: a *scripted* one, whose specialists draw their answers (one
of them declines 95 of 100 women and 10 of 100 others), and the demo's on its *stand-in model*.
The reviewing and rewriting models are scripted too and do their work nine times in ten. So this
shows how the loop behaves, not how biased any model is, nor how well any model repairs.

Gap is the approval rate of men less that of women with the same facts, with its standard error;
accuracy the share of
verdicts that are right, which is to approve; calls are node or model runs per run of the graph,
probes and repairs included; times are of a free model in one process, on a shared machine.
Probing only tells, so it cannot reduce the gap."""


# --- the bound ------------------------------------------------------------------------------------

SIZES: Final = ((10, 5), (16, 16), (20, 20), (30, 30))
LAWS: Final[dict[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "always the same answer": ((1.0,), (1.0,)),
    "0.95 to 0.05": ((0.95, 0.05), (0.95, 0.05)),
    "0.8 to 0.2": ((0.8, 0.2), (0.8, 0.2)),
    "0.6 to 0.3 to 0.1": ((0.6, 0.3, 0.1), (0.6, 0.3, 0.1)),
    "biased, delta 0.1": ((0.9, 0.1), (0.584, 0.416)),
    "biased, delta 0.2": ((0.947, 0.053), (0.5, 0.5)),
    "biased, delta 0.5": ((1.0, 0.0), (0.293, 0.707)),
}
"""Answers of the reference and of the counterfactual arm, by what a node does."""


def shown_below(law: str, n: int, m: int, repeats: int) -> float:
    """How often a node is shown to be below the default bound."""
    rng = np.random.default_rng(20261130)
    reference, other = (np.asarray(each) for each in LAWS[law])
    drawn = np.concatenate(
        [
            rng.choice(len(reference), size=(repeats, n), p=reference),
            rng.choice(len(other), size=(repeats, m), p=other),
        ],
        axis=1,
    )
    first, second = np.triu_indices(n + m, 1)
    differ = (drawn[:, first] != drawn[:, second]).astype(np.float64)
    _, upper = intervals(differ, n, n + m)
    return float(np.mean(np.maximum(upper, unseen_share(min(n, m))) < BOUND))


def bounds(report: Report, repeats: int) -> None:
    """How often nodes are shown to be below the bound, by what they do and by sample size."""
    rows = [[law, *(f"{shown_below(law, n, m, repeats):.2f}" for n, m in SIZES)] for law in LAWS]
    report.say(f"### Share of {repeats:,} nodes that are shown to be below {BOUND}")
    report.table(["answers", *(f"{n} and {m}" for n, m in SIZES)], rows)


def sections(seeds: range, few: range, twins: range, count: int) -> Iterator[str]:
    """The report, part by part as it is measured."""
    yield from _part("The bound", lambda r: bounds(r, count))
    yield from _part("The demo's graph, with reviewers", lambda r: _demo(r, seeds))
    yield from _part("With breaker nodes in the graph", lambda r: _explicit(r, seeds, few))
    yield from _part("Every repair", lambda r: _repairs(r, few))
    yield from _part("Four conditions", lambda r: _conditions(r, twins))
    yield from _part("Symmetry and votes", lambda r: _votes(r, few, count))


def _part(title: str, fill: Callable[[Report], None]) -> Iterator[str]:
    report = Report()
    report.say("", f"## {title}", "")
    fill(report)
    yield "\n".join(report.lines)


def _demo(report: Report, seeds: range) -> None:
    loop(report, Demo(), seeds, {"auto": REPAIRS["auto"]}, "repairs that do their work")
    budget(report, Demo(), seeds)
    readers(report, Demo(), seeds)


def _explicit(report: Report, seeds: range, few: range) -> None:
    loop(report, Explicit(), seeds, {"auto": REPAIRS["auto"]}, "repairs that do their work")
    loop(report, Explicit(), few, IDLE, "repairs that do nothing")


def _repairs(report: Report, few: range) -> None:
    for world in (Scripted(), Demo()):
        loop(report, world, few, REPAIRS, "repairs that do their work")
    shared = Scripted(biased=SPECIALISTS)
    loop(report, shared, few, {"auto": REPAIRS["auto"]}, "all three specialists biased")
    loop(report, Demo(), few, IDLE, "repairs that do nothing")


def _conditions(report: Report, twins: range) -> None:
    for world in (Scripted(), Demo()):
        conditions(report, world, twins)


def _votes(report: Report, few: range, count: int) -> None:
    mirrored(report, few)
    panels(report, count)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, help="runs of the demo's loop and budget")
    parser.add_argument("--twins", type=int, default=30, help="seeds of the four conditions")
    parser.add_argument("--few", type=int, default=10, help="runs of everything else")
    parser.add_argument(
        "--panels", type=int, default=1000, help="simulated panels and nodes, each kind"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="a Markdown file to write")
    given = parser.parse_args(arguments)
    chosen = {"seeds": 50, "twins": 30, "few": 10, "panels": 1000}
    told = "".join(
        f" --{name} {getattr(given, name)}"
        for name, default in chosen.items()
        if getattr(given, name) != default
    )
    parts = [HEAD.format(arguments=told)]
    print(parts[0], flush=True)
    sizes = (range(given.seeds), range(given.few), range(given.twins))
    for section in sections(*sizes, given.panels):
        print(section, flush=True)
        parts.append(section)
        if given.write is not None:
            given.write.parent.mkdir(parents=True, exist_ok=True)
            page = "\n\n".join(part.strip("\n") for part in parts)
            given.write.write_text(f"{page}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
