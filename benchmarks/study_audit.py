"""How often intervals of floors cover, and how often audits of known truth find an excess.

Prints four tables: coverage of 95% intervals for a floor; size and power of the tests over the
floor and over controls at 5%; what shared replicates do to them; and the power that the plan's
formulas promise against the power that is simulated.

Run with ``python benchmarks/study_audit.py``; ``--quick`` for a tenth of the audits.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from audit_world import (
    FLOOR_LAWS,
    Truth,
    answers,
    arms,
    batch_arm,
    by_case,
    pair_counts,
)

from twinspan.analysis.batch_effect import batch_effect
from twinspan.analysis.disagreement import korn_graubard
from twinspan.analysis.floor_intervals import floor_interval
from twinspan.analysis.inference import (
    bootstrap_ratio,
    excess_over_controls,
    excess_over_floor,
    mcnemar_exact,
    paired_values_by_case,
    wild_cluster_bootstrap_p,
)
from twinspan.analysis.inference.student import t_interval
from twinspan.analysis.pair_statistics import signed_flip_value
from twinspan.analysis.pairs import Pair
from twinspan.analysis.replicate_table import ReplicateTable
from twinspan.instrumentation.audit.sample_size import power

Booleans = NDArray[np.bool_]
Ends = tuple[float | None, float | None]

CASES: Final = 16
REPLICATES: Final = 10
ALPHA: Final = 0.05
DESIGNS: Final = ((10, 10), (10, 5), (5, 5), (10, 1))
TRUTHS: Final[tuple[Truth, ...]] = ("null", "all up", "mixed signs")


def as_table(array: Booleans) -> ReplicateTable:
    """Answers of cases by replicates as a table."""
    return ReplicateTable(
        cases=tuple(f"v{number}" for number in range(array.shape[0])),
        replicates=tuple(range(array.shape[1])),
        answers=tuple(map(tuple, array.tolist())),
    )


def _korn_graubard(array: Booleans) -> Ends:
    return korn_graubard(pair_counts(array)) or (None, None)


def _student(array: Booleans) -> Ends:
    return t_interval(np.array([count.rate or 0.0 for count in pair_counts(array)]))


def _bootstrap(method: str) -> Callable[[Booleans], Ends]:
    def interval(array: Booleans) -> Ends:
        counts = pair_counts(array)
        flips = np.array([float(count.flips) for count in counts])
        cells = np.array([float(count.cells) for count in counts])
        return bootstrap_ratio(flips, cells, draws=1000, method=method).ends  # type: ignore[arg-type]

    return interval


def _both(array: Booleans) -> Ends:
    return floor_interval([as_table(array)], draws=1000).ends


INTERVALS: Final[dict[str, Callable[[Booleans], Ends]]] = {
    "Korn-Graubard": _korn_graubard,
    "bootstrap of cases": _bootstrap("percentile"),
    "the same, BCa": _bootstrap("bca"),
    "Student over cases": _student,
    "cases and replicates": _both,
}


def covers(ends: Ends, truth: float) -> bool:
    """Whether an interval covers; a missing one does not."""
    low, high = ends
    return low is not None and high is not None and low <= truth <= high


def coverage(audits: int) -> None:
    """Coverage of intervals for floors."""
    print(f"\nCoverage of 95% intervals for a floor, {CASES} cases x {REPLICATES}, {audits} audits")
    print(f"{'':22s}" + "".join(f"{name:>24s}" for name in FLOOR_LAWS))
    hits = {name: np.zeros(len(FLOOR_LAWS)) for name in INTERVALS}
    for column, (shares, truth) in enumerate(FLOOR_LAWS.values()):
        rng = np.random.default_rng(40 + column)
        for _ in range(audits):
            array = answers(rng, shares(rng, CASES), REPLICATES)
            for name, interval in INTERVALS.items():
                hits[name][column] += covers(interval(array), truth)
    for name, counted in hits.items():
        print(f"{name:22s}" + "".join(f"{share:24.3f}" for share in counted / audits))


def first_runs(reference: dict[str, list[object]], other: dict[str, list[object]]) -> list[Pair]:
    """One pair for each case, of the first replicates."""
    return [
        Pair(case, action_ref=reference[case][0], action_cf=other[case][0]) for case in reference
    ]


def all_runs(reference: dict[str, list[object]], other: dict[str, list[object]]) -> list[Pair]:
    """As many pairs for each case as both arms have replicates."""
    return [
        Pair(case, action_ref=a, action_cf=b)
        for case in reference
        for a, b in zip(reference[case], other[case], strict=False)
    ]


def rejections(
    reference: dict[str, list[object]], other: dict[str, list[object]], seed: int
) -> dict[str, bool]:
    """Which tests reject for one audit."""
    found = excess_over_floor(reference, other)
    signed = paired_values_by_case(all_runs(reference, other), signed_flip_value)
    p_values = {
        "excess": found.p_excess,
        "shift": found.p_shift,
        "both, Holm": found.p_value,
        "McNemar, one run": mcnemar_exact(first_runs(reference, other)).p_value,
        "wild bootstrap": wild_cluster_bootstrap_p(
            signed, signed=True, draws=399, seed=seed
        ).p_value,
    }
    return {name: p is not None and p <= ALPHA for name, p in p_values.items()}


def size_and_power(audits: int) -> None:
    """Size and power of tests over the floor."""
    print(f"\nRejections at {ALPHA}, {CASES} cases of which half never vary, {audits} audits")
    for truth in TRUTHS:
        for reference, counterfactual in DESIGNS:
            rng = np.random.default_rng(50)
            counted: dict[str, float] = {}
            for number in range(audits):
                first, second = arms(rng, truth, reference=reference, counterfactual=counterfactual)
                for name, rejected in rejections(first, second, number).items():
                    counted[name] = counted.get(name, 0.0) + rejected / audits
            shown = "  ".join(f"{name} {share:.3f}" for name, share in counted.items())
            print(f"{truth:12s} {reference:2d}:{counterfactual:<2d}  {shown}")


def against_controls(audits: int) -> None:
    """Size and power against control arms that move as far, or half as far, as the swap."""
    print(f"\nA swap against two controls, intersection-union at {ALPHA}, {audits} audits")
    for label, sham, swap in (
        ("nothing moves", 0.0, 0.0),
        ("sham moves as far", 1.0, 1.0),
        ("sham moves half", 0.75, 1.5),
        ("only the swap moves", 0.0, 1.5),
    ):
        rng = np.random.default_rng(60)
        rejected = 0
        for number in range(audits):
            logits = rng.normal(0, 1, CASES)
            made = [
                by_case(answers(rng, 1 / (1 + np.exp(-logits - shift)), 8))
                for shift in (0.0, 0.0, sham, swap)
            ]
            verdict = excess_over_controls(
                made[0], made[3], {"rerender": made[1], "sham": made[2]}, draws=399, seed=number
            )
            rejected += verdict.beats_every_control(ALPHA) is True
        print(f"{label:22s} {rejected / audits:.3f}")


def shared_replicates(audits: int) -> None:
    """What replicates that take one policy for all cases do, nothing being biased."""
    print(f"\nReplicates that switch policy, no bias, 5:5 replicates, {audits} audits")
    print(f"{'switching':>10s} {'seen':>8s} {'shift, within cases':>22s} {'shift, whole':>14s}")
    for switch in (0.0, 0.1, 0.3, 0.6):
        rng = np.random.default_rng(70)
        seen = within = whole = 0
        for number in range(audits):
            array = batch_arm(rng, cases=CASES, replicates=10, switch=switch)
            first, second = by_case(array[:, :5]), by_case(array[:, 5:])
            seen += (batch_effect(as_table(array), draws=199, seed=number).p_value or 1) <= ALPHA
            within += (excess_over_floor(first, second).p_shift or 1) <= ALPHA
            found = excess_over_floor(first, second, shared_replicates=True, seed=number)
            whole += (found.p_shift or 1) <= ALPHA
        shares = seen / audits, within / audits, whole / audits
        print(f"{switch:10.1f} {shares[0]:8.3f} {shares[1]:22.3f} {shares[2]:14.3f}")


def promised_power(audits: int) -> None:
    """Power by the plan's formulas and by simulation, every case moving by the same share."""
    print(f"\nPower promised by the plan and simulated, cases at p = .3, {audits} audits")
    print(f"{'cases':>6s} {'arms':>7s} {'shift':>6s}   {'shift test':>18s}   {'excess test':>18s}")
    for cases, n, m, shift in (
        (8, 10, 10, 0.15),
        (16, 5, 5, 0.15),
        (16, 10, 5, 0.15),
        (16, 10, 10, 0.2),
        (40, 5, 5, 0.15),
    ):
        rng = np.random.default_rng(80)
        found = []
        for _ in range(audits):
            first = by_case(answers(rng, np.full(cases, 0.3), n))
            second = by_case(answers(rng, np.full(cases, 0.3 + shift), m))
            found.append(excess_over_floor(first, second))
        floor = (2 * 0.3 * 0.7 + 2 * (0.3 + shift) * (0.7 - shift)) / 2
        told = [
            power(shift**2, floor, cases=cases, reference=n, counterfactual=m, test=test)
            for test in ("shift", "excess")
        ]
        seen = [
            float(np.mean([(each.p_shift or 1) <= ALPHA for each in found])),
            float(np.mean([(each.p_excess or 1) <= ALPHA for each in found])),
        ]
        pairs = "   ".join(f"{a:8.3f} {b:9.3f}" for a, b in zip(told, seen, strict=True))
        print(f"{cases:6d} {n:3d}:{m:<3d} {shift:6.2f}   {pairs}")


def main() -> None:
    """Runs every table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the audits")
    scale = 0.1 if parser.parse_args().quick else 1.0
    coverage(int(1500 * scale))
    size_and_power(int(1000 * scale))
    against_controls(int(1000 * scale))
    shared_replicates(int(600 * scale))
    promised_power(int(600 * scale))


if __name__ == "__main__":
    main()
