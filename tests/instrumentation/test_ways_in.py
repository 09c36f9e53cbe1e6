"""`twinspan run` and `opentelemetry-instrument`: a program as it was, instrumented."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BIN = Path(sys.executable).parent
PROBE = """
import __main__, atexit, sys, threading

def later():
    threading.Event().wait(0.1)
    print("thread", sys.modules["__main__"].said)

print(__name__, __file__, sys.argv, sys.path[0], __main__.__dict__ is globals())
said = "still there"
atexit.register(lambda: print("atexit", said))
threading.Thread(target=later).start()
if "exit" in sys.argv:
    sys.exit(7)
if "message" in sys.argv:
    sys.exit("a message")
if "raise" in sys.argv:
    def fails():
        raise ValueError("boom")
    fails()
"""
AGENT = """
import sys
from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict, total=False):
    letter: str
    answer: str

def screen(state):
    return {"answer": "reject" if " he " in state["letter"].lower() else "invite"}

graph = StateGraph(State)
graph.add_node("screen", screen)
graph.add_edge(START, "screen")
letter = "Daniel Reed applies. Then he bakes."
print(graph.compile().invoke({"letter": letter})["answer"])
"""
CONFIG = """
[probe]
axes = ["gender"]
nodes = ["screen"]

[breaker]
mode = "halt"

[record]
record = "spans"
"""


def execute(*command: str, where: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "TWINSPAN_"))
    }
    return subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=where,
        env={**clean, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "probe.py").write_text(PROBE)
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "twinspan.toml").write_text(CONFIG)
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(PROBE)
    return tmp_path


# --- twinspan run ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["probe.py", "message"],
        ["probe.py", "raise", "--config", "x", "-m", "--help"],
        ["-m", "package", "exit"],
    ],
    ids=" ".join,
)
def test_a_program_cannot_tell_that_it_is_not_started_by_python(
    place: Path, arguments: list[str]
) -> None:
    """Name, file, arguments, path, output, traceback, threads, atexit and exit code."""
    plain = execute("python", *arguments, where=place)
    ours = execute("twinspan", "run", *arguments, where=place)
    assert (ours.returncode, ours.stdout, ours.stderr) == (
        plain.returncode,
        plain.stdout,
        plain.stderr,
    )


def recorded(place: Path) -> list[tuple[Any, ...]]:
    from twinspan.analysis import open_store

    with open_store(place / "spans") as store:
        return list(store.table("SELECT node, axis, outcome FROM probe_sets").rows)


def test_an_agent_is_probed_halted_and_recorded_as_configured(place: Path) -> None:
    """The halt is the agent's uncaught exception, with its traceback and exit code 1."""
    ran = execute("twinspan", "run", "--config", "twinspan.toml", "agent.py", where=place)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[0].startswith("Traceback")
    assert "halted at screen->__end__: monitor_at_limit" in ran.stderr
    assert recorded(place) == [("screen", "gender", "ok")]


def test_what_cannot_be_run_is_said_in_a_sentence(place: Path) -> None:
    """Wrong use ends with 2, as everywhere."""
    for arguments, said in (
        (["nothing.py"], "there is no program 'nothing.py'"),
        (["-m", "nothing"], "there is no program 'nothing'"),
        ([], "name a script to run"),
        (["--config", "nothing.toml", "probe.py"], "cannot read 'nothing.toml'"),
    ):
        ran = execute("twinspan", "run", *arguments, where=place)
        assert ran.returncode == 2
        assert said in ran.stderr and "Traceback" not in ran.stderr


# --- opentelemetry-instrument --------------------------------------------------------------------


INSTRUMENT = ("opentelemetry-instrument", sys.executable, "agent.py")
OTEL = {
    "OTEL_TRACES_EXPORTER": "console",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}


def test_opentelemetry_finds_twinspan_among_its_instrumentations(place: Path) -> None:
    """It comes after the provider: our spans are in the application's own traces."""
    ran = execute(*INSTRUMENT, where=place, **OTEL, TWINSPAN_CONFIG="twinspan.toml")
    assert "halted at screen->__end__" in ran.stderr
    assert '"name": "invoke_workflow LangGraph"' in ran.stdout
    assert recorded(place) == [("screen", "gender", "ok")]


def test_opentelemetrys_list_of_disabled_instrumentations_is_honoured(place: Path) -> None:
    """The agent runs as if twinspan were not there."""
    disabled = {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "twinspan"}
    variables = {**OTEL, **disabled, "TWINSPAN_CONFIG": "twinspan.toml"}
    ran = execute(*INSTRUMENT, where=place, **variables)
    # Other instrumentations that are installed go on printing their spans.
    assert (ran.returncode, ran.stdout.partition("\n")[0]) == (0, "reject")
    assert "twinspan" not in ran.stdout
    assert not (place / "spans").exists()
