"""Probing in rounds: more samples only where the evidence grows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement, UnknownAxis

StopReason: TypeAlias = Literal[
    "screened_out", "below_bar", "rounds_done", "limit_reached", "budget"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Sample sizes of one round; every round draws its reference anew.

    Attributes:
        reference: samples under the payload's own group, shared by the axes of the round.
        counterfactual: samples per axis.

    >>> Round(reference=10, counterfactual=5).calls(4)
    30
    """

    reference: int
    counterfactual: int

    def __post_init__(self) -> None:
        if self.reference < 2 or self.counterfactual < 2:
            raise ConfigurationError(
                f"a round of {self.reference}/{self.counterfactual} has an arm below 2 samples; "
                "6/3 is the smallest that can show much"
            )

    def calls(self, axes: int) -> int:
        """Node runs that the round takes on so many axes."""
        return self.reference + self.counterfactual * axes


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRound:
    """What to probe next.

    Attributes:
        round: the sample sizes.
        axes: the axes that are still live.
        combined: all axes are swapped together in one counterfactual arm: the screen.
        calls: node runs it takes.
    """

    round: Round
    axes: tuple[str, ...]
    combined: bool
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Why there is no further round.

    Attributes:
        reason: ``screened_out``: the screen paid too little; ``below_bar``: no axis is live;
            ``rounds_done``: the plan is over; ``limit_reached``: an axis alone halts the run;
            ``budget``: the calls left do not pay for the round.
        coverage: ``probed``, ``screened`` (all axes swapped together, so opposite effects may
            have cancelled) or ``budget`` (not probed at all).
    """

    reason: StopReason
    coverage: Literal["probed", "screened", "budget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeProgress:
    """The evidence on one node so far, immutable.

    Attributes:
        wealth: product of the e-values per axis, the screen's included.
        live: axes that were probed in the last round, all before the first.
        screened: the screen was run.
        rounds: rounds done, without the screen.
        audited: drawn beforehand to be probed on every axis even if screened out.
    """

    wealth: Mapping[str, float]
    live: tuple[str, ...]
    screened: bool = False
    rounds: int = 0
    audited: bool = False

    @classmethod
    def start(cls, axes: tuple[str, ...], *, audited: bool = False) -> ProbeProgress:
        """No evidence yet: every axis has a wealth of 1.

        >>> ProbeProgress.start(("age",)).wealth["age"]
        1.0
        """
        wealth = MappingProxyType(dict.fromkeys(axes, 1.0))
        return cls(wealth=wealth, live=tuple(axes), audited=audited)

    def after_screen(self, e_value: float) -> ProbeProgress:
        """The screen's e-value multiplies every axis: it tests that none of them matters."""
        _check_e("screen", e_value)
        wealth = {axis: held * e_value for axis, held in self.wealth.items()}
        return replace(self, wealth=MappingProxyType(wealth), screened=True)

    def after_round(self, e_values: Mapping[str, float]) -> ProbeProgress:
        """One more round; its e-values multiply the wealth, also where probing then stops.

        Leaving a bad round out would be peeking: the product so far is what counts.

        Raises:
            UnknownAxis: an axis was not live.
            InvalidMeasurement: an e-value is negative or not finite.
        """
        wealth = dict(self.wealth)
        for axis, e_value in e_values.items():
            if axis not in self.live:
                raise UnknownAxis(axis, known=self.live)
            _check_e(axis, e_value)
            wealth[axis] *= e_value
        return replace(
            self,
            wealth=MappingProxyType(wealth),
            live=tuple(axis for axis in self.live if axis in e_values),
            rounds=self.rounds + 1,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePlan:
    """How one node is probed; pure logic, it draws nothing itself.

    Args:
        rounds: per-axis rounds, at least one.
        bars: after each round but the last, the wealth an axis needs for the next round.
        screen: a first round in which all axes are swapped together.
        screen_bar: what the screen's e-value must reach for the per-axis rounds to begin.
        audit_rate: share of nodes that are probed on every axis even if screened out, in
            [0, 1]; see :func:`~twinspan.instrumentation.probing.budget.uniform_draw`.

    Raises:
        ConfigurationError: the bars do not fit the rounds, or a number is out of range.

    >>> plan = ADAPTIVE_PLAN
    >>> progress = ProbeProgress.start(("age", "gender"))
    >>> plan.next(progress).calls  # 6 reference and 3 combined samples
    9
    >>> plan.next(progress.after_screen(0.8))
    Stopped(reason='screened_out', coverage='screened')
    >>> progress = progress.after_screen(1.6).after_round({"age": 4.0, "gender": 0.3})
    >>> plan.next(progress).axes  # 6.4 is above the bar of 2, 0.48 is not
    ('age',)
    """

    rounds: tuple[Round, ...]
    bars: tuple[float, ...] = ()
    screen: Round | None = None
    screen_bar: float = 1.0
    audit_rate: float = 0.0

    def __post_init__(self) -> None:
        if not self.rounds or len(self.bars) != len(self.rounds) - 1:
            raise ConfigurationError(
                f"{len(self.rounds)} round(s) and {len(self.bars)} bar(s); give at least one "
                "round, and one bar between any two"
            )
        if not all(bar > 0 and math.isfinite(bar) for bar in (*self.bars, self.screen_bar)):
            raise ConfigurationError(f"bars {self.bars!r}, {self.screen_bar!r} must be positive")
        if not 0.0 <= self.audit_rate <= 1.0:
            raise ConfigurationError(f"audit_rate {self.audit_rate!r} must lie in [0, 1]")

    @property
    def adaptive(self) -> bool:
        """What is probed depends on what was found: not for path permutation."""
        return self.screen is not None or len(self.rounds) > 1

    def most_calls(self, axes: int) -> int:
        """Node runs of a node that goes through every round on every axis."""
        screen = self.screen.calls(1) if self.screen else 0
        return screen + sum(each.calls(axes) for each in self.rounds)

    def next(
        self,
        progress: ProbeProgress,
        *,
        calls_left: int | None = None,
        caps: Mapping[str, float] | None = None,
    ) -> NextRound | Stopped:
        """The next round, or why there is none.

        Args:
            progress: the evidence on the node so far.
            calls_left: node runs the budget of the run still has, ``None`` without a limit.
            caps: per axis the wealth that alone halts the run, from the monitor before the
                superstep began.
        """
        live = self._live(progress)
        reason = self._stop(progress, live, caps or {})
        if reason is not None:
            return Stopped(reason=reason, coverage=_coverage(progress))
        following = self._following(progress, live)
        if calls_left is not None and following.calls > calls_left:
            return Stopped(reason="budget", coverage=_coverage(progress))
        return following

    def _live(self, progress: ProbeProgress) -> tuple[str, ...]:
        if not progress.rounds:
            return progress.live
        bar = self.bars[progress.rounds - 1] if progress.rounds <= len(self.bars) else 0.0
        return tuple(axis for axis in progress.live if progress.wealth[axis] >= bar)

    def _stop(
        self, progress: ProbeProgress, live: tuple[str, ...], caps: Mapping[str, float]
    ) -> StopReason | None:
        wealth = progress.wealth
        if any(held >= caps.get(axis, math.inf) for axis, held in wealth.items()):
            return "limit_reached"
        if progress.rounds >= len(self.rounds):
            return "rounds_done"
        if not live:
            return "below_bar"
        return "screened_out" if self._screened_out(progress) else None

    def _screened_out(self, progress: ProbeProgress) -> bool:
        if self.screen is None or not progress.screened or progress.rounds or progress.audited:
            return False
        return max(progress.wealth.values()) < self.screen_bar

    def _following(self, progress: ProbeProgress, live: tuple[str, ...]) -> NextRound:
        if self.screen is not None and not progress.screened:
            calls = self.screen.calls(1)
            return NextRound(round=self.screen, axes=live, combined=True, calls=calls)
        due = self.rounds[progress.rounds]
        return NextRound(round=due, axes=live, combined=False, calls=due.calls(len(live)))


FIXED_PLAN: Final = ProbePlan(rounds=(Round(reference=10, counterfactual=5),))
"""Ten reference samples and five per axis, whatever comes out."""

ADAPTIVE_PLAN: Final = ProbePlan(
    screen=Round(reference=6, counterfactual=3),
    screen_bar=1.3,
    rounds=(
        Round(reference=6, counterfactual=3),
        Round(reference=10, counterfactual=5),
        Round(reference=12, counterfactual=6),
    ),
    bars=(2.0, 6.0),
)
"""About 0.4 of the calls of :data:`FIXED_PLAN` in a clean run, more detection in a biased one."""

THOROUGH_PLAN: Final = ProbePlan(
    screen=Round(reference=10, counterfactual=5),
    screen_bar=1.5,
    rounds=(
        Round(reference=8, counterfactual=4),
        Round(reference=12, counterfactual=6),
        Round(reference=12, counterfactual=6),
    ),
    bars=(3.0, 10.0),
)
"""About 0.6 of the calls of :data:`FIXED_PLAN`; detects what twice its samples would."""


def _coverage(progress: ProbeProgress) -> Literal["probed", "screened", "budget"]:
    if progress.rounds:
        return "probed"
    return "screened" if progress.screened else "budget"


def _check_e(of: str, e_value: float) -> None:
    if not (math.isfinite(e_value) and e_value >= 0.0):
        must = "be finite and not negative"
        raise InvalidMeasurement("e-value", of=of, value=e_value, must=must)
