"""The cache of reference samples and its test for drift."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from twinspan.instrumentation.errors import (
    ConfigurationError,
    EstimatorError,
    InsufficientSamples,
    NonFiniteSample,
)
from twinspan.instrumentation.probing.cache import (
    ConformalDriftTest,
    ReferenceCache,
    ReferenceKey,
)

KEY = ReferenceKey(node="triage", input_hash="ab12", model="m", estimator="action/1")


def differ(x: object, y: object) -> float:
    return float(x != y)


def gap(x: float, y: float) -> float:
    return abs(x - y)


def matrix_of(values: Sequence[Any], distance: Callable[[Any, Any], float]) -> NDArray[np.float64]:
    return np.array([[distance(x, y) for y in values] for x in values], dtype=np.float64)


def path_of(
    cached: Sequence[Any],
    fresh: Sequence[Any],
    distance: Callable[[Any, Any], float],
    **options: Any,
) -> tuple[list[float], list[float], bool]:
    """P-values, martingale values, and whether drift was ever called."""
    test = ConformalDriftTest(matrix_of(cached, distance), **options)
    bag = list(cached)
    steps = []
    for sample in fresh:
        steps.append(test.update([distance(sample, other) for other in bag]))
        bag.append(sample)
    return [s.p_value for s in steps], [s.martingale for s in steps], test.drifted


# --- the martingale ---------------------------------------------------------------------------


def coins(pieces: int) -> Iterator[float]:
    """Mid-points of equal pieces of [0, 1): the average over them is the coin's own average."""
    yield from ((piece + 0.5) / pieces for piece in range(pieces))


@pytest.mark.parametrize(
    ("values", "distance"),
    [
        (["a", "a", "b", "c"], differ),
        (["a", "a", "a", "a"], differ),
        ([0.0, 1.0, 3.0, 7.0], gap),
        ([0.0, 0.0, 1.0, 5.0], gap),
    ],
)
def test_its_mean_over_all_orders_and_coins_is_exactly_one(
    values: list[Any], distance: Callable[[Any, Any], float]
) -> None:
    """Two cached and two fresh samples: the bets only change where a coin crosses k/12."""
    totals = np.zeros(2)
    count = 0
    for order in permutations(values):
        for first, second in product(coins(12), repeat=2):
            coin = iter((first, second)).__next__
            _, path, _ = path_of(order[:2], order[2:], distance, uniform=coin)
            totals += path
            count += 1
    assert totals / count == pytest.approx([1.0, 1.0], abs=1e-12)


def nulls(law: str, size: int, rng: np.random.Generator) -> Sequence[Any]:
    if law == "deterministic":
        return ["a"] * size
    if law == "skewed":
        return list(rng.choice(5, size=size, p=[0.5, 0.3, 0.1, 0.05, 0.05]))
    if law == "hot":
        return list(rng.integers(0, 30, size=size))
    return list(rng.standard_t(2, size=size))


@pytest.mark.parametrize("law", ["deterministic", "skewed", "hot", "heavy tails"])
def test_unchanged_nodes_rarely_lose_their_cache_and_their_ranks_are_uniform(law: str) -> None:
    rng = np.random.default_rng(7)
    distance = gap if law == "heavy tails" else differ
    ranks, drops, runs = [], 0, 300
    for run in range(runs):
        samples = nulls(law, 10 + 16, rng)
        p_values, _, drifted = path_of(samples[:10], samples[10:], distance, seed=run)
        ranks.append(p_values)
        drops += drifted
    # Three standard errors over 5 %.
    assert drops / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)
    flat = np.sort(np.concatenate(ranks))
    grid = np.arange(1, len(flat) + 1) / len(flat)
    # Kolmogorov's bound at a level of about 0.001.
    assert np.max(np.abs(flat - grid)) < 1.95 / math.sqrt(len(flat))
    table = np.array(ranks)
    assert abs(np.corrcoef(table[:, 0], table[:, 1])[0, 1]) < 0.2


def test_ranks_against_the_cache_alone_would_not_be_independent() -> None:
    """Why fresh samples join the bag: else a lucky cache makes every bet win or lose."""
    rng = np.random.default_rng(1)
    alone, joined = [], []
    for run in range(400):
        samples = list(rng.normal(size=3 + 8))
        joined.append(path_of(samples[:3], samples[3:], gap, seed=run)[0])
        alone.append([path_of(samples[:3], [fresh], gap, seed=run)[0][0] for fresh in samples[3:]])

    def dependence(table: list[list[float]]) -> float:
        return float(np.corrcoef(np.array(table).T)[np.triu_indices(8, 1)].mean())

    assert dependence(alone) > 0.1
    assert abs(dependence(joined)) < 0.05


@pytest.mark.parametrize(
    ("cached", "fresh", "within"),
    [
        (["a"] * 5, ["b"] * 5, 4),
        (["a"] * 10, ["b"] * 5, 3),
        (["a"] * 20, ["b"] * 5, 2),
    ],
)
def test_a_node_that_answers_something_else_is_found_at_once(
    cached: list[str], fresh: list[str], within: int
) -> None:
    for seed in range(50):
        _, path, drifted = path_of(cached, fresh, differ, seed=seed)
        assert drifted
        assert max(path[:within]) >= 20


def share_found(
    cached: Callable[[np.random.Generator], Sequence[Any]],
    fresh: Callable[[np.random.Generator], Sequence[Any]],
) -> float:
    rng = np.random.default_rng(5)
    return float(np.mean([path_of(cached(rng), fresh(rng), differ, seed=s)[2] for s in range(120)]))


def test_a_node_that_gets_narrower_or_shifts_is_mostly_found() -> None:
    narrower = share_found(lambda r: list(r.integers(0, 30, 20)), lambda r: [1] * 30)
    assert narrower > 0.9
    wider = share_found(lambda r: ["a"] * 20, lambda r: list(r.choice(["a", "b"], 30)))
    assert wider > 0.55


def test_the_martingale_cannot_outgrow_the_number_of_arrangements() -> None:
    _, path, _ = path_of(["a"] * 6, ["b"] * 6, differ)
    assert all(value <= math.comb(6 + t, t) for t, value in enumerate(path, start=1))


def test_drift_that_was_called_stays_called() -> None:
    _, path, drifted = path_of(["a"] * 10, ["b"] * 3 + ["a"] * 40, differ)
    assert path[-1] < 20 <= max(path)
    assert drifted


def test_equal_seeds_split_ties_equally() -> None:
    first = path_of(["a"] * 5, ["a"] * 5, differ, seed=3)
    assert first == path_of(["a"] * 5, ["a"] * 5, differ, seed=3)
    assert first[0] != path_of(["a"] * 5, ["a"] * 5, differ, seed=4)[0]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=12), st.integers(0, 9))
def test_p_values_are_probabilities_and_evidence_is_finite(values: list[float], seed: int) -> None:
    p_values, path, _ = path_of(values[:1], values[1:], gap, seed=seed)
    assert all(0 < p <= 1 for p in p_values)
    assert all(math.isfinite(value) and value > 0 for value in path)


@pytest.mark.parametrize(
    ("matrix", "error"),
    [
        (np.zeros((0, 0)), InsufficientSamples),
        (np.zeros((2, 3)), EstimatorError),
        (np.zeros(4), EstimatorError),
        ([[0.0, 1.0], [2.0, 0.0]], EstimatorError),
        ([[0.0, -1.0], [-1.0, 0.0]], EstimatorError),
        ([[0.0, math.nan], [math.nan, 0.0]], NonFiniteSample),
        ([[0.0, math.inf], [math.inf, 0.0]], NonFiniteSample),
    ],
)
def test_distances_without_meaning_are_refused(matrix: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        ConformalDriftTest(matrix)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, math.nan])
def test_an_alpha_outside_its_range_is_refused(alpha: float) -> None:
    with pytest.raises(ConfigurationError, match="alpha"):
        ConformalDriftTest(np.zeros((2, 2)), alpha=alpha)


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ([1.0], EstimatorError),
        ([1.0, -1.0], EstimatorError),
        ([0.0, math.nan], NonFiniteSample),
    ],
)
def test_a_fresh_sample_without_distances_changes_nothing(
    row: list[float], error: type[Exception]
) -> None:
    test = ConformalDriftTest(np.zeros((2, 2)))
    with pytest.raises(error):
        test.update(row)
    assert (test.size, test.martingale) == (2, 1.0)


# --- the cache --------------------------------------------------------------------------------


class Clock:
    """Seconds that a test turns by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def cache_of(**options: Any) -> ReferenceCache[str]:
    return ReferenceCache[str](**options)


def key_of(name: str) -> ReferenceKey:
    return ReferenceKey(node=name, input_hash="x")


def test_axes_of_one_probe_share_a_reference_and_other_supersteps_are_told() -> None:
    cache = cache_of()
    cache.put(KEY, ["a", "b"], occasion=("run", 1), distance=differ)
    same, other = cache.get(KEY, occasion=("run", 1)), cache.get(KEY, occasion=("run", 2))
    assert same is not None
    assert other is not None
    assert same.samples == other.samples == ("a", "b")
    assert (same.cached, other.cached) == (False, True)
    assert (same.reuses, other.reuses) == (0, 1)


@pytest.mark.parametrize(
    "change",
    ["node", "input_hash", "model", "parameters", "wording", "outcome", "estimator"],
)
def test_whatever_changes_the_law_changes_the_key(change: str) -> None:
    cache = cache_of()
    cache.put(KEY, ["a"], occasion=1, distance=differ)
    fields = {name: getattr(KEY, name) for name in KEY.__slots__}
    assert cache.get(ReferenceKey(**{**fields, change: "other"}), occasion=1) is None
    assert cache.get(ReferenceKey(**fields), occasion=1) is not None


def test_one_occasion_counts_once_however_many_axes_ask() -> None:
    cache = cache_of()
    cache.put(KEY, ["a"], occasion=1, distance=differ)
    reuses = [cache.get(KEY, occasion=occasion) for occasion in (2, 2, 3, 2, 1)]
    assert [reuse.reuses for reuse in reuses if reuse is not None] == [1, 1, 2, 2, 2]


def test_samples_are_not_part_of_the_repr() -> None:
    reference = cache_of().put(KEY, ["her words"], occasion=1, distance=differ)
    assert "her words" not in repr(reference)


def test_an_entry_expires() -> None:
    clock = Clock()
    cache = cache_of(ttl=10, clock=clock)
    cache.put(KEY, ["a"], occasion=1, distance=differ)
    clock.now += 10
    reference = cache.get(KEY, occasion=2)
    assert reference is not None
    assert reference.age == 10
    clock.now += 0.1
    assert cache.get(KEY, occasion=2) is None
    assert [(drop.reason, drop.reuses) for drop in cache.dropped] == [("expired", 1)]


def test_without_a_ttl_nothing_expires() -> None:
    clock = Clock()
    cache = cache_of(ttl=None, clock=clock)
    cache.put(KEY, ["a"], occasion=1, distance=differ)
    clock.now += 1e9
    assert cache.get(KEY, occasion=2) is not None


def test_the_least_recently_used_entry_leaves_first() -> None:
    cache = cache_of(max_entries=2)
    for name in "ab":
        cache.put(key_of(name), ["x"], occasion=1, distance=differ)
    cache.get(key_of("a"), occasion=1)
    cache.put(key_of("c"), ["x"], occasion=1, distance=differ)
    assert [cache.get(key_of(name), occasion=1) is not None for name in "abc"] == [
        True,
        False,
        True,
    ]
    assert cache.drop_counts == {"evicted": 1}


def test_samples_are_bounded_over_all_entries() -> None:
    cache = cache_of(max_samples=5)
    cache.put(key_of("a"), ["x"] * 3, occasion=1, distance=differ)
    cache.put(key_of("b"), ["x"] * 3, occasion=1, distance=differ)
    assert len(cache) == 1
    cache.put(key_of("b"), ["x"] * 2, occasion=2, distance=differ)
    cache.put(key_of("c"), ["x"] * 3, occasion=2, distance=differ)
    assert len(cache) == 2
    with pytest.raises(ConfigurationError, match="max_samples=5"):
        cache.put(key_of("d"), ["x"] * 6, occasion=1, distance=differ)


def test_an_entry_serves_a_bounded_number_of_occasions() -> None:
    cache = cache_of(max_reuses=2)
    cache.put(KEY, ["a"], occasion=0, distance=differ)
    assert [cache.get(KEY, occasion=n) is not None for n in (0, 1, 2, 2, 1, 0, 3)] == [True] * 6 + [
        False
    ]
    assert cache.drop_counts == {"spent": 1}


def test_a_reference_without_samples_is_refused() -> None:
    with pytest.raises(InsufficientSamples):
        cache_of().put(KEY, [], occasion=1, distance=differ)


@pytest.mark.parametrize(
    "options",
    [{"max_entries": 0}, {"max_samples": 0}, {"max_reuses": 0}, {"ttl": -1}, {"alpha": 1}],
)
def test_bounds_without_meaning_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        cache_of(**options)


def test_forgetting_is_a_reason_too() -> None:
    cache = cache_of()
    cache.put(KEY, ["a"], occasion=1, distance=differ)
    cache.put(KEY, ["a"], occasion=2, distance=differ)
    assert cache.drop(KEY)
    assert not cache.drop(KEY)
    cache.put(KEY, ["a"], occasion=3, distance=differ)
    cache.clear()
    assert len(cache) == 0
    assert [drop.reason for drop in cache.dropped] == ["replaced", "requested", "requested"]


def test_a_drifted_entry_is_dropped_with_its_evidence() -> None:
    cache = cache_of(alpha=0.05)
    cache.put(KEY, ["a"] * 10, occasion=0, distance=differ)
    dropped, occasion = False, 0
    for occasion in range(1, 9):
        reference = cache.get(KEY, occasion=occasion)
        if reference is None:
            break
        assert not dropped
        assert reference.checks == occasion - 1
        dropped = cache.check(reference, "b").dropped
    assert dropped
    (drop,) = cache.dropped
    assert drop.reason == "drift"
    assert drop.martingale >= 20
    assert drop.reuses == occasion - 1 <= 3


def test_an_unchanged_node_keeps_its_entry_and_checks_are_counted() -> None:
    cache = cache_of(seed=1)
    cache.put(KEY, ["a"] * 10, occasion=0, distance=differ)
    for occasion in range(1, 30):
        reference = cache.get(KEY, occasion=occasion)
        assert reference is not None
        assert reference.cached
        verdict = cache.check(reference, "a")
        assert verdict.step is not None
        assert not verdict.dropped
    unchecked = cache.get(KEY, occasion=30)
    assert unchecked is not None
    assert (unchecked.reuses, unchecked.checks) == (30, 29)


def test_a_check_of_samples_that_have_left_tests_nothing() -> None:
    cache = cache_of()
    old = cache.put(KEY, ["a"] * 5, occasion=0, distance=differ)
    cache.put(KEY, ["b"] * 5, occasion=0, distance=differ)
    verdict = cache.check(old, "b")
    assert (verdict.step, verdict.dropped) == (None, True)
    current = cache.get(KEY, occasion=0)
    assert current is not None
    assert current.checks == 0


def test_a_fresh_sample_without_distance_is_told_and_changes_nothing() -> None:
    cache = cache_of()
    reference = cache.put(KEY, ["a"] * 3, occasion=0, distance=lambda x, y: math.nan * (x != y))
    with pytest.raises(NonFiniteSample):
        cache.check(reference, "b")
    again = cache.get(KEY, occasion=0)
    assert again is not None
    assert again.checks == 0


def test_threads_share_one_cache() -> None:
    cache = cache_of(max_entries=8, max_reuses=10_000)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(60):
                key = key_of(str((number + turn) % 12))
                reference = cache.get(key, occasion=(number, turn))
                if reference is None:
                    reference = cache.put(key, ["a"] * 4, occasion=(number, turn), distance=differ)
                cache.check(reference, "a")
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(cache) <= 8
    assert all(drop.reason in ("evicted", "replaced", "drift") for drop in cache.dropped)


def test_the_same_seed_gives_the_same_verdicts() -> None:
    def martingales() -> list[float]:
        cache = cache_of(seed=5)
        reference = cache.put(KEY, ["a", "b", "a"], occasion=0, distance=differ)
        verdicts = [cache.check(reference, fresh) for fresh in "abab"]
        return [verdict.step.martingale for verdict in verdicts if verdict.step is not None]

    assert martingales() == martingales()
    assert len(martingales()) == 4
