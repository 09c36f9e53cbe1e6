"""Doctests of a framework's module run where the framework is installed."""

from importlib.util import find_spec

_FRAMEWORKS = {
    "agents": "openai_agents",
    "autogen_agentchat": "autogen",
    "crewai": "crewai",
    "langgraph": "langgraph",
    "pydantic_ai": "pydantic_ai",
}

collect_ignore_glob = [
    f"instrumentation/twinspan/instrumentation/frameworks/{ours}/*.py"
    for package, ours in _FRAMEWORKS.items()
    if find_spec(package) is None
]
