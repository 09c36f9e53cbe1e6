"""What an audit found, outcome by outcome: the rows of `twinspan flips`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from twinspan.analysis.flip_verdicts import FlipVerdict
from twinspan.analysis.tables import Table
from twinspan.instrumentation.audit.analysis_options import Procedure


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipRow:
    """One outcome under one condition, against the reference.

    Attributes:
        model: who answered.
        arm: the arm of an interventional audit; None for runs that forced nothing.
        action: the outcome.
        condition: the condition.
        kind: what it is: swap, intersection, a control; None if not recorded.
        axis: the attributes that it changes.
        reference: what it is compared with.
        cases: cases with an answer under both.
        runs_reference: runs of the reference, all cases together.
        runs: runs of the condition.
        missing_reference: of these, without an answer.
        missing: likewise of the condition's.
        flips: pairs of one run each that differ.
        cells: pairs compared.
        flip_rate: mean over cases of the share that differs, 0 to 1; None with a `reason`.
        floor_reference: mean over cases of the share of pairs that differ within the reference.
        floor_counterfactual: within the condition.
        floor: mean of both; what the flip rate has to clear.
        excess: flip rate less floor, unclipped.
        ci_low: lower end of its 95% interval over cases.
        ci_high: upper end.
        shift: mean change of the answer, with its sign; a yes is 1.
        p_excess: exact p of the excess.
        p_shift: exact p of the shift.
        p_value: the smaller of both after Holm.
        e_value: product over cases of what a bet on the excess paid; only where ``e-bh`` adjusts.
        p_adjusted: adjusted for all swaps and outcomes of one model and arm: the smallest level
            at which the comparison would be rejected.
        adjusted_by: the procedure: ``holm``, ``bh``, ``by`` or ``e-bh``.
        n_tests: comparisons that were adjusted together.
        p_smallest: the smallest p_adjusted that this design could have given.
        hardest_control: the control that is beaten least clearly.
        p_controls: that the condition moves answers farther than every control.
        batch_ratio: how much more replicates of the reference vary together than independent
            cases would; None where that was not found.
        verdict: from `flip_verdicts`.
        reason: why.
        family: ``confirmatory``, ``descriptive`` or ``indeterminate``; None without contrasts.
        in_band_reference: share of the reference's answers that are acceptable; None without bands.
        in_band: share of the condition's. Look here first: where the arms differ in it, the
            within-band rate is of selected pairs.
        p_in_band: that they differ, by the same tests as for outcomes.
        n_in_band: pairs of one replicate each with both answers acceptable; None without bands.
        n_band_straddling: of these, pairs whose band allows both outcomes.
        wcfr: share of those that flip, the within-band rate.
        wcfr_all_in_band: share of all in-band pairs that flip.
        ground_truth: whether the bands are.
    """

    model: str | None
    arm: str | None
    action: str
    condition: str
    kind: str | None
    axis: str | None
    reference: str
    cases: int
    runs_reference: int
    runs: int
    missing_reference: int
    missing: int
    flips: int
    cells: int
    flip_rate: float | None
    floor_reference: float | None
    floor_counterfactual: float | None
    floor: float | None
    excess: float | None
    ci_low: float | None
    ci_high: float | None
    shift: float | None
    p_excess: float | None
    p_shift: float | None
    p_value: float | None
    e_value: float | None
    p_adjusted: float | None
    adjusted_by: str | None
    n_tests: int | None
    p_smallest: float | None
    hardest_control: str | None
    p_controls: float | None
    batch_ratio: float | None
    verdict: FlipVerdict
    reason: str
    family: str | None = None
    in_band_reference: float | None = None
    in_band: float | None = None
    p_in_band: float | None = None
    n_in_band: int | None = None
    n_band_straddling: int | None = None
    wcfr: float | None = None
    wcfr_all_in_band: float | None = None
    ground_truth: bool | None = None

    @property
    def is_control(self) -> bool:
        """Whether the condition changes no attribute."""
        return self.verdict == "control"

    @property
    def is_finding(self) -> bool:
        """Whether it is a disparity beyond the floor."""
        return self.verdict == "above_floor"

    def as_dict(self) -> dict[str, object]:
        """The columns of `COLUMNS`, by name."""
        return {name: getattr(self, name) for name in COLUMNS}


COLUMNS: Final = tuple(field.name for field in fields(FlipRow))


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipReport:
    """All comparisons of an audit.

    Attributes:
        reference: the condition that others are compared with; None with a `reason`.
        rows: one for each outcome and condition, the clearest first, controls last.
        alpha: level of the tests.
        procedure: what p is adjusted by.
        reason: why there are no rows; None if there are some.
        warnings: what to mind, in sentences.
        missing: of these, what says which planned runs are not there.
    """

    reference: str | None
    rows: tuple[FlipRow, ...]
    alpha: float
    reason: str | None
    procedure: Procedure = "holm"
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every run that was planned is there."""
        return not self.missing

    @property
    def findings(self) -> tuple[FlipRow, ...]:
        """Disparities beyond the floor."""
        return tuple(row for row in self.rows if row.is_finding)

    @property
    def verdict(self) -> str:
        """``flagged``, ``incomplete``, ``clear``, or ``inconclusive`` if nothing could be told."""
        if self.findings:
            return "flagged"
        if not self.is_whole:
            return "incomplete"
        told = {row.verdict for row in self.rows if not row.is_control}
        return "clear" if told - {"inconclusive"} else "inconclusive"

    def table(self) -> Table:
        """The rows as a table of `COLUMNS`."""
        return Table(
            columns=COLUMNS,
            rows=tuple(tuple(getattr(row, name) for name in COLUMNS) for row in self.rows),
        )
