"""What a strategy proposes: candidates to be handed on, none of them believed yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

from twinspan.collector.intervention.case import Case, Procedure

if TYPE_CHECKING:
    from twinspan.collector.intervention.bench import Bench


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A payload that might replace the frozen one.

    Attributes:
        label: names it in the record, without the name of anyone who proposed it.
        payload: the payload.
        procedure: from what the node reads to such a payload, for measuring it.
    """

    label: str
    payload: Any = field(repr=False)
    procedure: Procedure = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a strategy came to.

    Attributes:
        candidates: the best first; the first that no verifier refutes is measured afresh.
        reason: why there is none, from the closed list of `twinspan.intervention.reason`.
        told: what the intervention's span says besides.
    """

    candidates: tuple[Candidate, ...] = ()
    reason: str | None = None
    told: Mapping[str, object] = field(default_factory=dict[str, object])

    @classmethod
    def of(cls, *candidates: Candidate, told: Mapping[str, object] | None = None) -> Self:
        """Some candidates."""
        return cls(candidates=candidates, told=told or {})

    @classmethod
    def none(cls, reason: str, told: Mapping[str, object] | None = None) -> Self:
        """No candidate, and why."""
        return cls(reason=reason, told=told or {})


class Repairer(Protocol):
    """A way to repair a frozen payload."""

    @property
    def name(self) -> str:
        """The strategy, as spans name it."""
        ...

    async def propose(self, case: Case, bench: Bench, /) -> Proposal:
        """Candidates for a case; whatever it raises leaves the payload frozen."""
        ...
