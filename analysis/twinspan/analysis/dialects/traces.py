"""What the spans of one trace mean, in the names of our own record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from twinspan.analysis.dialects.control_flow import outcome_of
from twinspan.analysis.dialects.foreign import Payload, payload
from twinspan.analysis.dialects.graph_runs import GraphRuns, run_id_of
from twinspan.analysis.dialects.span_tree import SpanTree, Told
from twinspan.analysis.dialects.steps import Origin, Step, Steps
from twinspan.analysis.dialects.traced_calls import TracedCall, TracedCalls
from twinspan.instrumentation.conventions import edge_name

_T = TypeVar("_T")

Row = dict[str, Any]
"""Columns of the record that a span is given, by their names."""

LLM_CALL: Final = "llm_call"
"""Type of a span that stands for one call of a model; only readers give it."""

OWN: Final = "twinspan"

_OUTPUT_FIELD: Final = "output"
"""Name under which the hash of a whole output counts among a node's fields."""

_RUN_OUTCOMES: Final = {
    "ok": "completed",
    "error": "failed",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
}


class TraceReading:
    """Reads one trace.

    Args:
        told: its spans with what each means by itself.
    """

    def __init__(self, told: Sequence[Told]) -> None:
        tree = SpanTree(told)
        self._runs = GraphRuns(tree)
        self._steps = Steps(tree, self._runs)
        self._calls = TracedCalls(tree, self._runs, self._steps)
        self._is_own = any(each.span.span_type in {"run", "node"} for each in told)
        self._own_nodes = {
            each.span.task_id: each.span.node_id
            for each in told
            if each.span.task_id and each.span.node_id
        }
        self._was_read = any(_is_ours(each) for each in told)

    @property
    def ignored(self) -> Counter[tuple[str, str]]:
        """Steps and calls that were left out, as (dialect, what is believed instead)."""
        if self._was_read:
            return Counter()
        beside = Counter((step.reading.dialect, OWN) for step in self._steps.kept)
        return self._steps.ignored + self._calls.ignored + (beside if self._is_own else Counter())

    def rows(self) -> Iterator[Row]:
        """A row for each span that means something to our views."""
        if self._was_read:
            return
        if not self._is_own:
            yield from self._graph_rows()
        nodes = {step.place.task: step.place.node for step in self._steps.kept}
        nodes |= self._own_nodes
        for call in self._calls.kept:
            yield call_row(call, nodes)

    def _graph_rows(self) -> Iterator[Row]:
        by_run: dict[str, list[Step]] = {run_id_of(each.span): [] for each in self._runs.roots}
        for step in self._steps.kept:
            by_run.setdefault(step.run_id, []).append(step)
        origins = self._steps.origins()
        holders = {step.place.scope.partition("|")[0] for step in self._steps.kept}
        calling = {each.task_id for each in self._calls.kept}
        for steps in by_run.values():
            for number, step in enumerate(steps):
                yield node_row(step, origins[step.run_id, step.place.task]) | {
                    "audit_seq": number,
                    "node_kind": _kind(step, holders, calling),
                }
        for root in self._runs.roots:
            yield self._run_row(root, by_run[run_id_of(root.span)])

    def _run_row(self, root: Told, steps: Sequence[Step]) -> Row:
        run_id = run_id_of(root.span)
        readings = [each.reading for each in self._runs.members(root) if each.reading]
        graph = _first(each.graph for each in readings)
        given = _first(each.input for each in readings)
        outcome, error = outcome_of(root.span)
        if outcome == "ok" and "interrupted" in _last_outcomes(steps):
            outcome = "interrupted"
        models = {each.reading.model for each in self._calls.kept if each.run_id == run_id}
        return _of(root) | {
            "span_type": "run",
            "run_id": run_id,
            "audit_seq": len(steps),
            "gen_ai_agent_name": graph,
            "gen_ai_conversation_id": _first(each.conversation for each in readings),
            "gen_ai_request_model": models.pop() if len(models) == 1 else None,
            "case_id": _case(graph, given),
            "graph_nodes": _first(list(each.nodes) for each in readings),
            "graph_edges": [edge_name(*edge) for edge in self._steps.static.get((run_id, ""), ())]
            or None,
            "run_outcome": _RUN_OUTCOMES[outcome],
            "run_node_count": len(steps) or None,
            "run_superstep_count": len({(s.place.scope, s.index) for s in steps}) or None,
            "error_type": error,
            "status_code": _status(root, error),
        }


def _is_ours(told: Told) -> bool:
    """Whether a span was given its place by an earlier reading, and kept by an import."""
    run_id = told.span.run_id
    return told.span.span_type == LLM_CALL or (
        told.span.span_type is not None
        and run_id is not None
        and run_id.startswith(f"{told.span.trace_id}-")
    )


def _of(told: Told) -> Row:
    return {
        "trace_id": told.span.trace_id,
        "span_id": told.span.span_id,
        "start_unix_nano": told.span.start,
    }


def _status(told: Told, error: str | None) -> str:
    """A status: what is no failure has none, whatever an instrumentation made of it."""
    if error is not None:
        return "ERROR"
    return "UNSET" if told.span.status == "ERROR" else told.span.status


def _kind(step: Step, holders: set[str], calling: set[str | None]) -> str:
    if step.place.task in holders:
        return "subgraph"
    is_agent = step.reading.is_agent or step.place.task in calling
    return "agent" if is_agent else "function"


def node_row(step: Step, origin: Origin) -> Row:
    """What the record says of an attempt of an execution."""
    reading = step.reading
    told = _of(step.told) | {
        "span_type": "node",
        "run_id": step.run_id,
        "node_id": step.place.node,
        "node_task_id": step.place.task,
        "node_outcome": step.outcome,
        "superstep_index": origin.index,
        "superstep_scope": step.place.scope,
        "gen_ai_conversation_id": reading.conversation,
        "error_type": step.error,
        "status_code": _status(step.told, step.error),
        "node_input_hash": reading.input.hash if reading.input else None,
    }
    if origin.sources:
        told |= {
            "node_parents": [each.node for each in origin.sources],
            "node_parent_task_ids": [each.task for each in origin.sources],
            "node_parent_hashes": [each.output_hash for each in origin.sources],
            "node_edge_kind": origin.kind,
        }
    return told | (_handed_on(reading.output) if step.outcome == "ok" else {})


def _handed_on(output: Payload | None) -> Row:
    if output is None:
        return {}
    fields = {_OUTPUT_FIELD: f'"{output.hash}"', **output.fields}
    return {
        "node_output_hash": output.hash,
        "node_output_size": output.size,
        "action_fields": list(fields.items()),
    }


def call_row(call: TracedCall, nodes: dict[str, str]) -> Row:
    """What the record says of a call of a model."""
    reading = call.reading
    _, error = outcome_of(call.told.span)
    return _of(call.told) | {
        "span_type": LLM_CALL,
        "run_id": call.run_id,
        "node_id": nodes.get(call.task_id or ""),
        "node_task_id": call.task_id,
        "gen_ai_conversation_id": reading.conversation,
        "gen_ai_request_model": reading.model,
        "gen_ai_provider_name": reading.provider,
        "gen_ai_usage_input_tokens": reading.input_tokens,
        "gen_ai_usage_output_tokens": reading.output_tokens,
        "error_type": error,
        "status_code": _status(call.told, error),
    }


def _case(graph: str | None, given: Payload | None) -> str | None:
    """Runs of one graph on one input are each other's replicates."""
    if given is None:
        return None
    together = payload([graph, given.hash])
    return together.hash if together else None


def _last_outcomes(steps: Sequence[Step]) -> set[str]:
    """How each execution ended, whatever its earlier attempts did."""
    return set({step.place.task: step.outcome for step in steps}.values())


def _first(values: Iterable[_T]) -> _T | None:
    """The first value that says something."""
    return next((each for each in values if each), None)
