"""What recorded files of other schema versions say in the names of the present one.

A column is never renamed within a version. A file says which version it has; one that says nothing
and has the columns of the first layout is of version 0, which had short names and no span types.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from twinspan.instrumentation.conventions import SCHEMA_VERSION_VALUE

NEWER: Final = "a file of schema version {version} was read as far as version {ours} goes"

_FIRST: Final[Mapping[str, tuple[str, str]]] = {
    "node_id": ("node", "node"),
    "superstep_index": ("superstep", "superstep"),
    "probe_arm": (
        "probe_role",
        "CASE probe_role WHEN 'baseline' THEN 'standard' "
        "WHEN 'resample' THEN 'null_resample' ELSE probe_role END",
    ),
    "case_id": ("probe_case", "probe_case"),
    "probe_estimator": ("probe_method", "probe_method"),
    "probe_divergence": ("divergence", "divergence"),
    "floor_value": ("noise_floor", "noise_floor"),
    "effect_value": ("effect", "effect"),
    "effect_ci_lower": ("ci_low", "ci_low"),
    "effect_ci_upper": ("ci_high", "ci_high"),
    "node_weight": ("weight", "weight"),
    "network_score_fast": ("b_net", "b_net"),
    "breaker_threshold_enter": ("tau", "tau"),
    "breaker_decision": ("decision", "decision"),
    "gen_ai_operation_name": ("gen_ai_operation", "gen_ai_operation"),
    "gen_ai_request_model": ("gen_ai_model", "gen_ai_model"),
    "gen_ai_usage_input_tokens": ("input_tokens", "input_tokens"),
    "gen_ai_usage_output_tokens": ("output_tokens", "output_tokens"),
    "gen_ai_input_messages": ("input_text", "input_text"),
    "gen_ai_output_messages": ("output_text", "output_text"),
    "action_fields": (
        "outcome",
        "CASE WHEN outcome IS NOT NULL THEN MAP {'outcome': to_json(outcome)::VARCHAR} END",
    ),
}
"""Columns of version 0: the present name, the old one, and the present value out of the old."""

_FIRST_TYPE: Final = (
    "CASE WHEN decision IS NOT NULL THEN 'network' WHEN probe_role IS NOT NULL THEN 'probe' "
    "WHEN node IS NOT NULL THEN 'node' WHEN parent_span_id IS NULL THEN 'run' END"
)

_MARKS: Final = frozenset({"node", "probe_role", "decision", "parent_span_id"})
"""Columns by which version 0 is known."""


def is_first_layout(version: str | None, columns: Collection[str]) -> bool:
    """Whether a file with these columns has the layout of version 0.

    >>> is_first_layout(None, {"trace_id", "name"})
    False
    """
    return version in (None, "0") and set(columns) >= _MARKS and "span_type" not in columns


def is_newer(version: str | None) -> bool:
    """Whether a file's version came after ours.

    >>> is_newer("2"), is_newer("1"), is_newer(None), is_newer("x")
    (True, False, False, False)
    """
    return bool(version and version.isdigit() and int(version) > int(SCHEMA_VERSION_VALUE))


def first_layout_as_present(columns: Collection[str]) -> str:
    """What to select from files of version 0, so that they have the present names."""
    moved = {
        new: (old, expression)
        for new, (old, expression) in _FIRST.items()
        if old in columns and new not in columns
    }
    gone = ", ".join(f'"{old}"' for old, _ in moved.values())
    made = ", ".join(f"{expression} AS {new}" for new, (_, expression) in moved.items())
    return f"* EXCLUDE ({gone}), {made}, {_FIRST_TYPE} AS span_type"
