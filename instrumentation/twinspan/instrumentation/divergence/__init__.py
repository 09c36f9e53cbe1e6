"""Distances between outputs, one estimator a file, all scaled to [0, 1]."""

from __future__ import annotations

from twinspan.instrumentation.divergence.action import ActionEstimator, Field, FieldKind
from twinspan.instrumentation.divergence.category import CategoryEstimator
from twinspan.instrumentation.divergence.distributions import softmax
from twinspan.instrumentation.divergence.embedding import EmbeddingEstimator, cosine_distance
from twinspan.instrumentation.divergence.estimator import (
    Estimator,
    Scored,
    assert_same_estimator,
)
from twinspan.instrumentation.divergence.hellinger import HellingerEstimator
from twinspan.instrumentation.divergence.jensen_shannon import JensenShannonEstimator, jsd
from twinspan.instrumentation.divergence.outcome import Outcome, OutcomeKind, as_outcome
from twinspan.instrumentation.divergence.selection import ESTIMATORS, resolve
from twinspan.instrumentation.divergence.text import TextEstimator

__all__ = [
    "ESTIMATORS",
    "ActionEstimator",
    "CategoryEstimator",
    "EmbeddingEstimator",
    "Estimator",
    "Field",
    "FieldKind",
    "HellingerEstimator",
    "JensenShannonEstimator",
    "Outcome",
    "OutcomeKind",
    "Scored",
    "TextEstimator",
    "as_outcome",
    "assert_same_estimator",
    "cosine_distance",
    "jsd",
    "resolve",
    "softmax",
]
