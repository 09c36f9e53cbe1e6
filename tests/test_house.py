"""The house: layers, namespace, public faces, what importing costs."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

FACES: dict[str, set[str]] = {
    "twinspan.instrumentation": {
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
    },
    "twinspan.collector": {
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
    },
    "twinspan.analysis": {"AuditTrail", "Store", "open_store"},
}

FRAMEWORKS = ("langgraph", "langchain_core", "crewai", "agents", "autogen", "pydantic_ai", "openai")


@pytest.mark.parametrize("root", FACES)
def test_each_root_lists_its_public_face(root: str) -> None:
    """A new public name is a decision, and this is where it is taken."""
    module = importlib.import_module(root)
    assert set(module.__all__) == FACES[root]
    assert all(hasattr(module, name) for name in module.__all__)
    assert list(module.__all__) == sorted(module.__all__, key=lambda name: (name.islower(), name))


@pytest.mark.parametrize("root", FACES)
def test_importing_a_root_imports_no_agent_framework(root: str) -> None:
    """Frameworks stay at the edge: they are imported when they are hooked."""
    code = f"import {root}, sys; print([m for m in {FRAMEWORKS!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_three_roots_share_one_namespace() -> None:
    """A `twinspan/__init__.py` in one root would hide the other two."""
    assert not list(ROOT.glob("*/twinspan/__init__.py"))
    for root in ("instrumentation", "collector", "analysis"):
        assert (ROOT / root / "twinspan" / root / "py.typed").exists()


def test_every_module_belongs_to_a_package() -> None:
    """A folder without `__init__.py` would be left out of what type checkers see."""
    for root in ("instrumentation", "collector", "analysis"):
        for module in (ROOT / root / "twinspan" / root).rglob("*.py"):
            assert (module.parent / "__init__.py").exists(), module


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_every_example_runs(path: Path, tmp_path: Path) -> None:
    """Examples are programs, and this runs them as a user would."""
    for framework in ("langgraph", "agents", "pydantic_ai", "autogen_agentchat", "crewai"):
        if f"from {framework}" in path.read_text() and find_spec(framework) is None:
            pytest.skip(f"{framework} is not installed in this environment")
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
