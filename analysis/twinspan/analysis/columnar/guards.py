"""The control machine's guards for many runs at once.

Whether a number reached a limit is asked of all runs together; what follows from it, of the
collector's machine, once for each combination that occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, get_args

import numpy as np

from twinspan.analysis.columnar.columns import Bools, Floats, Places
from twinspan.analysis.columnar.settings import Settings
from twinspan.collector.accumulator import warmup_factor
from twinspan.collector.control_state import ControlInputs, ControlState, Measurement
from twinspan.collector.decision import BreakerState, Decision, Reason
from twinspan.collector.machine import Outcome
from twinspan.collector.monitor_state import LIMIT_TOLERANCE
from twinspan.collector.triggers import Signals, reading_of

STATES: Final[tuple[BreakerState, ...]] = tuple(BreakerState)
DECISIONS: Final[tuple[Decision, ...]] = tuple(Decision)
REASONS: Final[tuple[Reason, ...]] = tuple(Reason)
MEASUREMENTS: Final[tuple[Measurement, ...]] = get_args(Measurement)

_Codes: TypeAlias = tuple[int, int, int, int, int]
"""State, attempts and cool-down after a superstep, and places of decision and reason."""


@dataclass(slots=True, kw_only=True, eq=False)
class MachineStates:
    """Where each run stands; see `ControlState`.

    Attributes:
        state: place in `STATES`.
        attempts, cooldown: of the incident so far.
        last_fast: B_fast of the superstep before; NaN for none.
    """

    state: Places
    attempts: Places
    cooldown: Places
    last_fast: Floats

    @classmethod
    def begin(cls, runs: int) -> MachineStates:
        """All runs at their beginning."""
        return cls(
            state=np.full(runs, STATES.index(BreakerState.NORMAL), dtype=np.intp),
            attempts=np.zeros(runs, dtype=np.intp),
            cooldown=np.zeros(runs, dtype=np.intp),
            last_fast=np.full(runs, np.nan),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """The numbers that decisions rest on, one of each a decision; NaN for none.

    Attributes:
        fast, slow: B_fast and B_slow.
        step: supersteps accumulated.
        fast_deviation, slow_deviation: null standard deviations of the scores.
        monitor, limit: M, and where it fires.
    """

    fast: Floats
    slow: Floats
    step: Places
    fast_deviation: Floats
    slow_deviation: Floats
    monitor: Floats
    limit: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guards:
    """The machines of a batch's runs.

    Args:
        settings: the settings of the runs.
    """

    settings: Settings
    _known: dict[tuple[int, ...], _Codes] = field(default_factory=dict["tuple[int, ...]", "_Codes"])

    def step(
        self, states: MachineStates, runs: Places, scores: Scores, measurement: Places
    ) -> tuple[Places, Places]:
        """Decide one superstep of some runs; moves their states.

        Args:
            states: where all runs stand.
            runs: the runs that decide, each once.
            scores: what they decide on.
            measurement: how each was measured, a place in `MEASUREMENTS`.

        Returns:
            Places of the decisions in `DECISIONS` and of the reasons in `REASONS`.
        """
        setting = self.settings.of_run[runs]
        signals = self._signals(setting, scores)
        with np.errstate(invalid="ignore"):
            rose = scores.fast > states.last_fast[runs]
        rows = np.column_stack(
            (
                setting,
                states.state[runs],
                states.attempts[runs],
                states.cooldown[runs],
                measurement,
                rose,
                *signals,
            )
        )
        keys, inverse = np.unique(rows, axis=0, return_inverse=True)
        outcomes = np.array([self._codes(tuple(key)) for key in keys.tolist()], dtype=np.intp)
        led = outcomes[inverse.ravel()]
        states.state[runs], states.attempts[runs], states.cooldown[runs] = led[:, :3].T
        states.last_fast[runs] = scores.fast
        return led[:, 3], led[:, 4]

    def _codes(self, key: tuple[int, ...]) -> _Codes:
        known = self._known.get(key)
        if known is None:
            found = self._outcome(key)
            known = self._known[key] = (
                STATES.index(found.to),
                found.attempts,
                found.cooldown,
                DECISIONS.index(found.decision),
                REASONS.index(found.reason),
            )
        return known

    def _outcome(self, key: tuple[int, ...]) -> Outcome:
        """What the collector's machine makes of a combination."""
        setting, state, attempts, cooldown, measurement, rose, *reached = key
        machine = self.settings.each[setting].machine
        signals = Signals(*map(bool, reached))
        before = ControlState(
            state=STATES[state], attempts=attempts, cooldown=cooldown, last_fast=0.0
        )
        inputs = ControlInputs(
            superstep="", fast=float(rose), measurement=MEASUREMENTS[measurement]
        )
        return machine.outcome(before, inputs, reading_of(signals, machine.rule))

    def _signals(self, setting: Places, scores: Scores) -> Signals:
        """Which limits each decision's numbers reached, as columns of `Signals`."""
        limits = self._limits(setting, scores)
        warn = self._each(setting, [each.machine.monitor_warn for each in self.settings.each])
        with np.errstate(invalid="ignore"):
            columns = (
                scores.fast >= limits.enter,
                scores.fast >= limits.leave,
                (scores.slow >= limits.warn) & (scores.slow > 0.0),
                scores.monitor >= (1.0 - LIMIT_TOLERANCE) * scores.limit,
                scores.monitor >= warn * scores.limit,
                np.zeros(len(setting), dtype=np.bool_),
                ~np.isnan(limits.enter) & ~np.isnan(scores.fast),
            )
        return Signals(*columns)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    def _limits(self, setting: Places, scores: Scores) -> _Limits:
        """The thresholds in force, see `CircuitBreaker.in_force`."""
        breakers = [each.machine.breaker for each in self.settings.each]
        limits = _Limits(
            self._each(setting, [breaker.tau_enter for breaker in breakers]),
            self._each(setting, [breaker.tau_exit for breaker in breakers]),
            self._each(setting, [breaker.warning_threshold for breaker in breakers]),
        )
        by_deviation = np.array([each.scaling == "deviation" for each in breakers])[setting]
        by_warmup = np.array([each.scaling == "warmup" for each in breakers])[setting]
        by_warmup &= scores.step > 0
        if by_deviation.any():
            limits = limits.scaled(by_deviation, scores.fast_deviation, scores.slow_deviation)
        if by_warmup.any():
            fast, slow = (
                self._warmup(setting, scores.step, by_warmup, name)
                for name in ("fast_alpha", "slow_alpha")
            )
            limits = limits.scaled(by_warmup, fast, slow)
        return limits

    def _warmup(self, setting: Places, step: Places, which: Bools, name: str) -> Floats:
        factors = np.ones(len(setting))
        for place in np.flatnonzero(which).tolist():
            breaker = self.settings.each[setting.item(place)].machine.breaker
            factors[place] = warmup_factor(getattr(breaker, name), step.item(place))
        return factors

    @staticmethod
    def _each(setting: Places, values: Sequence[float | None]) -> Floats:
        filled = [np.nan if value is None else value for value in values]
        return np.array(filled, dtype=np.float64)[setting]


class _Limits(NamedTuple):
    """Thresholds by decision; NaN where there are none."""

    enter: Floats
    leave: Floats
    warn: Floats

    def scaled(self, which: Bools, fast: Floats, slow: Floats) -> _Limits:
        """Some of them in other units; off where these are not known."""
        known = which & (fast > 0.0)
        off = which & ~known
        warn = np.where(slow > 0.0, self.warn * slow, np.inf)
        return _Limits(
            *(
                np.where(off, np.nan, np.where(known, changed, kept))
                for changed, kept in (
                    (self.enter * fast, self.enter),
                    (self.leave * fast, self.leave),
                    (warn, self.warn),
                )
            )
        )
