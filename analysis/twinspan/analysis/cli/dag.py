"""`twinspan dag`: the agent graph of a run with its scores."""

from __future__ import annotations

from dataclasses import asdict, fields

import click

from twinspan.analysis.cli.output import (
    FORMATS,
    format_option,
    note,
    print_json,
    print_table,
    tell_problems,
)
from twinspan.analysis.graphs import GraphEdge, GraphNode, RunGraph, dot, mermaid, run_graph
from twinspan.analysis.store import open_store
from twinspan.analysis.tables import Table


@click.command()
@click.argument("spans", type=click.Path())
@click.option("--run", "run_id", metavar="ID", help="The run; the latest one if unset.")
@format_option((*FORMATS, "mermaid", "dot"))
def dag(spans: str, run_id: str | None, form: str) -> None:
    """The agent graph of a run, with its scores.

    JSON is {"run", "nodes": [{"node", "weight", ...}], "edges": [{"source", "target", "kind",
    ...}]}; ndjson and csv print the edges alone.
    """
    with open_store(spans) as store:
        tell_problems(store)
        if run_id is None and len(store.run_ids()) > 1:
            note("there are several runs, this is the latest; choose another with --run")
        _print(run_graph(store, run_id), form)


def _print(graph: RunGraph, form: str) -> None:
    if form == "json":
        print_json(graph.document())
    elif form == "mermaid":
        click.echo(mermaid(graph))
    elif form == "dot":
        click.echo(dot(graph))
    elif form == "table":
        click.echo(f"run {graph.run}")
        print_table(_table(GraphNode, graph.nodes), form)
        click.echo()
        print_table(edge_table(graph), form)
    else:
        print_table(edge_table(graph), form)


def edge_table(graph: RunGraph) -> Table:
    """A graph's edges as rows."""
    return _table(GraphEdge, graph.edges)


def _table(
    kind: type[GraphNode] | type[GraphEdge], items: tuple[GraphNode, ...] | tuple[GraphEdge, ...]
) -> Table:
    return Table(
        columns=tuple(each.name for each in fields(kind)),
        rows=tuple(tuple(asdict(item).values()) for item in items),
    )
