"""Free text: the angle between hashed characters and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.divergence.embedding import chordal
from twinspan.instrumentation.divergence.ngrams import text_vectors
from twinspan.instrumentation.divergence.outcome import with_outcomes
from twinspan.instrumentation.errors import EstimatorError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEstimator:
    """Chordal distance of texts as bags of character trigrams, words and word pairs.

    0 for texts that differ in case and spacing only, about 0.707 for texts without a common
    piece. It sees wording and not meaning: two paraphrases are far apart in both arms, which
    costs power and never validity. Where a parser or an embedder exists, use that.

    >>> texts = ["Hire the nurse.", "hire  the nurse.", "Reject this application"]
    >>> TextEstimator().matrix(texts).round(2).tolist()
    [[0.0, 0.0, 0.7], [0.0, 0.0, 0.7], [0.7, 0.7, 0.0]]
    """

    name: str = field(default="text", init=False)
    version: str = field(default="1", init=False)
    scale: str = field(default="0.707 = nothing in common, 1 = another outcome", init=False)

    def matrix(self, samples: Sequence[object]) -> Floats:
        """N x N distances.

        Args:
            samples: N texts; blank ones are the empty outcome.

        Raises:
            EstimatorError: something is not text.
        """
        return with_outcomes(samples, _between)


def _between(samples: Sequence[object]) -> Floats:
    texts = [sample for sample in samples if isinstance(sample, str)]
    if len(texts) != len(samples):
        kinds = sorted({type(sample).__name__ for sample in samples} - {"str"})
        raise EstimatorError(f"{', '.join(kinds)} is no text; choose another method")
    return chordal(text_vectors(texts))
