"""Runs in full: graph, scores, decisions, breaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final, cast

from twinspan.analysis.findings import ABOVE_FLOOR
from twinspan.analysis.flow import flow_of
from twinspan.analysis.graphs import GraphEdge, RunGraph, run_graph
from twinspan.analysis.json_values import finite_row
from twinspan.analysis.report.facts import (
    Capped,
    DrawnGraph,
    Point,
    RunRow,
    RunStory,
    Score,
)
from twinspan.analysis.store import Store
from twinspan.analysis.trail_records import HALTING, Breach, RunTrail
from twinspan.instrumentation.conventions import edge_name, split_edge

MOST_POINTS: Final = 240
MOST_SCORES: Final = 60
MOST_BREACHES: Final = 20

Row = Mapping[str, Any]


def stories_of(store: Store, chosen: Sequence[tuple[RunRow, RunTrail]]) -> list[RunStory]:
    """Each chosen run in full."""
    return [_story(store, row, trail) for row, trail in chosen]


def _story(store: Store, row: RunRow, trail: RunTrail) -> RunStory:
    rows = [finite_row(each) for each in store.table(_POINTS, [row.run_id]).dicts()]
    breaches = sorted(trail.breaches, key=_impact, reverse=True)
    return RunStory(
        row=row,
        graph=_drawn(store, row.run_id, trail),
        points=_thinned([_point(each) for each in rows]),
        breaches=Capped(items=tuple(breaches[:MOST_BREACHES]), total=len(breaches)),
        scores=_scores(store, row.run_id),
        reacting=_reacting(store, row.run_id),
        trigger=next((str(each["trigger"]) for each in rows if each["trigger"]), None),
    )


def _impact(breach: Breach) -> float:
    impacts = [each.impact or 0.0 for each in breach.contributions]
    return max((impact for impact in impacts if isfinite(impact)), default=0.0)


# --- the graph ------------------------------------------------------------------------------------


def _drawn(store: Store, run_id: str, trail: RunTrail) -> DrawnGraph:
    graph = run_graph(store, run_id)
    declared = store.table("SELECT graph_edges FROM runs WHERE run_id = ?", [run_id]).rows[0][0]
    edges = _with_untaken(graph, trail, declared)
    names = [node.node for node in graph.nodes]
    flow = flow_of(names, [(edge.source, edge.target) for edge in edges])
    return DrawnGraph(nodes=graph.nodes, edges=edges, layers=flow.layers, back=flow.back)


def _with_untaken(graph: RunGraph, trail: RunTrail, declared: object) -> tuple[GraphEdge, ...]:
    """The edges that were taken, then those that were cut for good or only declared."""
    taken = {edge_name(edge.source, edge.target) for edge in graph.edges}
    cut = {edge for breach in trail.breaches for edge in breach.edges}
    known = [str(edge) for edge in cast("list[object] | None", declared) or ()]
    further = [edge for edge in dict.fromkeys([*sorted(cut), *known]) if edge not in taken]
    return (*graph.edges, *(_untaken(edge, cut=edge in cut) for edge in further))


def _untaken(edge: str, *, cut: bool) -> GraphEdge:
    source, target = split_edge(edge)
    return GraphEdge(source=source, target=target, kind="declared", scope="", executions=0, cut=cut)


# --- decisions ------------------------------------------------------------------------------------

_POINTS: Final = """
SELECT superstep, intervention_id IS NOT NULL AS after_repair, decision, reason,
       state_to AS state, b_fast, b_slow, monitor, threshold_enter AS tau_enter,
       threshold_exit AS tau_exit, monitor_threshold AS monitor_limit, enforced, trigger, span_id
FROM decisions
WHERE run_id = ?
ORDER BY audit_writer, audit_seq
"""


def _point(row: Row) -> Point:
    return Point(**{name: value for name, value in row.items() if name != "trigger"})


def _thinned(points: Sequence[Point]) -> Capped[Point]:
    """Of very many decisions, in each stretch the one with the largest scores, and every halt."""
    if len(points) <= MOST_POINTS:
        return Capped(items=tuple(points), total=len(points))
    size = -(-len(points) // MOST_POINTS)
    stretches = [
        range(start, min(start + size, len(points))) for start in range(0, len(points), size)
    ]
    kept = {max(stretch, key=lambda place: _height(points[place])) for stretch in stretches}
    halts = [place for place, point in enumerate(points) if point.decision in HALTING]
    kept |= set(halts[:MOST_POINTS])
    return Capped(items=tuple(points[place] for place in sorted(kept)), total=len(points))


def _height(point: Point) -> tuple[float, float]:
    """Relative to its limit where there is one, so that either trigger counts."""
    monitor = (point.monitor or 0.0) / (point.monitor_limit or 1.0)
    fast = (point.b_fast or 0.0) / (point.tau_enter or 1.0)
    return max(monitor, fast), monitor


# --- scores ---------------------------------------------------------------------------------------

_SCORES: Final = f"""
SELECT run_id, node, axis, superstep, intervention_id IS NOT NULL AS after_repair, weight, delta,
       ci_low, ci_high, p_value, e_value, cross_mean AS cross, floor, estimator, wording,
       reference_count AS n_reference, counterfactual_count AS n_counterfactual,
       CASE WHEN {ABOVE_FLOOR} THEN 'above_floor'
            WHEN delta IS NULL THEN 'inconclusive'
            ELSE coalesce(label, 'within_floor') END AS label,
       CASE WHEN delta IS NULL THEN coalesce(undefined_reason, outcome) END AS reason,
       span_id, trace_id
FROM probe_sets
WHERE run_id = ?
ORDER BY label <> 'above_floor', weight * delta DESC NULLS LAST, audit_seq
"""


def _scores(store: Store, run_id: str) -> Capped[Score]:
    total = store.table("SELECT count(*) FROM probe_sets WHERE run_id = ?", [run_id]).rows[0][0]
    rows = store.table(f"{_SCORES} LIMIT {MOST_SCORES}", [run_id]).dicts()
    scores = tuple(Score(**finite_row(row)) for row in rows)
    return Capped(items=scores, total=int(str(total)))


def _reacting(store: Store, run_id: str) -> tuple[str, ...]:
    rows = store.table(
        f"SELECT DISTINCT node FROM probe_sets WHERE run_id = ? AND {ABOVE_FLOOR} "
        "AND intervention_id IS NULL AND node IS NOT NULL ORDER BY node",
        [run_id],
    ).rows
    return tuple(str(row[0]) for row in rows)
