"""All findings of a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from twinspan.analysis.findings.decisions import decisions
from twinspan.analysis.findings.disparities import AuditQuestion, disparities
from twinspan.analysis.findings.interventions import interventions
from twinspan.analysis.findings.reactions import reactions
from twinspan.analysis.findings.records import Finding, Level
from twinspan.analysis.flip_rows import FlipReport
from twinspan.analysis.store import Store
from twinspan.analysis.trail import AuditTrail

_SEVERITY: Final[Mapping[Level, int]] = {"error": 0, "warning": 1, "note": 2, "none": 3}


def findings(
    store: Store,
    *,
    run_id: str | None = None,
    everything: bool = False,
    question: AuditQuestion | None = None,
    answer: FlipReport | None = None,
) -> tuple[Finding, ...]:
    """The findings of a store, the gravest first, among equals the largest impact first.

    Args:
        store: opened spans.
        run_id: one run; all of them if None.
        everything: also list what is no finding.
        question: what is asked of audited runs.
        answer: what they say; without it audits are left out.

    Raises:
        SourceError: if there is no such run.
    """
    trail = AuditTrail(store)
    runs = trail.runs() if run_id is None else (trail.run(run_id),)
    graphs = {run.run_id: run.graph for run in runs}
    found = [
        *reactions(store, graphs, everything=everything),
        *decisions(store, runs, everything=everything),
        *interventions(store, graphs),
    ]
    if answer is not None:
        asked = question or AuditQuestion()
        found += disparities(store, asked, answer, everything=everything)
    return tuple(sorted(found, key=_gravity))


def _gravity(finding: Finding) -> tuple[int, bool, float]:
    impact = finding.impact
    return _SEVERITY[finding.level], impact is None, -(impact or 0.0)
