"""`twinspan doctor` tells what would be probed, what not and why, and at what cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from twinspan.analysis.cli.doctor import doctor
from twinspan.analysis.doctor import Framework, frameworks, problems
from twinspan.instrumentation.settings import Settings

AGENT = """
from typing import TypedDict
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode

class State(TypedDict, total=False):
    letter: str
    answer: str

@tool
def lookup(name: str) -> str:
    "Look somebody up."
    return name

def screen(state):
    lookup.invoke({"name": "x"})
    return {"answer": "reject"}

graph = StateGraph(State)
graph.add_node("screen", screen)
graph.add_node("invite", lambda state: {"answer": state["answer"]})
graph.add_node("count", lambda state: {})
graph.add_edge(START, "screen")
graph.add_edge("screen", "invite")
print(graph.compile().invoke({"letter": "Daniel Reed applies. Then he bakes."})["answer"])
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "twinspan.toml").write_text(
        '[probe]\naxes = ["gender", "age"]\nnodes = ["screen", "nobody_*"]\n'
    )
    return tmp_path


def told(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(doctor, ["--format", "json", *arguments])
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_a_program_is_run_once_and_its_nodes_are_told(place: Path) -> None:
    """Which are probed, on which axes that are in their payloads, in how many calls."""
    report = told("--config", "twinspan.toml", "agent.py")
    nodes = {each["node"]: each for each in report["nodes"]}
    assert set(nodes) == {"screen", "invite"}
    screen, invite = nodes["screen"], nodes["invite"]
    assert (screen["decision"], screen["axes"], screen["calls"]) == ("probed", ["gender"], 15)
    assert screen["tokens"] > 0
    assert (invite["decision"], invite["why"]) == ("not probed", "not named in nodes")


def test_what_is_wrong_is_told_with_its_cure(place: Path) -> None:
    """A pattern that fits nothing, a tool that is not safe, an axis that nobody speaks of."""
    text = "\n".join(told("--config", "twinspan.toml", "agent.py")["problems"])
    assert "no node that ran is named like 'nobody_*'; those that ran: invite, screen" in text
    assert "screen calls lookup: blocked inside probes" in text
    assert "no node read a word of axis 'age'" in text


def test_what_a_program_prints_is_not_in_the_report(place: Path) -> None:
    """Its output goes to stderr, and the report can be read by a program."""
    done = CliRunner().invoke(doctor, ["agent.py"])
    assert "reject" in done.stderr
    assert "reject" not in done.stdout
    assert "Nodes that ran" in done.stdout


@pytest.mark.parametrize(
    ("options", "environ", "expected"),
    [
        ({}, {}, "nothing is probed: no axes are set"),
        ({"axes": ["age"]}, {}, "nothing is probed: no nodes are named"),
        ({}, {"OTEL_SDK_DISABLED": "true"}, "OTEL_SDK_DISABLED is true"),
        ({}, {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "a, twinspan"}, "leaves it out"),
        ({"mode": "repair", "level": "model"}, {}, "cannot be repaired by running it"),
        ({"mode": "halt", "stream": "pass"}, {}, "may have been streamed already"),
        ({}, {}, "[record] record names no folder"),
    ],
)
def test_conflicts_are_told_without_a_program(
    options: dict[str, object], environ: dict[str, str], expected: str
) -> None:
    """From the options and the environment alone."""
    found = problems(Settings.resolve(options, environ={}), frameworks(), None, environ)
    assert expected in "\n".join(found)


def test_a_version_that_is_not_supported_is_told() -> None:
    """With the extra that brings one that is."""
    old = Framework(
        extra="langgraph",
        package="langgraph",
        installed="0.2.0",
        supported=">=1.0,<2",
        usable=False,
    )
    found = problems(Settings.resolve(environ={}), [old], None, {})
    assert any("langgraph 0.2.0 is not supported (>=1.0,<2); pip install" in each for each in found)
