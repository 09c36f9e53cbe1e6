"""From the probe sets of a superstep to what accumulator and monitor take in."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinspan.collector.cells import Cell
from twinspan.collector.orbits import Orbits
from twinspan.collector.records import ProbeRecord
from twinspan.instrumentation.orbit import StakedOrbit

Execution = tuple[str, str]
Staked = Mapping[str, StakedOrbit]
"""Orbits by probe set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A superstep's scores, per node and per cell.

    Attributes:
        scored: the probe sets that have a score.
        magnitudes: B_i per node: the largest delta over its axes and executions, over the
            probability with which the node was probed (Horvitz & Thompson 1952).
        variances: variance of that delta over its orbit, on the same scale.
        estimators: the distance in force, per node.
        cells: what the monitor bets on.
    """

    scored: tuple[ProbeRecord, ...]
    magnitudes: dict[str, float]
    variances: dict[str, float]
    estimators: dict[str, str]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Magnitude:
    """One axis of one execution over all its rounds."""

    delta: float
    variance: float
    estimator: str


def evidence_of(
    records: Sequence[ProbeRecord], axes: Sequence[str] = (), orbits: Orbits | None = None
) -> Evidence:
    """Gather the scores of a superstep; a probe set without one adds nothing.

    The orbits are computed from the distances on the spans: what decides is what is recorded.

    Args:
        records: the probe sets.
        axes: every axis that may be probed; a screen counts for each of them.
        orbits: orbits of probe sets that are known already.
    """
    orbits = Orbits() if orbits is None else orbits
    scored = tuple(record for record in records if record.delta is not None)
    staked = {record.set_id: orbits.of(record) for record in scored}
    executions: defaultdict[Execution, list[ProbeRecord]] = defaultdict(list)
    for record in scored:
        executions[record.node, record.task_id].append(record)
    worst: dict[str, _Magnitude] = {}
    for (node, _), found in executions.items():
        magnitudes = [_magnitude(rounds, staked) for rounds in _by_axis(found)]
        largest = max(magnitudes, key=lambda each: each.delta)
        if node not in worst or largest.delta > worst[node].delta:
            worst[node] = largest
    return Evidence(
        scored=scored,
        magnitudes={node: each.delta for node, each in worst.items()},
        variances={node: each.variance for node, each in worst.items()},
        estimators={node: each.estimator for node, each in worst.items()},
        cells=tuple(cell for found in executions.values() for cell in _cells(found, axes, staked)),
    )


def _by_axis(found: Sequence[ProbeRecord]) -> list[list[ProbeRecord]]:
    """An execution's rounds by axis; the screen stands in where it was all there is."""
    axes: defaultdict[str, list[ProbeRecord]] = defaultdict(list)
    for record in found:
        if not record.is_screen:
            axes[record.axis].append(record)
    return list(axes.values()) or [list(found)]


def _magnitude(rounds: Sequence[ProbeRecord], staked: Staked) -> _Magnitude:
    """The mean delta of an axis' rounds, by their counterfactual samples."""
    samples = math.fsum(record.n_counterfactual for record in rounds)
    rate = rounds[0].rate
    parts = [(record.n_counterfactual / samples / rate, record) for record in rounds]
    return _Magnitude(
        delta=math.fsum(part * (record.delta or 0.0) for part, record in parts),
        variance=math.fsum(part**2 * staked[record.set_id].sd ** 2 for part, record in parts),
        estimator=rounds[0].estimator or "",
    )


def _cells(found: Sequence[ProbeRecord], axes: Sequence[str], staked: Staked) -> list[Cell]:
    """What one execution stakes: on each axis the product of its rounds and of the screen."""
    screens = [record for record in found if record.is_screen]
    probed = dict.fromkeys(record.axis for record in found if not record.is_screen)
    named = list(dict.fromkeys([*probed, *axes])) if screens else list(probed)
    return [
        _cell(axis, [*screens, *(r for r in found if r.axis == axis and not r.is_screen)], staked)
        for axis in named
    ]


def _cell(axis: str, rounds: Sequence[ProbeRecord], staked: Staked) -> Cell:
    bets = [staked[record.set_id] for record in rounds]
    first = rounds[0]
    return Cell(
        node=first.node,
        axis=axis,
        share=first.share,
        e_value=math.prod(each.e for each in bets),
        # How many rounds there are depends on what they found: only a single one may be boosted.
        orbit=bets[0].e_values if len(bets) == 1 and not first.is_screen else None,
        task=first.task_id,
    )
