"""FairMedAgent trajectories: recorded clinical agents, one JSON file per replicate.

Each complete trajectory becomes a run with one node per step, by the same SDK and the same rows
as a live run. A trajectory tells neither when it happened nor how long it took: its spans carry
the time of the import, and `twinspan.audit.mode` says `offline`.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, cast

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator

from twinspan.analysis.dialects.base import Problems, RowSink
from twinspan.analysis.dialects.json_files import documents, head
from twinspan.analysis.outcomes import OutcomeRule, rules_of
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.audit.clinical import standard_conditions
from twinspan.instrumentation.tracing import RunTracer, Telemetry

INCOMPLETE: Final = "an incomplete trajectory was skipped"
NO_TRAJECTORY: Final = "an entry without a case, a condition and actions was skipped"
NO_LIST: Final = "a document without trajectories was skipped"

STEPS: Final = ("triage", "order", "results", "reassess", "prescribe", "document")
"""The steps in the order in which the agent takes them."""

_ENVIRONMENT_STEP: Final = "results"
_REPLICATE: Final = re.compile(r"^rep(?:licate)?[-_]?(\d+)$", re.IGNORECASE)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One complete trajectory and where it stands in its audit."""

    source: str
    case: str
    condition: str
    model: str | None
    replicate: int
    actions: Mapping[str, Json]
    details: Mapping[str, object]

    @property
    def run_id(self) -> str:
        """The same for the same content: importing it twice gives no second replicate."""
        content = json.dumps(
            [self.source, self.case, self.condition, self.model, self.replicate, self.actions],
            sort_keys=True,
        )
        return hashlib.sha256(content.encode()).hexdigest()[:32]


class FairMedAgent:
    """Reads files with a list `trajectories`, the source's own and condensed ones."""

    form = "FairMedAgent trajectories"

    def recognises(self, path: Path) -> bool:
        """Whether a file begins like a file of trajectories."""
        beginning = head(path)
        return b'"trajectories"' in beginning and b"resourceSpans" not in beginning

    def read(self, paths: Sequence[Path], sink: RowSink, problems: Problems) -> None:
        """Read the complete trajectories of files into rows."""
        ids = _SettledIds()
        app = TracerProvider(
            resource=Resource({"service.name": "fairmedagent"}),
            id_generator=ids,
            shutdown_on_exit=False,
        )
        telemetry = Telemetry([_ToSink(sink)], app_provider=app)
        outcomes = [rule.text for rule in default_rules()]
        for trajectory in _trajectories(paths, problems):
            ids.begin(trajectory.run_id)
            _emit(telemetry.run(trajectory.run_id), trajectory, outcomes)
        telemetry.shutdown()
        sink.flush()


def default_rules() -> tuple[OutcomeRule, ...]:
    """The six outcomes of the study, from the file beside this reader."""
    text = (
        files("twinspan.analysis.dialects")
        .joinpath("fairmedagent.toml")
        .read_text(encoding="utf-8")
    )
    return rules_of(cast("Mapping[str, object]", tomllib.loads(text)["outcomes"]))


@cache
def _kinds() -> dict[str, tuple[str | None, str | None]]:
    """Kind and varied attributes of the study's conditions, by their ids."""
    return {
        each.id: (each.kind, "+".join(each.varied) or None)
        for each in standard_conditions(include_no_descriptor=True)
    }


class _SettledIds(IdGenerator):
    """Ids that follow from a run's id, so that an import can be repeated."""

    def __init__(self) -> None:
        self._seed = ""
        self._count = 0

    def begin(self, run_id: str) -> None:
        self._seed = run_id
        self._count = 0

    def generate_trace_id(self) -> int:
        return int(self._seed, 16) or 1

    def generate_span_id(self) -> int:
        self._count += 1
        digest = hashlib.sha256(f"{self._seed}/{self._count}".encode()).digest()
        return int.from_bytes(digest[:8], "big") or 1


class _ToSink(SpanProcessor):
    """Hands ended spans to a sink."""

    def __init__(self, sink: RowSink) -> None:
        self._sink = sink

    def on_end(self, span: ReadableSpan) -> None:
        self._sink.add_span(span)


def _trajectories(paths: Sequence[Path], problems: Problems) -> Iterator[Trajectory]:
    taken: set[tuple[object, ...]] = set()
    for path in sorted(paths):
        numbered = _replicate_of(path)
        for place, entry, source, model in _entries(path, problems):
            trajectory = _trajectory(entry, f"{source}#{place}", model, numbered, taken)
            if trajectory is None:
                problems.count(path.name, NO_TRAJECTORY)
            else:
                yield trajectory


def _entries(path: Path, problems: Problems) -> Iterator[tuple[int, Json, str, object]]:
    """The complete entries of a file with their place in it, the file's source and model."""
    for document in documents(path, problems):
        listed = cast(Json, document).get("trajectories") if isinstance(document, dict) else None
        if not isinstance(listed, list):
            problems.count(path.name, NO_LIST)
            continue
        holder = cast(Json, document)
        source = str(holder.get("source") or f"{path.parent.name}/{path.name}")
        for place, entry in enumerate(cast("list[object]", listed)):
            if isinstance(entry, dict) and cast(Json, entry).get("complete") is False:
                problems.count(path.name, INCOMPLETE)
            else:
                yield place, cast(Json, entry), source, holder.get("model")


def _replicate_of(path: Path) -> int | None:
    """The replicate that a file's or its folder's name states.

    >>> _replicate_of(Path("floor16/rep07.json")), _replicate_of(Path("rep02/trajectories.json"))
    (7, 2)
    """
    for name in (path.name.partition(".")[0], path.parent.name):
        match = _REPLICATE.match(name)
        if match:
            return int(match.group(1))
    return None


def _trajectory(
    entry: object, source: str, model: object, numbered: int | None, taken: set[tuple[object, ...]]
) -> Trajectory | None:
    if not isinstance(entry, dict):
        return None
    read = cast(Json, entry)
    case, condition, actions = (read.get(key) for key in ("vignette_id", "condition_id", "actions"))
    if not case or not condition or not isinstance(actions, dict):
        return None
    model = read.get("model") or model
    replicate = numbered or 1
    # The same cell twice is another replicate, whatever the file is called.
    while (model, case, condition, replicate) in taken:
        replicate += 1
    taken.add((model, case, condition, replicate))
    return Trajectory(
        source=source,
        case=str(case),
        condition=str(condition),
        model=None if model is None else str(model),
        replicate=replicate,
        actions=_in_order(cast("dict[str, object]", actions)),
        details={
            f"fairmedagent.{key}": read[key]
            for key in ("scaffold", "model_calls", "response_ids")
            if key in read
        },
    )


def _in_order(actions: Mapping[str, object]) -> dict[str, Json]:
    known = [step for step in STEPS if step in actions]
    others = [step for step in actions if step not in STEPS]
    steps = {step: actions[step] for step in (*known, *others)}
    return {step: cast(Json, action) for step, action in steps.items() if isinstance(action, dict)}


def _emit(run: RunTracer, trajectory: Trajectory, outcomes: Sequence[str]) -> None:
    """The spans of one trajectory."""
    place = {
        c.CASE_ID: trajectory.case,
        c.CONDITION_ID: trajectory.condition,
        c.CONDITION_KIND: _kinds().get(trajectory.condition, (None, None))[0],
        c.CONDITION_AXIS: _kinds().get(trajectory.condition, (None, None))[1],
        c.REPLICATE_INDEX: trajectory.replicate,
        c.GEN_AI_REQUEST_MODEL: trajectory.model,
    }
    root = run.start(
        c.operation_name(c.SPAN_RUN, "fairmedagent"),
        "run",
        {
            c.GEN_AI_OPERATION: c.SPAN_RUN,
            c.GEN_AI_AGENT_NAME: "fairmedagent",
            c.AUDIT_MODE: "offline",
            c.AUDIT_OUTCOMES: outcomes,
            c.SOURCE_NAME: trajectory.source,
            **place,
            **trajectory.details,
        },
    )
    steps = list(trajectory.actions)
    for index, step in enumerate(steps):
        _emit_step(run, root, trajectory, steps[:index][-1:], index, step)
    run.end(
        root,
        {
            c.RUN_OUTCOME: "completed",
            c.RUN_NODE_COUNT: len(steps),
            c.RUN_PROBE_COUNT: 0,
            c.RUN_SUPERSTEP_COUNT: len(steps),
            c.RUN_SPAN_COUNT: run.ended_count + 1,
        },
    )


def _emit_step(
    run: RunTracer, root: Span, trajectory: Trajectory, before: list[str], index: int, step: str
) -> None:
    asks = step != _ENVIRONMENT_STEP
    span = run.start(
        c.operation_name(c.SPAN_AGENT if asks else c.SPAN_NODE, step),
        "node",
        {
            c.GEN_AI_OPERATION: c.SPAN_AGENT if asks else c.SPAN_NODE,
            c.GEN_AI_AGENT_NAME: step,
            c.GEN_AI_REQUEST_MODEL: trajectory.model if asks else None,
            c.NODE_ID: step,
            c.NODE_KIND: "agent" if asks else "function",
            c.NODE_TASK_ID: f"{run.run_id}/{step}",
            c.NODE_ATTEMPT: 1,
            c.NODE_PARENTS: before,
            c.NODE_PARENT_TASK_IDS: [f"{run.run_id}/{parent}" for parent in before],
            # The file tells the order of the steps, not what each of them read.
            c.NODE_EDGE_KIND: "inferred" if before else None,
            c.SUPERSTEP_INDEX: index,
            c.SUPERSTEP_SCOPE: "",
        },
        parent=root,
    )
    action = trajectory.actions[step]
    fields = {f"{c.ACTION_PREFIX}{name}": value for name, value in _fields(step, action)}
    run.end(span, {c.NODE_OUTCOME: "ok", **fields})


def _fields(step: str, action: Json) -> Iterator[tuple[str, object]]:
    """The fields of a step's action; a nested object's under dotted names."""
    nested = action.get(_ENVIRONMENT_STEP)
    if step == _ENVIRONMENT_STEP and isinstance(nested, dict):
        # The library keeps results one level deeper than the files of the study do.
        action = cast(Json, nested)
    for name, value in action.items():
        if isinstance(value, dict):
            for inner, item in cast(Json, value).items():
                yield f"{name}.{inner}", item
        else:
            yield name, value
