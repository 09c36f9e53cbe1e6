"""From the probe sets of a superstep to what accumulator and monitor take in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twinspan.collector.cells import Cell
from twinspan.collector.records import ProbeRecord
from twinspan.instrumentation.orbit import orbit_e_values, orbit_test, square


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A superstep's scores, per node and per cell.

    Attributes:
        scored: the probe sets that have a score.
        magnitudes: B_i per node, the largest delta over its axes and executions.
        variances: variance of that delta over its orbit.
        estimators: the distance in force, per node.
        cells: what the monitor bets on.
    """

    scored: tuple[ProbeRecord, ...]
    magnitudes: dict[str, float]
    variances: dict[str, float]
    estimators: dict[str, str]
    cells: tuple[Cell, ...]


def evidence_of(records: Sequence[ProbeRecord]) -> Evidence:
    """Gather the scores of a superstep; a probe set without one adds nothing."""
    scored = tuple(record for record in records if record.delta is not None)
    worst: dict[str, ProbeRecord] = {}
    for record in scored:
        known = worst.get(record.node)
        if known is None or (record.delta or 0.0) > (known.delta or 0.0):
            worst[record.node] = record
    return Evidence(
        scored=scored,
        magnitudes={node: record.delta or 0.0 for node, record in worst.items()},
        variances={node: _variance(record) for node, record in worst.items()},
        estimators={node: record.estimator or "" for node, record in worst.items()},
        cells=tuple(_cell(record) for record in scored),
    )


def _variance(record: ProbeRecord) -> float:
    return orbit_test(square(record.distances), record.n_reference).sd ** 2


def _cell(record: ProbeRecord) -> Cell:
    # The orbit is computed anew from the distances on the span: what decides is what is recorded.
    e_value, orbit = orbit_e_values(square(record.distances), record.n_reference)
    return Cell(
        node=record.node,
        axis=record.axis,
        share=record.share,
        e_value=e_value,
        orbit=orbit,
        task=record.task_id,
    )
