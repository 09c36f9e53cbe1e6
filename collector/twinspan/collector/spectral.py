"""The spectral radius of a strongly connected piece of a graph."""

from __future__ import annotations

from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import splu

Vector: TypeAlias = NDArray[np.float64]

POWER_STEPS: Final = 1_000
NODA_STEPS: Final = 60
TOLERANCE: Final = 1e-10


def spectral_radius(adjacency: csr_array) -> float:
    """The largest eigenvalue of an irreducible non-negative matrix, from above.

    Every positive vector brackets it between the smallest and the largest ratio of Ax to x
    (Collatz 1942, Wielandt 1950). Power steps on I + A close the bracket fast where the graph
    mixes well; where it does not, as on a long loop, the inverse steps of Noda 1971 do, each one
    sparse solve. The upper end is returned, so an attenuation derived from it is safe even if
    the bracket should stay open.

    Args:
        adjacency: square, non-negative, strongly connected; a single node needs its self-loop.

    >>> import numpy as np
    >>> two_cycle = csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> spectral_radius(two_cycle)
    1.0
    """
    vector = np.ones(adjacency.shape[0])
    for _ in range(POWER_STEPS):
        low, high = _bracket(adjacency, vector)
        if high - low <= TOLERANCE * high:
            return high
        vector = _normalised(vector + adjacency @ vector)
    return _noda(adjacency, vector)


def _noda(adjacency: csr_array, vector: Vector) -> float:
    low, high = _bracket(adjacency, vector)
    for _ in range(NODA_STEPS):
        if high - low <= TOLERANCE * high:
            break
        shifted = csc_array(high * eye_array(adjacency.shape[0]) - adjacency)
        try:
            solved = cast(Vector, splu(shifted).solve(vector))
        except RuntimeError:  # exactly singular: `high` is the eigenvalue to the last bit
            break
        if not np.all(solved > 0):
            break
        vector = _normalised(solved)
        low, high = _bracket(adjacency, vector)
    return high


def _bracket(adjacency: csr_array, vector: Vector) -> tuple[float, float]:
    ratios = (adjacency @ vector) / vector
    return float(ratios.min()), float(ratios.max())


def _normalised(vector: Vector) -> Vector:
    return np.asarray(vector / vector.max(), dtype=np.float64)
