"""Options: frozen values, resolved as argument over environment over file over default.

Every option has one name. It is a keyword of `TwinspanInstrumentor().instrument(...)`, a key of
its section in `twinspan.toml`, and an environment variable `TWINSPAN_<SECTION>_<NAME>`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from twinspan.instrumentation.divergence.selection import ESTIMATORS
from twinspan.instrumentation.errors import ConfigurationError, InvalidOption
from twinspan.instrumentation.option_checks import at_least, one_of, share
from twinspan.instrumentation.option_sources import (
    Given,
    from_arguments,
    from_environment,
    from_file,
    variable,
)
from twinspan.instrumentation.option_values import read_option
from twinspan.instrumentation.perturbation import Axis
from twinspan.instrumentation.probing.contrast import Contrast, Control, contrasts_of
from twinspan.instrumentation.probing.rounds import (
    ADAPTIVE_PLAN,
    THOROUGH_PLAN,
    ProbePlan,
    Round,
)

CAPTURE_CONTENT_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""OpenTelemetry's own switch for content; twinspan has none of its own."""

CONFIG_VARIABLE: Final = "TWINSPAN_CONFIG"
"""Path of a `twinspan.toml` that is read when no file is named."""

_CONTENT_ON: Final = frozenset({"true", "span_only", "span_and_event"})

Plan = Literal["fixed", "adaptive", "thorough"]
Wording = Literal["random", "same"]
Level = Literal["node", "model"]
Mode = Literal["shadow", "halt", "repair"]
Trigger = Literal["monitor", "threshold", "both", "either", "path"]
Scaling = Literal["constant", "warmup", "deviation"]
Reduction = Literal["impact_sum", "impact_max", "weighted_mean", "max"]
WeightMethod = Literal["katz", "out_degree", "betweenness"]
Stream = Literal["hold", "pass"]
RepairChoice = Literal["blind", "skeptics", "madera", "auto"]
Weighting = Literal["uniform", "trust"]


@lru_cache(maxsize=4096)
def _matches(node: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name fits one of the patterns; asked for every node of every run."""
    return any(fnmatchcase(node, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions:
    """Which nodes are probed, on which axes, how often.

    Attributes:
        axes: the axes; none means that nothing is probed.
        nodes: globs of the nodes that may be run again; none by default, since a probe runs
            a node's side effects too.
        level: `node` runs a node again; `model` asks only its models again, with what the node
            asked them, for nodes that must not run twice. Such a node cannot be repaired blind.
        reference: samples under the payload's own group (baseline and null re-samples).
        counterfactual: samples under another group.
        plan: `fixed` draws these numbers on every node; `adaptive` and `thorough` begin with a
            screen of all axes at once and draw more only where evidence grows.
        budget: node runs that all probes of a run may spend; no limit if unset.
        audit_rate: share of the screened-out nodes that are probed on every axis all the same.
        probed_nodes: how many nodes a run probes on average, drawn in proportion to blast
            radius; all if unset.
        minimum_rate: smallest probability with which any node is probed.
        wording: `random` draws every sample's words anew, so that the axis is the only
            systematic difference; `same` is cheaper and only shows a reaction to the edit.
        estimator: distance between answers: `auto`, `category`, `action`, `text`.
        outcome: dotted path to the part of a node's answer that is compared; all of it if unset.
        concurrency: node runs at a time, per probe set.
        timeout: seconds for one node run.
        retries: further tries of a node run that raised.
        controls: control arms to measure beside each axis: `sham` (an attribute that means
            nothing), `rare_token` (an invented word), `neutral_edit` (other wording). They are
            recorded and decide nothing.
        seed: seed of wording and order.
        safe_tools: globs of tools that may run inside a probe.
    """

    axes: tuple[Axis, ...] = ()
    nodes: tuple[str, ...] = ()
    level: Level = "node"
    reference: int = 10
    counterfactual: int = 5
    plan: Plan = "fixed"
    budget: int | None = None
    audit_rate: float = 0.05
    probed_nodes: float | None = None
    minimum_rate: float = 0.2
    wording: Wording = "random"
    estimator: str = "auto"
    outcome: str | None = None
    concurrency: int = 8
    timeout: float = 60.0
    retries: int = 1
    controls: tuple[Control, ...] = ()
    seed: int = 0
    safe_tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        at_least("reference", self.reference, 2)
        at_least("counterfactual", self.counterfactual, 2)
        one_of("plan", self.plan, Plan)
        one_of("level", self.level, Level)
        one_of("wording", self.wording, Wording)
        at_least("budget", 0 if self.budget is None else self.budget, 0)
        at_least("concurrency", self.concurrency, 1)
        at_least("retries", self.retries, 0)
        at_least("timeout", self.timeout, 0.001)
        share("audit_rate", self.audit_rate, zero=True)
        share("minimum_rate", self.minimum_rate)
        if self.probed_nodes is not None and not self.probed_nodes > 0:
            raise InvalidOption("probed_nodes", self.probed_nodes, cure="it must be above 0")
        if self.estimator not in ("auto", *ESTIMATORS):
            known = ", ".join(("auto", *ESTIMATORS))
            raise InvalidOption("estimator", self.estimator, cure=f"use one of {known}")
        for control in self.controls:
            one_of("controls", control, Control)

    def covers(self, node: str) -> bool:
        """Whether a node is one of those that may be probed.

        >>> from twinspan.instrumentation import builtin_axis
        >>> ProbeOptions(axes=(builtin_axis("age"),), nodes=("analyst_*",)).covers("analyst_a")
        True
        >>> ProbeOptions().covers("analyst_a")
        False
        """
        return bool(self.axes) and _matches(node, self.nodes)

    def again(self, axes: tuple[Axis, ...], *, samples: int, seed_offset: int) -> ProbeOptions:
        """The same probing on some of the axes, in one round of fresh samples in both arms.

        Args:
            axes: the axes.
            samples: samples of each arm.
            seed_offset: tells this measurement from every other one of the node.
        """
        return dataclasses.replace(
            self,
            axes=axes,
            controls=(),
            plan="fixed",
            budget=None,
            reference=samples,
            counterfactual=samples,
            seed=self.seed + seed_offset,
        )

    @property
    def rounds(self) -> ProbePlan:
        """How a node is probed, round by round."""
        if self.plan == "fixed":
            return ProbePlan(
                rounds=(Round(reference=self.reference, counterfactual=self.counterfactual),)
            )
        chosen = ADAPTIVE_PLAN if self.plan == "adaptive" else THOROUGH_PLAN
        return dataclasses.replace(chosen, audit_rate=self.audit_rate)

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """Everything that is probed on one node."""
        return contrasts_of(self.axes, self.controls)

    @property
    def labels(self) -> tuple[str, ...]:
        """The contrasts that may decide, by their labels."""
        return tuple(each.label for each in self.contrasts if not each.is_control)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerOptions:
    """When a run is stopped, and what happens then.

    Attributes:
        mode: `shadow` only tells, `halt` raises `BiasHalt`, `repair` repairs in place and
            raises only where the repair does not hold.
        alpha: bound on the probability that an unbiased run is ever halted by the monitor.
        trigger: `monitor`, `threshold` (B_fast against tau), `both` or `either`; or `path`, which
            compares the network score of each axis with its own permuted twins, at the same
            bound, for plan `fixed` only.
        tau_enter: B_fast at which the threshold trips; no default, calibrate it.
        tau_exit: B_fast below which recovery ends.
        tau_warn: B_slow at which a warning is told; tau_exit if unset.
        scaling: what the thresholds are measured in: `constant`; `warmup` raises them while the
            averages are young; `deviation` counts null standard deviations of the score, and
            sees a spread that begins late.
        fast_alpha: weight of the newest superstep in B_fast, in (0, 1].
        slow_alpha: the same for B_slow; if unset 2 / (depth + 1), so that it remembers a whole run
            of the graph, and 0.1 where the graph's depth is not known.
        reduction: how the scores of a superstep become one.
        weights: `katz`, `out_degree` or `betweenness`.
        attenuation: Katz attenuation per edge.
        cooldown: supersteps of recovery before a run may count as normal.
        max_retries: interventions of a run before it escalates to a person.
        equivalence: delta that a repair must be shown to stay below, with the whole interval
            of its re-measurement, before its payload is handed on; in (0, 1].
        breadth: share of a graph's nodes over the floor on one axis from which on a leaning is
            shared and not a single node's, in (0, 1]; it chooses the repair in `auto`.
        history: file of `twinspan history`, how often each node was found biased; the composite
            risk that follows is recorded with every node and decides nothing.
        stream: `hold` keeps streamed output back until its superstep is decided; the default
            wherever the mode enforces, `pass` in shadow mode.
    """

    mode: Mode = "shadow"
    alpha: float = 0.05
    trigger: Trigger = "monitor"
    tau_enter: float | None = None
    tau_exit: float | None = None
    tau_warn: float | None = None
    scaling: Scaling = "constant"
    fast_alpha: float = 0.7
    slow_alpha: float | None = None
    reduction: Reduction = "impact_sum"
    weights: WeightMethod = "katz"
    attenuation: float = 0.5
    cooldown: int = 1
    max_retries: int = 3
    equivalence: float = 0.2
    breadth: float = 0.5
    history: Path | None = None
    stream: Stream | None = None

    def __post_init__(self) -> None:
        one_of("mode", self.mode, Mode)
        one_of("trigger", self.trigger, Trigger)
        one_of("scaling", self.scaling, Scaling)
        one_of("reduction", self.reduction, Reduction)
        one_of("weights", self.weights, WeightMethod)
        one_of("stream", self.stream, Stream, optional=True)
        share("alpha", self.alpha, one=False)
        for name in ("equivalence", "breadth", "fast_alpha"):
            share(name, getattr(self, name))
        if self.slow_alpha is not None:
            share("slow_alpha", self.slow_alpha)
        share("attenuation", self.attenuation, zero=True)
        at_least("cooldown", self.cooldown, 0)
        at_least("max_retries", self.max_retries, 0)
        if self.trigger not in ("monitor", "path") and (
            self.tau_enter is None or self.tau_exit is None
        ):
            raise InvalidOption(
                "trigger",
                self.trigger,
                cure="which needs tau_enter and tau_exit; take them from `twinspan calibrate`, "
                "or use trigger 'monitor'",
                joined=", ",
            )
        if (self.tau_enter is None) != (self.tau_exit is None):
            raise InvalidOption("tau_enter", self.tau_enter, cure="give tau_exit with it")
        if self.tau_enter is not None and not self.tau_enter > (self.tau_exit or 0.0) >= 0:
            cure = f"it must be above tau_exit, {self.tau_exit!r}, and that at least 0"
            raise InvalidOption("tau_enter", self.tau_enter, cure=cure)

    @property
    def holds_stream(self) -> bool:
        """Whether streamed output waits for its superstep's decision."""
        return self.stream == "hold" or (self.stream is None and self.mode != "shadow")


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairOptions:
    """How a frozen payload is repaired where `mode` is `repair`.

    Attributes:
        repair: `blind` runs the node again without the axis's words; `skeptics` lets a panel of
            models review the answer; `madera` diagnoses and rewrites it; `auto` routes by how
            many nodes lean the same way, and falls back to `blind`.
        skeptics: the panel's models: chat clients, or `MODEL@URL` of OpenAI-compatible servers,
            of at least two families; or one `SkepticPanel`.
        editor: the rewriting model: a chat client, `MODEL@URL`, or a `MaderaEditor`.
        documents: folder of text files that the rewriting looks rules up in.
        verifier: a `Verifier` that may refute a repaired payload on facts.
        weighting: how a panel's votes weigh: `uniform` or `trust`; advice, measurement decides.
        rewrites: rewrites of one intervention.
        repair_samples: samples of each arm by which a repair is measured; below 14 no interval
            can lie below the default `equivalence`. They are outside of `budget`.
        repair_timeout: seconds for one intervention, its measurements included.
    """

    repair: RepairChoice = "blind"
    skeptics: tuple[object, ...] = ()
    editor: object | None = None
    documents: Path | None = None
    verifier: object | None = None
    weighting: Weighting = "uniform"
    rewrites: int = 3
    repair_samples: int = 20
    repair_timeout: float = 600.0

    def __post_init__(self) -> None:
        one_of("repair", self.repair, RepairChoice)
        one_of("weighting", self.weighting, Weighting)
        at_least("rewrites", self.rewrites, 1)
        at_least("repair_samples", self.repair_samples, 3)
        at_least("repair_timeout", self.repair_timeout, 0.001)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """Where spans are kept.

    Attributes:
        record: folder for Parquet files; nothing is recorded if unset.
        flush_seconds: longest time that an ended span stays in memory.
        flush_spans: most spans in one file.
    """

    record: Path | None = None
    flush_seconds: float = 1.0
    flush_spans: int = 5000

    def __post_init__(self) -> None:
        at_least("flush_seconds", self.flush_seconds, 0.01)
        at_least("flush_spans", self.flush_spans, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All options of one instrumentation, resolved."""

    probe: ProbeOptions = field(default_factory=ProbeOptions)
    breaker: BreakerOptions = field(default_factory=BreakerOptions)
    repair: RepairOptions = field(default_factory=RepairOptions)
    record: RecordOptions = field(default_factory=RecordOptions)
    capture_content: bool = False

    def __post_init__(self) -> None:
        if self.breaker.trigger == "path" and self.probe.plan != "fixed":
            raise InvalidOption(
                "trigger",
                self.breaker.trigger,
                cure=f"which is not valid with plan {self.probe.plan!r}, where earlier probes "
                "decide what is probed next; use plan 'fixed', or trigger 'monitor'",
                joined=", ",
            )

    @classmethod
    def resolve(
        cls,
        arguments: Mapping[str, object] | None = None,
        *,
        config: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Settings:
        """Resolve every option: argument over environment over file over default.

        Args:
            arguments: options by name, as given to `instrument`.
            config: a `twinspan.toml`; the file `TWINSPAN_CONFIG` names if unset.
            environ: the environment; the process's if unset.

        Raises:
            ConfigurationError: for an unknown option, a value without meaning, or a file that
                cannot be read; the message names the place and the cure.

        >>> s = Settings.resolve({"mode": "halt"}, environ={"TWINSPAN_BREAKER_ALPHA": "0.01"})
        >>> s.breaker.mode, s.breaker.alpha
        ('halt', 0.01)
        """
        env = os.environ if environ is None else environ
        path = config if config is not None else env.get(CONFIG_VARIABLE)
        given = {
            **(from_file(Path(path), _NAMES) if path else {}),
            **from_environment(env, _NAMES),
            **from_arguments(arguments or {}, _NAMES),
        }
        return cls(
            **{name: section.build(given) for name, section in SECTIONS.items()},
            capture_content=env.get(CAPTURE_CONTENT_VARIABLE, "").lower() in _CONTENT_ON,
        )


@dataclass(frozen=True, slots=True)
class Section:
    """One group of options.

    Attributes:
        options: their dataclass.
    """

    options: type[Any]

    @property
    def names(self) -> tuple[str, ...]:
        """The options' names."""
        return tuple(option.name for option in dataclasses.fields(self.options))

    def build(self, given: Mapping[str, Given]) -> Any:
        """The options, from those that were given.

        Raises:
            ConfigurationError: if a value has no meaning; the message names its place.
        """
        values: dict[str, object] = {}
        for option in dataclasses.fields(self.options):
            if option.name in given:
                with _at(given[option.name].place):
                    values[option.name] = read_option(
                        option.name, str(option.type), given[option.name].value
                    )
        try:
            return self.options(**values)
        except InvalidOption as error:
            with _at(given[error.option].place if error.option in given else ""):
                raise


@contextmanager
def _at(place: str) -> Generator[None]:
    """Say in an error where the value stands that it is about."""
    try:
        yield
    except ConfigurationError as error:
        if place:
            error.args = (f"{place}: {error.args[0]}", *error.args[1:])
        raise


SECTIONS: Final[Mapping[str, Section]] = MappingProxyType(
    {
        "probe": Section(ProbeOptions),
        "breaker": Section(BreakerOptions),
        "repair": Section(RepairOptions),
        "record": Section(RecordOptions),
    }
)
"""The sections of a `twinspan.toml`."""

_NAMES: Final = {name: section.names for name, section in SECTIONS.items()}

__all__ = [
    "CAPTURE_CONTENT_VARIABLE",
    "CONFIG_VARIABLE",
    "SECTIONS",
    "BreakerOptions",
    "ProbeOptions",
    "RecordOptions",
    "RepairOptions",
    "Settings",
    "variable",
]
