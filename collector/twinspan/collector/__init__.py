"""What listens to spans live: weighs, accumulates, decides, repairs, records."""

from typing import TYPE_CHECKING

from twinspan.instrumentation.lazy import lazy_names

if TYPE_CHECKING:
    from twinspan.collector.accumulator import NetworkAccumulator
    from twinspan.collector.attaching import attach
    from twinspan.collector.breaker import CircuitBreaker
    from twinspan.collector.control import ControlGate
    from twinspan.collector.decision import BreakerDecision
    from twinspan.collector.intervention.madera import MaderaEditor
    from twinspan.collector.intervention.panel import SkepticPanel
    from twinspan.collector.intervention.routing import route_intervention
    from twinspan.collector.katz import katz_weight
    from twinspan.collector.machine import ControlMachine
    from twinspan.collector.monitor import RunMonitor
    from twinspan.collector.processor import ControlProcessor
    from twinspan.collector.recorder import Recorder
    from twinspan.collector.resetting import reset_run
    from twinspan.collector.topology import AgentDAG
    from twinspan.collector.weights import dependency_weights

__all__ = [
    "AgentDAG",
    "BreakerDecision",
    "CircuitBreaker",
    "ControlGate",
    "ControlMachine",
    "ControlProcessor",
    "MaderaEditor",
    "NetworkAccumulator",
    "Recorder",
    "RunMonitor",
    "SkepticPanel",
    "attach",
    "dependency_weights",
    "katz_weight",
    "reset_run",
    "route_intervention",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "accumulator": ("NetworkAccumulator",),
        "attaching": ("attach",),
        "breaker": ("CircuitBreaker",),
        "control": ("ControlGate",),
        "decision": ("BreakerDecision",),
        "intervention.madera": ("MaderaEditor",),
        "intervention.panel": ("SkepticPanel",),
        "intervention.routing": ("route_intervention",),
        "katz": ("katz_weight",),
        "machine": ("ControlMachine",),
        "monitor": ("RunMonitor",),
        "processor": ("ControlProcessor",),
        "recorder": ("Recorder",),
        "resetting": ("reset_run",),
        "topology": ("AgentDAG",),
        "weights": ("dependency_weights",),
    },
)
