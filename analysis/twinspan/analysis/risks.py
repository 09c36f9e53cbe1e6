"""Recomputes the composite risks that nodes were recorded with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from twinspan.analysis.store import Store
from twinspan.instrumentation import conventions as c

_TOLD = """
SELECT run_id, span_id, node_history_biased, node_history_clear, node_history_probability,
       node_weight_share, node_risk
FROM spans
WHERE span_type = 'node' AND node_risk IS NOT NULL
"""


class RiskCheck(NamedTuple):
    """A number that a node was recorded with, and what it comes to."""

    run_id: str
    span_id: str
    what: str
    recorded: object
    recomputed: object


def risk_checks(store: Store, run_id: str | None = None) -> Iterator[RiskCheck]:
    """P(biased | history) from its counts, and the risk from it and the blast radius.

    Args:
        store: opened spans.
        run_id: one run; all of them if None.
    """
    where, given = ("", []) if run_id is None else (" AND run_id = ?", [run_id])
    for row in store.table(_TOLD + where, given).rows:
        run, span = str(row[0]), str(row[1])
        biased, clear, told, share, risk = (float(str(value)) for value in row[2:])
        probability = biased / (biased + clear)
        yield RiskCheck(run, span, c.NODE_BIAS_PROBABILITY, told, probability)
        yield RiskCheck(run, span, c.NODE_RISK, risk, share * probability)
