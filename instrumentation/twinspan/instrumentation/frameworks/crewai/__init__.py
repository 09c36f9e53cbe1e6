"""CrewAI: agents, at a task or alone, as nodes; what they read of each other as edges.

What an agent answers is held before it becomes a task's output or reaches whoever asked, so no
other task, no callback of a task, no memory and no file ever has a frozen one. Handlers of events
and an agent's `step_callback` are told while it works.
"""

from __future__ import annotations

from twinspan.instrumentation.errors import MissingExtra

try:
    from twinspan.instrumentation.frameworks.crewai.hooks import install, uninstall
except ImportError as error:  # pragma: no cover - told by the extra's own test
    raise MissingExtra("crewai", extra="crewai") from error

__all__ = ["install", "uninstall"]
