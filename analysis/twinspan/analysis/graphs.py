"""The agent graph of a run, with what was measured on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from twinspan.analysis.store import Store
from twinspan.collector.topology import AgentDAG
from twinspan.collector.weights import dependency_weights
from twinspan.instrumentation.conventions import edge_name
from twinspan.instrumentation.errors import NoSpans, SourceError


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A node of a run's graph.

    Attributes:
        node: the node.
        weight: blast radius, the graph's largest being 1.
        weight_method: how it was computed; `katz, from the edges` where the run has none.
        executions: how often it ran; 0 for a node that is in the graph and did not.
        probed: executions that were probed.
        delta: its largest excess disagreement over axes and executions.
        axis: the axis of that.
        p_value: its p.
        e_value: its e-value.
    """

    node: str
    weight: float | None
    weight_method: str | None
    executions: int
    probed: int
    delta: float | None
    axis: str | None
    p_value: float | None
    e_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """An edge along which a payload went.

    Attributes:
        source: the node that wrote.
        target: the node that read.
        kind: observed or inferred.
        scope: '' for the root graph, else the execution that holds the subgraph.
        executions: how often.
        cut: whether a decision cut it.
    """

    source: str
    target: str
    kind: str
    scope: str
    executions: int
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGraph:
    """The graph of one run."""

    run: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]

    def document(self) -> dict[str, Any]:
        """The graph as plain values: `run`, `nodes`, `edges`."""
        return {
            "run": self.run,
            "nodes": [asdict(node) for node in self.nodes],
            "edges": [asdict(edge) for edge in self.edges],
        }


def run_graph(store: Store, run_id: str | None = None) -> RunGraph:
    """The graph of a run; of the latest one if none is named.

    Raises:
        SourceError: if there is no such run.
        NoSpans: if there is no run at all.
    """
    run = _run(store, run_id)
    chosen = str(run["run_id"])
    edges = _edges(store, chosen)
    nodes = _nodes(store, run, edges)
    return RunGraph(run=chosen, nodes=nodes, edges=_in_order(edges, nodes))


def _in_order(edges: Sequence[GraphEdge], nodes: Sequence[GraphNode]) -> tuple[GraphEdge, ...]:
    """Edges in the order of the nodes: which of two parallel nodes ended first is chance."""
    places = {node.node: place for place, node in enumerate(nodes)}
    last = len(places)

    def place(edge: GraphEdge) -> tuple[str, int, int]:
        return edge.scope, places.get(edge.source, last), places.get(edge.target, last)

    return tuple(sorted(edges, key=place))


def _run(store: Store, run_id: str | None) -> Mapping[str, Any]:
    where = "" if run_id is None else "WHERE run_id = ?"
    found = store.table(
        f"SELECT run_id, graph_nodes FROM runs {where} ORDER BY start_unix_nano DESC LIMIT 1",
        [] if run_id is None else [run_id],
    )
    for row in found.dicts():
        return row
    if run_id is None:
        raise NoSpans(store.source, hint="its spans belong to no run")
    known = ", ".join(repr(each) for each in store.run_ids()[:5])
    raise SourceError(f"{store.source!r} has no run {run_id!r}; its runs begin with {known}")


def _edges(store: Store, run_id: str) -> tuple[GraphEdge, ...]:
    cut = {
        str(row[0])
        for row in store.table(
            "SELECT DISTINCT unnest(edges) FROM decisions WHERE run_id = ? "
            "AND decision IN ('halt', 'reroute', 'escalate')",
            [run_id],
        ).rows
    }
    rows = store.table(
        "SELECT source, target, kind, scope, executions FROM edges WHERE run_id = ? "
        "ORDER BY scope, last_audit_seq, source, target",
        [run_id],
    ).dicts()
    return tuple(
        GraphEdge(**row, cut=edge_name(str(row["source"]), str(row["target"])) in cut)
        for row in cast("Sequence[dict[str, Any]]", list(rows))
    )


def _nodes(
    store: Store, run: Mapping[str, Any], edges: Sequence[GraphEdge]
) -> tuple[GraphNode, ...]:
    run_id = str(run["run_id"])
    executed = {
        str(row["node"]): row
        for row in store.table(
            "SELECT coverage.*, method, first_seq FROM coverage JOIN ("
            "SELECT run_id, node, min(audit_seq) AS first_seq, any_value(weight_method) AS method "
            "FROM nodes GROUP BY ALL) USING (run_id, node) WHERE run_id = ? ORDER BY first_seq",
            [run_id],
        ).dicts()
    }
    worst = {str(row["node"]): row for row in _worst_scores(store, run_id)}
    names = dict.fromkeys([*cast("list[str]", run["graph_nodes"] or []), *executed])
    weights = _weights(executed, list(names), edges)
    return tuple(
        _node(name, executed.get(name, {}), worst.get(name, {}), weights) for name in names
    )


def _worst_scores(store: Store, run_id: str) -> list[dict[str, object]]:
    return list(
        store.table(
            "SELECT node, delta, axis, p_value, e_value FROM probe_sets "
            "WHERE run_id = ? AND delta IS NOT NULL AND intervention_id IS NULL "
            "QUALIFY row_number() OVER (PARTITION BY node ORDER BY delta DESC, axis) = 1",
            [run_id],
        ).dicts()
    )


_Weights = Mapping[str, tuple[float | None, str | None]]


def _weights(
    executed: Mapping[str, Mapping[str, Any]], names: Sequence[str], edges: Sequence[GraphEdge]
) -> _Weights:
    """The recorded weights; where a run has none, those that its edges give."""
    recorded = {
        name: (row["weight"], row["method"])
        for name, row in executed.items()
        if row["weight"] is not None
    }
    if recorded or not names:
        return recorded
    pairs = list(dict.fromkeys((edge.source, edge.target) for edge in edges))
    nodes = list(dict.fromkeys([*names, *(end for pair in pairs for end in pair)]))
    scaled = dependency_weights(AgentDAG(pairs, nodes=nodes)).scaled
    return {name: (scaled[name], "katz, from the edges") for name in names}


def _node(
    name: str, executed: Mapping[str, Any], worst: Mapping[str, Any], weights: _Weights
) -> GraphNode:
    weight, method = weights.get(name, (None, None))
    return GraphNode(
        node=name,
        weight=weight,
        weight_method=method,
        executions=executed.get("executions", 0),
        probed=executed.get("probed", 0),
        delta=worst.get("delta"),
        axis=worst.get("axis"),
        p_value=worst.get("p_value"),
        e_value=worst.get("e_value"),
    )


def mermaid(graph: RunGraph) -> str:
    """The graph in Mermaid's language: solid edges were observed, dotted ones inferred.

    >>> nodes = (GraphNode(node="a", weight=1.0, weight_method="katz", executions=1, probed=1,
    ...                    delta=0.25, axis="gender", p_value=0.01, e_value=9.0),)
    >>> print(mermaid(RunGraph(run="r", nodes=nodes, edges=())))
    flowchart TD
        n0["a<br/>w 1.00<br/>delta 0.250 gender"]
    """
    places = {node.node: f"n{index}" for index, node in enumerate(graph.nodes)}
    lines = ["flowchart TD"]
    for node in graph.nodes:
        label = "<br/>".join(_plain(line) for line in _label(node))
        lines.append(f'    {places[node.node]}["{label}"]')
    for edge in graph.edges:
        arrow = "--x" if edge.cut else "-->" if edge.kind == "observed" else "-.->"
        ends = [places.get(end, f'x["{_plain(end)}"]') for end in (edge.source, edge.target)]
        lines.append(f"    {ends[0]} {arrow} {ends[1]}")
    return "\n".join(lines)


def dot(graph: RunGraph) -> str:
    """The graph in Graphviz's language.

    >>> edges = (GraphEdge(source="a", target="b", kind="inferred", scope="", executions=1,
    ...                    cut=False),)
    >>> print(dot(RunGraph(run="r", nodes=(), edges=edges)))
    digraph "r" {
        "a" -> "b" [style=dashed];
    }
    """
    lines = [f"digraph {_quoted(graph.run)} {{"]
    for node in graph.nodes:
        label = r"\n".join(_quoted(line)[1:-1] for line in _label(node))
        lines.append(f'    {_quoted(node.node)} [label="{label}"];')
    for edge in graph.edges:
        styles = [] if edge.kind == "observed" else ["style=dashed"]
        styles += ["color=red"] if edge.cut else []
        style = f" [{', '.join(styles)}]" if styles else ""
        lines.append(f"    {_quoted(edge.source)} -> {_quoted(edge.target)}{style};")
    return "\n".join([*lines, "}"])


def _label(node: GraphNode) -> list[str]:
    weight = [] if node.weight is None else [f"w {node.weight:.2f}"]
    score = [] if node.delta is None else [f"delta {node.delta:.3f} {node.axis}"]
    return [node.node, *weight, *score]


def _plain(text: str) -> str:
    """Text that ends no label: Mermaid knows entities."""
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
