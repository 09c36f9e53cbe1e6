"""AutoGen teams on a stand-in model, recorded by AutoGen itself: `python autogen_teams.py FILE`.

AutoGen records to the process's one global provider, so each recording is a process of its own.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow, RoundRobinGroupChat
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from twinspan.collector.otlp_json import span_line


class StandIn(ChatCompletionClient):
    """Answers at once, or after a while."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    async def create(self, *args: Any, **kwargs: Any) -> CreateResult:
        await asyncio.sleep(self._seconds)
        usage = RequestUsage(prompt_tokens=3, completion_tokens=2)
        return CreateResult(finish_reason="stop", content="approve", usage=usage, cached=False)

    def create_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        pass

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def total_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def count_tokens(self, *args: Any, **kwargs: Any) -> int:
        return 1

    def remaining_tokens(self, *args: Any, **kwargs: Any) -> int:
        return 1000

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling=False,
            json_output=False,
            family="unknown",
            structured_output=False,
        )


def parallel() -> Any:
    """planner -> (analyst_a, analyst_b) -> reviewer; analyst_a is the slower one."""
    planner, slow, quick, reviewer = (
        AssistantAgent(name, StandIn(0.05 if name == "analyst_a" else 0.0))
        for name in ("planner", "analyst_a", "analyst_b", "reviewer")
    )
    graph = DiGraphBuilder()
    for agent in (planner, slow, quick, reviewer):
        graph.add_node(agent)
    for source, target in ((planner, slow), (planner, quick), (slow, reviewer), (quick, reviewer)):
        graph.add_edge(source, target)
    return GraphFlow([planner, slow, quick, reviewer], graph.build())


def in_turn() -> Any:
    """planner and reviewer, in turn."""
    agents = [AssistantAgent(name, StandIn()) for name in ("planner", "reviewer")]
    return RoundRobinGroupChat(list(agents), termination_condition=MaxMessageTermination(4))


async def _play(team: Any, times: int) -> None:
    for _ in range(times):
        await team.run(task="Should the loan be approved?")
        await team.reset()


def main(path: str, name: str, times: str) -> None:
    """Record a team's runs into a file."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    trace.set_tracer_provider(provider)
    asyncio.run(_play({"parallel": parallel, "in_turn": in_turn}[name](), int(times)))
    lines = [span_line(span) for span in memory.get_finished_spans()]
    Path(path).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
