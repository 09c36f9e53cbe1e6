"""The panel and the editor as repairs of a frozen payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from twinspan.collector.intervention.bench import Bench
from twinspan.collector.intervention.case import Case
from twinspan.collector.intervention.madera import Attempt, MaderaEditor
from twinspan.collector.intervention.measured import Score
from twinspan.collector.intervention.panel import PanelReview, SkepticPanel
from twinspan.collector.intervention.proposals import Candidate, Proposal
from twinspan.instrumentation import conventions as c

SKEPTICS: Final = "skeptics"
MADERA: Final = "madera"


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelRepair:
    """A panel reviews the frozen answer; every revision is measured, the best goes first.

    The vote is recorded and decides nothing: a dissenter whose revision measures best wins
    against any majority, and a revision that measures worse than no repair never does.
    """

    panel: SkepticPanel = field(repr=False)
    name: str = SKEPTICS

    async def propose(self, case: Case, bench: Bench) -> Proposal:
        """The revisions, the best measured first."""
        panel = self.panel
        found = await panel.review(case, bench.watched(panel.skeptics, panel.graph))
        told = {
            c.PANEL_DECISION: found.decision,
            c.PANEL_CONFIDENCE: found.tally.confidence,
            c.PANEL_WEIGHTING: panel.graph.weighting,
        }
        if case.rerun is None:
            return Proposal.none("cannot_rerun", told)
        candidates = found.candidates(case.answer)
        if not candidates:
            return Proposal.none(_without_revision(found), told)
        ranked = await best_first(candidates, bench.score, before=bench.before)
        if not ranked:
            return Proposal.none("no_better_attempt", told)
        return Proposal.of(*ranked, told=told)


def _without_revision(found: PanelReview) -> str:
    if any(each.review.stance == "revise" for each in found.tally.weighed):
        return "no_fitting_revision"
    return f"panel_{found.decision}"


async def best_first(
    candidates: Sequence[Candidate], score: Score, *, before: float
) -> list[Candidate]:
    """The candidates by their measured delta; those that do worse than no repair fall out.

    A single one is not measured twice: the fresh measurement that decides is enough.

    Args:
        candidates: the candidates; in a tie the earlier one is the better one.
        score: measures a procedure on fresh samples.
        before: delta without a repair.
    """
    if len(candidates) == 1:
        return list(candidates)
    scored: list[tuple[float, int, Candidate]] = []
    for place, candidate in enumerate(candidates):
        measured = await score(candidate.procedure, candidate.label)
        if measured.delta is not None and measured.delta < before:
            scored.append((measured.delta, place, candidate))
    return [candidate for _, _, candidate in sorted(scored, key=lambda each: each[:2])]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorRepair:
    """The editor rewrites the frozen answer; its best measured attempt goes first."""

    editor: MaderaEditor = field(repr=False)
    name: str = MADERA

    async def propose(self, case: Case, bench: Bench) -> Proposal:
        """The attempts that measured better than no repair, the best first."""
        if case.rerun is None:
            return Proposal.none("cannot_rerun")
        edited = await self.editor.edit(case, bench.score, bench.unrepaired)
        ranked = edited.better
        if not ranked:
            return Proposal.none(_without_attempt(edited.attempts, edited.error))
        return Proposal.of(
            *(
                Candidate(
                    label=f"rewrite-{each.number}", payload=each.payload, procedure=each.procedure
                )
                for each in ranked
            )
        )


def _without_attempt(attempts: Sequence[Attempt], error: str | None) -> str:
    if error is not None:
        return f"error:{error}"
    if not any(each.changed for each in attempts):
        return "nothing_changed"
    return "no_better_attempt"
