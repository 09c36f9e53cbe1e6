"""An optional hook for factual error, kept apart from bias.

twinspan does not know facts. Whoever has a rule book or a checker can let it refute a repaired
payload: it is then not handed on, and the record says that facts, not bias, were the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from twinspan.collector.intervention.case import Case

FactualVerdict = Literal["verified", "refuted", "unverified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactualCheck:
    """What a verifier says of an answer's facts.

    Attributes:
        verdict: only `refuted` keeps a payload back.
        reason: why, in a word of the verifier's own closed list; it is recorded.
    """

    verdict: FactualVerdict
    reason: str | None = None


@runtime_checkable
class Verifier(Protocol):
    """Checks an answer's facts."""

    async def verify(self, case: Case, answer: Any, /) -> FactualCheck:
        """Its verdict on a repaired answer; an error counts as `unverified`."""
        ...


async def checked(verifier: Verifier | None, case: Case, answer: Any) -> FactualCheck:
    """The verdict of a verifier; `unverified` where there is none, or where it fails."""
    if verifier is None:
        return FactualCheck(verdict="unverified")
    try:
        return await verifier.verify(case, answer)
    except Exception as error:
        return FactualCheck(verdict="unverified", reason=f"error:{type(error).__qualname__}")
