"""One run in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from twinspan.analysis.graphs import GraphNode
from twinspan.analysis.report.dag_svg import graph_figure
from twinspan.analysis.report.facts import Point, RunStory, Score
from twinspan.analysis.report.markup import Html, columns, data_table, join, tag
from twinspan.analysis.report.pieces import chip, identifier, trace_link
from twinspan.analysis.report.series_svg import monitor_figure, score_figure
from twinspan.analysis.report.summary import breach_sentences, worst_of
from twinspan.analysis.report.wording import NOTHING, interval, many, number, spoken
from twinspan.analysis.trail_records import HALTING, Breach

_MOST_ROWS: Final = 60
_MOST_TOLD: Final = 3
"""Breaches that are told in words; the others get a line each."""


def run_section(story: RunStory, anchor: str, jaeger: str | None) -> Html:
    """Graph, breaches, scores over time, and what was measured."""
    row = story.row
    graph = f" of {row.graph}" if row.graph else ""
    return tag(
        "section",
        tag("h2", f"Run {row.run_id}{graph}", id=f"{anchor}-heading"),
        tag("p", chip(row.verdict), " ", _opening(story)),
        tag("p", "Trace ", trace_link(row.trace_id, jaeger)),
        _graph_part(story, anchor),
        _breach_part(story, jaeger),
        _score_part(story, anchor),
        _measured_part(story),
        id=anchor,
        aria_labelledby=f"{anchor}-heading",
    )


def _opening(story: RunStory) -> str:
    row = story.row
    ended = f"The run {spoken(row.outcome)}. " if row.outcome else ""
    reasons = f"{'; '.join(row.reasons)}. " if row.reasons and row.verdict != "flagged" else ""
    verb = "was" if row.check.checked == 1 else "were"
    checked = f"{many(row.check.checked, 'number')} {verb} computed again from the raw spans"
    told = {
        "verified": f"{checked} and all agree.",
        "incomplete": f"{checked}, but spans are missing.",
        "mismatch": f"{checked}; {row.check.mismatches.total:,} do not agree.",
    }
    return f"{ended}{reasons}{told.get(row.check.verdict, '')}"


# --- graph ----------------------------------------------------------------------------------------


def _graph_part(story: RunStory, anchor: str) -> Html | None:
    if not story.graph.nodes:
        return None
    nodes = story.graph.nodes
    table = data_table(
        "Nodes with their blast radius and largest score",
        columns("node", "#runs", "#probed", "#blast radius", "axis", "#delta", "#p", "#e"),
        [_node_row(node) for node in nodes[:_MOST_ROWS]],
        total=len(nodes),
    )
    return join(
        tag("h3", "The agents and where the payload was cut"),
        graph_figure(story.graph, frozenset(story.reacting), f"{anchor}-dag"),
        tag("details", tag("summary", "The graph as a table"), table),
    )


def _node_row(node: GraphNode) -> Sequence[object]:
    return (
        node.node,
        f"{node.executions:,}",
        f"{node.probed:,}",
        number(node.weight, 2),
        node.axis or NOTHING,
        number(node.delta),
        number(node.p_value),
        number(node.e_value),
    )


# --- breaches -------------------------------------------------------------------------------------


def _breach_part(story: RunStory, jaeger: str | None) -> Html | None:
    if not story.breaches.total:
        return None
    told = [_breach(each, story, jaeger) for each in story.breaches.items[:_MOST_TOLD]]
    title = "What was stopped, and what was done about it"
    return join(tag("h3", title), *told, _further(story))


def _further(story: RunStory) -> Html | None:
    """The breaches after the gravest, one line each."""
    further = story.breaches.items[_MOST_TOLD:]
    if not further:
        return None
    return data_table(
        "Further breaches, the largest impact first",
        columns("superstep", "decision", "node", "axis", "edges", "#impact w\u00b7B", "span"),
        [_breach_row(breach) for breach in further],
        total=story.breaches.total - _MOST_TOLD,
    )


def _breach_row(breach: Breach) -> Sequence[object]:
    worst = worst_of(breach)
    return (
        _count(breach.decision.superstep),
        chip(breach.decision.decision),
        breach.node or NOTHING,
        breach.axis or NOTHING,
        ", ".join(breach.edges) or NOTHING,
        number(worst.impact if worst else None),
        identifier(breach.decision.span_id),
    )


def _breach(breach: Breach, story: RunStory, jaeger: str | None) -> Html:
    sentences = list(breach_sentences(breach, story.scores.items))
    steps = [*sentences, *(_recheck(each.decision, each.reason) for each in breach.rechecks)]
    path = " \u2190 ".join(breach.path) or "its origin is not recorded"
    decision = tag(
        "p",
        "Back to the origin: ",
        path,
        ". Decided in span ",
        trace_link(breach.decision.span_id, None),
        _find(story.row.trace_id, jaeger, breach.decision.span_id),
        ".",
        class_="note",
    )
    return join(
        tag("ol", *(tag("li", step) for step in steps), class_="story"),
        decision,
        _contributions(breach),
    )


def _find(trace_id: str | None, jaeger: str | None, span_id: str) -> Html | None:
    if trace_id is None or jaeger is None:
        return None
    link = trace_link(trace_id, jaeger, span_id)
    return join(" in trace ", link)


def _recheck(decision: str, reason: str | None) -> str:
    why = f" ({spoken(reason)})" if reason else ""
    if decision in HALTING:
        return f"Measured again, the breaker decided to {decision}{why}."
    return f"Measured again, the breaker decided to {decision}{why}: the run went on."


def _contributions(breach: Breach) -> Html | None:
    if not breach.contributions:
        return None
    shown = breach.contributions[:_MOST_ROWS]
    return data_table(
        f"Share of each node in the score of superstep {breach.decision.superstep}",
        columns("node", "axis", "swap", "#impact w\u00b7B", "#w", "#delta", "interval", "#p", "#e"),
        [
            (
                each.node,
                each.axis,
                ", ".join(each.perturbations) or NOTHING,
                number(each.impact),
                number(each.weight, 2),
                number(each.delta),
                interval(each.ci_low, each.ci_high),
                number(each.p_value),
                number(each.e_value),
            )
            for each in shown
        ],
        total=len(breach.contributions),
    )


# --- scores over time -----------------------------------------------------------------------------


def _score_part(story: RunStory, anchor: str) -> Html | None:
    points = story.points.items
    if not points:
        return None
    table = data_table(
        "Every decision" if not story.points.left_out else "Decisions, peaks and halts kept",
        columns(
            "superstep", "decision", "reason", "state", "#B_fast", "#B_slow", "#M", "#halts at"
        ),
        [_point_row(point) for point in points],
        total=story.points.total,
    )
    return join(
        tag("h3", "How the evidence grew"),
        *_explained(story),
        score_figure(points, f"{anchor}-b"),
        monitor_figure(points, f"{anchor}-m"),
        tag("details", tag("summary", "The decisions as a table"), table),
    )


def _explained(story: RunStory) -> Iterator[Html]:
    rules = {
        "monitor": "The breaker halts when the evidence M reaches its limit; B is shown beside it.",
        "threshold": "The breaker halts when B_fast reaches tau_enter; M is shown beside it.",
        "either": "The breaker halts when B_fast reaches tau_enter or M reaches its limit.",
    }
    told = (
        "B sums each node's excess disagreement, weighed by its blast radius, smoothed over "
        "supersteps. M is evidence against 'no node reacts to any attribute': under that "
        "assumption it reaches its limit in a whole run at most as often as its error rate allows."
    )
    yield tag("p", told, class_="note")
    if story.trigger in rules:
        yield tag("p", rules[story.trigger], class_="note")


def _point_row(point: Point) -> Sequence[object]:
    again = " re-measured" if point.after_repair else ""
    shadow = " (shadow)" if point.enforced is False and point.decision in HALTING else ""
    return (
        f"{NOTHING if point.superstep is None else point.superstep}{again}",
        join(chip(point.decision), shadow),
        spoken(point.reason),
        spoken(point.state),
        number(point.b_fast),
        number(point.b_slow),
        number(point.monitor),
        number(point.monitor_limit),
    )


# --- what was measured ----------------------------------------------------------------------------


def _measured_part(story: RunStory) -> Html | None:
    if not story.scores.total:
        return None
    table = data_table(
        "Probe sets, reactions first",
        columns(
            "node",
            "axis",
            "#superstep",
            "result",
            "#delta",
            "interval",
            "#across swap",
            "#own noise",
            "#p",
            "#e",
            "#runs",
            "estimator",
        ),
        [_score_row(score) for score in story.scores.items],
        total=story.scores.total,
    )
    return join(tag("h3", "What was measured"), table)


def _score_row(score: Score) -> Sequence[object]:
    result = join(chip(score.label), f" {spoken(score.reason)}" if score.reason else None)
    again = " after repair" if score.after_repair else ""
    runs = f"{_count(score.n_reference)} : {_count(score.n_counterfactual)}"
    return (
        f"{score.node or NOTHING}{again}",
        score.axis or NOTHING,
        _count(score.superstep),
        result,
        number(score.delta),
        interval(score.ci_low, score.ci_high),
        number(score.cross),
        number(score.floor),
        number(score.p_value),
        number(score.e_value),
        runs,
        spoken(score.estimator),
    )


def _count(value: int | None) -> str:
    return NOTHING if value is None else str(value)
