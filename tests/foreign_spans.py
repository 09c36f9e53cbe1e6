"""OTLP lines as other instrumentations write them, made of a few words each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OPENINFERENCE = "openinference.instrumentation.langchain"
TRACELOOP = "opentelemetry.instrumentation.langchain"
GENAI = "opentelemetry.instrumentation.genai.langchain"
AGENTS = "openinference.instrumentation.openai_agents"
ERROR = {"code": 2}


def _value(value: object) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value}


def _attributes(values: Mapping[str, object]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


@dataclass
class Program:
    """A trace under construction; ids are small numbers, times milliseconds."""

    trace: int = 1
    spans: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def span(
        self,
        scope: str,
        name: str,
        parent: int | None,
        when: tuple[float, float],
        attributes: Mapping[str, object],
        *,
        status: Mapping[str, object] | None = None,
        raised: str | None = None,
    ) -> int:
        """Add a span; returns its number."""
        number = self.trace * 1000 + len(self.spans) + 1
        event = {"name": "exception", "attributes": _attributes({"exception.type": raised})}
        self.spans.append(
            (
                scope,
                {
                    "traceId": f"{self.trace:032x}",
                    "spanId": f"{number:016x}",
                    "parentSpanId": "" if parent is None else f"{parent:016x}",
                    "name": name,
                    "startTimeUnixNano": str(int(10**15 + when[0] * 10**6)),
                    "endTimeUnixNano": str(int(10**15 + when[1] * 10**6)),
                    "attributes": _attributes(attributes),
                    "status": dict(status or {}),
                    "events": [event] if raised else [],
                },
            )
        )
        return number

    # --- OpenInference ---

    def oi_graph(self, name: str, when: tuple[float, float], **given: Any) -> int:
        """A graph as OpenInference tells it."""
        attributes = {
            "openinference.span.kind": "CHAIN",
            "metadata": json.dumps({"ls_integration": "langgraph"}),
            "input.value": json.dumps(given.pop("input", {"q": 1})),
            "input.mime_type": "application/json",
        }
        return self.span(OPENINFERENCE, name, given.pop("parent", None), when, attributes, **given)

    def oi_node(
        self,
        namespace: str,
        step: int,
        parent: int,
        when: tuple[float, float],
        *,
        triggers: Sequence[str] = (),
        output: object = None,
        name: str | None = None,
        kind: str = "CHAIN",
        **given: Any,
    ) -> int:
        """A node, or with another name or kind something inside it."""
        node = namespace.rpartition("|")[2].partition(":")[0]
        attributes: dict[str, object] = {
            "openinference.span.kind": kind,
            "metadata": json.dumps(
                {
                    "langgraph_node": node,
                    "langgraph_step": step,
                    "langgraph_triggers": list(triggers or [f"branch:to:{node}"]),
                    "langgraph_checkpoint_ns": namespace,
                }
            ),
        }
        if output is not None:
            attributes["output.value"] = json.dumps(output)
            attributes["output.mime_type"] = "application/json"
        return self.span(OPENINFERENCE, name or node, parent, when, attributes, **given)

    # --- Traceloop ---

    def tl_graph(
        self, name: str, when: tuple[float, float], edges: Sequence[str] = (), **given: Any
    ) -> int:
        """A graph as Traceloop tells it, with its declared edges."""
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": name,
            "gen_ai.workflow.edges": list(edges),
        }
        return self.span(
            TRACELOOP, f"invoke_agent {name}", given.pop("parent", None), when, attributes, **given
        )

    def tl_node(
        self, namespace: str, step: int, parent: int, when: tuple[float, float], **given: Any
    ) -> int:
        """A node as Traceloop tells it."""
        node = namespace.rpartition("|")[2].partition(":")[0]
        properties = "traceloop.association.properties."
        attributes = {
            "traceloop.span.kind": "task",
            "traceloop.entity.name": node,
            "gen_ai.operation.name": "execute_task",
            f"{properties}langgraph_node": node,
            f"{properties}langgraph_step": step,
            f"{properties}langgraph_checkpoint_ns": namespace,
            f"{properties}langgraph_triggers": [f"branch:to:{node}"],
        }
        return self.span(TRACELOOP, f"execute_task {node}", parent, when, attributes, **given)

    # --- the conventions ---

    def genai(
        self, operation: str, name: str, parent: int | None, when: tuple[float, float], **given: Any
    ) -> int:
        """A workflow, an agent or a call of a model."""
        attributes = {"gen_ai.operation.name": operation, "gen_ai.agent.name": name}
        if operation == "chat":
            attributes = {"gen_ai.operation.name": operation, "gen_ai.request.model": name}
        return self.span(GENAI, f"{operation} {name}", parent, when, attributes, **given)

    def agent(
        self, name: str, parent: int, when: tuple[float, float], handed_by: str | None = None
    ) -> int:
        """An agent of OpenAI Agents."""
        attributes = {"openinference.span.kind": "AGENT", "graph.node.id": name}
        if handed_by is not None:
            attributes["graph.node.parent_id"] = handed_by
        return self.span(AGENTS, name, parent, when, attributes)

    # --- out ---

    def line(self) -> str:
        """The trace as one line of OTLP JSON."""
        scoped = [{"scope": {"name": scope}, "spans": [span]} for scope, span in self.spans]
        return json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": scoped}]})


def written(folder: Path, *programs: Program) -> Path:
    """A file of traces."""
    path = folder / "others.jsonl"
    path.write_text("".join(program.line() + "\n" for program in programs), encoding="utf-8")
    return path
