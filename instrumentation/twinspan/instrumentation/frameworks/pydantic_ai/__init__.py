"""pydantic-ai: agent runs as nodes, agents that other agents call as nodes within them.

pydantic-ai's own extension point, a capability, is added to every agent run. The run's result is
held until it is decided, so whoever called the agent never has a frozen one. Agents that the
application itself puts in a row become one run inside of a `pipeline`.
"""

from __future__ import annotations

from twinspan.instrumentation.errors import MissingExtra

try:
    from twinspan.instrumentation.frameworks.pydantic_ai.hooks import install, uninstall
except ImportError as error:  # pragma: no cover - told by the extra's own test
    raise MissingExtra("pydantic_ai", extra="pydantic-ai") from error

__all__ = ["install", "uninstall"]
