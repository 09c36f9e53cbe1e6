"""The reference repair: the node runs again, blind to the axis.

The axis's words in the payload that the node read are replaced by neutral ones, so that its
answer cannot depend on the group. No model of its own is needed, and the result is one that the
node itself gives: nobody rewrites it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from twinspan.collector.intervention.bench import Bench
from twinspan.collector.intervention.case import Case
from twinspan.collector.intervention.proposals import Candidate, Proposal

BLIND_RERUN: Final = "blind_rerun"


@dataclass(frozen=True, slots=True)
class BlindRerun:
    """Runs the node again on what it read, without the axis's words."""

    name: str = BLIND_RERUN

    async def propose(self, case: Case, bench: Bench) -> Proposal:
        """One candidate; none where the axes have no neutral words for what was read."""
        rerun = case.rerun
        if rerun is None:
            return Proposal.none("cannot_rerun")
        if all(axis.neutral(case.payload).no_op for axis in case.axes):
            return Proposal.none("no_neutral_words")

        async def blindly(payload: Any) -> Any:
            return await rerun(case.blind(payload))

        payload = await blindly(case.payload)
        return Proposal.of(Candidate(label="blind", payload=payload, procedure=blindly))
