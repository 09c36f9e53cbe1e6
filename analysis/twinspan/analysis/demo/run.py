"""Runs the demo's graph under instrumentation, as any application would be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opentelemetry.sdk.trace import TracerProvider

from twinspan.analysis.demo.graph import APPLICATION, build_graph
from twinspan.analysis.demo.model import StandInChatModel
from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation.errors import BiasHalt

BIASED_ROLE: Final = "credit analyst"
TEMPERATURE: Final = 0.5
HOT: Final = 2.0

TAU_ENTER: Final = 0.25
"""B_fast that no more than 5 percent of unbiased runs of this graph ever reach.

`python benchmarks/study_demo.py` measures it.
"""

TAU_EXIT: Final = 0.7 * TAU_ENTER
"""Where recovery ends: above the noise of clean runs, at the ratio that `calibrate` uses."""

OPTIONS: Final[dict[str, Any]] = {
    "axes": ["gender"],
    "nodes": ["*"],
    "reference": 10,
    "counterfactual": 5,
    "concurrency": 1,  # the stand-in costs nothing, and the numbers come out the same every time
    "mode": "repair",
    "tau_enter": TAU_ENTER,
    "tau_exit": TAU_EXIT,
}
"""What the demo asks of twinspan; everything else is the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """What the application itself got to see.

    Attributes:
        state: the graph's final state; None if the run was halted for good.
        halt: the halt that reached the application; None if there was none.
    """

    state: dict[str, Any] | None
    halt: BiasHalt | None


def run_demo(
    out: Path | None,
    *,
    seed: int = 0,
    biased: bool = True,
    temperature: float = TEMPERATURE,
    tracer_provider: TracerProvider | None = None,
    **options: Any,
) -> DemoOutcome:
    """Run the graph once, instrumented, and record its spans below `out`.

    Args:
        out: folder of the record; nothing is recorded if None.
        seed: seed of the stand-in model and of the probes.
        biased: whether `analyst_a` treats women worse.
        temperature: the model's.
        tracer_provider: the application's provider, which the spans are handed on to.
        options: further options of twinspan, over the demo's own.
    """
    model = StandInChatModel(
        seed=seed, temperature=temperature, biased_role=BIASED_ROLE if biased else None
    )
    graph = build_graph(model)
    instrumentor = TwinspanInstrumentor()
    instrumentor.instrument(
        tracer_provider=tracer_provider, **{**OPTIONS, "record": out, "seed": seed, **options}
    )
    try:
        return DemoOutcome(state=graph.invoke({"application": APPLICATION}), halt=None)
    except BiasHalt as halt:
        return DemoOutcome(state=None, halt=halt)
    finally:
        instrumentor.uninstrument()
        if tracer_provider is not None:
            tracer_provider.shutdown()
