"""The configuration of an audit: one TOML file, every mistake named with its line and its cure."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Final

from twinspan.instrumentation.audit.actions import ActionFilter
from twinspan.instrumentation.audit.agent_reading import (
    Agent,
    chat_model,
    natural_form,
    read_agent,
)
from twinspan.instrumentation.audit.analysis_options import AnalysisOptions, read_analysis
from twinspan.instrumentation.audit.config_section import Section
from twinspan.instrumentation.audit.design_reading import (
    counted_field,
    read_cases,
    read_conditions,
    read_outcomes,
    text_of,
)
from twinspan.instrumentation.audit.execution import Protocol, Tries
from twinspan.instrumentation.audit.orders import OrderVocabulary
from twinspan.instrumentation.audit.plan import AuditPlan
from twinspan.instrumentation.audit.prompts import PromptForm
from twinspan.instrumentation.audit.runner import MAX_FAILURES
from twinspan.instrumentation.audit.step_reading import read_steps
from twinspan.instrumentation.audit.steps import Step
from twinspan.instrumentation.settings import CAPTURE_CONTENT_VARIABLE, Settings

OTHERS: Final = ("gate", "band", "adjudicator", "contrasts", "contrast")
"""Tables of the same file that whoever reads the results understands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a million tokens cost, for an estimate before anything is asked.

    Attributes:
        input: of prompts.
        output: of answers.
        answer_tokens: tokens that one answer is taken to have.
        currency: the unit.
    """

    input: float = 0.0
    output: float = 0.0
    answer_tokens: int = 60
    currency: str = "USD"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfiguration:
    """Everything that an audit's file says.

    Attributes:
        file: the file.
        plan: the design.
        protocol: how each run is done.
        target: what is audited, in one word for readers.
        make_agent: makes the agent; nothing of it is imported before.
        concurrency: runs at once.
        max_failures: runs in a row that the agent may fail.
        out: folder of the record.
        report: HTML file to end with; None for none.
        analysis: level and adjustment of the tests, fixed beforehand.
        prices: what the model costs.
    """

    file: Path
    plan: AuditPlan
    protocol: Protocol
    target: str
    make_agent: Callable[[], Agent] = field(repr=False)
    concurrency: int = 4
    max_failures: int = MAX_FAILURES
    out: Path = Path("audit-spans")
    report: Path | None = None
    analysis: AnalysisOptions = field(default_factory=AnalysisOptions)
    prices: Prices = Prices()

    @property
    def asks_steps(self) -> bool:
        """Whether the runner asks step by step."""
        return self.plan.settings["asks"] == "step"


def read_configuration(file: str | PathLike[str]) -> AuditConfiguration:
    """The configuration in a TOML file.

    Raises:
        ConfigurationError: the file cannot be read, or something in it has no meaning; the
            message names file, line and cure.
    """
    root = Section.read(file)
    root.ignore(*OTHERS)
    agent = root.section("agent")
    steps, outcomes = read_steps(root), read_outcomes(root)
    asks = agent.choice("asks", ("step", "case"), natural_form(agent, steps))
    target, make_agent = read_agent(agent, asks)
    protocol = _protocol(root, agent, steps, outcomes)
    if asks == "step" and not any(step.asks_model for step in steps):
        raise agent.error(
            "an agent that is asked step by step needs steps; write [[step]] tables, or "
            'asks = "case"'
        )
    plan = _plan(root, protocol, outcomes, target=target, asks=asks)
    configuration = AuditConfiguration(
        file=root.file,
        plan=plan,
        protocol=protocol,
        target=target,
        make_agent=make_agent,
        concurrency=agent.whole("concurrency", 4, least=1),
        max_failures=agent.whole("max_failures", MAX_FAILURES, least=1),
        out=Path(root.text("out", f"{plan.name}-spans")),
        report=Path(root.text("report")) if "report" in root else None,
        analysis=read_analysis(root),
        prices=_prices(root.section("prices")),
    )
    agent.close()
    root.close()
    return configuration


def _protocol(
    root: Section, agent: Section, steps: tuple[Step, ...], outcomes: tuple[str, ...]
) -> Protocol:
    """How each run is done, and what of it is kept."""
    return Protocol(
        steps=steps,
        form=_form(root.section("prompt")),
        shown_in=agent.texts("shown_in") if "shown_in" in agent else None,
        keep=ActionFilter(
            outcomes=frozenset(counted_field(rule) for rule in outcomes),
            texts=root.flag("texts") or _content_is_open(),
        ),
        tries=Tries(
            retries=agent.whole("retries", 2), backoff=agent.number("backoff", 0.5, most=600)
        ),
        vocabulary=_vocabulary(root),
        model=agent.optional_text("model") or chat_model(agent),
    )


def _plan(
    root: Section, protocol: Protocol, outcomes: tuple[str, ...], *, target: str, asks: str
) -> AuditPlan:
    """The design, with all that is fixed beforehand."""
    conditions, wording = read_conditions(root)
    with root.at("arms"):
        return AuditPlan(
            name=root.text("name"),
            cases=read_cases(root),
            conditions=conditions,
            steps=protocol.steps,
            outcomes=outcomes,
            replicates=root.whole("replicates", 1, least=1),
            reference_replicates=root.whole("reference_replicates", least=1)
            if "reference_replicates" in root
            else None,
            seed=root.whole("seed", 0),
            wording=wording,
            arms=root.mapping("arms"),
            shown_in=protocol.shown_in if asks == "step" else None,
            settings={
                "target": target,
                "asks": asks,
                "model": protocol.model,
                "form": protocol.form.as_dict(),
                "analysis": root.mapping("analysis"),
            },
        )


def _form(section: Section) -> PromptForm:
    usual = PromptForm()
    form = PromptForm(
        role=section.text("role", usual.role),
        person=section.text("person", usual.person),
        case=section.text("case", usual.case),
    )
    section.close()
    return form


def _prices(section: Section) -> Prices:
    usual = Prices()
    prices = Prices(
        input=section.number("input", 0.0),
        output=section.number("output", 0.0),
        answer_tokens=section.whole("answer_tokens", usual.answer_tokens),
        currency=section.text("currency", usual.currency),
    )
    section.close()
    return prices


def _vocabulary(root: Section) -> OrderVocabulary | None:
    if "orders" not in root:
        return None
    path = root.file.parent / root.text("orders")
    with root.at("orders"):
        return OrderVocabulary.from_toml(text_of(root, "orders", path))


def _content_is_open() -> bool:
    """Whether OpenTelemetry's own switch lets content out."""
    told = os.environ.get(CAPTURE_CONTENT_VARIABLE, "")
    return Settings.resolve(environ={CAPTURE_CONTENT_VARIABLE: told}).capture_content
