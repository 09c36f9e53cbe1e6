"""What runs inside the agent's process and makes spans. Knows nobody.

`TwinspanInstrumentor` adds spans, probes and the gate to existing agents; `node` and `pipeline`
say what is an agent in plain Python. `perturb`, `compute_local_bias` and `LOOCProbe` are its
parts, for use on their own.
"""

from typing import TYPE_CHECKING

from twinspan.instrumentation.lazy import lazy_names

if TYPE_CHECKING:
    from twinspan.instrumentation.frameworks.python import node, parallel, pipeline, step, tool
    from twinspan.instrumentation.instrumentor import TwinspanInstrumentor
    from twinspan.instrumentation.perturbation import Axis, builtin_axis, load_axes, perturb
    from twinspan.instrumentation.probing.priors import SyntheticPriorGenerator
    from twinspan.instrumentation.probing.probe import LOOCProbe
    from twinspan.instrumentation.scoring import BiasScore, compute_local_bias

__all__ = [
    "Axis",
    "BiasScore",
    "LOOCProbe",
    "SyntheticPriorGenerator",
    "TwinspanInstrumentor",
    "builtin_axis",
    "compute_local_bias",
    "load_axes",
    "node",
    "parallel",
    "perturb",
    "pipeline",
    "step",
    "tool",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "frameworks.python": (
            "node",
            "parallel",
            "pipeline",
            "step",
            "tool",
        ),
        "instrumentor": ("TwinspanInstrumentor",),
        "perturbation": (
            "Axis",
            "builtin_axis",
            "load_axes",
            "perturb",
        ),
        "probing.priors": ("SyntheticPriorGenerator",),
        "probing.probe": ("LOOCProbe",),
        "scoring": (
            "BiasScore",
            "compute_local_bias",
        ),
    },
)
