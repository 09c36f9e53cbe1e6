"""The orbits of probe sets, each enumerated once.

Its spread, its e-value and what every other labelling would have paid come from one pass over
the labellings; live a pass is for one probe set, in replay for all sets of a shape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import comb
from typing import TypeAlias

import numpy as np

from twinspan.collector.records import ProbeRecord
from twinspan.instrumentation.errors import TwinspanError
from twinspan.instrumentation.orbit import StakedOrbit, stake_triangle, stake_triangles

Key: TypeAlias = tuple[int, tuple[float, ...]]
"""Reference samples and distances: what an orbit depends on."""


class Orbits:
    """Orbits of a run's probe sets, by what they depend on.

    Args:
        ready: orbits that are known beforehand.
    """

    __slots__ = ("_last", "_ready")

    def __init__(self, ready: Mapping[Key, StakedOrbit] | None = None) -> None:
        self._ready = ready or {}
        self._last: dict[Key, StakedOrbit] = {}

    def of(self, record: ProbeRecord) -> StakedOrbit:
        """The orbit of a probe set that has a score.

        Raises:
            TwinspanError: its distances are none.
        """
        key = (record.n_reference, record.distances)
        found = self._ready.get(key) or self._last.get(key)
        if found is None:
            found = self._last[key] = stake_triangle(record.distances, record.n_reference)
        return found

    def begin_superstep(self) -> None:
        """Forget those of the superstep before."""
        self._last = {}


def staked_orbits(records: Iterable[ProbeRecord]) -> dict[Key, StakedOrbit]:
    """The orbits of many probe sets, those of one shape at a time.

    Sets whose distances are none, as only a record that was altered has them, are left out.
    """
    shapes: defaultdict[tuple[int, int], list[tuple[float, ...]]] = defaultdict(list)
    for record in records:
        total = record.n_reference + record.n_counterfactual
        if record.delta is not None and len(record.distances) == comb(total, 2):
            shapes[record.n_reference, total].append(record.distances)
    found: dict[Key, StakedOrbit] = {}
    for (n_reference, _), alike in shapes.items():
        found.update(_of_shape(n_reference, alike))
    return found


def _of_shape(n_reference: int, alike: list[tuple[float, ...]]) -> dict[Key, StakedOrbit]:
    triangles = np.array(alike, dtype=np.float64)
    finite = [place for place, row in enumerate(np.isfinite(triangles)) if row.all()]
    try:
        orbits = list(stake_triangles(triangles[finite], n_reference))
    except TwinspanError:
        return {}
    places = zip(finite, orbits, strict=True)
    return {(n_reference, alike[place]): orbit for place, orbit in places}
