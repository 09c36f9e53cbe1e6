"""How often control halts clean runs, and how soon it halts biased ones.

A 21-node graph in ten layers, four axes, nodes that answer by known laws; bias on one axis from the
fourth superstep on, in every later node ("prop") or in one ("single"). Prints, per rule, the share
of clean runs halted and, per kind of bias, the share detected and the mean delay in supersteps.

Then 36 small worlds without bias, and a seeded bias that spreads, with and without the weights.

    python benchmarks/study_control.py                              # 10,000 clean runs each
    python benchmarks/study_control.py --quick                      # a tenth of them
    python benchmarks/study_control.py --out docs/studies/control.md
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from control_rules import (
    HUB,
    Halts,
    Monitor,
    ewma,
    in_order,
    path_permutation_halts,
    peer_magnitudes,
    permuted_scores,
    probe_adaptively,
    reduced,
    spread,
    standardised,
    weights_of,
)
from control_world import LAWS, LAYERS, Floats, OrbitBook, Scenario, World

from twinspan.instrumentation.probing.rounds import (
    ADAPTIVE_PLAN,
    FIXED_PLAN,
    THOROUGH_PLAN,
    ProbePlan,
    Round,
)

SCENARIOS: Final = {
    "clean": Scenario(),
    "prop .5": Scenario(share=0.5),
    "prop .7": Scenario(share=0.7),
    "prop .9": Scenario(share=0.9),
    "single .9": Scenario(share=0.9, single=True),
}
START: Final = 3

DOUBLE_PLAN: Final = ProbePlan(rounds=(Round(reference=20, counterfactual=10),))


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of runs."""

    clean: int
    biased: int

    def of(self, name: str) -> int:
        """Runs of one scenario."""
        return self.clean if name == "clean" else self.biased


def row(label: str, halts: dict[str, Halts]) -> None:
    """Prints one rule."""
    cells = [f"{halts['clean'].rate:7.4f}"]
    for name, found in halts.items():
        if name != "clean":
            share, delay = found.detection(START)
            cells.append(f"{share:.2f} / {delay:.1f}")
    print(f"{label:<62}" + "".join(f"{cell:>13}" for cell in cells), flush=True)


def header(title: str) -> None:
    """Prints the head of a table."""
    print(f"\n{title}\n" + f"{'':<62}" + "".join(f"{name:>13}" for name in SCENARIOS))


def fixed_probing(size: Size) -> None:
    """Every rule on the same fixed plan, 10 reference and 5 counterfactual samples."""
    header("fixed 10/5 (peer 5/5): share of clean runs halted; detected / delay")
    world, book = World(), OrbitBook(10, 5)
    probes = {name: world.probes(book, size.of(name), each) for name, each in SCENARIOS.items()}
    for alpha in (0.05, 0.01):
        monitor = Monitor(LAYERS, world.axes, alpha=alpha)
        for label, use in (("", True), (" without overshoot removal", False)):
            paths = {n: monitor.path(p.e, p if use else None) for n, p in probes.items()}
            halts = {name: Halts.at(path, 1 / alpha) for name, path in paths.items()}
            row(f"RunMonitor alpha={alpha}{label}", halts)
    for alpha in (0.05, 0.01):
        paths = {name: _bonferroni(p.p) for name, p in probes.items()}
        row(f"Bonferroni alpha={alpha}", {n: Halts.at(p, 1 / alpha) for n, p in paths.items()})


def _bonferroni(p_values: Floats) -> Floats:
    tests = p_values.shape[1] * p_values.shape[2]
    ends = np.cumsum(LAYERS)
    smallest = [p_values[:, :end].min(axis=(1, 2)) for end in ends]
    return np.asarray(1 / (tests * np.stack(smallest, axis=1)))


def peer_rule(size: Size) -> None:
    """The prior implementation: worst axis, gated magnitude, per-superstep quantile."""
    world = World(seed=11)
    weights = in_order(weights_of(LAYERS))

    def path(runs: int, scenario: Scenario) -> Floats:
        magnitudes = peer_magnitudes(*world.arms(5, 5, runs, scenario), 5)
        return ewma(reduced(magnitudes, weights, LAYERS, "weighted_mean"), 0.7)

    controls = path(size.clean, Scenario())
    paths = {name: path(size.of(name), each) for name, each in SCENARIOS.items()}
    for level in (0.95, 0.99):
        tau = float(np.quantile(controls, level))
        halts = {name: Halts.at(each, tau) for name, each in paths.items()}
        row(f"peer EWMA, {level:.0%} superstep quantile", halts)


def path_permutation(size: Size) -> None:
    """The calibrated threshold on the network score itself."""
    world = World(seed=12)
    weights = in_order(weights_of(LAYERS), scaled=True)
    scores: dict[str, Floats] = {}
    for name, each in SCENARIOS.items():
        arms = world.arms(10, 5, size.of(name) // 5, each)
        scores[name] = permuted_scores(world, *arms, 10, 5, weights)
    for alpha in (0.05, 0.01):
        halts = {name: path_permutation_halts(each, alpha) for name, each in scores.items()}
        row(f"path permutation of B_fast, alpha={alpha}", halts)


def adaptive_probing(size: Size) -> None:
    """Plans: calls of a clean run, share of the fixed plan's, and what they detect."""
    header("probing plans under RunMonitor alpha=.05, no overshoot removal")
    world = World(seed=13)
    plans = {
        "fixed 10/5": FIXED_PLAN,
        "fixed 20/10": DOUBLE_PLAN,
        "adaptive": ADAPTIVE_PLAN,
        "thorough": THOROUGH_PLAN,
    }
    monitor = Monitor(LAYERS, world.axes)
    for label, plan in plans.items():
        found = {n: probe_adaptively(world, plan, size.of(n), s) for n, s in SCENARIOS.items()}
        calls = float(found["clean"].calls.sum(axis=1).mean())
        text = f"{label}: {calls:.0f} calls, {calls / 630:.2f} of 10/5, {calls / 1260:.2f} of 20/10"
        row(text, {name: Halts.at(monitor.path(each.wealth), 20.0) for name, each in found.items()})


def ablation(size: Size) -> None:
    """Reductions and weights, thresholds calibrated on the maximum of clean runs at 5 %."""
    header("B_fast thresholds at a run-level 5 %: reduction, weights, scale")
    world, book = World(seed=14), OrbitBook(10, 5)
    probes = {name: world.probes(book, size.of(name), each) for name, each in SCENARIOS.items()}
    controls = world.probes(book, size.clean, Scenario())
    katz = in_order(weights_of(LAYERS), scaled=True)
    for rule in ("impact_sum", "impact_max", "weighted_mean", "max"):
        for label, weights in (("Katz", katz), ("uniform", np.ones_like(katz))):
            for scale, score in _scores(rule, weights):
                tau = float(np.quantile(score(controls).max(axis=1), 0.95))
                halts = {name: Halts.at(score(each), tau) for name, each in probes.items()}
                row(f"{rule}, {label}, {scale}", halts)


def _scores(rule: str, weights: Floats) -> Iterator[tuple[str, Callable[..., Floats]]]:
    yield (
        "raw",
        lambda probes: ewma(reduced(probes.delta.mean(axis=2), weights, LAYERS, rule), 0.7),
    )
    if rule in ("impact_sum", "weighted_mean"):
        yield (
            "in deviations",
            lambda probes: standardised(probes, weights, LAYERS, rule, 0.7),
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """A small world: so many nodes a superstep, all answering by one law."""

    nodes: int
    axes: int
    steps: int
    law: int
    reference: int
    counterfactual: int

    def __str__(self) -> str:
        return (
            f"{self.nodes} nodes, {self.axes} axes, {self.steps:>2} supersteps, "
            f"{LAW_NAMES[self.law]:<9} {self.reference}/{self.counterfactual}"
        )

    def world(self, seed: int) -> World:
        """The world, to draw answers from."""
        return World(
            layers=(self.nodes,) * self.steps, laws=(LAWS[self.law],), axes=self.axes, seed=seed
        )


LAW_NAMES: Final = ("binary", "5 classes", "30 hot")
SIZES: Final = ((6, 3), (10, 5), (20, 10))


def all_shapes() -> list[Shape]:
    """1 to 3 nodes, 1 or 2 axes, 5 or 50 supersteps, three laws; each law with each size."""
    grid = [
        (nodes, axes, steps, law)
        for nodes in (1, 2, 3)
        for axes in (1, 2)
        for steps in (5, 50)
        for law in range(3)
    ]
    return [Shape(*each, *SIZES[(number + number // 3) % 3]) for number, each in enumerate(grid)]


def clean_halts(shape: Shape, runs: int, *, seed: int) -> dict[float, float]:
    """Share of clean runs of one shape that the monitor halts, by alpha."""
    counts = dict.fromkeys((0.05, 0.01), 0)
    book = OrbitBook(shape.reference, shape.counterfactual)
    chunk = max(1, 40_000 // (shape.nodes * shape.steps * shape.axes))
    for start in range(0, runs, chunk):
        world = shape.world(seed + 36 * start)
        probes = world.probes(book, min(chunk, runs - start), Scenario())
        for alpha in counts:
            path = Monitor(world.layers, shape.axes, alpha=alpha).path(probes.e, probes)
            counts[alpha] += int((Halts.at(path, 1 / alpha).step < shape.steps).sum())
    return {alpha: count / runs for alpha, count in counts.items()}


def shapes(runs: int) -> None:
    """False halts in 36 small worlds: nodes, axes, supersteps, laws, sample sizes."""
    print(f"\n36 shapes, clean, {runs} runs each: share of runs halted by RunMonitor")
    print(f"{'':<62}{'alpha .05':>13}{'alpha .01':>13}")
    worst = {0.05: 0.0, 0.01: 0.0}
    for number, shape in enumerate(all_shapes()):
        rates = clean_halts(shape, runs, seed=number)
        worst = {alpha: max(rate, worst[alpha]) for alpha, rate in rates.items()}
        print(f"{shape!s:<62}" + "".join(f"{rate:13.4f}" for rate in rates.values()), flush=True)
    print(f"{'worst':<62}" + "".join(f"{rate:13.4f}" for rate in worst.values()))


def propagation(seeds: int) -> None:
    """A seeded bias spreads: what B_fast does, with Katz weights and with uniform ones."""
    print(f"\nseeded propagation, {seeds} seeds: share of seeds in which B_fast ...")
    columns = ("rises", "over 1.645 sd", "mean at start", "mean at end")
    print(f"{'':<62}" + "".join(f"{name:>15}" for name in columns))
    for name, layers, start in (("root, hub, 4 workers", HUB, 1), ("21 nodes", LAYERS, START)):
        katz = in_order(weights_of(layers), scaled=True)
        for label, weights in (("Katz", katz), ("uniform", np.ones_like(katz))):
            for kind, share in (("seeded .9", 0.9), ("seeded .7", 0.7), ("control", 0.0)):
                found = spread(layers, start, share, weights, seeds)
                cells = (
                    f"{found.rises:15.2f}{found.over:15.2f}{found.first:15.3f}{found.last:15.3f}"
                )
                print(f"{f'{name}, {label}, {kind}':<62}" + cells, flush=True)


class _Tee(io.StringIO):
    """Keeps what is printed, and shows it."""

    def __init__(self, shown: TextIO) -> None:
        super().__init__()
        self._shown = shown

    def write(self, text: str) -> int:
        self._shown.write(text)
        return super().write(text)

    def flush(self) -> None:
        self._shown.flush()


PAGE: Final = """# Control: false halts, detection, cost

Made by `python {command}`;
every number comes out of it again. {clean:,} clean runs and {biased:,} biased ones a row, by path
permutation a fifth of them. A cell of a biased column is the share of runs that were halted once
the bias had begun, and the mean delay in supersteps.

How to read it:

- *Clean runs.* The monitor halts fewer of them than alpha in every world. A threshold from single
  supersteps, as the prior implementation takes it, halts many more runs than its percentage says.
- *Plans.* `adaptive` needs about two fifths of the calls of `fixed 10/5` and detects no less.
- *Weights.* Uniform weights change every row of `impact_sum` and `impact_max`, and none of
  `weighted_mean` and `max`.
- *What B_fast is not.* With Katz weights a bias that spreads downstream reaches nodes that weigh
  less and less, so on a deep graph B_fast falls while it spreads. In null deviations it stands out
  all the same: thresholds on it belong in deviations (`scaling = "deviation"`).

```
{tables}
```
"""


def main() -> None:
    """Runs everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a page of it")
    given = parser.parse_args()
    size = Size(clean=1_000, biased=300) if given.quick else Size(10_000, 2_000)
    start, shown = time.perf_counter(), _Tee(sys.stdout)
    with contextlib.redirect_stdout(shown):
        fixed_probing(size)
        peer_rule(size)
        path_permutation(size)
        adaptive_probing(size)
        ablation(size)
        shapes(size.clean)
        propagation(100)
    print(f"\n{time.perf_counter() - start:.0f} s; clean runs {size.clean}, biased {size.biased}")
    if given.out is not None:
        command = "benchmarks/study_control.py" + (" --quick" if given.quick else "")
        page = PAGE.format(
            command=f"{command} --out {given.out}",
            clean=size.clean,
            biased=size.biased,
            tables=shown.getvalue().strip("\n"),
        )
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
