"""LangGraph's own names for where a node runs, as OpenInference and Traceloop copy them.

A namespace names the way to an execution, `holder:task|node:task`: the node's name and its task
at the end, before them the tasks of the nodes that hold the subgraph. A bare number between bars
counts the subgraphs that one task ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

_NAMES: Final = ("langgraph_checkpoint_ns", "checkpoint_ns")
_JOIN: Final = "join:"
_BRANCH: Final = "branch:to:"

MOST_SOURCES: Final = 256
"""Sources that an execution lists one by one; of more, one stands for each node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an execution stands.

    Attributes:
        node: the node, qualified by those that hold it.
        task: the execution.
        scope: '' for the root graph, else the task that holds the subgraph.
    """

    node: str
    task: str
    scope: str


def place_of(namespace: str) -> Place:
    """What a namespace says.

    >>> place_of("draft:7")
    Place(node='draft', task='7', scope='')
    >>> place_of("writer_team:3|draft:7")
    Place(node='writer_team/draft', task='7', scope='3')
    >>> place_of("writer_team:3|1|draft:7").scope
    '3|1'
    """
    names: list[str] = []
    scope, task = "", ""
    for part in namespace.split("|"):
        name, separator, found = part.rpartition(":")
        if separator:
            scope, task = task, found
            names.append(name)
        else:
            task = f"{task}|{part}"
    return Place(node="/".join(names) or namespace, task=task, scope=scope)


def namespace_of(metadata: Mapping[str, object], span_id: str) -> str | None:
    """The namespace that metadata holds; one made of the span's id where only the node is told.

    >>> namespace_of({"langgraph_node": "a"}, "0f"), namespace_of({}, "0f")
    ('a:0f', None)
    """
    node = metadata.get("langgraph_node")
    if not isinstance(node, str) or not node:
        return None
    found = next((metadata[name] for name in _NAMES if metadata.get(name)), None)
    return found if isinstance(found, str) else f"{node}:{span_id}"


def joined(triggers: Iterable[str], node: str) -> tuple[tuple[str, ...], ...]:
    """The sources of each join that wakes a node.

    >>> joined(["branch:to:c", "join:a+b:c"], "c")
    (('a', 'b'),)
    """
    tail = f":{node}"
    return tuple(
        tuple(trigger[len(_JOIN) : -len(tail)].split("+"))
        for trigger in triggers
        if trigger.startswith(_JOIN) and trigger.endswith(tail)
    )


@dataclass(slots=True, kw_only=True)
class Execution:
    """One execution of a node within a run, all its attempts together.

    Attributes:
        place: where it stands.
        step: its superstep.
        triggers: the channels that wake it.
        finished: whether an attempt came to its end.
        targets: nodes that it named to run next.
        output_hash: hash of what it handed on.
    """

    place: Place
    step: int
    triggers: tuple[str, ...] = ()
    finished: bool = False
    targets: frozenset[str] = frozenset()
    output_hash: str | None = None

    @property
    def name(self) -> str:
        """The node's name within its own graph."""
        return self.place.node.rpartition("/")[2]


class ScopeSteps:
    """The executions of one graph in one run, superstep by superstep.

    Args:
        executions: all of them.
        static: edges of the graph as it was declared.
    """

    def __init__(
        self, executions: Sequence[Execution], static: Set[tuple[str, str]] = frozenset()
    ) -> None:
        self._static = static
        self._at: dict[int, list[Execution]] = {}
        self._ran: dict[str, list[int]] = {}
        for each in sorted(executions, key=lambda each: each.step):
            self._at.setdefault(each.step, []).append(each)
            self._ran.setdefault(each.name, []).append(each.step)
        self._read = {source.place.task for each in executions for source in self._observed(each)}

    def sources(self, target: Execution) -> tuple[list[Execution], str | None]:
        """What an execution read from, and whether that was observed or inferred.

        Observed means that the record itself names both ends: a join that was complete, a jump,
        or a declared edge from the only node of the superstep before. Anything else is a guess
        by order, in which those come first whose answer nobody is known to have read. None
        stands for an execution with nothing before it.
        """
        before = self._before(target)
        if not before:
            return [], None
        found = self._observed(target)
        if found:
            return _few({each.place.task: each for each in found}), "observed"
        declared = self._declared(before, target)
        woken = f"{_BRANCH}{target.name}" in target.triggers
        guessed = declared if declared and woken else before
        unread = [each for each in guessed if each.place.task not in self._read]
        return _few({each.place.task: each for each in unread or guessed}), "inferred"

    def _before(self, target: Execution) -> list[Execution]:
        return [each for each in self._at.get(target.step - 1, ()) if each.finished]

    def _declared(self, before: Sequence[Execution], target: Execution) -> list[Execution]:
        return [each for each in before if (each.name, target.name) in self._static]

    def _observed(self, target: Execution) -> list[Execution]:
        """Sources that the record itself names."""
        before = self._before(target)
        if not before:
            return []
        found = [*self._joins(target), *(each for each in before if target.name in each.targets)]
        if len({each.name for each in before}) == 1:
            found += self._declared(before, target)
        return found

    def _joins(self, target: Execution) -> list[Execution]:
        """Sources of the joins that were complete just now.

        A node's triggers are all channels that could wake it. A join did so if each source has
        run since the node last did, and one of them in the superstep before.
        """
        since = max((step for step in self._ran[target.name] if step < target.step), default=None)
        found: list[Execution] = []
        for names in joined(target.triggers, target.name):
            latest = [self._latest(name, target.step, since) for name in names]
            complete = [each for each in latest if each is not None]
            if len(complete) == len(names) and any(
                each.step == target.step - 1 for each in complete
            ):
                found += complete
        return found

    def _latest(self, name: str, before: int, since: int | None) -> Execution | None:
        for step in reversed(self._ran.get(name, ())):
            if step < before and (since is None or step >= since):
                return next(
                    (each for each in self._at[step] if each.name == name and each.finished), None
                )
        return None


def _few(found: Mapping[str, Execution]) -> list[Execution]:
    """Sources by task; a wide fan-out into a wide fan-out would be their product."""
    if len(found) <= MOST_SOURCES:
        return list(found.values())
    return list({each.name: each for each in found.values()}.values())
