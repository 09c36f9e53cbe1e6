"""Makes `loan_review.jsonl.gz`: 24 runs of an agent graph, recorded by Traceloop alone.

    pip install langgraph opentelemetry-instrumentation-langchain twinspan
    python record.py

twinspan is not switched on while the runs are made. The model is a function: one of the two
analysts says "refer" now and then, whatever it is asked.
"""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any, TypedDict

from langchain_core.language_models import FakeListChatModel
from langgraph.graph import END, START, StateGraph
from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from twinspan.collector.otlp_json import span_line


class State(TypedDict, total=False):
    """What the agents share."""

    question: str
    plan: str
    a: str
    b: str
    verdict: str


def says(key: str, *answers: str) -> Any:
    """An agent that gives one of its answers."""
    chance = random.Random(7)

    def node(state: State) -> State:
        model = FakeListChatModel(responses=[chance.choice(answers)])
        return {key: str(model.invoke(state["question"]).content)}  # type: ignore[misc]

    return node


def graph() -> Any:
    """planner -> (analyst_a, analyst_b) -> reviewer."""
    made: Any = StateGraph(State)
    made.add_node("planner", says("plan", "look at income"))
    made.add_node("analyst_a", says("a", "approve", "approve", "approve", "refer"))
    made.add_node("analyst_b", says("b", "approve"))
    made.add_node("reviewer", lambda s: {"verdict": "refer" if "refer" in s["a"] else "approve"})
    made.add_edge(START, "planner")
    made.add_edge("planner", "analyst_a")
    made.add_edge("planner", "analyst_b")
    made.add_edge(["analyst_a", "analyst_b"], "reviewer")
    made.add_edge("reviewer", END)
    return made.compile(name="loan_review")


def main() -> None:
    """Record four runs of each of six cases."""
    memory, provider = InMemorySpanExporter(), TracerProvider(resource=Resource({}))
    provider.add_span_processor(SimpleSpanProcessor(memory))
    LangchainInstrumentor().instrument(tracer_provider=provider)
    app = graph()
    for _ in range(4):
        for trade in ("shop", "bakery", "garage", "school", "farm", "cinema"):
            app.invoke({"question": f"Should the loan for a {trade} be approved?"})
    lines = "".join(span_line(span) for span in memory.get_finished_spans())
    path = Path(__file__).with_name("loan_review.jsonl.gz")
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))


if __name__ == "__main__":
    main()
