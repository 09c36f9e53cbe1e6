"""The values of findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from twinspan.analysis.trail_records import Contribution

Level = Literal["error", "warning", "note", "none"]
Kind = Literal["fail", "pass", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A node on the way of a biased payload.

    Attributes:
        node: the node.
        contribution: what was measured on it in the run so far; None where nothing was.
        is_cut: it is the consumer whose edge was cut.
    """

    node: str
    contribution: Contribution | None
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at.

    Attributes:
        rule: `bias/AXIS`, `breaker/ACTION`, `intervention/STRATEGY`; of audits `disparity/AXIS`
            and `gate/REASON`.
        level: error, warning or note; none for what is only listed.
        kind: fail for a finding; pass or open for what is only listed.
        text: the finding in words.
        run_id: the run; None for what many runs say together.
        graph: name of its graph, or of the audit.
        nodes: the nodes that it is about.
        axis: the axis, where there is one.
        edges: the edges that were cut, or that a repair goes along.
        impact: w * delta, which orders findings; None where it is unknown.
        trace_id: the trace.
        span_id: the span that says so; None where many do.
        at: when, as recorded.
        paths: for each cut edge, the way the bias took to it.
        numbers: everything measured, absent where it is not known.
        subject: what else tells it from other findings of its rule.
    """

    rule: str
    level: Level
    kind: Kind
    text: str
    run_id: str | None = None
    graph: str | None
    nodes: tuple[str, ...]
    axis: str | None = None
    edges: tuple[str, ...] = ()
    impact: float | None = None
    trace_id: str | None = None
    span_id: str | None = None
    at: object = None
    paths: tuple[tuple[Step, ...], ...] = ()
    numbers: Mapping[str, object]
    subject: tuple[str, ...] = ()
