"""What twinspan would do with a program: what is probed, what is not and why, and at what cost.

With a program, `survey` runs it once, observed and not probed, and looks at the nodes that ran
and at what they read. Costs are counted for the samples that the plan would draw; tokens are an
estimate from the characters of payloads and answers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from packaging.requirements import Requirement

from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.gate import PROCEED, Boundary, RunPlan, Topology, Verdict
from twinspan.instrumentation.hashing import canonical
from twinspan.instrumentation.probing.wording import Worder
from twinspan.instrumentation.run import EXEMPT_KINDS
from twinspan.instrumentation.settings import ProbeOptions, Settings
from twinspan.instrumentation.tracing import RunTracer

CHARACTERS_PER_TOKEN: Final = 4
"""A rule of thumb for English text; what models really count differs."""

FRAMEWORKS: Final = ("langgraph", "openai-agents", "crewai", "pydantic-ai", "autogen")
"""The extras that stand for agent frameworks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """An agent framework, as it is installed.

    Attributes:
        extra: the extra that stands for it.
        package: its package.
        installed: its version; None if it is not there.
        supported: the versions that twinspan is made for.
        usable: whether it would be instrumented as intended.
    """

    extra: str
    package: str
    installed: str | None
    supported: str
    usable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """A node that ran.

    Attributes:
        node: its name.
        kind: what it is.
        executions: how often it ran.
        decision: `probed` or `not probed`.
        why: the reason.
        axes: the axes whose words were in what it read.
        tools: the tools that it called.
        calls: node runs, or model calls, that its probes would take.
        tokens: an estimate of the tokens of these.
    """

    node: str
    kind: str
    executions: int
    decision: str
    why: str
    axes: tuple[str, ...]
    tools: tuple[str, ...]
    calls: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that `twinspan doctor` tells."""

    frameworks: tuple[Framework, ...]
    nodes: tuple[NodeReport, ...]
    problems: tuple[str, ...]


# --- what is installed -----------------------------------------------------------------------


def frameworks() -> tuple[Framework, ...]:
    """The agent frameworks that twinspan knows, as far as they are installed.

    >>> [each.usable for each in frameworks() if each.extra == "langgraph"]
    [True]
    """
    needed = [Requirement(text) for text in requires("twinspan") or []]
    return tuple(
        _framework(extra, each)
        for extra in FRAMEWORKS
        for each in needed
        if each.marker is not None and f'extra == "{extra}"' in str(each.marker)
    )


def _framework(extra: str, needed: Requirement) -> Framework:
    try:
        installed = version(needed.name)
    except PackageNotFoundError:
        installed = None
    return Framework(
        extra=extra,
        package=needed.name,
        installed=installed,
        supported=str(needed.specifier),
        usable=installed is not None and needed.specifier.contains(installed, prereleases=True),
    )


# --- what runs -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Seen:
    """What was seen of one node."""

    kind: str = "function"
    executions: int = 0
    tools: dict[str, None] = field(default_factory=dict[str, None])
    read: list[Any] = field(default_factory=list[Any])
    characters: int = 0


class Survey(SpanProcessor):
    """A collector that only looks."""

    enforces = False

    def __init__(self) -> None:
        self.seen: dict[str, _Seen] = {}

    @property
    def processors(self) -> list[SpanProcessor]:
        """Itself."""
        return [self]

    def on_end(self, span: ReadableSpan) -> None:
        """Note a node's kind and its tools."""
        read = span.attributes or {}
        if read.get(c.SPAN_TYPE) == "node":
            seen = self.seen.setdefault(str(read[c.NODE_ID]), _Seen())
            seen.kind = str(read[c.NODE_KIND])
            tools = read.get(c.NODE_TOOLS)
            named = tools if isinstance(tools, tuple) else ()
            seen.tools.update(dict.fromkeys(map(str, named)))

    def open_run(self, run: RunTracer, topology: Topology) -> RunPlan:
        """Nothing is weighed."""
        return RunPlan()

    def decide(self, boundary: Boundary) -> Verdict:
        """Note what nodes read and answered, and let it pass."""
        for each in boundary.executions:
            seen = self.seen.setdefault(each.node, _Seen())
            seen.executions += 1
            seen.read.append(each.received)
            seen.characters += len(canonical(each.received)) + len(canonical(each.payload))
        return PROCEED

    async def repair(self, boundary: Boundary, verdict: Verdict) -> Verdict:
        """Nothing is repaired."""
        return verdict

    def consumed(self, run_id: str, node: str, parents: Sequence[str], input_hash: str) -> None:
        """Nothing was repaired."""

    def close_run(self, run_id: str) -> Mapping[str, object]:
        """Nothing to tell."""
        return {}

    def run_ended(self, run_id: str) -> None:
        """Nothing to write."""


def survey(program: Callable[[], object]) -> Survey:
    """Run a program once, observed and not probed; its own failure is no finding of ours."""
    seen = Survey()
    instrumentor = TwinspanInstrumentor()
    instrumentor.instrument(collector=seen, nodes=(), mode="shadow", record=None)
    try:
        program()
    except SystemExit:
        pass
    finally:
        instrumentor.uninstrument()
    return seen


# --- what would be done ------------------------------------------------------------------------


def node_reports(seen: Mapping[str, _Seen], options: ProbeOptions) -> tuple[NodeReport, ...]:
    """What the options come to for the nodes that ran."""
    return tuple(_node_report(node, each, options) for node, each in sorted(seen.items()))


def _node_report(node: str, seen: _Seen, options: ProbeOptions) -> NodeReport:
    why = _why_not(node, seen, options)
    axes: tuple[str, ...] = ()
    calls = tokens = 0
    if options.axes:
        per_execution = [_moving(payload, options) for payload in seen.read]
        axes = tuple(dict.fromkeys(name for names in per_execution for name in names))
        if not why:
            calls = sum(_calls(len(names), options) for names in per_execution if names)
            average = seen.characters / max(seen.executions, 1)
            tokens = round(calls * average / CHARACTERS_PER_TOKEN)
            why = "" if axes else "no word of an axis in what it read: the probe is a no_op"
    return NodeReport(
        node=node,
        kind=seen.kind,
        executions=seen.executions,
        decision="probed" if calls else "not probed",
        why=why or "named in nodes",
        axes=axes,
        tools=tuple(seen.tools),
        calls=calls,
        tokens=tokens,
    )


def _why_not(node: str, seen: _Seen, options: ProbeOptions) -> str:
    if seen.kind in EXEMPT_KINDS:
        return f"a {seen.kind} node is never run again"
    if not options.axes:
        return "no axes are set"
    return "" if options.covers(node) else "not named in nodes"


def _moving(payload: Any, options: ProbeOptions) -> tuple[str, ...]:
    worder = Worder(options.axes, payload, random=options.wording == "random")
    return tuple(each.label for each in options.contrasts if worder.moves(each))


def _calls(contrasts: int, options: ProbeOptions) -> int:
    """Of a plan in rounds, the first one: what a node costs on which nothing is found."""
    first = options.rounds.rounds[0]
    return first.calls(contrasts if options.plan == "fixed" else 1)


def problems(
    settings: Settings,
    known: Sequence[Framework],
    nodes: Sequence[NodeReport] | None,
    environ: Mapping[str, str] = os.environ,
) -> tuple[str, ...]:
    """What is wrong, or not as one might think, each in a sentence with the cure."""
    return tuple(
        [
            *_of_environment(environ),
            *_of_frameworks(known),
            *_of_settings(settings),
            *_of_nodes(settings, nodes or ()),
        ]
    )


def _of_environment(environ: Mapping[str, str]) -> Iterator[str]:
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        yield (
            "OTEL_SDK_DISABLED is true: twinspan decides and records all the same, but its spans "
            "are not in the application's traces; unset it to see them there"
        )
    disabled = environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")
    if "twinspan" in [name.strip() for name in disabled]:
        yield (
            "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS names twinspan: opentelemetry-instrument "
            "leaves it out; take it off that list"
        )
    others = sorted(
        f"{entry.name} ({entry.dist.name})"
        for entry in entry_points(group="opentelemetry_instrumentor")
        if entry.dist is not None and "langchain" in entry.name
    )
    if len(others) > 1:
        yield (
            f"several instrumentations see the same model calls: {', '.join(others)}; twinspan "
            "counts each call once, their own dashboards may not"
        )


def _of_frameworks(known: Sequence[Framework]) -> Iterator[str]:
    for each in known:
        if each.installed is not None and not each.usable:
            yield (
                f"{each.package} {each.installed} is not supported ({each.supported}); "
                f"pip install 'twinspan[{each.extra}]'"
            )


def _of_settings(settings: Settings) -> Iterator[str]:
    probe, breaker = settings.probe, settings.breaker
    if not probe.axes:
        yield "nothing is probed: no axes are set; name some in [probe] axes"
    elif not probe.nodes:
        yield "nothing is probed: no nodes are named; name those that may run again, nodes"
    if settings.record.record is None:
        yield "nothing is recorded: [record] record names no folder"
    if breaker.mode == "repair" and probe.level == "model":
        yield (
            "mode is repair and level is model: a node that must not run again cannot be "
            "repaired by running it, so runs are halted; choose skeptics, madera or halt"
        )
    if breaker.mode != "shadow" and breaker.stream == "pass":
        yield "stream is pass: what is halted may have been streamed already; use hold"


def _of_nodes(settings: Settings, nodes: Sequence[NodeReport]) -> Iterator[str]:
    probe = settings.probe
    for pattern in probe.nodes if nodes else ():
        if not any(fnmatchcase(each.node, pattern) for each in nodes):
            ran = ", ".join(each.node for each in nodes)
            yield f"no node that ran is named like {pattern!r}; those that ran: {ran}"
    for each in nodes:
        unsafe = [
            tool
            for tool in each.tools
            if not any(fnmatchcase(tool, pattern) for pattern in probe.safe_tools)
        ]
        if each.decision == "probed" and unsafe and probe.level == "node":
            yield (
                f"{each.node} calls {', '.join(unsafe)}: blocked inside probes, which then have "
                "no score; list what may run again in safe_tools, or use level = 'model'"
            )
    absent = {axis.name for axis in probe.axes} - {axis for each in nodes for axis in each.axes}
    for axis in sorted(absent) if nodes else ():
        yield f"no node read a word of axis {axis!r}; is its vocabulary that of the payloads?"


def examine(settings: Settings, program: Callable[[], object] | None = None) -> Report:
    """Everything that can be told, with a program or without."""
    known = frameworks()
    nodes = None
    if program is not None:
        nodes = node_reports(survey(program).seen, settings.probe)
    return Report(frameworks=known, nodes=nodes or (), problems=problems(settings, known, nodes))
