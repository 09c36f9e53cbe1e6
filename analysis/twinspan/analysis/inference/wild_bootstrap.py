"""Wild cluster bootstrap: a mean against 0 with few clusters of dependent values.

Residuals of a whole cluster are multiplied by one random weight. Webb's six weights give a fine
enough null with four or five clusters, where plus and minus one do not (Cameron, Gelbach &
Miller 2008; Webb 2014).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinspan.analysis.pairs import Pair
from twinspan.instrumentation.errors import InvalidMeasurement

Floats = NDArray[np.float64]
Weights = Literal["webb6", "rademacher"]

WEBB_WEIGHTS: Final = (
    -math.sqrt(1.5),
    -1.0,
    -math.sqrt(0.5),
    math.sqrt(0.5),
    1.0,
    math.sqrt(1.5),
)
"""Mean 0, mean square 1, six values of equal probability."""

_WEIGHTS: Final[Mapping[str, tuple[float, ...]]] = {
    "webb6": WEBB_WEIGHTS,
    "rademacher": (-1.0, 1.0),
}

UNSIGNED: Final = "unsigned_statistic_not_declared_signed"
NO_OBSERVATIONS: Final = "no_observations"
TOO_FEW_CLUSTERS: Final = "too_few_clusters"
ZERO_VARIANCE: Final = "zero_cluster_robust_variance"
ALL_DEGENERATE: Final = "all_resamples_degenerate"

_SEARCH: Final = 64.0
_STEPS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class WildClusterTest:
    """A two-sided test of a mean against a value.

    Attributes:
        p_value: in (0, 1]; None with a `reason`.
        beta: the mean of all values.
        se: its cluster-robust standard error.
        t: distance from the value in standard errors.
        clusters: independent units G.
        n: values.
        draws: weight patterns with a defined statistic.
        exact: whether all patterns were enumerated.
        granularity: the share of one pattern, 1 / weights ** G.
        weights: ``webb6`` or ``rademacher``.
        reason: why there is no test; None if there is one.
    """

    p_value: float | None = None
    beta: float | None = None
    se: float | None = None
    t: float | None = None
    clusters: int = 0
    n: int = 0
    draws: int = 0
    exact: bool = False
    granularity: float | None = None
    weights: Weights = "webb6"
    reason: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names, ours added; `refused` only where there is no test."""
        found: dict[str, object] = {
            "p_value": self.p_value,
            "beta": self.beta,
            "se": self.se,
            "t": self.t,
            "G": self.clusters,
            "n": self.n,
            "n_boot_valid": self.draws,
            "exact": self.exact,
            "granularity_floor": self.granularity,
            "weights": self.weights,
        }
        return found if self.reason is None else {**found, "refused": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class WildClusterInterval:
    """The values that the test does not reject.

    Attributes:
        low: the smallest; None with a `reason`.
        high: the largest.
        level: nominal coverage.
        truncated_low: whether the search ended before the lower end was found.
        truncated_high: likewise.
        reason: why there is no interval; None if there is one.
    """

    low: float | None = None
    high: float | None = None
    level: float = 0.95
    truncated_low: bool = False
    truncated_high: bool = False
    reason: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names."""
        found: dict[str, object] = {
            "lo": self.low,
            "hi": self.high,
            "truncated_low": self.truncated_low,
            "truncated_high": self.truncated_high,
        }
        return found if self.reason is None else {**found, "refused": self.reason}


def wild_cluster_bootstrap_p(
    values_by_cluster: Mapping[str, Sequence[float]],
    *,
    null: float = 0.0,
    draws: int = 9_999,
    seed: int = 0,
    signed: bool = False,
    weights: Weights = "webb6",
) -> WildClusterTest:
    """Whether a mean differs from a value, cases being the clusters.

    The null is imposed. Where there are no more weight patterns than draws, all of them are
    enumerated and the p-value is their share; otherwise (hits + 1) / (draws + 1).

    Args:
        values_by_cluster: signed values, such as those of `paired_values_by_case`.
        null: the mean to test.
        draws: patterns to sample.
        seed: of the sampling.
        signed: states that the values have a direction. Flips without one are never negative,
            and their mean is above 0 for any noisy agent.
        weights: ``webb6`` or ``rademacher``.

    Returns:
        Without a p-value, and with the reason, if the values are not declared signed, there are
        none, there are fewer than three clusters, or they do not vary.

    >>> values = {f"v{n}": [float(n % 2)] for n in range(8)}
    >>> test = wild_cluster_bootstrap_p(values, signed=True)
    >>> test.beta, test.se  # sqrt(8 / 7 * 8 * .25 / 64)
    (0.5, 0.188982)
    """
    clusters = _Clusters.of(values_by_cluster)
    if reason := clusters.refusal(signed):
        return WildClusterTest(
            clusters=len(clusters.sizes), n=clusters.n, weights=weights, reason=reason
        )
    described = WildClusterTest(
        beta=clusters.mean,
        se=clusters.standard_error,
        clusters=len(clusters.sizes),
        n=clusters.n,
        granularity=float(len(_WEIGHTS[weights])) ** -len(clusters.sizes),
        weights=weights,
    )
    if clusters.constant:
        return replace(described, reason=ZERO_VARIANCE)
    patterns = _patterns(weights, len(clusters.sizes), draws, seed)
    p_value, valid = clusters.p_value(null, patterns)
    return replace(
        described,
        p_value=p_value,
        t=(clusters.mean - null) / clusters.standard_error,
        draws=valid,
        exact=patterns.exact,
        reason=None if valid else ALL_DEGENERATE,
    )


def wild_cluster_bootstrap_ci(
    values_by_cluster: Mapping[str, Sequence[float]],
    *,
    level: float = 0.95,
    draws: int = 9_999,
    seed: int = 0,
    signed: bool = False,
    weights: Weights = "webb6",
) -> WildClusterInterval:
    """The means that `wild_cluster_bootstrap_p` does not reject, ends found by bisection.

    All means are tested with the same weight patterns, so that the ends do not jitter. The
    search goes 64 standard errors out and says where it found no end.

    Args:
        values_by_cluster: as for the test.
        level: nominal coverage.
        draws: patterns to sample.
        seed: of the sampling.
        signed: as for the test.
        weights: as for the test.

    >>> values = {"a": [0.2], "b": [0.1], "c": [0.4], "d": [0.3], "e": [0.5]}
    >>> found = wild_cluster_bootstrap_ci(values, signed=True)  # all 7,776 patterns
    >>> found.low, found.high
    (0.1002, 0.4998)
    """
    clusters = _Clusters.of(values_by_cluster)
    reason = clusters.refusal(signed) or (ZERO_VARIANCE if clusters.constant else None)
    if reason is not None:
        return WildClusterInterval(level=level, reason=reason)
    patterns = _patterns(weights, len(clusters.sizes), draws, seed)

    def accepted(mean: float) -> bool:
        p_value, _ = clusters.p_value(mean, patterns)
        return p_value is not None and p_value > 1 - level

    low, cut_low = _edge(accepted, clusters.mean, -clusters.standard_error)
    high, cut_high = _edge(accepted, clusters.mean, clusters.standard_error)
    return WildClusterInterval(
        low=low, high=high, level=level, truncated_low=cut_low, truncated_high=cut_high
    )


def paired_values_by_case(
    pairs: Iterable[Pair], value: Callable[[Pair], float | None]
) -> dict[str, list[float]]:
    """One number per pair, by case; pairs without one are left out.

    Args:
        pairs: any number per case.
        value: such as `signed_flip_value` or `ordinal_difference`.

    >>> from twinspan.analysis.pair_statistics import signed_flip_value
    >>> paired_values_by_case([Pair("v1", action_ref=False, action_cf=True)], signed_flip_value)
    {'v1': [1.0]}
    """
    found: dict[str, list[float]] = {}
    for pair in pairs:
        number = value(pair)
        if number is not None:
            found.setdefault(pair.case_id, []).append(float(number))
    return found


class _Patterns(NamedTuple):
    """Weights, one row per pattern and one column per cluster."""

    rows: Floats
    exact: bool


class _Clusters(NamedTuple):
    """What the test needs of its data."""

    sums: Floats
    sizes: Floats
    constant: bool

    @classmethod
    def of(cls, values_by_cluster: Mapping[str, Sequence[float]]) -> _Clusters:
        filled = [values for values in values_by_cluster.values() if len(values)]
        flat = [value for values in filled for value in values]
        if not np.isfinite(np.array(flat, dtype=np.float64)).all():
            raise InvalidMeasurement("value", of="a cluster", value=math.nan, must="be finite")
        sums = np.array([math.fsum(values) for values in filled])
        sizes = np.array([float(len(values)) for values in filled])
        means = [math.fsum(values) / len(values) for values in filled]
        spread = max(means, default=0.0) - min(means, default=0.0)
        return cls(sums, sizes, spread <= 1e-12 * max(1.0, *map(abs, means), 0.0))

    @property
    def n(self) -> int:
        return int(self.sizes.sum())

    @property
    def mean(self) -> float:
        return float(self.sums.sum() / self.sizes.sum())

    @property
    def standard_error(self) -> float:
        if self.constant:
            return 0.0
        return float(_standard_errors((self.sums - self.sizes * self.mean)[None, :], self.n)[0])

    def refusal(self, signed: bool) -> str | None:
        if not signed:
            return UNSIGNED
        if not len(self.sizes):
            return NO_OBSERVATIONS
        return TOO_FEW_CLUSTERS if len(self.sizes) < 3 else None

    def p_value(self, null: float, patterns: _Patterns) -> tuple[float | None, int]:
        """The share of patterns at least as far from the null, and how many were defined."""
        residuals = self.sums - self.sizes * null
        weighted = patterns.rows * residuals
        shifts = weighted.sum(axis=1) / self.n
        errors = _standard_errors(weighted - self.sizes * shifts[:, None], self.n)
        flat = errors <= 1e-12 * max(1.0, float(np.abs(residuals).max()))
        # A shift without any variance is infinitely far out; no shift and no variance is 0 / 0.
        defined = ~(flat & (np.abs(shifts) <= 1e-12))
        distances = np.abs(shifts[defined]) / np.where(flat, 1e-300, errors)[defined]
        observed = abs(self.mean - null) / self.standard_error
        hits = int(np.sum(distances >= observed * (1 - 1e-9)))
        valid = int(defined.sum())
        if not valid:
            return None, 0
        return (hits / valid if patterns.exact else (hits + 1) / (valid + 1)), valid


def _standard_errors(residual_sums: Floats, n: int) -> Floats:
    """Cluster-robust standard errors of a mean, one per row of summed residuals."""
    clusters = residual_sums.shape[1]
    squares: Floats = np.sum(residual_sums**2, axis=1)
    errors: Floats = np.sqrt(clusters / (clusters - 1) * squares) / n
    return errors


def _patterns(weights: Weights, clusters: int, draws: int, seed: int) -> _Patterns:
    table = np.array(_WEIGHTS[weights])
    if len(table) ** clusters <= draws:
        places = np.indices((len(table),) * clusters).reshape(clusters, -1).T
        return _Patterns(table[places], True)
    rng = np.random.default_rng(seed)
    return _Patterns(rng.choice(table, size=(draws, clusters)), False)


def _edge(accepted: Callable[[float], bool], start: float, step: float) -> tuple[float, bool]:
    """The last accepted mean in a direction, and whether the search ended before an end."""
    reach = 1.0
    while reach <= _SEARCH and accepted(start + reach * step):
        reach *= 2
    if reach > _SEARCH:
        return start + _SEARCH * step, True
    inside, outside = (reach / 2 if reach > 1 else 0.0), reach
    for _ in range(_STEPS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if accepted(start + middle * step) else (inside, middle)
    return start + inside * step, False
