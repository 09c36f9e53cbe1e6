"""Probing in rounds."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.collector.cells import Cell
from twinspan.collector.monitor import RunMonitor
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement, UnknownAxis
from twinspan.instrumentation.probing.budget import CallBudget
from twinspan.instrumentation.probing.rounds import (
    ADAPTIVE_PLAN,
    FIXED_PLAN,
    THOROUGH_PLAN,
    NextRound,
    ProbePlan,
    ProbeProgress,
    Round,
    Stopped,
)

AXES: tuple[str, ...] = ("age", "gender", "origin", "religion")
START = ProbeProgress.start(AXES)


def test_the_adaptive_plan_screens_first() -> None:
    due = ADAPTIVE_PLAN.next(START)
    assert isinstance(due, NextRound)
    assert due.combined
    assert (due.round, due.calls) == (Round(reference=6, counterfactual=3), 9)


def test_the_rounds_and_bars_are_the_published_ones() -> None:
    sizes = [(r.reference, r.counterfactual) for r in ADAPTIVE_PLAN.rounds]
    assert sizes == [(6, 3), (10, 5), (12, 6)]
    assert (ADAPTIVE_PLAN.screen_bar, ADAPTIVE_PLAN.bars) == (1.3, (2.0, 6.0))
    assert FIXED_PLAN.next(START) == NextRound(
        round=Round(reference=10, counterfactual=5), axes=AXES, combined=False, calls=30
    )


def test_what_stays_under_the_screens_bar_was_screened_not_probed() -> None:
    below = ADAPTIVE_PLAN.next(START.after_screen(1.29))
    assert below == Stopped(reason="screened_out", coverage="screened")
    assert isinstance(ADAPTIVE_PLAN.next(START.after_screen(1.3)), NextRound)


def test_an_audited_node_is_probed_on_every_axis_even_if_screened_out() -> None:
    """Axes of opposite effect can cancel in the screen."""
    audited = ProbeProgress.start(AXES, audited=True).after_screen(0.2)
    due = ADAPTIVE_PLAN.next(audited)
    assert isinstance(due, NextRound)
    assert due.axes == AXES
    assert not due.combined


def test_only_live_axes_go_on_and_a_dropped_one_never_returns() -> None:
    progress = START.after_screen(2.0).after_round(
        {"age": 5.0, "gender": 0.9, "origin": 1.0, "religion": 0.1}
    )
    due = ADAPTIVE_PLAN.next(progress)
    assert isinstance(due, NextRound)
    assert due.axes == ("age", "origin")
    progress = progress.after_round({"age": 0.8, "origin": 2.0})
    last = ADAPTIVE_PLAN.next(progress)
    assert isinstance(last, NextRound)
    assert last.axes == ("age",)  # 8 is above the bar of 6, 4 is not
    with pytest.raises(UnknownAxis):
        progress.after_round({"gender": 100.0})


def test_a_futile_round_still_counts() -> None:
    """Setting the product back to 1 where probing stops would add to its mean."""
    progress = START.after_screen(1.5).after_round(dict.fromkeys(AXES, 0.2))
    assert ADAPTIVE_PLAN.next(progress) == Stopped(reason="below_bar", coverage="probed")
    assert progress.wealth["age"] == pytest.approx(0.3)


def test_after_the_last_round_the_plan_is_over() -> None:
    progress = START.after_round(dict.fromkeys(AXES, 50.0))
    assert FIXED_PLAN.next(progress) == Stopped(reason="rounds_done", coverage="probed")


def test_wealth_that_alone_halts_the_run_needs_no_further_round() -> None:
    progress = START.after_screen(3.0).after_round(dict.fromkeys(AXES, 10.0))
    stop = ADAPTIVE_PLAN.next(progress, caps={"age": 30.0})
    assert stop == Stopped(reason="limit_reached", coverage="probed")
    assert isinstance(ADAPTIVE_PLAN.next(progress, caps={"age": 30.1}), NextRound)


@pytest.mark.parametrize(("left", "reason"), [(8, "budget"), (9, None)])
def test_the_budget_is_hard(left: int, reason: str | None) -> None:
    due = ADAPTIVE_PLAN.next(START, calls_left=left)
    if reason is None:
        assert isinstance(due, NextRound)
    else:
        assert due == Stopped(reason="budget", coverage="budget")


def test_a_budget_that_ends_after_the_screen_leaves_a_screened_node() -> None:
    stop = ADAPTIVE_PLAN.next(START.after_screen(2.0), calls_left=17)
    assert stop == Stopped(reason="budget", coverage="screened")


@given(
    st.integers(0, 200),
    st.floats(0.1, 5.0),
    st.lists(st.lists(st.floats(0.0, 10.0), min_size=4, max_size=4), min_size=3, max_size=3),
)
def test_no_path_through_a_plan_spends_more_than_the_budget(
    limit: int, screen: float, rounds: list[list[float]]
) -> None:
    budget, progress = CallBudget(limit=limit), START
    while isinstance(due := ADAPTIVE_PLAN.next(progress, calls_left=budget.left), NextRound):
        budget = budget.after(due.calls)
        if due.combined:
            progress = progress.after_screen(screen)
        else:
            paid = dict(zip(AXES, rounds[progress.rounds], strict=True))
            progress = progress.after_round({axis: paid[axis] for axis in due.axes})
    assert budget.spent <= min(limit, ADAPTIVE_PLAN.most_calls(len(AXES)))


POSITIVE = st.lists(st.floats(0.05, 20.0), min_size=2, max_size=4)


@given(POSITIVE, POSITIVE, POSITIVE)
@settings(max_examples=12, deadline=None)
def test_the_wealth_a_plan_ends_with_has_a_mean_of_1_and_so_has_m(
    screen: list[float], first: list[float], second: list[float]
) -> None:
    """Brute force over the outcomes of the screen and two rounds, two axes."""
    plan = ProbePlan(
        screen=Round(reference=6, counterfactual=3),
        screen_bar=1.1,
        rounds=(Round(reference=6, counterfactual=3), Round(reference=10, counterfactual=5)),
        bars=(1.5,),
    )
    orbits = [[e * len(o) / math.fsum(o) for e in o] for o in (screen, first, first, second)]
    chance = 1 / math.prod(map(len, [*orbits, second]))
    means, mean_m = {"age": 0.0, "gender": 0.0}, 0.0
    for paid in itertools.product(*orbits, orbits[3]):
        progress = ProbeProgress.start(AXES[:2])
        while isinstance(due := plan.next(progress), NextRound):
            if due.combined:
                progress = progress.after_screen(paid[0])
            else:
                picks = paid[1:3] if progress.rounds == 0 else paid[3:5]
                e_values = dict(zip(AXES[:2], picks, strict=True))
                progress = progress.after_round({axis: e_values[axis] for axis in due.axes})
        for axis, wealth in progress.wealth.items():
            means[axis] += chance * wealth
        monitor = RunMonitor(axes=("age", "gender"), depth=2)
        cells = [
            Cell(node="a", axis=axis, share=0.4, e_value=wealth)
            for axis, wealth in progress.wealth.items()
        ]
        mean_m += chance * monitor.update(cells).value
    assert means == pytest.approx({"age": 1.0, "gender": 1.0})
    assert mean_m == pytest.approx(1.0)


def test_a_fixed_plan_is_not_adaptive() -> None:
    assert not FIXED_PLAN.adaptive
    assert ADAPTIVE_PLAN.adaptive
    assert THOROUGH_PLAN.most_calls(4) == 15 + 24 + 36 + 36


def test_plans_without_meaning_are_refused() -> None:
    each = Round(reference=6, counterfactual=3)
    with pytest.raises(ConfigurationError, match="one bar between"):
        ProbePlan(rounds=(each, each))
    with pytest.raises(ConfigurationError, match="at least one"):
        ProbePlan(rounds=())
    with pytest.raises(ConfigurationError, match="must be positive"):
        ProbePlan(rounds=(each, each), bars=(0.0,))
    with pytest.raises(ConfigurationError, match="audit_rate"):
        ProbePlan(rounds=(each,), audit_rate=1.5)
    with pytest.raises(ConfigurationError, match="below 2 samples"):
        Round(reference=6, counterfactual=1)


@pytest.mark.parametrize("e_value", [math.nan, -1.0, math.inf])
def test_e10_an_impossible_e_value_raises_in_a_round(e_value: float) -> None:
    with pytest.raises(InvalidMeasurement, match="'screen'"):
        START.after_screen(e_value)
    with pytest.raises(InvalidMeasurement, match="'age'"):
        START.after_round({"age": e_value})
