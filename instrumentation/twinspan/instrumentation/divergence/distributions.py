"""Log-probability maps over one common support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinspan.instrumentation.divergence.values import is_mapping, is_number, is_sequence
from twinspan.instrumentation.errors import EstimatorError, NonFiniteSample

Floats = NDArray[np.float64]

_OVER: Final = 1e-3
"""Masses may add up to this much more than 1: services round what they report."""

_DUST: Final = 1e-9
"""Less remaining mass than this is rounding, and its root would not look like rounding."""


def softmax(scores: ArrayLike) -> Floats:
    """Probabilities proportional to the exponentials of scores.

    Args:
        scores: a non-empty vector of finite numbers; -inf stands for an impossible outcome.

    Raises:
        EstimatorError: the input is empty, not a vector, not finite, or all of it impossible.

    >>> softmax([1000, 1001]).round(8).tolist()
    [0.26894142, 0.73105858]
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not values.size:
        raise EstimatorError(f"scores of shape {values.shape} are no choice; give one vector")
    top = float(values.max())
    if not np.isfinite(top):
        raise EstimatorError("scores without a finite maximum have no softmax; drop the sample")
    exponentials: Floats = np.exp(values - top)
    exponentials /= exponentials.sum()
    return exponentials


def align(samples: Sequence[object]) -> Floats:
    """Log-probability maps as rows of probabilities over the union of their supports.

    What a map does not name it gives probability 0; the mass that its named outcomes leave
    over is an outcome of its own, in the last column. A truncated list of tokens therefore
    differs from another by what it leaves out, too.

    Args:
        samples: N maps from outcome to log-probability, or N equally long sequences of
            log-probabilities; -inf is probability 0.

    Returns:
        N x (outcomes + 1) probabilities whose rows add up to 1.

    Raises:
        EstimatorError: something is no such map, lengths differ, or a map's masses add up to
            more than 1, as raw scores do.
        NonFiniteSample: a log-probability is NaN or +inf.

    >>> align([{"yes": np.log(0.75)}, {"no": 0.0}]).round(2).tolist()
    [[0.75, 0.0, 0.25], [0.0, 1.0, 0.0]]
    """
    maps = [_as_map(sample) for sample in samples]
    _require_one_length(samples)
    support: dict[object, int] = {}
    for entries in maps:
        for outcome in entries:
            support.setdefault(outcome, len(support))
    rows = np.zeros((len(maps), len(support) + 1))
    for index, entries in enumerate(maps):
        rows[index, [support[outcome] for outcome in entries]] = _masses(entries, index)
    total = rows.sum(axis=1)
    rest = 1.0 - total
    rows[:, -1] = np.where(rest > _DUST, rest, 0.0)
    rows /= rows.sum(axis=1, keepdims=True)
    return rows


def _as_map(sample: object) -> Mapping[object, object]:
    if is_mapping(sample):
        return sample
    if isinstance(sample, np.ndarray):
        sample = cast(object, sample.tolist())
    if is_sequence(sample):
        return dict(enumerate(sample))
    raise EstimatorError(
        f"{type(sample).__name__!r} is no map of log-probabilities; choose another method"
    )


def _require_one_length(samples: Sequence[object]) -> None:
    lengths = {len(sample) for sample in samples if is_sequence(sample)}
    if len(lengths) > 1:
        raise EstimatorError(
            f"log-probabilities of lengths {sorted(lengths)} share no support; "
            "name the outcomes with maps"
        )


def _masses(entries: Mapping[object, object], index: int) -> Floats:
    values = [value for value in entries.values() if is_number(value)]
    if len(values) != len(entries):
        raise EstimatorError("a log-probability is no number; choose another method")
    logs = np.array(values, dtype=np.float64)
    if np.isnan(logs).any() or np.isposinf(logs).any():
        raise NonFiniteSample("pooled", index=index)
    mass = float(np.exp(np.minimum(logs, 1.0)).sum())
    if mass > 1 + _OVER:
        raise EstimatorError(
            f"the masses of sample {index} add up to {mass:.3g}; "
            "pass log-probabilities, for raw scores the logarithm of their softmax"
        )
    return np.exp(logs)
