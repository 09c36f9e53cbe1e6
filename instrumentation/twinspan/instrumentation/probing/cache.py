"""Reference samples kept for reuse, and a test that tells when they are out of date.

The reference arm is most of what a probe costs. It may be shared:

* across the axes of one probe, always: their e-values are averaged, and an average of
  e-values is one whatever their dependence;
* across occasions whose e-values are multiplied (supersteps, rounds of adaptive probing) only
  with care: each e-value stays valid, their product does not. A reference handed out again is
  therefore marked `cached`, and evidence from it belongs into a sum, never into a product.

What was cached may no longer be what the node says: a model was updated, a tool's data
changed. Each reuse should therefore draw one fresh reference sample and `check` it. The ranks
of the fresh samples feed a conformal test martingale, and an entry whose martingale reaches
1/alpha is dropped.

It is for studies and harnesses that put the same payloads to the same node many times, with
`compute_local_bias` on what it hands out. Live runs do not use it: there one reference serves all
axes of a probe already, a payload hardly ever comes back, and where it does, the monitor
multiplies evidence of supersteps, which a reference from the cache would make invalid.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinspan.instrumentation.errors import (
    ConfigurationError,
    EstimatorError,
    InsufficientSamples,
    NonFiniteSample,
)

S = TypeVar("S")

DropReason = Literal["drift", "expired", "spent", "evicted", "replaced", "requested"]
"""Why an entry left the cache; `spent` is the bound on reuses, `evicted` that on size."""

_TIE: Final = 1e-9
"""Means of distances closer than this are equal, as for statistics over orbits."""

_STAKES: Final = (0.5, 0.9)
_REMEMBERED: Final = 1000


# --- drift ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftStep:
    """What one fresh sample says.

    Attributes:
        p_value: its conformal p-value in (0, 1]; small if it lies far from the others.
        martingale: the evidence for drift so far; its mean is 1 while nothing has changed.
        drifted: whether the evidence has ever reached 1/alpha.
    """

    p_value: float
    martingale: float
    drifted: bool


class ConformalDriftTest:
    """Tells whether fresh samples still come from where cached ones came from.

    Each fresh sample joins the bag of all samples so far and is ranked in it by its mean
    distance to the others. While all samples are exchangeable, the smoothed ranks are
    independent and uniform on (0, 1], exactly, for every law and distance and with ties
    (Vovk, Gammerman & Shafer 2005, "Algorithmic Learning in a Random World"). Ranks against
    the cached samples alone would share these, and their bets could not be multiplied.

    Bets: fresh sample t of a cache of n is staked on being among the t outermost of the n + t
    in the bag, or among the t innermost, since drifted samples gather at one end as they join.
    A stake of s pays 1 - s + s (n + t) / t if it wins and 1 - s if not, so its mean is 1. The
    martingale is the average of four players: stakes 1/2 and 9/10 at either end. By Ville's
    inequality it ever reaches 1/alpha with probability at most alpha if nothing has changed.

    Few cached samples, or many fresh ones before the change, leave little to be seen, since
    drifted samples soon make up the bag themselves; and a change that leaves the ranks of mean
    distances alone is not seen at all.

    Args:
        distances: between the cached samples, shape (n, n), symmetric, finite, >= 0, n >= 1.
        alpha: bound on the probability of a false alarm, in (0, 1).
        seed: seed of the coin that splits ties.
        uniform: the coin itself, drawing from [0, 1); made from the seed if unset.

    Raises:
        InsufficientSamples: without a cached sample.
        EstimatorError: for a matrix that is not square, symmetric and >= 0.
        NonFiniteSample: for a distance that is no number.
        ConfigurationError: for an alpha outside (0, 1).

    Ten equal cached samples and a fresh one unlike them: the four players then hold
    1/2 + 1/2 * 11 = 6, 1/10 + 9/10 * 11 = 10, 1/2 and 1/10, on average 4.15.

    >>> test = ConformalDriftTest(np.zeros((10, 10)), uniform=lambda: 0.5)
    >>> step = test.update([1.0] * 10)
    >>> round(step.p_value * 11, 9), round(step.martingale, 9)
    (0.5, 4.15)
    >>> [test.update([1.0] * 10 + [0.0] * drawn).drifted for drawn in (1, 2)]
    [False, True]
    """

    def __init__(
        self,
        distances: ArrayLike,
        *,
        alpha: float = 0.05,
        seed: int = 0,
        uniform: Callable[[], float] | None = None,
    ) -> None:
        matrix = _matrix(distances)
        self._alpha = _open_unit("alpha", alpha)
        self._sums = matrix.sum(axis=1)
        self._cached = len(matrix)
        self._uniform = random.Random(seed).random if uniform is None else uniform
        self._outer = np.zeros(len(_STAKES))
        self._inner = np.zeros(len(_STAKES))
        self._drifted = False

    @property
    def size(self) -> int:
        """Samples in the bag: the cached ones and the fresh ones so far."""
        return len(self._sums)

    @property
    def martingale(self) -> float:
        """The evidence for drift so far; 1 before any fresh sample."""
        return float(np.exp(np.concatenate((self._outer, self._inner))).mean())

    @property
    def drifted(self) -> bool:
        """Whether the evidence has ever reached 1/alpha."""
        return self._drifted

    def update(self, distances: Sequence[float] | NDArray[np.float64]) -> DriftStep:
        """Take in a fresh sample.

        Args:
            distances: its distances to all samples in the bag: the cached ones in the order of
                the matrix, then the fresh ones in the order they came.

        Raises:
            EstimatorError: if their number is not the bag's size or one is negative.
            NonFiniteSample: if one is no number; the bag is then as before.
        """
        p = self._rank(_row(distances, self.size))
        share = 1.0 - self._cached / self.size
        self._outer += _log_payments(p <= share, share)
        self._inner += _log_payments(1.0 - p < share, share)
        self._drifted = self._drifted or self.martingale >= 1.0 / self._alpha
        return DriftStep(p_value=p, martingale=self.martingale, drifted=self._drifted)

    def _rank(self, row: NDArray[np.float64]) -> float:
        """Add the sample to the bag; the smoothed share of the bag at least as far out."""
        sums = self._sums + row
        own = row.sum()
        gaps = (sums - own) / len(row)
        farther = int((gaps > _TIE).sum())
        level = int((np.abs(gaps) <= _TIE).sum()) + 1
        self._sums = np.append(sums, own)
        return float((farther + (1.0 - self._uniform()) * level) / self.size)


def _log_payments(wins: bool, share: float) -> NDArray[np.float64]:
    stakes = np.array(_STAKES)
    return np.log(1.0 - stakes + (stakes / share if wins else 0.0))


def _matrix(distances: ArrayLike) -> NDArray[np.float64]:
    matrix = np.asarray(distances, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise EstimatorError(f"distances have shape {matrix.shape}; give a square matrix")
    if not len(matrix):
        raise InsufficientSamples("reference", count=0, needed=1)
    if not np.isfinite(matrix).all():
        raise NonFiniteSample("reference", index=int(np.argwhere(~np.isfinite(matrix))[0][0]))
    if (matrix < 0).any() or not np.allclose(matrix, matrix.T, rtol=0, atol=_TIE):
        raise EstimatorError("distances must be symmetric and not negative; look at the distance")
    return matrix


def _row(distances: Sequence[float] | NDArray[np.float64], size: int) -> NDArray[np.float64]:
    row = np.asarray(distances, dtype=np.float64)
    if row.shape != (size,):
        raise EstimatorError(f"{row.size} distances for {size} samples; give one to each of them")
    if not np.isfinite(row).all():
        raise NonFiniteSample("reference", index=int(np.argmin(np.isfinite(row))))
    if (row < 0).any():
        raise EstimatorError("a distance is negative; look at the distance")
    return row


def _open_unit(name: str, value: float) -> float:
    if not 0.0 < value < 1.0:
        raise ConfigurationError(f"{name} is {value!r}; it lies between 0 and 1, like 0.05")
    return value


# --- what is kept -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceKey:
    """All that must agree for two reference samples to come from one law.

    Attributes:
        node: the node that was run.
        input_hash: keyed hash of its payload.
        model: the model behind it, "" if not known.
        parameters: canonical text of its sampling parameters, "" if not known.
        wording: how samples were worded. With random wording this names the axis too, since
            each axis words its reference from its own group.
        outcome: the part of the answer that is compared, and the version of its reader.
        estimator: the distance, and its version.
    """

    node: str
    input_hash: str
    model: str = ""
    parameters: str = ""
    wording: str = "random"
    outcome: str = ""
    estimator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedReference(Generic[S]):
    """Reference samples as they were handed out.

    Attributes:
        key: what they are samples of.
        samples: the samples.
        cached: whether they were drawn on another occasion. If so, evidence from them may be
            summed, not multiplied, and one fresh sample should be drawn for `check`.
        age: seconds since they were drawn.
        reuses: other occasions that they were handed out on, this one included.
        checks: fresh samples that were checked against them so far. Fewer than the reuses
            before this one means that reuses went unchecked.
        serial: which entry of the cache they are.
    """

    key: ReferenceKey
    samples: tuple[S, ...] = field(repr=False)
    cached: bool
    age: float
    reuses: int
    checks: int
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """An entry that left the cache.

    Attributes:
        key: what it was a reference of.
        reason: why it left.
        reuses: occasions it had been reused on: scores that rest on it.
        martingale: its evidence for drift when it left; 1 if it was never checked.
        serial: which entry it was.
    """

    key: ReferenceKey
    reason: DropReason
    reuses: int
    martingale: float
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftVerdict:
    """What a check found.

    Attributes:
        step: the fresh sample's rank and the evidence so far; None if the entry had left the
            cache before the check, so that nothing was tested.
        dropped: whether the entry has left the cache, by this check or before it: draw a new
            reference before it is used again.
    """

    step: DriftStep | None
    dropped: bool


@dataclass(slots=True)
class _Entry(Generic[S]):
    samples: tuple[S, ...]
    distance: Callable[[S, S], float]
    occasion: Hashable
    born: float
    serial: int
    occasions: set[Hashable] = field(default_factory=set[Hashable])
    fresh: list[S] = field(default_factory=list[S])
    test: ConformalDriftTest | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def martingale(self) -> float:
        return 1.0 if self.test is None else self.test.martingale

    def take_in(self, sample: S, alpha: float, seed: int) -> DriftStep:
        """Rank a fresh sample; the entry's own distances are only computed now, at first use."""
        with self.lock:
            if self.test is None:
                self.test = ConformalDriftTest(self._matrix(), alpha=alpha, seed=seed)
            bag = (*self.samples, *self.fresh)
            step = self.test.update([self.distance(sample, other) for other in bag])
            self.fresh.append(sample)
            return step

    def _matrix(self) -> NDArray[np.float64]:
        size = len(self.samples)
        matrix = np.zeros((size, size))
        for i, j in zip(*np.triu_indices(size, 1), strict=True):
            matrix[i, j] = matrix[j, i] = self.distance(self.samples[i], self.samples[j])
        return matrix


# --- the cache --------------------------------------------------------------------------------


class ReferenceCache(Generic[S]):
    """Reference samples by key, bounded in time and size, checked for drift; thread-safe.

    An occasion is whatever stretch of work has its e-values averaged: a superstep of a run,
    and within adaptive probing one round of it. It may be any hashable value.

    Args:
        ttl: seconds that samples may be used; without bound if None.
        max_entries: entries kept; the least recently used leaves first.
        max_samples: samples kept over all entries, likewise.
        max_reuses: other occasions that one entry serves; this also bounds what checks cost.
        alpha: probability that an entry of an unchanged node is ever dropped for drift.
        seed: seed of the coins that split ties.
        clock: seconds that only grow.

    Raises:
        ConfigurationError: for a bound below 1 or an alpha outside (0, 1).

    >>> cache = ReferenceCache[str]()
    >>> key = ReferenceKey(node="triage", input_hash="ab12")
    >>> cache.get(key, occasion=1) is None
    True
    >>> _ = cache.put(key, ["admit"] * 10, occasion=1, distance=lambda x, y: float(x != y))
    >>> cache.get(key, occasion=1).cached, cache.get(key, occasion=2).cached
    (False, True)
    """

    def __init__(
        self,
        *,
        ttl: float | None = 3600.0,
        max_entries: int = 1024,
        max_samples: int = 65_536,
        max_reuses: int = 64,
        alpha: float = 0.05,
        seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _at_least("max_entries", max_entries, 1)
        _at_least("max_samples", max_samples, 1)
        _at_least("max_reuses", max_reuses, 1)
        _at_least("ttl", math.inf if ttl is None else ttl, 0)
        self._ttl = ttl
        self._max_entries = max_entries
        self._max_samples = max_samples
        self._max_reuses = max_reuses
        self._alpha = _open_unit("alpha", alpha)
        self._seed = seed
        self._clock = clock
        self._lock = threading.RLock()
        self._entries: OrderedDict[ReferenceKey, _Entry[S]] = OrderedDict()
        self._samples = 0
        self._serials = 0
        self._dropped: deque[Dropped] = deque(maxlen=_REMEMBERED)
        self._reasons: Counter[DropReason] = Counter()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The last 1,000 entries that left, with their reasons, oldest first."""
        with self._lock:
            return tuple(self._dropped)

    @property
    def drop_counts(self) -> Mapping[DropReason, int]:
        """How many entries ever left, by reason."""
        with self._lock:
            return dict(self._reasons)

    def put(
        self,
        key: ReferenceKey,
        samples: Sequence[S],
        *,
        occasion: Hashable,
        distance: Callable[[S, S], float],
    ) -> CachedReference[S]:
        """Keep fresh reference samples; an older entry of the key is replaced.

        Args:
            key: what they are samples of.
            samples: at least one; errors and missing answers are no samples.
            occasion: the occasion they were drawn on.
            distance: between two samples, finite and >= 0; only used for drift.

        Raises:
            InsufficientSamples: without a sample.
            ConfigurationError: for more samples than the whole cache may hold.
        """
        kept = tuple(samples)
        if not kept:
            raise InsufficientSamples("reference", count=0, needed=1)
        if len(kept) > self._max_samples:
            raise ConfigurationError(
                f"{len(kept)} samples are more than max_samples={self._max_samples}; raise it"
            )
        with self._lock:
            if key in self._entries:
                self._remove(key, "replaced")
            self._serials += 1
            entry = _Entry(
                samples=kept,
                distance=distance,
                occasion=occasion,
                born=self._clock(),
                serial=self._serials,
            )
            self._entries[key] = entry
            self._samples += len(kept)
            self._shrink()
            return self._handed_out(key, entry, occasion)

    def get(self, key: ReferenceKey, *, occasion: Hashable) -> CachedReference[S] | None:
        """The samples of a key, or None if there are none that may be used.

        On another occasion than theirs they come back as `cached`; draw one fresh sample then
        and hand it to `check`.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            reason = self._unusable(entry, occasion)
            if reason is not None:
                self._remove(key, reason)
                return None
            if occasion != entry.occasion:
                entry.occasions.add(occasion)
            self._entries.move_to_end(key)
            return self._handed_out(key, entry, occasion)

    def check(self, reference: CachedReference[S], fresh: S) -> DriftVerdict:
        """Compare one fresh reference sample with the samples that were handed out.

        Raises:
            NonFiniteSample: if a distance is no number; the entry is then as before.
            EstimatorError: if a distance is negative.
        """
        with self._lock:
            entry = self._entries.get(reference.key)
        if entry is None or entry.serial != reference.serial:
            return DriftVerdict(step=None, dropped=True)
        step = entry.take_in(fresh, self._alpha, self._seed + entry.serial)
        if step.drifted:
            self._drop_serial(reference.key, entry.serial, "drift")
        return DriftVerdict(step=step, dropped=step.drifted)

    def drop(self, key: ReferenceKey) -> bool:
        """Forget a key, for instance after its node was changed; whether there was an entry."""
        with self._lock:
            if key not in self._entries:
                return False
            self._remove(key, "requested")
            return True

    def clear(self) -> None:
        """Forget all entries."""
        with self._lock:
            for key in list(self._entries):
                self._remove(key, "requested")

    # --- under the lock -------------------------------------------------------------------------

    def _unusable(self, entry: _Entry[S], occasion: Hashable) -> DropReason | None:
        if self._ttl is not None and self._clock() - entry.born > self._ttl:
            return "expired"
        is_new = occasion != entry.occasion and occasion not in entry.occasions
        return "spent" if is_new and len(entry.occasions) >= self._max_reuses else None

    def _handed_out(
        self, key: ReferenceKey, entry: _Entry[S], occasion: Hashable
    ) -> CachedReference[S]:
        return CachedReference(
            key=key,
            samples=entry.samples,
            cached=occasion != entry.occasion,
            age=self._clock() - entry.born,
            reuses=len(entry.occasions),
            checks=len(entry.fresh),
            serial=entry.serial,
        )

    def _shrink(self) -> None:
        while len(self._entries) > self._max_entries or self._samples > self._max_samples:
            self._remove(next(iter(self._entries)), "evicted")

    def _drop_serial(self, key: ReferenceKey, serial: int, reason: DropReason) -> None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.serial == serial:
                self._remove(key, reason)

    def _remove(self, key: ReferenceKey, reason: DropReason) -> None:
        entry = self._entries.pop(key)
        self._samples -= len(entry.samples)
        self._reasons[reason] += 1
        self._dropped.append(
            Dropped(
                key=key,
                reason=reason,
                reuses=len(entry.occasions),
                martingale=entry.martingale(),
                serial=entry.serial,
            )
        )


def _at_least(name: str, value: float, least: float) -> None:
    if not value >= least:
        raise ConfigurationError(f"{name} is {value!r}; it must be at least {least:g}")
