"""AutoGen (agentchat): agents of a team as nodes, the messages they read as observed edges.

An agent's response is held between the agent and the team: what is decided is published to the
other agents, and a frozen response never is. A repaired one takes its place, in the agent's own
memory too.
"""

from __future__ import annotations

from twinspan.instrumentation.errors import MissingExtra

try:
    from twinspan.instrumentation.frameworks.autogen.hooks import install, uninstall
except ImportError as error:  # pragma: no cover - told by the extra's own test
    raise MissingExtra("autogen_agentchat", extra="autogen") from error

__all__ = ["install", "uninstall"]
