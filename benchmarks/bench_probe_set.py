"""What one probe set costs: exact p and e, alone, in batches, and end to end.

Prints, side by side in one process: our exact test on a ready distance matrix, with and without
batching; scipy's permutation test of the same statistic; `compute_local_bias` from samples,
with and without the interval; and the prior implementation, weighted-emergent-bias, where it is
installed. Times are CPU times, ratios are to our time for the same task.

"For control" is what the gate takes of a set: the test, its spread and the e-values of all
labellings, in one pass. Run with ``python benchmarks/bench_probe_set.py``.
"""

from __future__ import annotations

import importlib
import time
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from twinspan.instrumentation.effect_interval import effect_interval, intervals
from twinspan.instrumentation.orbit import (
    orbit_test,
    orbit_test_batch,
    orbit_test_triangles,
    stake_triangle,
)
from twinspan.instrumentation.scoring import compute_local_bias
from twinspan.instrumentation.splits import upper_triangle

Floats = NDArray[np.float64]
Task = Callable[[], object]

BATCH = 256
SHAPES = ((5, 5), (10, 5), (8, 8), (10, 10))


def best(task: Task, *, seconds: float = 0.4, repeats: int = 7) -> float:
    """CPU microseconds of the fastest of several rounds; the machine may be shared."""
    timer = timeit.Timer(task, timer=time.process_time)
    once = timer.timeit(1)
    number = max(1, int(seconds / repeats / max(once, 1e-7)))
    return min(timer.repeat(repeats, number)) / number * 1e6


def report(label: str, microseconds: float, ours: float | None = None) -> None:
    """One line, with the ratio to ours where there is one."""
    ratio = "" if ours is None else f"{microseconds / ours:10.0f} x"
    print(f"{label:<62}{microseconds:12.1f} us{ratio}", flush=True)


def classes(n_reference: int, n_counterfactual: int) -> Floats:
    """0/1 distances of BATCH probe sets with five answers, the last arm tilted."""
    rng = np.random.default_rng(n_reference)
    total = n_reference + n_counterfactual
    codes = rng.integers(0, 5, (BATCH, total)) // np.where(np.arange(total) < n_reference, 1, 2)
    different: NDArray[np.bool_] = codes[:, :, np.newaxis] != codes[:, np.newaxis]
    return different.astype(np.float64)


def actions(n_reference: int, n_counterfactual: int) -> Floats:
    """Gower distances of four fields, one of them numeric."""
    rng = np.random.default_rng(n_counterfactual)
    total = n_reference + n_counterfactual
    nominal = rng.integers(0, 3, (3, BATCH, total))
    number = rng.integers(0, 11, (BATCH, total)) / 10
    gaps: Floats = np.abs(number[:, :, np.newaxis] - number[:, np.newaxis])
    differing: Floats = (nominal[..., np.newaxis] != nominal[..., np.newaxis, :]).sum(axis=0)
    return (differing + gaps) / 4


def on_ready_distances() -> None:
    """p and e from a distance matrix: the hot path."""
    print("\nexact p and e from a ready distance matrix")
    for kind, make in (("categories", classes), ("actions", actions)):
        for n, m in SHAPES:
            stack = make(n, m)
            label = f"{kind}, n={n}:{m}, {orbit_test(stack[0], n).size} labellings"
            report(f"{label}, one", best(partial(orbit_test, stack[0], n)))
            flat = stack.reshape(BATCH, -1)[:, upper_triangle(n + m)]
            told = tuple(flat[0].tolist())
            report(f"{label}, one, for control", best(partial(stake_triangle, told, n)))
            many = best(partial(orbit_test_batch, stack, n)) / BATCH
            report(f"{label}, batch of {BATCH}, each", many)
            many = best(partial(orbit_test_triangles, flat, n)) / BATCH
            report(f"{label}, batch of {BATCH} triangles, each", many)


def of_the_interval() -> None:
    """1,000 bootstrap draws with kept weights."""
    print("\nbootstrap interval, 1,000 draws")
    for n, m in SHAPES[:3]:
        stack = classes(n, m)
        flat = stack.reshape(BATCH, -1)[:, upper_triangle(n + m)]
        report(f"n={n}:{m}, one", best(partial(effect_interval, stack[0], n)))
        many = best(partial(intervals, flat, n, n + m)) / BATCH
        report(f"n={n}:{m}, batch of {BATCH}, each", many)


def scipy_p(distances: Floats, n: int, resamples: int) -> float:
    """The p-value of the same statistic, all of scipy's resamples in one vectorised call."""

    def delta(x: Any, y: Any, axis: int) -> Any:
        within = distances[x[..., :, None], x[..., None, :]].sum(axis=(-2, -1))
        within += distances[y[..., :, None], y[..., None, :]].sum(axis=(-2, -1))
        across = distances[x[..., :, None], y[..., None, :]].mean(axis=(-2, -1))
        return across - within / (2 * n * (n - 1))

    arms: Any = (np.arange(n), np.arange(n, 2 * n))
    found: Any = stats.permutation_test(
        arms, delta, alternative="greater", n_resamples=resamples, vectorized=True, axis=-1
    )
    return float(found.pvalue)


def beside_scipy() -> None:
    """scipy.stats.permutation_test of the same statistic."""
    print("\nbeside scipy.stats.permutation_test (p only, vectorised)")
    for n, resamples, kind in ((5, 20_000, "exact"), (8, 20_000, "exact"), (8, 999, "999 random")):
        distances = classes(n, n)[0]
        gap = scipy_p(distances, n, resamples) - orbit_test(distances, n).p
        if kind == "exact" and abs(gap) > 1e-9:
            raise SystemExit("scipy disagrees")
        ours = best(partial(orbit_test, distances, n))
        report(f"ours, n={n}:{n}, exact p and e", ours)
        theirs = best(partial(scipy_p, distances, n, resamples), repeats=3)
        report(f"scipy, n={n}:{n}, {kind}", theirs, ours)


def end_to_end() -> None:
    """`compute_local_bias` from samples to a score."""
    print("\ncompute_local_bias from samples")
    rng = np.random.default_rng(1)
    words = "the candidate has long experience and should be invited for a first talk".split()
    kinds: dict[str, list[object]] = {
        "categories": list("aaabacabababbab"),
        "actions": [
            {"tool": "admit", "days": int(day), "drugs": ["x", "y"]}
            for day in rng.integers(9, size=15)
        ],
        "texts of 60 words": [" ".join(rng.choice(words, 60)) for _ in range(15)],
        "vectors of 384": list(rng.standard_normal((15, 384))),
    }
    for kind, samples in kinds.items():
        for label, interval in (("with interval", True), ("without", False)):
            for n, floor in ((5, None), (10, samples[5:10])):
                task = partial(
                    compute_local_bias,
                    samples[:5],
                    samples[10:],
                    noise_floor=floor,
                    interval=interval,
                )
                report(f"{kind}, n={n}:5, {label}", best(task))


def beside_prior() -> None:
    """The prior implementation's scoring, as shipped, if it is there."""
    print("\nbeside weighted-emergent-bias, its default 1,000 permutations and 500 bootstraps")
    try:
        prior = importlib.import_module("weighted_emergent_bias")
    except ImportError:
        print("weighted-emergent-bias is not installed; its rows are left out")
        return
    rng = np.random.default_rng(2)
    logits = rng.standard_normal((10, 5))
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    vectors = rng.standard_normal((10, 384))
    cases = {
        "choice, 5 candidates": (shares, prior.TaskMode.CHOICE, "hellinger", np.log(shares)),
        "generative, 384-d": (vectors, prior.TaskMode.GENERATIVE, "embedding", vectors),
    }
    for label, (samples, mode, method, own) in cases.items():
        theirs = best(
            partial(prior.compute_local_bias, samples[:5], samples[5:], task_mode=mode, rng=rng)
        )
        whole = best(partial(compute_local_bias, own[:5], own[5:], method=method))
        report(f"ours, {label}, whole score with interval", whole)
        report(f"weighted-emergent-bias, {label}, n=5:5", theirs, whole)
        hot = best(partial(orbit_test, classes(5, 5)[0], 5))
        report("  against exact p and e of one probe set", hot)
        report("  ratio to that", theirs, hot)
        many = best(partial(orbit_test_batch, classes(5, 5), 5)) / BATCH
        report("  against the same in a batch", many)
        report("  ratio to that", theirs, many)


if __name__ == "__main__":
    on_ready_distances()
    of_the_interval()
    beside_scipy()
    end_to_end()
    beside_prior()
