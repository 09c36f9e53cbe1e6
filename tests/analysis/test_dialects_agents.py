"""What agent frameworks record of themselves reads as agents, their turns and their order."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from foreign_spans import Program, written
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

from twinspan.analysis.floors import floor_table
from twinspan.analysis.importing import import_spans
from twinspan.analysis.store import open_store
from twinspan.collector.otlp_json import span_line

TEAMS = Path(__file__).parents[1] / "autogen_teams.py"


def _answer(source: Path, query: str) -> tuple[tuple[object, ...], ...]:
    with open_store(source) as store:
        return store.table(query).rows


# --- AutoGen ------------------------------------------------------------------------------------


def _team(folder: Path, name: str, times: int = 1) -> Path:
    path = folder / "autogen.jsonl"
    command = [sys.executable, str(TEAMS), str(path), name, str(times)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return path


def test_a_team_in_many_traces_is_one_run(tmp_path: Path) -> None:
    """Messages are traces of their own; links and the team's identity hold them together."""
    source = _team(tmp_path, "parallel")
    (counts,) = _answer(source, "SELECT count(DISTINCT trace_id), count(*) FROM spans")
    assert int(str(counts[0])) > 10
    nodes = _answer(source, "SELECT node, superstep, outcome FROM nodes ORDER BY superstep, node")
    assert nodes == (
        ("planner", 1, "ok"),
        ("analyst_a", 2, "ok"),
        ("analyst_b", 2, "ok"),
        ("reviewer", 3, "ok"),
    )
    assert _answer(source, "SELECT count(DISTINCT run_id) FROM nodes") == ((1,),)


def test_who_was_asked_after_whom_is_observed_and_who_waited_is_not(tmp_path: Path) -> None:
    """Both sources of a join are there, though only the last one led the manager on."""
    edges = _answer(
        _team(tmp_path, "parallel"), "SELECT source, target, kind FROM edges ORDER BY ALL"
    )
    assert edges == (
        ("analyst_a", "reviewer", "inferred"),
        ("analyst_b", "reviewer", "inferred"),
        ("planner", "analyst_a", "observed"),
        ("planner", "analyst_b", "observed"),
    )


def test_a_team_that_runs_twice_has_two_runs(tmp_path: Path) -> None:
    """Also after an import, which keeps what was read."""
    source = _team(tmp_path, "in_turn", times=2)
    query = "SELECT run_id, list(node ORDER BY superstep) FROM nodes GROUP BY ALL ORDER BY ALL"
    runs = _answer(source, query)
    assert [turns for _, turns in runs] == [["planner", "reviewer", "planner"]] * 2
    edges = _answer(source, "SELECT DISTINCT source, target, kind FROM edges ORDER BY ALL")
    assert edges == (("planner", "reviewer", "observed"), ("reviewer", "planner", "observed"))
    import_spans(source, tmp_path / "imported")
    assert _answer(tmp_path / "imported", query) == runs


# --- pydantic-ai --------------------------------------------------------------------------------


@pytest.fixture
def delegated(tmp_path: Path) -> Generator[Path]:
    """Two runs of an agent that asks another one through a tool."""
    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))

    def asking(messages: list[object], info: object) -> ModelResponse:
        last = messages[-1].parts[-1]  # type: ignore[attr-defined]
        if isinstance(last, ToolReturnPart):
            return ModelResponse(parts=[TextPart("approve")])
        return ModelResponse(parts=[ToolCallPart("ask_expert", {"question": "x"})])

    def knowing(messages: list[object], info: object) -> ModelResponse:
        return ModelResponse(parts=[TextPart("it is fine")])

    expert = Agent(FunctionModel(knowing, model_name="stand-in"), name="expert")  # type: ignore[arg-type]
    triage = Agent(FunctionModel(asking, model_name="stand-in"), name="triage")  # type: ignore[arg-type]

    async def ask_expert(question: str) -> str:
        return (await expert.run(question)).output

    triage.tool_plain(ask_expert)

    async def play() -> None:
        for _ in range(2):
            await triage.run("Should it be approved?")

    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
    try:
        asyncio.run(play())
    finally:
        Agent.instrument_all(False)
    path = tmp_path / "pydantic.jsonl"
    spans = memory.get_finished_spans()
    path.write_text("".join(span_line(span) for span in spans), encoding="utf-8")
    yield path


def test_an_agent_that_asks_another_holds_it(delegated: Path) -> None:
    """The tool's call is between them; each model call belongs to who made it."""
    nodes = _answer(delegated, "SELECT node, kind, count(*) FROM nodes GROUP BY ALL ORDER BY node")
    assert nodes == (("triage", "subgraph", 2), ("triage/expert", "agent", 2))
    calls = _answer(
        delegated, "SELECT node, model, count(*) FROM llm_calls GROUP BY ALL ORDER BY node"
    )
    assert calls == (("triage", "stand-in", 4), ("triage/expert", "stand-in", 2))


def test_results_of_agents_can_be_compared(delegated: Path) -> None:
    """Two runs on one question gave the same answers."""
    hashes = _answer(
        delegated,
        "SELECT node, count(DISTINCT input_hash), count(DISTINCT output_hash) FROM nodes "
        "GROUP BY ALL ORDER BY node",
    )
    assert hashes == (("triage", 1, 1), ("triage/expert", 1, 1))


# --- handovers ------------------------------------------------------------------------------------


def test_a_handover_there_and_back_keeps_every_turn(tmp_path: Path) -> None:
    """An agent that works twice has two executions, each after the other agent's."""
    program = Program()
    root = program.span("openinference.instrumentation.openai_agents", "w", None, (0, 9), {})
    program.agent("triage", root, (1, 2))
    program.agent("expert", root, (3, 4), handed_by="triage")
    program.agent("triage", root, (5, 6), handed_by="expert")
    query = "SELECT node, superstep, parents, edge_kind FROM nodes ORDER BY superstep"
    assert _answer(written(tmp_path, program), query) == (
        ("triage", 1, None, None),
        ("expert", 2, ["triage"], "observed"),
        ("triage", 3, ["expert"], "observed"),
    )


def test_recorded_runs_give_a_floor(delegated: Path) -> None:
    """Of runs that were recorded before twinspan was there."""
    with open_store(delegated) as store:
        table = floor_table(store)
    assert table.columns[0] == "action"
