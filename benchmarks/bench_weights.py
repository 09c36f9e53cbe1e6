"""Weights of large agent graphs: time and memory, beside what they replace.

Prints, side by side in one process: our weights of 10,000 nodes and 30,000 edges, with and without
cycles; a dense solve of the same Katz system at sizes it can hold; networkx's Katz centrality; and
the prior implementation, weighted-emergent-bias, where it is installed.

Run with ``python benchmarks/bench_weights.py``.
"""

from __future__ import annotations

import importlib
import random
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import networkx as nx
import numpy as np

from twinspan.collector.topology import AgentDAG
from twinspan.collector.weights import dependency_weights

Pair = tuple[str, str]


def random_edges(nodes: int, edges: int, *, back: int = 0) -> list[Pair]:
    """Random edges forward in a shuffled order, and a few back."""
    draw = random.Random(nodes)
    order = [f"agent_{number}" for number in range(nodes)]
    draw.shuffle(order)
    found: dict[Pair, None] = {}
    while len(found) < edges:
        low, high = sorted(draw.sample(range(nodes), 2))
        found[order[low], order[high]] = None
    for _ in range(back):
        low, high = sorted(draw.sample(range(nodes), 2))
        found[order[high], order[low]] = None
    return list(found)


def best(action: Callable[[], object], repeats: int = 9) -> float:
    """Milliseconds of the fastest repeat, on the process clock."""
    times: list[float] = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def peak_megabytes(action: Callable[[], object]) -> float:
    """Highest memory that Python and numpy allocated on the way."""
    tracemalloc.start()
    action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def dense_weights(graph: AgentDAG, attenuation: float = 0.5) -> np.ndarray:
    """The textbook way: solve the whole system densely."""
    matrix = np.eye(len(graph))
    matrix[graph.sources, graph.targets] -= attenuation
    values = np.linalg.solve(matrix, np.ones(len(graph)))
    return np.asarray(values / values.sum())


def report(label: str, milliseconds: float, megabytes: float | None = None) -> None:
    """One line."""
    memory = "" if megabytes is None else f"{megabytes:10.1f} MB"
    print(f"{label:<58}{milliseconds:12.2f} ms{memory}", flush=True)


def ours() -> None:
    """The size of the budget, without cycles, with some, with many."""
    for back in (0, 500, 2_000):
        edges = random_edges(10_000, 30_000, back=back)
        graph = AgentDAG(edges)
        label = f"10,000 nodes, {len(edges):,} edges, {back} back edges"
        report(f"AgentDAG: {label}", best(partial(AgentDAG, edges), repeats=3))
        repeats = 9 if not back else 2
        report(
            f"dependency_weights: {label}",
            best(partial(dependency_weights, graph), repeats),
            peak_megabytes(partial(dependency_weights, graph)),
        )
    chain = AgentDAG([(f"n{i}", f"n{i + 1}") for i in range(10_000)])
    report("dependency_weights: chain of 10,000", best(partial(dependency_weights, chain)))


def beside() -> None:
    """What others take, at sizes they can hold."""
    for nodes in (500, 1_000, 2_000):
        edges = random_edges(nodes, 3 * nodes)
        graph, digraph = AgentDAG(edges), nx.DiGraph(edges).reverse()
        if not np.allclose(dense_weights(graph), list(dependency_weights(graph).values())):
            raise SystemExit("the dense solve disagrees")
        report(f"{nodes:,} nodes, ours", best(partial(dependency_weights, graph)))
        report(
            f"{nodes:,} nodes, dense solve",
            best(partial(dense_weights, graph), repeats=2),
            peak_megabytes(partial(dense_weights, graph)),
        )
        report(
            f"{nodes:,} nodes, networkx.katz_centrality (0.05)",
            best(partial(nx.katz_centrality, digraph, alpha=0.05, max_iter=10_000), repeats=1),
        )


def prior() -> None:
    """The prior implementation, if it is there."""
    try:
        package = importlib.import_module("weighted_emergent_bias")
    except ImportError:
        print("weighted-emergent-bias is not installed; its row is left out")
        return
    for nodes in (500, 1_000, 2_000):
        graph = package.AgentDAG(random_edges(nodes, 3 * nodes))
        report(
            f"{nodes:,} nodes, weighted-emergent-bias",
            best(partial(package.dependency_weights, graph), repeats=1),
        )


if __name__ == "__main__":
    ours()
    beside()
    prior()
