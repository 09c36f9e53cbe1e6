"""LangGraph's own names that we read, in one place."""

from __future__ import annotations

from typing import Any, Final, cast

CONFIGURABLE: Final = "configurable"
SCOPE_KEY: Final = "__pregel_twinspan_scope"
"""Where a run's scope travels in a config; keys like this LangGraph keeps to itself: they are in
no checkpoint, no metadata and no streamed event."""

RUN_KEY: Final = "twinspan_run_id"
"""Under which a checkpoint's metadata keeps the run that wrote it, so that a later call, maybe in
another process, goes on with that run."""

METADATA: Final = "metadata"
THREAD_ID: Final = "thread_id"
CHECKPOINT_ID: Final = "checkpoint_id"

SEND: Final = "__pregel_send"
READ: Final = "__pregel_read"
CALL: Final = "__pregel_call"
STREAM: Final = "__pregel_stream"
CHECKPOINTER: Final = "__pregel_checkpointer"
RUNTIME: Final = "__pregel_runtime"
SCRATCHPAD: Final = "__pregel_scratchpad"

TASKS: Final = "__pregel_tasks"
PUSH: Final = "__pregel_push"
START: Final = "__start__"
END: Final = "__end__"
BRANCH: Final = "branch:to:"
JOIN: Final = "join:"
RESERVED: Final = "__"
RETURN: Final = "__return__"
PREVIOUS: Final = "__previous__"
ERROR: Final = "__error__"
INTERRUPT: Final = "__interrupt__"

# The functional API's answers: a task's, an entrypoint's, and what that keeps for its next run.
_ANSWERS: Final = frozenset({RETURN, END, PREVIOUS})


def is_routing(channel: str) -> bool:
    """Whether a channel carries control, not state.

    >>> is_routing("branch:to:reviewer"), is_routing("verdict"), is_routing("__return__")
    (True, False, False)
    """
    return channel.startswith((BRANCH, JOIN, RESERVED)) and channel not in _ANSWERS


def configurable_of(config: Any) -> dict[str, Any]:
    """A copy of a config's `configurable` part, empty where there is none.

    >>> configurable_of({"configurable": {"thread_id": "t"}}), configurable_of(None)
    ({'thread_id': 't'}, {})
    """
    given = cast("dict[str, Any]", config or {})
    return dict(cast("dict[str, Any]", given.get(CONFIGURABLE) or {}))
