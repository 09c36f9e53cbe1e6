"""What a graph with breaker nodes of its own looks like to the runtime hooks.

`twinspan.collector.langgraph` inserts the nodes. Here are the names by which they are known, and
how a frozen payload is diverted to them: the task's state update is replaced by an open incident,
whom it wakes stays as it was.
"""

from __future__ import annotations

import copy
import uuid
from typing import Any, Final

from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.frameworks.langgraph.writes import Answer, Write
from twinspan.instrumentation.gate import Boundary, Execution, OpenIncident, Verdict
from twinspan.instrumentation.run import LiveRun

CONTROL: Final = "twinspan_control"
"""Key of a node's metadata that marks it as one of ours: `gate` or `mitigation`."""

GATE: Final = "gate"
MITIGATION: Final = "mitigation"

BREAKER_SUFFIX: Final = ".breaker"
RELEASE_SUFFIX: Final = ".release"

INCIDENTS: Final = "bias_incidents"
FROZEN: Final = "bias_frozen"
REVIEWS: Final = "bias_reviews"


def is_guarded(task: Any) -> bool:
    """Whether a breaker node stands between a task's node and its readers.

    A task that also goes elsewhere, by a `Command` of its own, cannot be diverted.
    """
    woken = {channel for channel, _ in task.writes if names.is_routing(channel)}
    return woken == {f"{names.BRANCH}{task.name}{BREAKER_SUFFIX}"}


def is_control(task: Any) -> bool:
    """Whether a task's node is one of ours."""
    return CONTROL in (task.config.get("metadata") or {})


def opened(run: LiveRun, boundary: Boundary, verdict: Verdict, execution: Execution) -> str:
    """Open an incident; the mitigation nodes find it in the run."""
    incident = OpenIncident(
        id=uuid.uuid4().hex, boundary=boundary, verdict=verdict, execution=execution
    )
    run.incidents[incident.id] = incident
    return incident.id


def diverted(task: Any, incident_id: str, execution: Execution, verdict: Verdict) -> Answer:
    """What a task hands on in place of its frozen payload."""
    node = task.name
    told = {
        "id": incident_id,
        "node": node,
        "task_id": execution.task_id,
        "reason": "" if verdict.halt is None else verdict.halt.reason,
        "outcome": "open",
    }
    state: list[Write] = [
        (INCIDENTS, {node: told}),
        (FROZEN, {node: copy.deepcopy(dict(execution.payload))}),
    ]
    routing = [write for write in task.writes if names.is_routing(write[0])]
    answer = Answer(state)
    answer.writes = (*routing, *state)
    return answer
