"""What our span processor costs on a span, beside the bare SDK span.

    python benchmarks/bench_processor.py

Two providers take turns in one process: the SDK's own with no processor, and the same with our
`ControlProcessor`, with the same spans: one of a node, which control only looks at, one of a probe
set, which it reads, and what a probed node leaves: itself, its re-runs on either arm, and the set.
Each figure is the median over the rounds, in microseconds of processor
time a span; the difference is ours.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Tracer
from opentelemetry.util.types import AttributeValue

from twinspan.collector.chain import GENESIS
from twinspan.collector.processor import ControlProcessor
from twinspan.collector.run_control import RunControl
from twinspan.collector.runs import Runs, RunState
from twinspan.collector.topology import AgentDAG
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.settings import BreakerOptions
from twinspan.instrumentation.tracing import Telemetry

SPANS = 504
ROUNDS = 60

NODE: Mapping[str, AttributeValue] = {
    c.RUN_ID: "run",
    c.SPAN_TYPE: "node",
    c.NODE_ID: "analyst",
    c.NODE_TASK_ID: "task",
    c.SUPERSTEP_SCOPE: "",
    c.SUPERSTEP_INDEX: 1,
    c.NODE_WEIGHT: 0.6,
    c.NODE_WEIGHT_SHARE: 0.2,
}

PROBE_SET: Mapping[str, AttributeValue] = {
    **NODE,
    c.SPAN_TYPE: "probe_set",
    c.PROBE_SET_ID: "set",
    c.PROBE_AXIS: "gender",
    c.PROBE_OUTCOME: "ok",
    c.PROBE_SAMPLING_RATE: 1.0,
    c.PROBE_ESTIMATOR: "category",
    c.EFFECT_VALUE: 0.1,
    c.EFFECT_P_VALUE: 0.2,
    c.EFFECT_E_VALUE: 1.3,
    c.DIVERGENCE_DISTANCES: tuple(0.5 for _ in range(45)),
    c.DIVERGENCE_REFERENCE_COUNT: 5,
    c.DIVERGENCE_COUNTERFACTUAL_COUNT: 5,
}

PROBE: Mapping[str, AttributeValue] = {
    **NODE,
    c.SPAN_TYPE: "probe",
    c.PROBE_SET_ID: "set",
    c.PROBE_AXIS: "gender",
    c.PROBE_ARM: "counterfactual",
}

KINDS: Mapping[str, Sequence[Mapping[str, AttributeValue]]] = {
    "node": (NODE,),
    "probe set": (PROBE_SET,),
    "a probed node": (NODE, *[PROBE] * 10, PROBE_SET),
}


def control() -> tuple[Tracer, Runs]:
    """A provider with our processor, and the live runs behind it."""
    runs = Runs()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(ControlProcessor(runs))
    return provider.get_tracer("bench"), runs


def state() -> RunState:
    """The state of a run of one node."""
    options = BreakerOptions()
    begun = RunControl.begin(
        AgentDAG([], nodes=["analyst"]), {"analyst": 1.0}, ("gender",), options
    )
    return RunState(tracer=Telemetry([]).run("run"), control=begun, previous_hash=GENESIS)


def per_span(tracer: Tracer, kinds: Sequence[Mapping[str, AttributeValue]]) -> float:
    """Microseconds of processor time for starting and ending one span."""
    begun = time.thread_time()
    for attributes in itertools.islice(itertools.cycle(kinds), SPANS):
        tracer.start_span("span", attributes=attributes).end()
    return (time.thread_time() - begun) / SPANS * 1e6


def turns(measures: list[Callable[[], float]]) -> list[float]:
    """The median of each, taking turns."""
    rounds = [[measure() for measure in measures] for _ in range(ROUNDS)]
    return [
        statistics.median(column) for column in itertools.islice(zip(*rounds, strict=True), None)
    ]


def main() -> None:
    """Print the table."""
    bare = TracerProvider(shutdown_on_exit=False).get_tracer("bench")
    ours, runs = control()
    print(f"{'us per span':14}{'bare SDK':>10}{'with ours':>11}{'ours alone':>12}")
    for name, kinds in KINDS.items():

        def measure(kinds: Sequence[Mapping[str, AttributeValue]] = kinds) -> float:
            runs.open("run", state())
            return per_span(ours, kinds)

        plain, with_ours = turns([lambda k=kinds: per_span(bare, k), measure])  # type: ignore[misc]
        print(f"{name:14}{plain:10.1f}{with_ours:11.1f}{with_ours - plain:12.1f}")


if __name__ == "__main__":
    main()
