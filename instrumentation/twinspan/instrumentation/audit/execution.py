"""Executes one planned run: asks the agent, holds answers against schemas, writes the spans."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final, TypeVar, cast

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.audit.actions import ActionFilter
from twinspan.instrumentation.audit.agents import (
    CaseRequest,
    DoneStep,
    RunAgent,
    StepAgent,
    StepRequest,
    read_answer,
)
from twinspan.instrumentation.audit.cases import Case
from twinspan.instrumentation.audit.orders import OrderVocabulary, resolve_orders
from twinspan.instrumentation.audit.plan import Forced, PlannedRun
from twinspan.instrumentation.audit.prompts import PromptForm
from twinspan.instrumentation.audit.run_spans import RunSpans
from twinspan.instrumentation.audit.steps import CheckedAnswer, Step, check_answer

T = TypeVar("T")

NO_ANSWER: Final = "no_answer"
"""Failure of a step whose answers do not fit its schema, whatever was tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """How often and how patiently a step is asked.

    Attributes:
        retries: further tries after one that failed or did not fit.
        backoff: seconds before the first retry; doubled each time.
        pause: waits; replaced where nobody should wait.
    """

    retries: int = 2
    backoff: float = 0.5
    pause: Callable[[float], None] = time.sleep

    def wait(self, attempt: int) -> None:
        """Wait after a failed try, numbered from 1."""
        if self.backoff > 0:
            self.pause(self.backoff * 2 ** (attempt - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How every run of an audit is done.

    Attributes:
        steps: the loop of a step agent; of a run agent, schemas for steps of these names.
        form: the fixed words of prompts.
        shown_in: steps that show the descriptor; None for all that ask.
        keep: what of actions is recorded.
        tries: how often a step is asked.
        vocabulary: how orders are said; None for the clinical one.
        model: the model's name, if it is known.
    """

    steps: tuple[Step, ...] = ()
    form: PromptForm = field(default_factory=PromptForm)
    shown_in: tuple[str, ...] | None = None
    keep: ActionFilter = field(default_factory=ActionFilter)
    tries: Tries = field(default_factory=Tries)
    vocabulary: OrderVocabulary | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """What became of one run.

    Attributes:
        planned: the run.
        outcome: ``completed``, or ``failed`` where a step has no valid answer.
        actions: valid actions by step, in order.
        calls: calls of the agent.
        failure: why it failed: the error's type, or ``no_answer``; None if it did not.
        raised: whether an error of the agent, not an unsuitable answer, was the reason.
        error: that error.
    """

    planned: PlannedRun
    outcome: str
    actions: Mapping[str, Mapping[str, object]]
    calls: int
    failure: str | None = None
    raised: bool = False
    error: BaseException | None = None


class _Failed(Exception):
    def __init__(self, failure: str, error: BaseException | None = None) -> None:
        self.failure = failure
        self.error = error
        super().__init__(failure)


class _Run:
    """One run while it is executed."""

    def __init__(self, run: PlannedRun, case: Case, protocol: Protocol, spans: RunSpans) -> None:
        self.run = run
        self.case = case
        self.protocol = protocol
        self.spans = spans
        self.actions: dict[str, Mapping[str, object]] = {}
        self.calls = 0

    def seed(self, step: str, attempt: int) -> int:
        return Random(f"{self.run.seed}/{step}/{attempt}").getrandbits(31)

    def result(self) -> Executed:
        return Executed(
            planned=self.run, outcome="completed", actions=self.actions, calls=self.calls
        )

    def failed(self, failed: _Failed) -> Executed:
        return Executed(
            planned=self.run,
            outcome="failed",
            actions=self.actions,
            calls=self.calls,
            failure=failed.failure,
            raised=failed.error is not None,
            error=failed.error,
        )


def execute_steps(
    agent: StepAgent,
    run: PlannedRun,
    case: Case,
    forced: Forced,
    protocol: Protocol,
    spans: RunSpans,
) -> Executed:
    """One run of a step agent; a step without a valid answer ends it.

    Every call is a context of its own: nothing but the prompt goes from step to step.
    """
    doing = _Run(run, case, protocol, spans)
    try:
        for step in protocol.steps:
            if not step.asks_model:
                doing.actions[step.name] = _environment(doing, step)
            elif step.name in forced:
                doing.actions[step.name] = _forced(doing, step, forced[step.name])
            else:
                doing.actions[step.name] = _asked(doing, agent, step)
    except _Failed as failed:
        return doing.failed(failed)
    return doing.result()


def _asked(doing: _Run, agent: StepAgent, step: Step) -> Mapping[str, object]:
    protocol = doing.protocol
    shown = protocol.shown_in is None or step.name in protocol.shown_in
    so_far = list(doing.actions.items())
    prompt = protocol.form.write(step, doing.case, doing.run.text if shown else "", so_far)

    def attempt(number: int) -> CheckedAnswer:
        request = StepRequest(
            step=step.name,
            prompt=prompt,
            schema=cast("Mapping[str, Any]", step.schema),
            seed=doing.seed(step.name, number),
        )
        span = doing.spans.begin(
            step.name,
            attempt=number,
            parents=[name for name, _ in so_far],
            payload=prompt,
            attributes={
                c.GEN_AI_REQUEST_MODEL: protocol.model,
                c.GEN_AI_REQUEST_SEED: request.seed,
                c.NODE_DESCRIPTOR_SHOWN: shown and bool(doing.run.text),
            },
        )
        doing.calls += 1
        try:
            answer = read_answer(_within(span, lambda: agent.answer(request)))
        except Exception as error:
            last = number > protocol.tries.retries
            doing.spans.end(
                span,
                "error" if last else "retried",
                error=error if last else None,
                attributes={c.ERROR_TYPE: type(error).__qualname__},
            )
            raise
        checked = check_answer(step, answer)
        _end_checked(doing, span, step, answer, checked, last=number > protocol.tries.retries)
        return checked

    return _insist(attempt, protocol.tries)


def _end_checked(
    doing: _Run, span: Span, step: Step, answer: object, checked: CheckedAnswer, *, last: bool
) -> None:
    if checked.action is not None:
        fields = doing.protocol.keep.fields(step.name, checked.action, step.schema)
        doing.spans.end(span, "ok", fields=fields, answer=answer)
        return
    doing.spans.end(
        span,
        "error" if last else "retried",
        answer=answer,
        violations=[f"{each.pointer or '/'} {each.keyword}" for each in checked.violations],
        attributes={c.ERROR_TYPE: NO_ANSWER},
    )


def _insist(attempt: Callable[[int], CheckedAnswer], tries: Tries) -> Mapping[str, object]:
    """The first valid answer.

    Raises:
        _Failed: there is none; the last try says why.
    """
    failure = _Failed(NO_ANSWER)
    for number in range(1, tries.retries + 2):
        try:
            checked = attempt(number)
        except Exception as error:
            failure = _Failed(type(error).__qualname__, error)
        else:
            if checked.action is not None:
                return checked.action
            failure = _Failed(NO_ANSWER)
        if number <= tries.retries:
            tries.wait(number)
    raise failure


def _forced(doing: _Run, step: Step, action: object) -> Mapping[str, object]:
    span = doing.spans.begin(
        step.name,
        parents=list(doing.actions),
        attributes={c.NODE_FORCED: True, c.NODE_DESCRIPTOR_SHOWN: False},
    )
    checked = check_answer(step, action).action or {}
    fields = doing.protocol.keep.fields(step.name, checked, step.schema)
    doing.spans.end(span, "ok", fields=fields, answer=checked)
    return checked


def _environment(doing: _Run, step: Step) -> Mapping[str, object]:
    """The environment's answer to what was ordered last."""
    ordered, by = _last_orders(doing.actions)
    span = doing.spans.begin(step.name, kind="function", parents=[by] if by else [])
    found = resolve_orders(ordered, doing.case.fixtures, vocabulary=doing.protocol.vocabulary)
    told: dict[str, object] = {
        c.ORDER_COUNT: len(ordered),
        c.ORDER_UNRESOLVED_COUNT: len(found.unresolved),
        c.ORDER_AMBIGUOUS_COUNT: len(found.ambiguous),
    }
    if doing.protocol.keep.texts:
        told[c.ORDER_UNRESOLVED] = list(found.unresolved)
        ambiguities = cast("list[object]", found.as_dict()["fixture_ambiguities"])
        told[c.ORDER_AMBIGUITIES] = [json.dumps(each) for each in ambiguities]
    doing.spans.end(
        span,
        "ok",
        fields=dict(found.results) if doing.protocol.keep.texts else {},
        answer=dict(found.results),
        attributes=told,
    )
    return dict(found.results)


def _last_orders(actions: Mapping[str, Mapping[str, object]]) -> tuple[list[str], str | None]:
    """The last list of texts that a step has given, and the step."""
    for name in reversed(list(actions)):
        for value in actions[name].values():
            if isinstance(value, list):
                return [str(item) for item in cast("list[object]", value)], name
    return [], None


def execute_case(
    agent: RunAgent, run: PlannedRun, case: Case, protocol: Protocol, spans: RunSpans
) -> Executed:
    """One run of an agent that does a whole case by itself.

    A try that raises is made again from the start; its steps are not recorded, since an agent
    that failed has told none.
    """
    doing = _Run(run, case, protocol, spans)
    try:
        for step in _acted(doing, agent):
            _tell(doing, step)
    except _Failed as failed:
        return doing.failed(failed)
    return doing.result()


def _acted(doing: _Run, agent: RunAgent) -> Sequence[DoneStep]:
    tries = doing.protocol.tries
    failure: _Failed | None = None
    for number in range(1, tries.retries + 2):
        doing.calls += 1
        try:
            return _within(doing.spans.root, partial(_listed, agent, _case_request(doing, number)))
        except Exception as error:
            failure = _Failed(type(error).__qualname__, error)
            if number <= tries.retries:
                tries.wait(number)
    assert failure is not None
    raise failure


def _listed(agent: RunAgent, request: CaseRequest) -> list[DoneStep]:
    return list(agent.act(request))


def _case_request(doing: _Run, number: int) -> CaseRequest:
    return CaseRequest(
        case_id=doing.case.id,
        text=doing.protocol.form.text(doing.case, doing.run.text),
        descriptor=doing.run.text,
        narrative=doing.case.narrative,
        fixtures=doing.case.fixtures,
        seed=doing.seed("run", number),
    )


def _tell(doing: _Run, done: DoneStep) -> None:
    """Write down a step that the agent has taken, held against its schema if it has one."""
    step = next((step for step in doing.protocol.steps if step.name == done.name), None)
    if step is None or not step.asks_model:
        step = Step(name=done.name, schema={})
    parents = done.parents if done.parents is not None else tuple(list(doing.actions)[-1:])
    span = doing.spans.begin(
        done.name,
        kind=done.kind,
        parents=parents,
        observed=False,
        superstep=done.superstep,
        started=done.started,
    )
    answer = read_answer(done.action)
    checked = check_answer(step, answer)
    if checked.action is not None:
        doing.actions[done.name] = checked.action
        fields = doing.protocol.keep.fields(done.name, checked.action, step.schema)
        doing.spans.end(span, "ok", fields=fields, answer=answer, ended=done.ended)
        return
    doing.spans.end(
        span,
        "error",
        answer=answer,
        violations=[f"{each.pointer or '/'} {each.keyword}" for each in checked.violations],
        attributes={c.ERROR_TYPE: NO_ANSWER},
        ended=done.ended,
    )
    raise _Failed(NO_ANSWER)


def _within(span: Span, call: Callable[[], T]) -> T:
    """Call the agent with the span current, so that what it traces itself lies below."""
    token = otel_context.attach(trace.set_span_in_context(span, Context()))
    try:
        return call()
    finally:
        otel_context.detach(token)
