"""Thresholds with hysteresis."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinspan.collector.breaker import CircuitBreaker
from twinspan.collector.decision import BreakerState, Decision, Reason
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement

BREAKER = CircuitBreaker(1.0, 0.5, tau_warn=0.4)


def states(breaker: CircuitBreaker, fasts: list[float]) -> list[str]:
    """The states when each decision is told the state of the one before."""
    state, found = BreakerState.NORMAL, list[str]()
    for fast in fasts:
        state = breaker.check(fast, 0.0, state=state).state_to
        found.append(state.value)
    return found


def test_vector_47_normal_warning_and_intervention() -> None:
    payload = {"text": ["biased"]}
    assert BREAKER.check(0.1, 0.1).state_to == "normal"
    warning = BREAKER.check(0.1, 0.6, payload)
    assert (warning.state_to, warning.decision, warning.frozen_payload) == ("warning", "warn", None)
    tripped = BREAKER.check(1.2, 0.1, payload)
    assert (tripped.state_to, tripped.decision) == ("intervention", "reroute")
    payload["text"].append("changed later")
    assert tripped.frozen_payload == {"text": ["biased"]}


def test_vector_48_a_tripped_breaker_stays_tripped_between_its_thresholds() -> None:
    fasts = [0.2, 1.1, 0.9, 0.6, 0.8, 0.7, 0.95, 0.4]
    assert states(BREAKER, fasts) == ["normal", *["intervention"] * 6, "normal"]


def test_near_the_boundary_one_threshold_would_trip_three_times_as_often() -> None:
    fasts = [0.29, 0.31, 0.28, 0.32, 0.27, 0.33, 0.2]
    with_hysteresis = states(CircuitBreaker(0.3, 0.15), fasts)
    entries = sum(
        a != "intervention" == b
        for a, b in zip(["normal", *with_hysteresis], with_hysteresis, strict=False)
    )
    assert entries == 1
    assert sum(fast >= 0.3 for fast in fasts) == 3


@pytest.mark.parametrize(
    ("fast", "ratio"),
    [(0, 0.000335), (0.5, 0.017986), (1, 0.5), (1.1, 0.689974), (2, 0.999665)],
)
def test_vector_49_mixing_ratio(fast: float, ratio: float) -> None:
    assert CircuitBreaker(1.0, 0.5).mixing_ratio(fast) == pytest.approx(ratio, abs=1e-6)


def test_vector_49_mixing_ratio_of_a_narrow_band() -> None:
    breaker = CircuitBreaker(0.3, 0.15)
    assert breaker.transition_width == pytest.approx(0.0375)
    assert breaker.mixing_ratio(0.5) == pytest.approx(0.995195, abs=1e-6)


def test_the_mixing_ratio_of_an_enormous_score_is_still_a_number() -> None:
    assert CircuitBreaker(1.0, 0.5).mixing_ratio(1e9) == 1.0
    assert CircuitBreaker(1.0, 0.5).mixing_ratio(-1e9) == 0.0


def test_the_boundaries_belong_to_the_stricter_side() -> None:
    """At tau_enter it trips, at tau_exit it holds, at tau_warn it warns."""
    assert BREAKER.check(1.0, 0.0).state_to == "intervention"
    assert BREAKER.check(math.nextafter(1.0, 0), 0.0).state_to == "normal"
    assert BREAKER.check(0.5, 0.0, state="recovery").state_to == "intervention"
    assert BREAKER.check(math.nextafter(0.5, 0), 0.0, state="recovery").state_to == "normal"
    assert BREAKER.check(0.0, 0.4).state_to == "warning"
    assert BREAKER.check(0.0, math.nextafter(0.4, 0)).state_to == "normal"


def test_what_is_not_given_has_a_documented_stand_in() -> None:
    breaker = CircuitBreaker(1.0, 0.5)
    assert breaker.warning_threshold == 0.5
    assert breaker.transition_width == 0.125


def test_e21_in_the_dead_band_the_reason_claims_what_is_true() -> None:
    decision = CircuitBreaker(0.3, 0.15).check(0.2, 0.0, state="intervention")
    assert decision.reason == Reason.NOT_BELOW_EXIT
    assert decision.explain() == "B_fast 0.2 has not fallen below tau_exit 0.15"


TRUE_OF: dict[Reason, str] = {
    Reason.FAST_AT_ENTER: "fast >= 1.0",
    Reason.NOT_BELOW_EXIT: "0.5 <= fast < 1.0",
    Reason.SLOW_AT_WARN: "slow >= 0.4",
    Reason.WITHIN_LIMITS: "fast < 1.0 and slow < 0.4",
}


@given(st.floats(-2, 2), st.floats(-2, 2), st.sampled_from(list(BreakerState)))
def test_e21_every_reason_is_true_of_the_numbers(
    fast: float, slow: float, state: BreakerState
) -> None:
    decision = BREAKER.check(fast, slow, state=state)
    assert eval(TRUE_OF[decision.reason], {"fast": fast, "slow": slow})


def test_the_margin_is_to_the_threshold_that_decides() -> None:
    assert BREAKER.check(0.7, 0.0).margin == pytest.approx(-0.3)
    assert BREAKER.check(0.7, 0.0, state="intervention").margin == pytest.approx(0.2)


def test_s16_a_clean_run_never_warns_even_with_a_threshold_of_zero() -> None:
    breaker = CircuitBreaker(1e-9, 7e-10, tau_warn=0.0)
    assert breaker.check(0.0, 0.0).decision == Decision.PROCEED
    assert breaker.check(0.0, 1e-12).decision == Decision.WARN


def test_e1_a_breaker_holds_nothing_between_checks() -> None:
    """One breaker, eight threads, every second check tripped: each sees only its own."""
    wrong: list[str] = []

    def run(fast: float, expected: str) -> None:
        for _ in range(300):
            if BREAKER.check(fast, 0.0).state_to != expected:
                wrong.append(expected)

    threads = [
        threading.Thread(target=run, args=(1.2, "intervention") if i % 2 else (0.1, "normal"))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_e10_a_score_that_is_no_number_raises(value: float) -> None:
    with pytest.raises(InvalidMeasurement, match="B_fast"):
        BREAKER.check(value, 0.0)
    with pytest.raises(InvalidMeasurement, match="B_slow"):
        BREAKER.check(0.0, value)


@pytest.mark.parametrize(
    "thresholds",
    [(0.5, 0.5), (0.5, 1.0), (1.0, -0.1), (math.nan, 0.5), (1.0, None), (None, 0.5)],
)
def test_thresholds_without_meaning_are_refused(thresholds: tuple[float, float]) -> None:
    with pytest.raises(ConfigurationError, match="tau_e"):
        CircuitBreaker(*thresholds)


def test_other_options_without_meaning_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="kappa"):
        CircuitBreaker(1.0, 0.5, kappa=0.0)
    with pytest.raises(ConfigurationError, match="tau_warn"):
        CircuitBreaker(1.0, 0.5, tau_warn=-1.0)
    with pytest.raises(ConfigurationError, match="tau_warn"):
        CircuitBreaker(tau_warn=0.5)
    with pytest.raises(ConfigurationError, match="no thresholds"):
        CircuitBreaker().check(0.1, 0.1)


def test_a_payload_that_cannot_be_copied_still_does_not_pass() -> None:
    decision = BREAKER.check(1.2, 0.0, payload=threading.Lock())
    assert decision.halted
    assert decision.frozen_payload is None
    assert decision.frozen_error is not None
    assert "cannot be copied" in decision.frozen_error


def test_s3_thresholds_that_follow_the_warm_up_are_equally_strict_at_every_step() -> None:
    """Clean runs of noise of equal variance: exceedances per step within a factor 1.5."""
    breaker = CircuitBreaker(1.5, 0.5, scaling="warmup", fast_alpha=0.3)
    rng = np.random.default_rng(6)
    raw, rates = np.zeros(20_000), list[float]()
    for step in range(1, 21):
        raw = 0.3 * rng.normal(size=raw.size) + 0.7 * raw
        limit = breaker.in_force(step=step).tau_enter
        assert limit is not None
        rates.append(float((raw / (1 - 0.7**step) >= limit * (0.3 / 1.7) ** 0.5).mean()))
    assert max(rates) < 1.5 * min(rates)


def test_s3_thresholds_in_deviations_follow_the_score_at_hand() -> None:
    breaker = CircuitBreaker(3.0, 1.5, tau_warn=2.0, kappa=0.5, scaling="deviation")
    now = breaker.in_force(fast_deviation=0.1, slow_deviation=0.2)
    assert now.tau_enter == pytest.approx(0.3)
    assert now.tau_exit == pytest.approx(0.15)
    assert now.warning_threshold == pytest.approx(0.4)
    assert now.transition_width == pytest.approx(0.05)


def test_s3_without_a_known_deviation_there_is_no_threshold() -> None:
    breaker = CircuitBreaker(3.0, 1.5, scaling="deviation")
    assert not breaker.in_force(fast_deviation=None).enabled
    assert not breaker.in_force(fast_deviation=0.0).enabled
    no_slow = breaker.in_force(fast_deviation=0.1)
    assert no_slow.enabled
    assert not no_slow.warns(1e6)


def test_constant_thresholds_are_in_force_at_every_step() -> None:
    assert BREAKER.in_force(step=1, fast_deviation=3.0) is BREAKER
