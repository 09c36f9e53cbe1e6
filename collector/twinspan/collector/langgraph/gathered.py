"""Skeptics that a graph asks by `Send`, as the panel that weighs them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from twinspan.collector.control import ControlGate
from twinspan.collector.control import Incident as Decided
from twinspan.collector.intervention.case import Case
from twinspan.collector.intervention.panel import PanelReview, SkepticPanel
from twinspan.collector.intervention.skeptics import Skeptic
from twinspan.collector.intervention.verdicts import Review
from twinspan.instrumentation.gate import OpenIncident


def case_of(gate: ControlGate, incident: OpenIncident) -> Case:
    """The frozen answer as skeptics see it, blind to the axes it was frozen for."""
    execution, decided = incident.execution, incident.verdict.ticket
    guilty = decided.guilty if isinstance(decided, Decided) else ()
    names = {record.axis.partition("#")[0] for record in guilty}
    known = gate.settings.probe.axes
    return Case(
        node=execution.node,
        payload=execution.received,
        answer=execution.payload,
        axes=tuple(axis for axis in known if axis.name in names) or known,
        rerun=execution.rerun,
    )


def plain(review: Review) -> dict[str, Any]:
    """A review as plain data.

    >>> review_of(plain(Review(stance="revise", confidence=0.5))).stance
    'revise'
    """
    return dataclasses.asdict(review)


def review_of(told: dict[str, Any]) -> Review:
    """The inverse of `plain`."""
    known = {field.name for field in dataclasses.fields(Review)}
    given = {key: value for key, value in told.items() if key in known}
    for key in ("evidence", "checked"):
        given[key] = tuple(given.get(key) or ())
    return Review(**given)


class _Asked:
    """A skeptic who has answered already."""

    def __init__(self, skeptic: Skeptic, review: Review) -> None:
        self._skeptic = skeptic
        self._review = review

    @property
    def role(self) -> str:
        """As the skeptic's own."""
        return self._skeptic.role

    @property
    def provenance(self) -> str:
        """As the skeptic's own."""
        return self._skeptic.provenance

    async def review(self, case: Case, /) -> Review:
        """What it said."""
        return self._review


class GatheredPanel(SkepticPanel):
    """A panel whose skeptics were asked elsewhere; it weighs and measures as ever."""

    def __init__(self, panel: SkepticPanel, reviews: Sequence[Review]) -> None:
        self._panel = panel
        self.skeptics: tuple[Skeptic, ...] = tuple(
            _Asked(skeptic, review) for skeptic, review in zip(panel.skeptics, reviews, strict=True)
        )
        self.graph = panel.graph
        self.timeout = panel.timeout

    async def review(self, case: Case, skeptics: Sequence[Skeptic] | None = None) -> PanelReview:
        """Weigh what was said; revisions are measured by the skeptics who can be asked again."""
        return await self._panel.review(case, self.skeptics if skeptics is None else skeptics)
