"""Whatever happens, what a decision says is true of its numbers and of its states."""

from __future__ import annotations

import math
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.collector.breaker import CircuitBreaker
from twinspan.collector.control_state import ControlInputs, ControlState
from twinspan.collector.decision import BreakerDecision, BreakerState, Decision, Reason
from twinspan.collector.machine import ControlMachine
from twinspan.instrumentation.settings import Trigger

S, D = BreakerState, Decision

ALLOWED: dict[BreakerState, set[BreakerState]] = {
    S.NORMAL: {S.NORMAL, S.WARNING, S.INTERVENTION},
    S.WARNING: {S.NORMAL, S.WARNING, S.INTERVENTION},
    S.INTERVENTION: {S.NORMAL, S.WARNING, S.INTERVENTION, S.RECOVERY, S.ESCALATED},
    S.RECOVERY: {S.NORMAL, S.WARNING, S.INTERVENTION, S.RECOVERY, S.ESCALATED},
    S.ESCALATED: {S.ESCALATED},
}

MEANS: dict[BreakerState, Decision] = {
    S.NORMAL: D.PROCEED,
    S.WARNING: D.WARN,
    S.INTERVENTION: D.REROUTE,
    S.RECOVERY: D.HALT,
    S.ESCALATED: D.ESCALATE,
}


def _fast(decision: BreakerDecision) -> float:
    return -math.inf if decision.b_fast is None else decision.b_fast


def _at_limit(decision: BreakerDecision) -> bool:
    limit = decision.monitor_limit or math.inf
    return (decision.monitor or 0.0) >= limit * (1 - 1e-6)


def _enter(decision: BreakerDecision) -> float:
    return math.inf if decision.threshold_enter is None else decision.threshold_enter


def _leave(decision: BreakerDecision) -> float:
    return math.inf if decision.threshold_exit is None else decision.threshold_exit


TRUE: dict[Reason, Callable[[BreakerDecision], bool]] = {
    Reason.WITHIN_LIMITS: lambda d: not d.halted,
    Reason.SLOW_AT_WARN: lambda d: (d.b_slow or 0) >= (d.threshold_warn or 0) > 0,
    Reason.MONITOR_NEAR_LIMIT: lambda d: (d.monitor or 0) >= (d.monitor_limit or 0) / 4,
    Reason.FAST_AT_ENTER: lambda d: _fast(d) >= _enter(d),
    Reason.MONITOR_AT_LIMIT: _at_limit,
    Reason.BOTH_AT_LIMIT: lambda d: _fast(d) >= _enter(d) and _at_limit(d),
    Reason.CONFIRMED: lambda d: _fast(d) >= _leave(d) and _at_limit(d),
    Reason.NOT_BELOW_EXIT: lambda d: _fast(d) >= _leave(d),
    Reason.COOLING_DOWN: lambda d: d.state_to == S.RECOVERY,
    Reason.ROSE_IN_COOLDOWN: lambda d: _fast(d) >= _enter(d),
    Reason.NOT_REMEASURED: lambda d: d.state_to == S.RECOVERY,
    Reason.RECOVERED: lambda d: d.b_fast is not None and d.b_fast < _leave(d),
    Reason.RETRIES_EXHAUSTED: lambda d: d.attempts >= 2 and d.state_from != S.ESCALATED,
    Reason.AWAITING_PERSON: lambda d: d.state_from == S.ESCALATED,
}

SCORES = st.one_of(st.none(), st.sampled_from([0.0, 0.15, 0.2, 0.3, 0.4]), st.floats(-1.0, 1.0))

ROUNDS = st.lists(
    st.builds(
        ControlInputs,
        superstep=st.uuids().map(str),
        fast=SCORES,
        slow=SCORES,
        monitor=st.one_of(st.none(), st.sampled_from([1.0, 5.0, 20.0]), st.floats(0.0, 100.0)),
        monitor_limit=st.just(20.0),
        measurement=st.sampled_from(["none", "fresh", "repair"]),
        payload=st.just({"text": "p"}),
        edge=st.just("a->b"),
    ),
    max_size=25,
)

MACHINES = st.builds(
    ControlMachine,
    breaker=st.just(CircuitBreaker(0.3, 0.15)),
    trigger=st.sampled_from(["monitor", "threshold", "both", "either"]),
    cooldown=st.integers(0, 2),
    max_retries=st.just(2),
)


@given(MACHINES, ROUNDS)
@settings(max_examples=80, deadline=None)
def test_e21_reasons_states_and_decisions_agree_on_every_path(
    machine: ControlMachine, rounds: list[ControlInputs]
) -> None:
    state = ControlState()
    for each in rounds:
        before = state
        state, decision = machine.step(before, each)
        assert decision.state_from == before.state
        assert decision.state_to == state.state
        assert decision.state_to in ALLOWED[decision.state_from]
        assert decision.decision == MEANS[decision.state_to]
        assert TRUE[decision.reason](decision)
        assert "(not measured)" not in decision.explain()
        assert (state.frozen_payload is not None) == decision.halted
        assert state.attempts <= machine.max_retries


@given(MACHINES, ROUNDS)
@settings(max_examples=50, deadline=None)
def test_no_alarm_ever_lets_a_payload_pass(
    machine: ControlMachine, rounds: list[ControlInputs]
) -> None:
    """Whatever the state: with M at its limit under a rule that heeds it, nothing proceeds."""
    rules: set[Trigger] = {"monitor", "either"}
    state = ControlState()
    for each in rounds:
        state, decision = machine.step(state, each)
        if machine.rule in rules and _at_limit(decision):
            assert decision.halted


@given(MACHINES, ROUNDS)
@settings(max_examples=50, deadline=None)
def test_e4_replaying_a_whole_run_rebuilds_its_state(
    machine: ControlMachine, rounds: list[ControlInputs]
) -> None:
    first, second = ControlState(), ControlState()
    for each in rounds:
        first, _ = machine.step(first, each)
    for each in rounds:
        second, _ = machine.step(second, each)
        second, _ = machine.step(second, each)
    assert first == second


def test_every_reason_has_a_sentence() -> None:
    for reason in Reason:
        decision = BreakerDecision(
            superstep="1",
            state_from=S.NORMAL,
            state_to=S.NORMAL,
            decision=D.PROCEED,
            reason=reason,
        )
        assert decision.explain()
