"""LangGraph: runs, nodes, observed edges, probes and the gate between supersteps.

Two places of the Pregel runtime are enough for every graph, compiled before or after, of any
API: `Pregel.stream` / `astream` is where a run begins and ends, and `PregelRunner.tick` /
`atick` is where a superstep's tasks run. Between the last task's end and the writing of its
channels no payload has been committed yet: there the gate stands.
"""

from twinspan.instrumentation.frameworks.langgraph.hooks import install, uninstall

__all__ = ["install", "uninstall"]
