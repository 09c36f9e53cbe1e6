"""The control machine, with the faults it must not have."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.collector.breaker import CircuitBreaker
from twinspan.collector.control_state import (
    MOST_REMEMBERED,
    ControlInputs,
    ControlState,
    Measurement,
)
from twinspan.collector.decision import BreakerDecision, BreakerState, Decision, Reason
from twinspan.collector.machine import ControlMachine
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement, NothingToReset
from twinspan.instrumentation.settings import Trigger

WIDE = CircuitBreaker(1.0, 0.5)
NARROW = CircuitBreaker(0.3, 0.15)
LIMIT = 20.0


def inputs(superstep: int, fast: float | None = None, **more: object) -> ControlInputs:
    return ControlInputs(superstep=str(superstep), fast=fast, **more)  # type: ignore[arg-type]


def play(machine: ControlMachine, *rounds: ControlInputs) -> list[BreakerDecision]:
    state, decisions = ControlState(), list[BreakerDecision]()
    for each in rounds:
        state, decision = machine.step(state, each)
        decisions.append(decision)
    return decisions


def on_fast(machine: ControlMachine, *fasts: float) -> list[BreakerDecision]:
    return play(machine, *(inputs(i, fast, payload=f"p{i}") for i, fast in enumerate(fasts)))


def on_monitor(machine: ControlMachine, *values: float) -> list[BreakerDecision]:
    return play(machine, *(inputs(i, monitor=m, monitor_limit=LIMIT) for i, m in enumerate(values)))


def states(decisions: list[BreakerDecision]) -> list[str]:
    return [decision.state_to.value for decision in decisions]


def test_vector_50_a_cool_down_of_two() -> None:
    decisions = on_fast(ControlMachine(breaker=WIDE, cooldown=2), 1.2, 0.1, 0.1, 0.1)
    assert states(decisions) == ["intervention", "recovery", "recovery", "normal"]
    assert [d.decision for d in decisions] == ["reroute", "halt", "halt", "proceed"]


def test_vector_51_no_cool_down() -> None:
    decisions = on_fast(ControlMachine(breaker=WIDE, cooldown=0), 1.2, 0.7, 0.2)
    assert states(decisions) == ["intervention", "intervention", "normal"]


def test_vector_51_retries_run_out_and_the_payload_stays() -> None:
    machine = ControlMachine(breaker=WIDE, cooldown=0, max_retries=1)
    decisions = on_fast(machine, 1.2, 1.2, 0.1)
    assert states(decisions) == ["intervention", "escalated", "escalated"]
    assert [d.decision for d in decisions[1:]] == ["escalate", "escalate"]
    assert decisions[2].frozen_payload == "p0"


def test_vector_52_an_incident_that_ends() -> None:
    machine = ControlMachine(breaker=NARROW, cooldown=1, max_retries=2)
    decisions = on_fast(machine, 0.05, 0.4, 0.4, 0.05, 0.05, 0.05)
    assert states(decisions) == ["normal", "intervention", "recovery", *["normal"] * 3]


def test_vector_53_an_incident_that_does_not() -> None:
    machine = ControlMachine(breaker=NARROW, cooldown=1, max_retries=2)
    decisions = on_fast(machine, 0.05, *[0.4] * 7)
    expected = ["normal", "intervention", "recovery", "intervention", "recovery"]
    assert states(decisions) == [*expected, *["escalated"] * 3]


def test_by_default_the_monitor_decides_alone() -> None:
    decisions = on_monitor(ControlMachine(), 1.0, 4.0, 6.0, 21.0)
    assert states(decisions) == ["normal", "normal", "warning", "intervention"]
    assert decisions[3].reason == Reason.MONITOR_AT_LIMIT
    assert decisions[3].trigger == "monitor"
    assert decisions[3].threshold_enter is None
    assert decisions[3].margin is None


def test_the_monitor_fires_within_a_millionth_of_its_limit() -> None:
    assert on_monitor(ControlMachine(), 20 * (1 - 5e-7))[0].halted
    assert not on_monitor(ControlMachine(), 20 * (1 - 5e-6))[0].halted


@pytest.mark.parametrize(
    ("trigger", "fast", "monitor", "reason"),
    [
        ("monitor", 2.0, 1.0, None),
        ("monitor", 0.0, 20.0, Reason.MONITOR_AT_LIMIT),
        ("threshold", 2.0, 1.0, Reason.FAST_AT_ENTER),
        ("threshold", 0.0, 20.0, None),
        ("either", 2.0, 1.0, Reason.FAST_AT_ENTER),
        ("either", 0.0, 20.0, Reason.MONITOR_AT_LIMIT),
        ("either", 2.0, 20.0, Reason.BOTH_AT_LIMIT),
        ("both", 2.0, 1.0, None),
        ("both", 0.49, 20.0, None),
        ("both", 0.5, 20.0, Reason.CONFIRMED),
    ],
)
def test_two_triggers_and_four_rules(
    trigger: Trigger, fast: float, monitor: float, reason: Reason | None
) -> None:
    machine = ControlMachine(breaker=WIDE, trigger=trigger)
    (decision,) = play(machine, inputs(1, fast, monitor=monitor, monitor_limit=LIMIT))
    assert decision.halted == (reason is not None)
    if reason is not None:
        assert decision.reason == reason


def test_both_triggers_are_recorded_whatever_the_rule() -> None:
    machine = ControlMachine(breaker=WIDE, trigger="monitor")
    (decision,) = play(machine, inputs(1, 2.0, monitor=1.0, monitor_limit=LIMIT))
    assert decision.fired == ("threshold",)
    assert decision.b_fast == 2.0
    assert decision.monitor == 1.0
    assert decision.mixing_ratio is not None


def test_the_slow_scale_warns() -> None:
    machine = ControlMachine(breaker=CircuitBreaker(1.0, 0.5, tau_warn=0.3))
    (decision,) = play(machine, inputs(1, 0.1, slow=0.3))
    assert (decision.state_to, decision.decision) == ("warning", "warn")
    assert decision.explain() == "B_slow 0.3 is at or above the warning threshold 0.3"


def test_e1_two_runs_of_one_machine_share_nothing() -> None:
    """One biased run, then two clean ones: they are not halted."""
    machine = ControlMachine(breaker=WIDE)
    assert on_fast(machine, 1.2, 1.2)[-1].halted
    for _ in range(2):
        assert not any(decision.halted for decision in on_fast(machine, 0.1, 0.1))


def test_e1_a_hundred_and_sixty_runs_in_eight_threads_share_nothing() -> None:
    machine = ControlMachine(breaker=WIDE, cooldown=1)

    def run(number: int) -> list[str]:
        return states(on_fast(machine, 0.1 if number % 2 else 1.2, 0.1, 0.1))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(run, range(160)))
    assert found[1::2] == [["normal"] * 3] * 80
    assert found[::2] == [["intervention", "recovery", "normal"]] * 80


def test_e2_the_frozen_payload_is_gone_when_recovery_completes() -> None:
    """Not in the state, not in a decision that lets pass, not in a replayed old decision."""
    machine, state = ControlMachine(breaker=WIDE, cooldown=1), ControlState()
    payload = {"text": "biased"}
    state, tripped = machine.step(state, inputs(1, 1.2, payload=payload))
    assert tripped.frozen_payload == payload
    state, held = machine.step(state, inputs(2, 0.1, payload={"text": "repaired"}))
    assert held.frozen_payload == payload
    state, passed = machine.step(state, inputs(3, 0.1, payload={"text": "repaired"}))
    assert [old.frozen_payload for old in state.decided.values()] == [None] * 3
    assert state.frozen_payload is None
    assert passed.decision == Decision.PROCEED


def test_e2_changing_a_decisions_payload_changes_nothing_else() -> None:
    machine, state = ControlMachine(breaker=WIDE, cooldown=2), ControlState()
    payload = {"text": ["biased"]}
    state, first = machine.step(state, inputs(1, 1.2, payload=payload))
    payload["text"].append("by the host")
    assert isinstance(first.frozen_payload, dict)
    first.frozen_payload["text"].append("by a reader")
    _, second = machine.step(state, inputs(2, 0.1))
    assert second.frozen_payload == {"text": ["biased"]}


@given(st.lists(st.floats(-0.5, 2.0), min_size=1, max_size=12))
@settings(max_examples=30)
def test_e2_no_decision_that_lets_a_payload_pass_carries_one(fasts: list[float]) -> None:
    for decision in on_fast(ControlMachine(breaker=WIDE, cooldown=1), *fasts):
        assert decision.halted or decision.frozen_payload is None


def test_e4_deciding_a_superstep_again_changes_nothing() -> None:
    """A node retried twice, or replayed from a checkpoint, is one superstep."""
    machine, state = ControlMachine(breaker=WIDE, cooldown=1), ControlState()
    state, first = machine.step(state, inputs(1, 1.2, payload="p"))
    for fast in (1.2, 0.1, 1.2):
        again, decision = machine.step(state, inputs(1, fast))
        assert decision is first
        assert again is state


def test_e4_an_older_superstep_is_remembered_too() -> None:
    machine, state = ControlMachine(breaker=WIDE), ControlState()
    for number, fast in enumerate((0.1, 0.2, 1.2)):
        state, _ = machine.step(state, inputs(number, fast))
    replayed, decision = machine.step(state, inputs(0, 1.9))
    assert replayed is state
    assert decision.b_fast == 0.1


def test_e4_a_resumed_run_goes_on_where_its_last_decision_left_it() -> None:
    machine = ControlMachine(breaker=NARROW, cooldown=2, max_retries=2)
    fasts = [0.05, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4]
    whole = on_fast(machine, *fasts)
    for cut in range(1, len(fasts)):
        state = ControlState.after(whole[cut - 1])
        for number in range(cut, len(fasts)):
            state, decision = machine.step(state, inputs(number, fasts[number]))
            assert decision.state_to == whole[number].state_to
            assert decision.attempts == whole[number].attempts


def test_e6_branches_that_end_in_one_superstep_are_decided_once() -> None:
    """Two edges out of one superstep ask twice and get one decision."""
    machine, state = ControlMachine(breaker=WIDE), ControlState()
    state, left = machine.step(state, inputs(3, 1.2, edge="a->left"))
    state, right = machine.step(state, inputs(3, 1.2, edge="a->right"))
    assert left is right
    assert state.attempts == 1


def test_e8_reroute_halt_and_escalate_are_three_decisions() -> None:
    machine = ControlMachine(breaker=WIDE, cooldown=1, max_retries=1)
    decisions = on_fast(machine, 1.2, 0.9, 0.9)
    assert [d.decision for d in decisions] == ["reroute", "halt", "escalate"]
    without_repair = ControlMachine(breaker=WIDE, reroute=False)
    assert on_fast(without_repair, 1.2)[0].decision == "halt"


def test_e9_a_probed_repair_ends_the_cool_down_at_once() -> None:
    machine, state = ControlMachine(breaker=WIDE, cooldown=3), ControlState()
    state, _ = machine.step(state, inputs(1, 1.2, payload="biased"))
    state, decision = machine.step(state, inputs(2, 0.1, measurement="repair"))
    assert decision.decision == Decision.PROCEED
    assert decision.reason == Reason.RECOVERED
    assert state == ControlState(last_fast=0.1, decided=state.decided)


def test_e9_a_repair_that_is_no_better_is_the_next_attempt() -> None:
    machine, state = ControlMachine(breaker=WIDE, cooldown=3, max_retries=2), ControlState()
    state, _ = machine.step(state, inputs(1, 1.2))
    state, second = machine.step(state, inputs(2, 0.9, measurement="repair"))
    assert (second.state_to, second.attempts) == ("intervention", 2)
    _, third = machine.step(state, inputs(3, 0.9, measurement="repair"))
    assert third.state_to == "escalated"


def test_e9_a_repair_that_failed_counts_as_a_try_and_ends_with_a_person() -> None:
    """Whatever the numbers say meanwhile: nothing was repaired, so nothing recovered."""
    machine = ControlMachine(breaker=WIDE, cooldown=2, max_retries=2)
    failed = [inputs(i, 0.1, measurement="failed") for i in (2, 3)]
    decisions = play(machine, inputs(1, 1.2, payload="p"), *failed, inputs(4, 0.1))
    assert states(decisions) == ["intervention", "intervention", "escalated", "escalated"]
    assert [d.reason for d in decisions[1:3]] == [Reason.REPAIR_FAILED, Reason.RETRIES_EXHAUSTED]
    assert decisions[-1].frozen_payload == "p"


def test_s13_a_repair_that_is_not_shown_to_work_ends_nothing() -> None:
    """Below every threshold, no alarm, and yet not shown to be below the bound."""
    machine = ControlMachine(breaker=WIDE, cooldown=2)
    decisions = play(machine, inputs(1, 1.2), inputs(2, 0.1, measurement="unproven"))
    assert states(decisions) == ["intervention", "intervention"]
    assert decisions[1].reason == Reason.REPAIR_UNPROVEN


def test_e9_a_spike_during_the_cool_down_is_seen() -> None:
    """Fading from 1.2 to .6 and rising to 1.1 again is a new intervention."""
    machine = ControlMachine(breaker=WIDE, cooldown=3)
    decisions = on_fast(machine, 1.2, 0.6, 1.1)
    assert states(decisions) == ["intervention", "recovery", "intervention"]
    assert decisions[2].reason == Reason.ROSE_IN_COOLDOWN
    assert decisions[2].frozen_payload == "p2"


def test_e9_a_restarted_monitor_that_fires_again_is_seen_during_the_cool_down() -> None:
    decisions = on_monitor(ControlMachine(cooldown=3), 25.0, 1.0, 80.0)
    assert states(decisions) == ["intervention", "recovery", "intervention"]
    assert decisions[2].reason == Reason.MONITOR_AT_LIMIT


def test_e9_recovery_with_a_high_slow_score_ends_in_warning() -> None:
    machine = ControlMachine(breaker=WIDE, cooldown=0)
    decisions = play(machine, inputs(1, 1.2, slow=0.6), inputs(2, 0.2, slow=0.6))
    assert states(decisions) == ["intervention", "warning"]


@pytest.mark.parametrize("breaker", [WIDE, CircuitBreaker()])
def test_recovery_is_measured_never_assumed(breaker: CircuitBreaker) -> None:
    """Scores that only faded, and a monitor that was told nothing, end no incident."""
    machine, state = ControlMachine(breaker=breaker, cooldown=0), ControlState()
    fast = 1.2 if breaker.enabled else None
    state, _ = machine.step(state, inputs(1, fast, monitor=25.0, monitor_limit=LIMIT))
    low = 0.1 if breaker.enabled else None
    rounds: list[tuple[Measurement, str, Reason]] = [
        ("none", "recovery", Reason.NOT_REMEASURED),
        ("none", "recovery", Reason.NOT_REMEASURED),
        ("fresh", "normal", Reason.RECOVERED),
    ]
    for number, (measurement, expected, reason) in enumerate(rounds, start=2):
        state, decision = machine.step(
            state, inputs(number, low, monitor=1.0, monitor_limit=80.0, measurement=measurement)
        )
        assert (decision.state_to, decision.reason) == (expected, reason)


def test_a_score_that_is_missing_or_cannot_be_judged_ends_no_incident() -> None:
    deviations = CircuitBreaker(3.0, 1.5, scaling="deviation")
    for breaker, fast in ((WIDE, None), (deviations, 0.0)):
        machine = ControlMachine(breaker=breaker, cooldown=0)
        state = ControlState(state=BreakerState.INTERVENTION, attempts=1)
        _, decision = machine.step(state, inputs(1, fast))
        assert (decision.state_to, decision.reason) == ("recovery", Reason.NOT_REMEASURED)


def test_with_thresholds_a_quiet_monitor_does_not_end_an_incident_alone() -> None:
    machine = ControlMachine(breaker=WIDE, trigger="monitor", cooldown=0)
    decisions = play(
        machine,
        inputs(1, 0.9, monitor=25.0, monitor_limit=LIMIT),
        inputs(2, 0.7, monitor=1.0, monitor_limit=80.0),
        inputs(3, 0.4, monitor=1.0, monitor_limit=160.0),
    )
    assert states(decisions) == ["intervention", "intervention", "normal"]
    assert decisions[1].reason == Reason.NOT_BELOW_EXIT


def test_a_person_resets_an_escalated_run_and_it_is_on_record() -> None:
    machine, state = ControlMachine(breaker=WIDE, cooldown=0, max_retries=1), ControlState()
    for number, fast in enumerate((1.2, 1.2, 0.1)):
        state, _ = machine.step(state, inputs(number, fast, payload="p"))
    assert state.state == BreakerState.ESCALATED
    asked = inputs(3, 0.1)
    state, decision = machine.reset(state, asked)
    assert (decision.state_from, decision.state_to) == ("escalated", "normal")
    assert decision.reason == Reason.RESET_BY_PERSON
    assert state.frozen_payload is None
    assert machine.reset(state, asked) == (state, decision)
    _, after = machine.step(state, inputs(4, 1.2))
    assert (after.state_to, after.attempts) == ("intervention", 1)


def test_a_run_that_is_not_stopped_cannot_be_reset() -> None:
    machine = ControlMachine(breaker=WIDE)
    state, _ = machine.step(ControlState(), inputs(0, 0.1))
    with pytest.raises(NothingToReset, match="'normal'"):
        machine.reset(state, inputs(1))


def test_a_run_without_end_remembers_so_many_decisions_and_no_more() -> None:
    """A superstep that is executed again is a late one."""
    machine, state = ControlMachine(breaker=WIDE), ControlState()
    for number in range(3 * MOST_REMEMBERED):
        state, _ = machine.step(state, inputs(number, 0.1))
    assert len(state.decided) == MOST_REMEMBERED
    assert str(3 * MOST_REMEMBERED - 1) in state.decided and "0" not in state.decided


def test_attempts_are_counted_afresh_after_recovery() -> None:
    machine = ControlMachine(breaker=WIDE, cooldown=0, max_retries=1)
    decisions = on_fast(machine, 1.2, 0.1, 1.2, 0.1)
    assert states(decisions) == ["intervention", "normal", "intervention", "normal"]


def test_shadow_decisions_say_so() -> None:
    machine = ControlMachine(breaker=WIDE, enforced=False)
    assert not on_fast(machine, 1.2)[0].enforced


def test_the_cut_edge_is_named_and_only_where_one_is_cut() -> None:
    machine = ControlMachine(breaker=WIDE, cooldown=0)
    decisions = play(machine, inputs(1, 1.2, edge="a->b"), inputs(2, 0.1, edge="b->c"))
    assert [decision.edge for decision in decisions] == ["a->b", None]


def test_e10_a_score_that_is_no_number_leaves_the_state_alone() -> None:
    machine, state = ControlMachine(breaker=WIDE), ControlState()
    for bad in (inputs(1, math.nan), inputs(1, 0.1, slow=math.inf), inputs(1, monitor=math.nan)):
        with pytest.raises(InvalidMeasurement):
            machine.step(state, bad)
    assert state == ControlState()


@pytest.mark.parametrize(
    "options",
    [
        {"trigger": "threshold"},
        {"trigger": "both"},
        {"trigger": "majority"},
        {"cooldown": -1},
        {"max_retries": 0},
        {"monitor_warn": 0.0},
    ],
)
def test_options_without_meaning_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        ControlMachine(**options)  # type: ignore[arg-type]  # pyright: ignore


def test_thresholds_in_deviations_are_told_as_scores() -> None:
    breaker = CircuitBreaker(3.0, 1.5, scaling="deviation")
    machine = ControlMachine(breaker=breaker, trigger="threshold")
    (decision,) = play(machine, inputs(1, 0.35, fast_deviation=0.1))
    assert decision.threshold_enter == pytest.approx(0.3)
    assert decision.halted
