"""What the gate costs per node of a LangGraph graph with a free model, side by side.

    python benchmarks/bench_gate.py

A chain of plain functions is run uninstrumented, with spans only, with the gate deciding at
every superstep, and with the record on disk; the prior implementation's guard and breaker nodes
(PyPI `weighted-emergent-bias`) run beside where they are installed. Medians, in microseconds per
node over the uninstrumented graph.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from twinspan.instrumentation import TwinspanInstrumentor, builtin_axis

NODES = 20
ROUNDS = 60


class State(TypedDict, total=False):
    """A counter."""

    x: int


def chain() -> Any:
    """Nodes in a row."""
    graph: Any = StateGraph(State)
    before = START
    for number in range(NODES):
        graph.add_node(f"n{number}", lambda state: {"x": state["x"] + 1})
        graph.add_edge(before, f"n{number}")
        before = f"n{number}"
    graph.add_edge(before, END)
    return graph.compile()


def per_node(run: Callable[[], Any]) -> float:
    """Median microseconds per node."""
    for _ in range(5):
        run()
    times: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        run()
        times.append((time.perf_counter() - begun) / NODES * 1e6)
    return statistics.median(times)


def ours(**options: Any) -> float:
    """The chain under instrumentation."""
    instrumentor = TwinspanInstrumentor()
    instrumentor.instrument(**options)
    try:
        graph = chain()
        return per_node(lambda: graph.invoke({"x": 0}, {"recursion_limit": 100}))
    finally:
        instrumentor.uninstrument()


def prior() -> float:
    """The prior implementation's staging node and breaker decision, per node."""
    peer: Any = import_module("weighted_emergent_bias")
    adapter: Any = import_module("weighted_emergent_bias.integrations.langgraph.adapter")

    names = [f"n{number}" for number in range(NODES)]
    weights = dict.fromkeys(names, 1 / NODES)
    nodes = [
        adapter.guarded_node(name, lambda state: {"x": 1}, lambda output: 0.0) for name in names
    ]

    def run() -> None:
        machine = peer.ControlMachine(peer.CircuitBreaker(tau_enter=1.0, tau_exit=0.5))
        accumulator = peer.NetworkAccumulator()
        for name, node in zip(names, nodes, strict=True):
            staged = node({"x": 0})["unverified_output"]
            adapter.decide({name: 0.0}, weights, staged, accumulator, machine)

    return per_node(run)


def main() -> None:
    """Print the table."""
    graph = chain()
    plain = per_node(lambda: graph.invoke({"x": 0}, {"recursion_limit": 100}))
    axes = [builtin_axis("gender")]
    unprobed = {"axes": axes, "nodes": ["none"], "mode": "halt"}
    print(f"uninstrumented            {plain:8.0f} us per node")
    print(f"+ spans only              {ours(collector=None) - plain:8.0f}")
    print(f"+ gate, decision spans    {ours(**unprobed) - plain:8.0f}")
    with tempfile.TemporaryDirectory() as folder:
        print(f"+ record on disk          {ours(record=folder, **unprobed) - plain:8.0f}")
    if find_spec("weighted_emergent_bias") is not None:
        print(f"prior guard and decision  {prior():8.0f}  (without its LangGraph breaker node)")


if __name__ == "__main__":
    main()
