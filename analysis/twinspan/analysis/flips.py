"""Flip rates of conditions against the floor: what an audit found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from scipy import stats

from twinspan.analysis.flip_arms import read_arms
from twinspan.analysis.flip_family import NAMES, adjusted_in_families
from twinspan.analysis.flip_judgement import Judgement, judge
from twinspan.analysis.flip_rows import FlipReport, FlipRow
from twinspan.analysis.flip_tests import rows_of
from twinspan.analysis.flip_verdicts import (
    BEYOND_CONTROLS,
    CONTROL_MOVES,
    CONTROL_STILL,
    CONTROLS_NOT_COMPARABLE,
    NO_CONTROLS,
    NOT_ABOVE_NOISE,
    NOT_BEYOND_CONTROLS,
    RANDOM_WORDING,
    TOO_FEW_RUNS,
)
from twinspan.analysis.store import Store
from twinspan.instrumentation.audit.analysis_options import Procedure
from twinspan.instrumentation.errors import ConfigurationError

ALPHA: Final = 0.05
UNEVEN_ALPHA: Final = 0.01
"""Level at which answers are said to be missing unevenly."""

NO_RUNS: Final = "no run has a case and a condition"
NO_OUTCOME: Final = (
    "no run acted on an outcome that is counted; name outcomes with --outcome NAME=STEP.FIELD"
)
ONE_CONDITION: Final = "only one condition was run; a disparity needs a second one"
NO_REFERENCE: Final = (
    "no condition is recorded as the reference, and none or several of the names begin with "
    "'ref'; name it with --reference"
)


def flip_report(
    store: Store,
    *,
    reference: str | None = None,
    alpha: float = ALPHA,
    seed: int = 0,
    judgement: Judgement | None = None,
    procedure: Procedure = "holm",
) -> FlipReport:
    """Compare every condition of a store with its reference, on every outcome.

    A swap is a finding if it is beyond the floor (adjusted for all swaps and outcomes) and farther
    from the reference than every control (intersection-union at `alpha`).

    Args:
        store: opened spans.
        reference: the condition to compare with; the recorded one if None.
        alpha: level of the tests, in (0, 1).
        seed: of what is sampled.
        judgement: bands and contrasts that the rows are judged by as well.
        procedure: what p is adjusted by: ``holm`` for the chance of any false finding, ``bh``,
            ``by`` or ``e-bh`` for the share of false ones.

    Raises:
        ConfigurationError: no run has the reference, alpha is no level, or the procedure is none.
    """
    if not 0.0 < alpha < 1.0:
        raise ConfigurationError(f"alpha is {alpha!r}; give a level between 0 and 1, such as 0.05")
    if procedure not in NAMES:
        raise ConfigurationError(
            f"nothing is adjusted by {procedure!r}; take one of {', '.join(NAMES)}"
        )
    conditions = store.table("SELECT condition_id FROM conditions ORDER BY ALL").column(
        "condition_id"
    )
    if reference is not None:
        _check_reference(reference, [str(each) for each in conditions])
        store.compare_with(reference)
    if len(conditions) < 2:
        return _without(ONE_CONDITION if conditions else NO_RUNS, alpha)
    found = store.table("SELECT condition_id FROM conditions WHERE is_reference ORDER BY ALL").rows
    if len(found) != 1:
        return _without(NO_REFERENCE, alpha)
    chosen = str(found[0][0])
    wording, missing = _wording(store), _missing_runs(store)
    groups = read_arms(store)
    rows = [
        row
        for key, arms in groups.items()
        for row in rows_of(key, chosen, arms, seed=seed, bets=procedure == "e-bh")
    ]
    rows = _judged(adjusted_in_families(rows, procedure), alpha, wording)
    if judgement is not None:
        rows = judge(store, rows, judgement)
    return FlipReport(
        reference=chosen,
        rows=tuple(sorted(rows, key=_clearest)),
        alpha=alpha,
        procedure=procedure,
        reason=None if rows else NO_OUTCOME,
        warnings=(*_warnings(rows), *missing),
        missing=missing,
    )


def _without(reason: str, alpha: float) -> FlipReport:
    return FlipReport(reference=None, rows=(), alpha=alpha, reason=reason)


def _check_reference(reference: str, conditions: Sequence[str]) -> None:
    if reference not in conditions:
        known = ", ".join(map(repr, conditions[:5])) or "none"
        raise ConfigurationError(
            f"no run has the condition {reference!r}; the conditions begin with {known}"
        )


def _wording(store: Store) -> str | None:
    """How runs were worded; None where it differs or is not recorded."""
    found = store.table("SELECT DISTINCT audit_wording FROM counted_runs").column("audit_wording")
    return str(found[0]) if len(found) == 1 and found[0] is not None else None


def _missing_runs(store: Store) -> tuple[str, ...]:
    """What to say of audits of which runs are missing."""
    rows = store.table(
        "SELECT name, missing_runs, expected_runs FROM audits WHERE missing_runs > 0 ORDER BY ALL"
    ).rows
    return tuple(
        f"audit {name!r} is incomplete: {missing} of {expected} planned runs are missing"
        for name, missing, expected in rows
    )


def _judged(rows: Sequence[FlipRow], alpha: float, wording: str | None) -> list[FlipRow]:
    """The rows with what may be said of them."""
    judged = [_with_verdict(row, alpha, wording) for row in rows]
    with_controls = {(row.model, row.arm, row.action) for row in rows if row.is_control}
    return [
        replace(row, reason=CONTROLS_NOT_COMPARABLE)
        if row.reason in (NO_CONTROLS, RANDOM_WORDING)
        and (row.model, row.arm, row.action) in with_controls
        and row.p_controls is None
        else row
        for row in judged
    ]


def _with_verdict(row: FlipRow, alpha: float, wording: str | None) -> FlipRow:
    if row.p_adjusted is None:
        # Untested although there are answers: e-values need two runs in each arm of a case.
        return row if row.reason else replace(row, reason=TOO_FEW_RUNS)
    over = row.p_adjusted <= alpha
    blind = row.p_smallest is not None and row.p_smallest > alpha
    if row.is_control:
        still = TOO_FEW_RUNS if blind else CONTROL_STILL
        return replace(row, reason=CONTROL_MOVES if over else still)
    if not over:
        return replace(
            row,
            verdict="inconclusive" if blind else "within_floor",
            reason=TOO_FEW_RUNS if blind else NOT_ABOVE_NOISE,
        )
    if row.p_controls is None:
        reason = RANDOM_WORDING if wording == "random" else NO_CONTROLS
        return replace(row, verdict="above_floor", reason=reason)
    if row.p_controls <= alpha:
        return replace(row, verdict="above_floor", reason=BEYOND_CONTROLS)
    return replace(row, verdict="within_controls", reason=NOT_BEYOND_CONTROLS)


def _warnings(rows: Sequence[FlipRow]) -> tuple[str, ...]:
    told: list[str] = []
    batched = sorted({row.action for row in rows if row.batch_ratio is not None})
    if batched:
        told.append(
            f"replicates of {', '.join(batched)} vary together more than independent cases would: "
            "they were answered in one context, or the model changed between them; p-values are "
            "too small"
        )
    moved = sorted({row.condition for row in rows if row.reason == CONTROL_MOVES})
    if moved:
        told.append(
            f"the control {', '.join(moved)} moves answers beyond the floor: the agent reacts to "
            "edits that mean nothing"
        )
    uneven = [row for row in rows if _is_uneven(row)]
    if uneven:
        worst = max(uneven, key=lambda row: abs(_gap(row)))
        told.append(
            f"answers are missing more often under one condition: {worst.action} lacks "
            f"{worst.missing} of {worst.runs} under {worst.condition}, {worst.missing_reference} "
            f"of {worst.runs_reference} under the reference; a refusal is an outcome too"
        )
    return tuple(told)


def _gap(row: FlipRow) -> float:
    return row.missing / row.runs - row.missing_reference / row.runs_reference


def _is_uneven(row: FlipRow) -> bool:
    """Whether answers are missing unevenly, by Fisher's exact test at 1%."""
    if not row.runs or not row.runs_reference or row.missing + row.missing_reference == 0:
        return False
    found = stats.fisher_exact(
        np.array(
            [
                [row.missing, row.runs - row.missing],
                [row.missing_reference, row.runs_reference - row.missing_reference],
            ]
        )
    )
    return float(found.pvalue) <= UNEVEN_ALPHA


_ORDER: Final = (
    "above_floor",
    "within_controls",
    "descriptive",
    "within_floor",
    "inconclusive",
    "control",
)


def _clearest(row: FlipRow) -> tuple[object, ...]:
    return (
        str(row.model),
        str(row.arm or ""),
        _ORDER.index(row.verdict),
        1.0 if row.p_adjusted is None else row.p_adjusted,
        -(row.excess or row.flip_rate or 0.0),
        row.condition,
        row.action,
    )
