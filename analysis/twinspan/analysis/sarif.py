"""Findings as SARIF 2.1.0, for tools that collect the findings of other tools."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from twinspan.analysis.chain import broken_links
from twinspan.analysis.findings import AuditQuestion, Finding, Step, audit_answer, findings
from twinspan.analysis.flip_rows import FlipReport
from twinspan.analysis.json_values import json_value
from twinspan.analysis.store import Store

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

FINGERPRINT: Final = "twinspanFinding/v1"
"""Name of the fingerprint: rule, graph, nodes, axis and edges, never a run, time or number."""

_BIAS: Final = (
    "A probe ran the node again on the same payload with one demographic attribute exchanged. "
    "Delta is how much more its answers differ across the exchange than among repeated runs; p "
    "is exact for one probe set and not corrected for there being many."
)
_BREAKER: Final = {
    "halt": "The payload was stopped before its consumer read it.",
    "reroute": "The payload was stopped and sent to the mitigation subgraph.",
    "escalate": "The payload was stopped and handed to a person.",
    "warn": "The network score or the monitor drifts towards its limit.",
    "proceed": "The payload went on.",
}
_DISPARITY: Final = (
    "Cases were run under a condition that changes this attribute and under the reference, several "
    "times each. Answers differ by more than repeated runs do (exact tests within cases, adjusted "
    "for all outcomes and conditions) and farther than under every control that was run."
)
_GATE: Final = (
    "An outcome is ranked by its within-band rate only if the agent is capable, decides, was given "
    "room to flip and is stable, and if the bands are ground truth. This is the first thing that "
    "is missing."
)
_INTERVENTION: Final = "A stopped payload was repaired, and what became of it was measured again."


def sarif_log(
    store: Store,
    *,
    run_id: str | None = None,
    everything: bool = False,
    source_file: str | None = None,
    question: AuditQuestion | None = None,
) -> dict[str, Any]:
    """The findings of a store as one SARIF log with one run.

    A breach carries code flows: for each edge that was cut, the way on which the most impact
    came to it, node by node. A record that is incomplete or was altered is told as a
    notification, and the invocation as unsuccessful: no result then means nothing.

    Args:
        store: opened spans.
        run_id: one run; all of them if None.
        everything: also list scores within the floor and decisions to proceed, as results that
            pass, and probe sets without a score, as open.
        source_file: relative path of the file that defines the graph. Code hosts show only
            results that have a file; spans know none.
        question: what is asked of audited runs; they are left out where one run is named.

    Raises:
        SourceError: if there is no such run.
        ConfigurationError: the question names a reference that is none of the conditions.
    """
    answer = None if run_id is not None else audit_answer(store, question or AuditQuestion())
    found = findings(store, run_id=run_id, everything=everything, question=question, answer=answer)
    rules = list(dict.fromkeys(finding.rule for finding in found))
    told = [*_notifications(store, run_id), *_audit_notifications(answer)]
    run = {
        "tool": {
            "driver": {
                "name": "twinspan",
                "version": _version(),
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not any(each["level"] == "error" for each in told),
                "toolExecutionNotifications": told,
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, rules.index(each.rule), source_file) for each in found],
    }
    log: dict[str, Any] = json_value({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})
    return log


def _version() -> str:
    try:
        return version("twinspan")
    except PackageNotFoundError:
        return "0+unknown"


# --- rules ----------------------------------------------------------------------------------------

_WORD: Final = re.compile(r"[A-Za-z0-9]+")


def _rule(rule: str) -> dict[str, object]:
    family, _, name = rule.partition("/")
    text = {
        "bias": f"A node reacts to {name}",
        "breaker": f"The breaker decided to {name}",
        "intervention": f"Intervention {name.replace('_', ' ')}",
        "disparity": f"Decisions change with {name}",
        "gate": f"The gate says {name.replace('_', ' ')}",
    }[family]
    explained = {
        "bias": _BIAS,
        "breaker": _BREAKER.get(name, text),
        "intervention": _INTERVENTION,
        "disparity": _DISPARITY,
        "gate": _GATE,
    }
    level = {"bias": "warning", "intervention": "note", "gate": "warning"}.get(
        family, {"warn": "warning", "proceed": "none"}.get(name, "error")
    )
    return {
        "id": rule,
        "name": "".join(word[0].upper() + word[1:] for word in _WORD.findall(rule)),
        "shortDescription": {"text": _escaped(f"{text}.")},
        "fullDescription": {"text": _escaped(explained[family])},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["fairness", family]},
    }


# --- results --------------------------------------------------------------------------------------


def _result(finding: Finding, rule_index: int, source_file: str | None) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "kind": finding.kind,
        "level": finding.level,
        "message": {"text": _escaped(finding.text)},
        "locations": [_location(finding.graph, finding.nodes, source_file)],
        "partialFingerprints": {FINGERPRINT: fingerprint(finding)},
        "properties": _properties(finding),
    }
    if finding.at is not None:
        result["provenance"] = {"firstDetectionTimeUtc": _utc(finding.at)}
    if finding.paths:
        flows = [_thread_flow(finding, path) for path in finding.paths]
        result["codeFlows"] = [{"threadFlows": [flow]} for flow in flows]
    return result


def fingerprint(finding: Finding) -> str:
    """What tells that two runs have the same finding, as 64 hex characters."""
    parts = (
        finding.rule,
        finding.graph or "",
        *finding.nodes,
        finding.axis or "",
        *sorted(finding.edges),
        *finding.subject,
    )
    content = "\0".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()


def _properties(finding: Finding) -> dict[str, object]:
    known = {
        **finding.numbers,
        "runId": finding.run_id,
        "traceId": finding.trace_id,
        "spanId": finding.span_id,
    }
    plain = {name: json_value(value) for name, value in known.items()}
    return {name: value for name, value in plain.items() if value is not None}


def _location(
    graph: str | None, nodes: Sequence[str], source_file: str | None = None
) -> dict[str, object]:
    """Where in the graph; with a file for readers that know no other place."""
    logical = [_logical(graph, node) for node in nodes] or [_logical(graph, None)]
    location: dict[str, object] = {"logicalLocations": logical}
    if source_file is not None:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": source_file},
            "region": {"startLine": 1},
        }
    return location


def _logical(graph: str | None, node: str | None) -> dict[str, object]:
    whole = graph or "graph"
    if node is None:
        return {"name": whole, "fullyQualifiedName": whole, "kind": "module"}
    return {"name": node, "fullyQualifiedName": f"{whole}/{node}", "kind": "function"}


# --- the way of the bias --------------------------------------------------------------------------


def _thread_flow(finding: Finding, path: Sequence[Step]) -> dict[str, object]:
    locations = [
        {
            "executionOrder": place,
            "importance": _importance(step, finding),
            "location": {
                **_location(finding.graph, (step.node,)),
                "message": {"text": _escaped(_step_text(step))},
            },
            "properties": _step_numbers(step),
        }
        for place, step in enumerate(path, start=1)
    ]
    return {"message": {"text": "How the bias came to the cut edge."}, "locations": locations}


def _importance(step: Step, finding: Finding) -> str:
    if step.is_cut or step.node in finding.nodes:
        return "essential"
    return "important" if step.contribution else "unimportant"


def _step_text(step: Step) -> str:
    measured = step.contribution
    if step.is_cut:
        return f"The edge to '{step.node}' was cut."
    if measured is None or measured.delta is None:
        return f"'{step.node}' was not measured."
    weight = "" if measured.weight is None else f", blast radius {measured.weight:.3g}"
    return f"'{step.node}' on {measured.axis}: delta {measured.delta:.3g}{weight}."


def _step_numbers(step: Step) -> dict[str, object]:
    measured = step.contribution
    if measured is None:
        return {"cut": True} if step.is_cut else {}
    known = {
        "axis": measured.axis,
        "delta": measured.delta,
        "weight": measured.weight,
        "impact": measured.impact,
        "p": measured.p_value,
        "e": measured.e_value,
    }
    plain = {name: json_value(value) for name, value in known.items()}
    return {name: value for name, value in plain.items() if value is not None}


# --- what the record itself lacks -----------------------------------------------------------------


def _notifications(store: Store, run_id: str | None) -> Iterator[dict[str, object]]:
    where, parameters = ("", []) if run_id is None else ("AND run_id = ?", [run_id])
    for run, reason in store.table(
        f"SELECT run_id, incomplete_reason FROM runs WHERE completeness = 'incomplete' {where}",
        parameters,
    ).rows:
        yield _notification("record/incomplete", f"Run {run} is incomplete: {reason}.")
    for broken in broken_links(store, run_id):
        yield _notification(
            "record/altered",
            f"Run {broken.run_id}, decision {broken.audit_seq}: {broken.reason}.",
        )
    for problem in store.problems:
        yield _notification("record/skipped", f"{problem}.", level="warning")


def _audit_notifications(answer: FlipReport | None) -> Iterator[dict[str, object]]:
    """What to mind of an audit; one of which runs are missing says nothing by having no result."""
    if answer is None:
        return
    for warning in answer.warnings:
        missing = warning in answer.missing
        yield _notification(
            "audit/incomplete" if missing else "audit/warning",
            f"{warning[0].upper()}{warning[1:]}.",
            level="error" if missing else "warning",
        )


def _notification(rule: str, text: str, *, level: str = "error") -> dict[str, object]:
    return {"descriptor": {"id": rule}, "level": level, "message": {"text": _escaped(text)}}


# --- SARIF's own conventions ----------------------------------------------------------------------

_MARKS: Final[Mapping[str, str]] = {"[": r"\[", "]": r"\]", "{": "{{", "}": "}}"}


def _escaped(text: str) -> str:
    """Text without meaning for SARIF: brackets would be links, braces places for arguments."""
    return "".join(_MARKS.get(letter, letter) for letter in text)


def _utc(at: object) -> str:
    """A time as SARIF writes it, in milliseconds with a Z."""
    text = str(json_value(at))
    return re.sub(r"(\.\d{3})\d*", r"\1", text).replace("+00:00", "Z")
