"""CrewAI: agents at their tasks as nodes, the outputs that a task's context holds as edges.

What an agent makes of a task is held before it becomes the task's output, so no other task, no
callback and no file ever has a frozen one.
"""

from __future__ import annotations

from twinspan.instrumentation.errors import MissingExtra

try:
    from twinspan.instrumentation.frameworks.crewai.hooks import install, uninstall
except ImportError as error:  # pragma: no cover - told by the extra's own test
    raise MissingExtra("crewai", extra="crewai") from error

__all__ = ["install", "uninstall"]
