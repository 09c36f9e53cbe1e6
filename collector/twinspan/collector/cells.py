"""What the run monitor is told about one superstep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement, UnknownAxis

CellKey: TypeAlias = tuple[str, str]
"""Node and axis: what a verdict is about."""


class Firing(NamedTuple):
    """One execution of one node in a superstep."""

    node: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """The evidence of one probe of one node on one axis.

    Attributes:
        node: the node.
        axis: the protected attribute.
        share: the node's share of the graph's blast radius, in [0, 1].
        e_value: the probe's e-value, at least 0, mean 1 without bias. Of several rounds the
            product, also when the rounds were broken off.
        orbit: e-values of all splits of the probe's labels, mean 1, if overshoot is to be
            removed. Only for a probe of one fixed round: boosting the last of a number of
            rounds that depends on the outcome would break the mean.
        cached: the reference samples were used in an earlier superstep too. Such e-values may
            be added up but not multiplied.
        task: tells firings of one node in one superstep apart.

    Raises:
        InvalidMeasurement: the share or the e-value is out of range or not finite.
    """

    node: str
    axis: str
    share: float
    e_value: float
    orbit: NDArray[np.float64] | None = None
    cached: bool = False
    task: str = ""

    def __post_init__(self) -> None:
        _check_range("share", self.node, self.share, "lie in [0, 1]", highest=1.0)
        _check_range("e-value", self.node, self.e_value, "be finite and not negative")

    @property
    def firing(self) -> Firing:
        """The execution that was probed."""
        return Firing(self.node, self.task)


@dataclass(frozen=True, slots=True, kw_only=True)
class Superstep:
    """Cells in a fixed order, with the share of every firing.

    Attributes:
        cells: the probed cells, sorted, so that no result depends on the order of arrival.
        shares: share of each firing, probed or not.
    """

    cells: tuple[Cell, ...]
    shares: Mapping[Firing, float]


def gather(cells: Iterable[Cell], unprobed: Mapping[str, float], axes: Sequence[str]) -> Superstep:
    """Sorts and checks the cells of a superstep.

    Raises:
        UnknownAxis: a cell's axis is not among ``axes``.
        ConfigurationError: a cell came twice, or a node came with two shares.
    """
    ordered = sorted(cells, key=lambda cell: (cell.node, cell.task, cell.axis))
    shares: dict[Firing, float] = {}
    seen: set[tuple[str, str, str]] = set()
    for cell in ordered:
        if cell.axis not in axes:
            raise UnknownAxis(cell.axis, known=tuple(axes))
        key = (cell.node, cell.task, cell.axis)
        if key in seen or shares.setdefault(cell.firing, cell.share) != cell.share:
            raise ConfigurationError(
                f"node {cell.node!r} came twice on axis {cell.axis!r} or with two shares; "
                "give one cell per probe, and a task per firing"
            )
        seen.add(key)
    for node, share in sorted(unprobed.items()):
        _check_range("share", node, share, "lie in [0, 1]", highest=1.0)
        shares.setdefault(Firing(node, ""), share)
    return Superstep(cells=tuple(ordered), shares=shares)


def _check_range(
    quantity: str, node: str, value: float, must: str, *, highest: float = math.inf
) -> None:
    if not (math.isfinite(value) and 0.0 <= value <= highest):
        raise InvalidMeasurement(quantity, of=node, value=value, must=must)
