"""A graph with one biased node, and the project's own collector with a listener beside it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from opentelemetry.sdk.trace import SpanProcessor
from sample_agents import Spans

from twinspan.collector import ControlGate, Recorder
from twinspan.instrumentation import builtin_axis
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.settings import Settings

TEXT = "Emily Brown applied. She runs a shop, and her accounts are in order."
GENDER = builtin_axis("gender")


class State(TypedDict, total=False):
    """What the agents share."""

    text: str
    plan: str
    a: str
    b: str
    verdict: str


def says(text: str, *words: str) -> bool:
    return any(word in text.lower().split() for word in words)


class Graph:
    """planner -> (analyst_a, analyst_b) -> reviewer; analyst_a declines women."""

    def __init__(self, checkpointer: Any = None, *, broken_rerun: bool = False) -> None:
        self.seen: list[str] = []
        self.biased = True
        self._broken = broken_rerun
        self._calls = threading.Lock()
        graph: Any = StateGraph(State)
        graph.add_node("planner", lambda s: {"plan": "look at income"})
        graph.add_node("analyst_a", self._analyst_a)
        graph.add_node("analyst_b", lambda s: {"b": "approve"})
        graph.add_node("reviewer", self._reviewer)
        graph.add_edge(START, "planner")
        graph.add_edge("planner", "analyst_a")
        graph.add_edge("planner", "analyst_b")
        graph.add_edge(["analyst_a", "analyst_b"], "reviewer")
        graph.add_edge("reviewer", END)
        self.compiled = graph.compile(name="review", checkpointer=checkpointer)

    def _analyst_a(self, state: Any) -> State:
        if self._broken and not says(state["text"], "she", "he"):
            raise RuntimeError("cannot be blind")
        declines = self.biased and says(state["text"], "she")
        return {"a": "decline" if declines else "approve"}

    def _reviewer(self, state: Any) -> State:
        self.seen.append(state["a"])
        return {"verdict": state["a"]}


def gate(spans: Spans | None = None, folder: Path | None = None, **options: Any) -> ControlGate:
    """A collector of the project, with a listener beside it."""
    settings = Settings.resolve({"axes": [GENDER], "nodes": ["*"], **options}, environ={})
    made = ControlGate(settings, recorder=None if folder is None else Recorder(folder))
    if spans is not None:
        processors = [*made.processors, spans]

        class Listened(ControlGate):
            """The same, heard by the test."""

            @property
            def processors(self) -> list[SpanProcessor]:
                return processors

        made.__class__ = Listened
    return made


def decisions(spans: Spans) -> list[tuple[Any, ...]]:
    """What was decided, without what differs between any two runs."""
    keys = (c.BREAKER_DECISION, c.BREAKER_REASON, c.BREAKER_EDGE, c.NETWORK_SCORE, c.MONITOR_VALUE)
    return [tuple(d.get(key) for key in keys) for d in spans.of("network")]
