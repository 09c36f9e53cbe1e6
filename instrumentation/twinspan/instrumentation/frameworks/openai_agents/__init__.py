"""OpenAI Agents SDK: agents as nodes, handoffs as observed edges, the gate at an agent's answer.

A run of the SDK is a loop of model calls. An agent's part of it begins with its first model call
and ends with the response that hands off or is final. That response is the agent's answer: it is
held until it is decided, before the SDK acts on it, so a repaired one takes its place as if the
model had given it.
"""

from __future__ import annotations

from twinspan.instrumentation.errors import MissingExtra

try:
    from twinspan.instrumentation.frameworks.openai_agents.hooks import install, uninstall
except ImportError as error:  # pragma: no cover - told by the extra's own test
    raise MissingExtra("agents", extra="openai-agents") from error

__all__ = ["install", "uninstall"]
