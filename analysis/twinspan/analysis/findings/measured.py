"""What was measured on the nodes, as rows of `probe_sets`."""

from __future__ import annotations

from typing import Final

UNCORRECTED_LEVEL: Final = 0.05
"""Where a probe set carries no label of its own, p at most this and delta > 0 is a reaction."""

ABOVE_FLOOR: Final = (
    "coalesce(label = 'above_floor', "
    f"p_value <= {UNCORRECTED_LEVEL} AND delta > 0 AND isfinite(delta), false)"
)
"""Condition on `probe_sets`: the node reacts."""

SETS: Final = f"""
SELECT run_id, node, axis, superstep, weight, estimator, outcome, delta, ci_low, ci_high, ci_level,
       p_value, e_value, effect_size, reference_count, counterfactual_count, floor, cross_mean,
       undefined_reason, wording, label, intervention_id, audit_seq, start_time, trace_id, span_id,
       {ABOVE_FLOOR} AS reacts
FROM probe_sets
"""
