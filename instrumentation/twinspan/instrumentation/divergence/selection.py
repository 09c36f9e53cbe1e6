"""Which estimator fits which samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.divergence.action import ActionEstimator
from twinspan.instrumentation.divergence.category import CategoryEstimator
from twinspan.instrumentation.divergence.embedding import EmbeddingEstimator
from twinspan.instrumentation.divergence.estimator import Estimator
from twinspan.instrumentation.divergence.hellinger import HellingerEstimator
from twinspan.instrumentation.divergence.jensen_shannon import JensenShannonEstimator
from twinspan.instrumentation.divergence.outcome import as_outcome
from twinspan.instrumentation.divergence.text import TextEstimator
from twinspan.instrumentation.divergence.values import (
    is_mapping,
    is_number,
    is_sequence,
    is_set,
)
from twinspan.instrumentation.errors import ConfigurationError

_BUILTIN: Final[tuple[Estimator, ...]] = (
    CategoryEstimator(),
    ActionEstimator(),
    TextEstimator(),
    EmbeddingEstimator(),
    JensenShannonEstimator(),
    HellingerEstimator(),
)

ESTIMATORS: Final[Mapping[str, Estimator]] = MappingProxyType(
    {estimator.name: estimator for estimator in _BUILTIN}
)
"""The estimators by the names that settings and spans use."""

_LABEL_LENGTH: Final = 48
_LABEL_WORDS: Final = 4


def resolve(method: str | Estimator, samples: Sequence[object]) -> Estimator:
    """The estimator a method names.

    Args:
        method: a name of `ESTIMATORS`, an estimator, or ``auto``.
        samples: all samples of a probe set, both arms; only ``auto`` looks at them. It sees
            the pooled samples and not the arms, so the choice cannot bias the test.

    ``auto`` takes, in this order: ``js_logprob`` for maps of floats that are log-probabilities
    (none above 0, masses of at most 1, some map with two outcomes or more); ``action`` for
    other mappings, dataclasses, lists of things that are no numbers, and floats; ``embedding``
    for vectors; ``category`` for short labels (one line, at most four words and 48
    characters), integers, booleans and everything else; ``text`` for longer strings.

    A choice made from samples can differ between probe sets, and scores of different
    estimators cannot be accumulated: name the estimator where answers vary in length.

    Raises:
        ConfigurationError: no estimator has that name.

    >>> resolve("auto", ["hire", "reject"]).name
    'category'
    >>> resolve("auto", [{"tool": "search"}, {"tool": "buy"}]).name
    'action'
    >>> resolve("auto", [[0.1, 0.9], [0.3, 0.7]]).name
    'embedding'
    """
    if not isinstance(method, str):
        return method
    name = _choose(samples) if method == "auto" else method
    if name not in ESTIMATORS:
        known = ", ".join(repr(known) for known in ("auto", *ESTIMATORS))
        raise ConfigurationError(f"no estimator is named {name!r}; the names are {known}")
    return ESTIMATORS[name]


def _choose(samples: Sequence[object]) -> str:
    ordinary = [sample for sample in samples if as_outcome(sample) is None]
    texts = [sample for sample in ordinary if isinstance(sample, str)]
    if len(texts) == len(ordinary):
        return "category" if all(_is_label(text) for text in texts) else "text"
    if any(_is_action(sample) for sample in ordinary):
        return "js_logprob" if _are_log_probabilities(ordinary) else "action"
    if all(_is_vector(sample) for sample in ordinary):
        return "embedding"
    if all(is_number(sample) for sample in ordinary):
        whole = all(isinstance(sample, int | np.integer) for sample in ordinary)
        return "category" if whole else "action"
    listed = all(is_sequence(sample) or is_set(sample) for sample in ordinary)
    return "action" if listed else "category"


def _is_label(text: str) -> bool:
    short = len(text) <= _LABEL_LENGTH and len(text.split()) <= _LABEL_WORDS
    return short and "\n" not in text.strip()


def _is_action(sample: object) -> bool:
    return is_mapping(sample) or (dataclasses.is_dataclass(sample) and not isinstance(sample, type))


def _is_vector(sample: object) -> bool:
    if isinstance(sample, np.ndarray):
        array = cast(NDArray[Any], sample)
        return array.ndim == 1 and array.dtype.kind in "iuf"
    return is_sequence(sample) and all(is_number(item) for item in sample)


def _are_log_probabilities(samples: Sequence[object]) -> bool:
    maps = [sample for sample in samples if is_mapping(sample)]
    if len(maps) != len(samples) or max(map(len, maps)) < 2:
        return False
    return all(_is_log_probability_map(entries) for entries in maps)


def _is_log_probability_map(entries: Mapping[object, object]) -> bool:
    values = [value for value in entries.values() if is_number(value) and value <= 0]
    if len(values) < len(entries) or any(isinstance(value, int) for value in values):
        return False
    return float(np.exp(np.array(values, dtype=np.float64)).sum()) <= 1 + 1e-6
