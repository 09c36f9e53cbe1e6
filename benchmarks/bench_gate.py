"""What the gate costs per node of a LangGraph graph with a free model, side by side.

    pip install weighted-emergent-bias
    python benchmarks/bench_gate.py

A chain of plain functions is run uninstrumented, with spans only, with the gate deciding at every
superstep, and with the record on disk. Two more chains run beside it. In one each node makes two
spans of the bare SDK with as many attributes as ours: what a span of a node and one of its decision
cost anybody. The other is guarded by the prior implementation (PyPI `weighted-emergent-bias`,
skipped where it is not installed): each node wrapped so that it stages its output, and a breaker
node after it that decides. It makes no span and keeps no record on disk.

All variants take turns, round by round, so that a busy machine slows all of them alike. What is
printed is microseconds per node over the uninstrumented chain, medians over the rounds: the time
on the clock, and the processor time of all threads of the process.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from opentelemetry.sdk.trace import TracerProvider

from twinspan.instrumentation import TwinspanInstrumentor, builtin_axis

NODES = 20
ROUNDS = 40
RUNS = 5
"""Runs of a variant within a round: the first of them warms up and does not count."""

LIMIT = {"recursion_limit": 200}

Variant = Callable[[], Any]


class State(TypedDict, total=False):
    """A counter."""

    x: int


def add_one(state: State) -> State:
    """The free model."""
    return {"x": state.get("x", 0) + 1}


def chain(node: Any = add_one) -> Any:
    """Nodes in a row."""
    graph: Any = StateGraph(State)
    before = START
    for number in range(NODES):
        graph.add_node(f"n{number}", node)
        graph.add_edge(before, f"n{number}")
        before = f"n{number}"
    graph.add_edge(before, END)
    return graph.compile()


@contextmanager
def ours(**options: Any) -> Generator[Variant]:
    """The chain under instrumentation."""
    instrumentor = TwinspanInstrumentor()
    instrumentor.instrument(**options)
    try:
        graph = chain()
        yield lambda: graph.invoke({"x": 0}, LIMIT)
    finally:
        instrumentor.uninstrument()


@contextmanager
def plain() -> Generator[Variant]:
    """The chain as it is."""
    graph = chain()
    yield lambda: graph.invoke({"x": 0}, LIMIT)


@contextmanager
def bare_spans() -> Generator[Variant]:
    """The chain with two spans of the SDK around each node, and nothing else of telemetry."""
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("bench")
    of_node = {f"bench.attribute_{number}": f"value {number}" for number in range(24)}
    of_decision = {f"bench.number_{number}": number / 7 for number in range(28)}

    def node(state: Any) -> Any:
        with tracer.start_as_current_span("node", attributes=of_node):
            answer = {"x": state["x"] + 1}
        tracer.start_span("decision", attributes=of_decision).end()
        return answer

    graph = chain(node)
    yield lambda: graph.invoke({"x": 0}, LIMIT)


@contextmanager
def prior() -> Generator[Variant]:
    """The chain with the prior implementation's guards and breaker nodes."""
    peer: Any = import_module("weighted_emergent_bias")
    adapter: Any = import_module("weighted_emergent_bias.integrations.langgraph.adapter")
    schema: Any = import_module("weighted_emergent_bias.integrations.langgraph.state")
    names = [f"n{number}" for number in range(NODES)]
    weights = dict.fromkeys(names, 1 / NODES)

    def run() -> Any:
        return graph.invoke({"committed": {}}, LIMIT)

    builder: Any = StateGraph(schema.BiasState)
    machine = peer.ControlMachine(peer.CircuitBreaker(tau_enter=1.0, tau_exit=0.5))
    builder.add_node("mitigation", lambda state: {})
    builder.add_edge("mitigation", END)
    builder.add_edge(START, names[0])
    for name, following in zip(names, [*names[1:], END], strict=True):
        guard = adapter.guarded_node(name, lambda state: {"x": 1}, lambda output: 0.0)
        breaker = adapter.make_breaker_node(
            weights, machine, proceed_to=following, halt_to="mitigation"
        )
        builder.add_node(name, guard)
        builder.add_node(f"{name}_breaker", breaker, destinations=(following, "mitigation"))
        builder.add_edge(name, f"{name}_breaker")
    graph = builder.compile()
    yield run


def variants(folder: str) -> dict[str, Callable[[], Any]]:
    """What takes turns."""
    unprobed = {"axes": [builtin_axis("gender")], "nodes": ["none"], "mode": "halt"}
    found: dict[str, Callable[[], Any]] = {
        "uninstrumented": plain,
        "two bare SDK spans": bare_spans,
        "spans only": lambda: ours(collector=None),
        "gate, decision spans": lambda: ours(**unprobed),
        "gate, decisions, record on disk": lambda: ours(record=folder, **unprobed),
    }
    if find_spec("weighted_emergent_bias") is not None:
        found["prior guard and breaker nodes"] = prior
    return found


def measure(variant: Callable[[], Any]) -> tuple[float, float]:
    """Microseconds per node: on the clock, and of all processors."""
    clock: list[float] = []
    cpu: list[float] = []
    with variant() as run:
        run()
        for _ in range(RUNS - 1):
            on_clock, on_cpu = time.perf_counter(), time.process_time()
            run()
            clock.append((time.perf_counter() - on_clock) / NODES * 1e6)
            cpu.append((time.process_time() - on_cpu) / NODES * 1e6)
        # A record is written in the background: what it still owes counts too.
        on_cpu = time.process_time()
    cpu[-1] += (time.process_time() - on_cpu) / NODES * 1e6
    return statistics.median(clock), statistics.fmean(cpu)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = variants(folder)
        rounds = [{name: measure(each) for name, each in chosen.items()} for _ in range(ROUNDS)]
    base = "uninstrumented"
    over = {
        name: [
            statistics.median(
                each[name][kind] - (each[base][kind] if name != base else 0.0) for each in rounds
            )
            for kind in (0, 1)
        ]
        for name in chosen
    }
    yardstick = over.get("prior guard and breaker nodes")
    print(f"{'us per node':34}{'clock':>8}{'cpu':>8}{'ratio to the prior, clock':>28}")
    for name, (clock, cpu) in over.items():
        ratio = f"{clock / yardstick[0]:.2f}" if yardstick is not None and name != base else ""
        print(f"{name if name == base else '+ ' + name:34}{clock:8.0f}{cpu:8.0f}{ratio:>28}")


if __name__ == "__main__":
    main()
