"""The agent graph, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from twinspan.analysis.graphs import GraphEdge, GraphNode
from twinspan.analysis.report.dag_layout import (
    NODE_HEIGHT,
    NODE_WIDTH,
    Layout,
    laid_out,
)
from twinspan.analysis.report.facts import DrawnGraph
from twinspan.analysis.report.markup import Html, join, tag
from twinspan.analysis.report.wording import many, number

MOST_NODES: Final = 60
"""Nodes that a drawing can show and stay readable."""

_LETTERS: Final = 21

Point = tuple[float, float]


def graph_figure(graph: DrawnGraph, reacting: frozenset[str], key: str) -> Html:
    """The graph as a figure, or a sentence where it is too large to be read.

    Args:
        graph: the graph.
        reacting: nodes that react beyond their floor.
        key: makes the ids of this figure its own.
    """
    if len(graph.nodes) > MOST_NODES or not graph.layers:
        told = f"{many(len(graph.nodes), 'node')}: too many to draw; the table lists them."
        return tag("p", told, class_="note")
    forward = [
        (edge.source, edge.target)
        for edge in graph.edges
        if (edge.source, edge.target) not in graph.back
    ]
    layout = laid_out(graph.layers, list(dict.fromkeys(forward)))
    loops = [edge for edge in graph.edges if (edge.source, edge.target) in graph.back]
    height = layout.height + (34 if loops else 0)
    drawn = [_edge(edge, layout, height) for edge in sorted(graph.edges, key=lambda e: e.cut)]
    known = {node.node: node for node in graph.nodes}
    boxes = [_box(name, known.get(name), layout, reacting) for name in layout.corners]
    svg = tag(
        "svg",
        tag("title", "The agent graph", id=f"{key}-title"),
        tag("desc", _described(graph, reacting), id=f"{key}-desc"),
        *drawn,
        *boxes,
        class_="dag",
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        viewBox=f"0 0 {layout.width:.0f} {height:.0f}",
        width=f"{layout.width:.0f}",
        height=f"{height:.0f}",
    )
    return tag("figure", tag("div", svg, class_="scroll"), _legend(graph))


def _described(graph: DrawnGraph, reacting: frozenset[str]) -> str:
    cut = [f"{edge.source} to {edge.target}" for edge in graph.edges if edge.cut]
    return (
        f"{many(len(graph.nodes), 'node')} in {many(len(graph.layers), 'layer')}, "
        f"{many(len(graph.edges), 'edge')}. "
        f"Reacting: {', '.join(sorted(reacting)) or 'none'}. Cut: {'; '.join(cut) or 'none'}."
    )


# --- nodes ----------------------------------------------------------------------------------------


def _box(name: str, node: GraphNode | None, layout: Layout, reacting: frozenset[str]) -> Html:
    left, top = layout.corners[name]
    kinds = ["node"]
    kinds += ["reacts"] if name in reacting else []
    kinds += ["idle"] if node is None or not node.executions else []
    weight = node.weight if node else None
    lines = [
        tag("text", _cut_short(name), x=left + 12, y=top + 24, class_="name"),
        tag("text", _score(node), x=left + 12, y=top + 43, class_="score"),
        tag("text", f"blast radius {number(weight, 2)}", x=left + 12, y=top + 59, class_="small"),
    ]
    return tag(
        "g",
        tag("title", name),
        tag("rect", x=left, y=top, width=NODE_WIDTH, height=NODE_HEIGHT, rx=8, class_="box"),
        *lines,
        _weight_bar(left, top, weight),
        class_=" ".join(kinds),
    )


def _score(node: GraphNode | None) -> str:
    if node is None or not node.executions:
        return "did not run"
    if node.delta is None:
        return "not scored" if node.probed else "not probed"
    return f"{node.axis}: {number(node.delta)}"


def _weight_bar(left: float, top: float, weight: float | None) -> Html:
    """How far a bias here would spread, as a bar along the lower edge of the box."""
    full = NODE_WIDTH - 24
    y = top + NODE_HEIGHT - 8
    filled = full * max(0.0, min(1.0, weight or 0.0))
    return join(
        tag("rect", x=left + 12, y=y, width=full, height=3, rx=1.5, class_="track"),
        tag("rect", x=left + 12, y=y, width=f"{filled:.1f}", height=3, rx=1.5, class_="blast"),
    )


def _cut_short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}\u2026"


# --- edges ----------------------------------------------------------------------------------------


def _edge(edge: GraphEdge, layout: Layout, height: float) -> Html:
    kinds = f"edge {edge.kind}{' cut' if edge.cut else ''}"
    pair = (edge.source, edge.target)
    if pair in layout.passages:
        points = _through(edge, layout)
        path, middle = _curve(points), _middle(points)
    else:
        points = _around(edge, layout, height)
        path, middle = _loop(points), points[1]
    told = f"{edge.source} to {edge.target}, {edge.kind}{', cut' if edge.cut else ''}"
    return tag(
        "g",
        tag("title", told),
        tag("path", d=path, class_="line"),
        _arrow(points[-1], upward=pair not in layout.passages),
        _mark(middle) if edge.cut else None,
        class_=kinds,
    )


def _through(edge: GraphEdge, layout: Layout) -> list[Point]:
    left, top = layout.corners[edge.source]
    to_left, to_top = layout.corners[edge.target]
    start = (left + NODE_WIDTH, top + NODE_HEIGHT / 2)
    end = (to_left - 7, to_top + NODE_HEIGHT / 2)
    return [start, *layout.passages[edge.source, edge.target], end]


def _around(edge: GraphEdge, layout: Layout, height: float) -> list[Point]:
    """Below everything, for an edge that goes back."""
    left, top = layout.corners[edge.source]
    to_left, to_top = layout.corners[edge.target]
    start = (left + NODE_WIDTH * 0.6, top + NODE_HEIGHT)
    end = (to_left + NODE_WIDTH * 0.4, to_top + NODE_HEIGHT + 7)
    return [start, ((start[0] + end[0]) / 2, height - 12), end]


def _curve(points: Sequence[Point]) -> str:
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x, y), (to_x, to_y) in pairwise(points):
        bend = (to_x - x) / 2
        path += f" C{x + bend:.1f},{y:.1f} {to_x - bend:.1f},{to_y:.1f} {to_x:.1f},{to_y:.1f}"
    return path


def _loop(points: Sequence[Point]) -> str:
    (x, y), (_, low), (to_x, to_y) = points
    return f"M{x:.1f},{y:.1f} C{x:.1f},{low + 8:.1f} {to_x:.1f},{low + 8:.1f} {to_x:.1f},{to_y:.1f}"


def _middle(points: Sequence[Point]) -> Point:
    place = (len(points) - 1) // 2
    (x, y), (to_x, to_y) = points[place], points[place + 1]
    return (x + to_x) / 2, (y + to_y) / 2


def _arrow(tip: Point, *, upward: bool) -> Html:
    x, y = tip
    if upward:
        corners = f"{x:.1f},{y - 6:.1f} {x - 4:.1f},{y + 2:.1f} {x + 4:.1f},{y + 2:.1f}"
    else:
        corners = f"{x + 6:.1f},{y:.1f} {x - 2:.1f},{y - 4:.1f} {x - 2:.1f},{y + 4:.1f}"
    return tag("polygon", points=corners, class_="arrow")


def _mark(middle: Point) -> Html:
    """A cross in a circle: the edge was cut here."""
    x, y = middle
    cross = f"M{x - 4:.1f},{y - 4:.1f} l8,8 m0,-8 l-8,8"
    return join(
        tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=10, class_="disc"),
        tag("path", d=cross, class_="cross"),
        tag("text", "cut", x=f"{x:.1f}", y=f"{y - 15:.1f}", class_="cutword"),
    )


def _legend(graph: DrawnGraph) -> Html:
    kinds = {edge.kind for edge in graph.edges}
    words = [
        "Payloads go from left to right. Red boxes react beyond their floor; the bar at the foot "
        "of a box is its blast radius, how far a bias there would spread."
    ]
    words += ["A red cross marks an edge that was cut."] if any(e.cut for e in graph.edges) else []
    words += ["Dashed edges are inferred from the order of events."] if "inferred" in kinds else []
    words += ["Dotted edges are declared and were not taken."] if "declared" in kinds else []
    return tag("figcaption", " ".join(words))
