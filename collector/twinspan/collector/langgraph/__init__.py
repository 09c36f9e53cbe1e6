"""Breaker nodes for LangGraph: a biased payload is rerouted within the graph, not by an exception.

Without these nodes the gate halts a run by raising, or repairs in place. With them a frozen
payload takes a way of its own: `guard` puts a breaker behind each named node, and one mitigation
subgraph (router, repair, skeptics, panel, person) behind all breakers.
"""

from twinspan.collector.langgraph.insertion import guard
from twinspan.collector.langgraph.state import BiasState, Incident

__all__ = ["BiasState", "Incident", "guard"]
