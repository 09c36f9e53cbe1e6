"""Bands: which actions are acceptable in a case, who says so, and on what ground."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass
from typing import Any, Final, Literal

from twinspan.analysis.acceptable import (
    AcceptableLike,
    Between,
    OneOf,
    acceptable,
    band_straddles,
    in_band,
)
from twinspan.analysis.adjudicators import NOBODY, AdjudicatorRegistry
from twinspan.instrumentation.errors import ConfigurationError, UnsuitableValue

__all__ = [
    "PROVENANCE",
    "AcceptableLike",
    "Band",
    "Between",
    "GroundTruth",
    "Membership",
    "OneOf",
    "Provenance",
    "acceptable",
    "as_acceptable_map",
    "band_straddles",
    "ground_truth",
    "in_band",
    "rater_counts",
    "unadjudicated",
]

Provenance = Literal["author-derived", "guideline-derived", "clinician-adjudicated"]

PROVENANCE: Final[tuple[Provenance, ...]] = (
    "author-derived",
    "guideline-derived",
    "clinician-adjudicated",
)
"""On what ground a band stands, weakest first."""

Membership = Literal["in", "out", "disputed", "unknown"]
"""Where an action stands towards a band."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The acceptable actions of one sub-action in one case. It cannot be changed.

    Attributes:
        sub_action: such as ``triage.esi_acuity``.
        acceptable: what is acceptable: a set, a range or a mapping; kept as `OneOf` or
            `Between`.
        provenance: one of `PROVENANCE`.
        source: the guideline or text that it rests on.
        clause: the place in it.
        reasoning: why.
        adjudicated_by: pseudonyms of the reviewers.
        disputed_span: values that reviewers disagree about; not acceptable, but counted apart.
        notes: anything else.
        registry: whom a ``clinician-adjudicated`` band is checked against when it is made; not
            kept, and nobody by default.

    Raises:
        ConfigurationError: an unknown provenance; a guideline without a source; an adjudicated
            band that names nobody, or someone whom the registry cannot attribute it to; what
            is acceptable cannot be read.

    >>> band = Band(sub_action="document.followup_days", acceptable={"min": 1, "max": 14},
    ...             disputed_span={"min": 15, "max": 30})
    >>> [band.membership(days) for days in (7, 20, 90, None)]
    ['in', 'disputed', 'out', 'unknown']
    >>> band.straddles(lambda days: days <= 7)
    True
    """

    sub_action: str
    acceptable: AcceptableLike
    provenance: Provenance = "author-derived"
    source: str = ""
    clause: str = ""
    reasoning: str = ""
    adjudicated_by: Sequence[str] = ()
    disputed_span: AcceptableLike | None = None
    notes: str = ""
    registry: InitVar[AdjudicatorRegistry] = NOBODY

    def __post_init__(self, registry: AdjudicatorRegistry) -> None:
        named: Sequence[str] | str = self.adjudicated_by
        object.__setattr__(
            self, "adjudicated_by", (named,) if isinstance(named, str) else (*named,)
        )
        object.__setattr__(self, "acceptable", acceptable(self.acceptable))
        if self.disputed_span is not None:
            object.__setattr__(self, "disputed_span", acceptable(self.disputed_span))
        if refusal := self._refusal(registry):
            raise ConfigurationError(f"the band of {self.sub_action!r} {refusal}")

    def _refusal(self, registry: AdjudicatorRegistry) -> str | None:
        if self.provenance not in PROVENANCE:
            return f"has the provenance {self.provenance!r}; take one of {', '.join(PROVENANCE)}"
        if self.provenance == "guideline-derived" and not self.source.strip():
            return "is guideline-derived without a source; name the guideline"
        if self.provenance != "clinician-adjudicated":
            return None
        if not self.adjudicated_by:
            return "is adjudicated by nobody; name the adjudicators"
        problems = registry.attribution_problems(self.adjudicated_by)
        if not problems:
            return None
        listed = "; ".join(problem for _, problem in problems)
        return f"cannot be attributed: {listed}; register attested adjudicators and pass them"

    @property
    def is_adjudicated(self) -> bool:
        """Whether it is adjudicated by provenance; a name alone does not make it so."""
        return self.provenance == "clinician-adjudicated"

    @property
    def n_raters(self) -> int:
        """How many people are named."""
        return len(self.adjudicated_by)

    def membership(self, action: object) -> Membership:
        """Where an action stands: in, out, disputed, or unknown if there is none.

        Raises:
            UnsuitableValue: the action is of another kind than the band.
        """
        inside = in_band(action, self.acceptable)
        if inside is None:
            return "unknown"
        if inside:
            return "in"
        return "disputed" if in_band(action, self.disputed_span) else "out"

    def values(self) -> Iterator[object]:
        """What is acceptable, one by one: listed values, or the whole numbers of a range."""
        yield from acceptable(self.acceptable).each()

    def straddles(self, threshold: Callable[[Any], object]) -> bool:
        """Whether it allows both sides of a threshold."""
        return bool(band_straddles(self.acceptable, threshold))

    def doubt(self, registry: AdjudicatorRegistry) -> str | None:
        """Why the band is not ground truth; None if it is.

        It is if its provenance is ``clinician-adjudicated``, everyone it names is registered
        with an attestation, and at least one of them works in the sub-action's field.
        """
        if not self.is_adjudicated:
            return f"{self.sub_action}: {self.provenance}"
        problem = registry.vouches_for(self.adjudicated_by, self.sub_action)
        return None if problem is None else f"{self.sub_action}: {problem}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundTruth:
    """Whether a rate may be called a fairness result.

    Attributes:
        holds: whether there are bands and each of them is ground truth.
        n_bands: bands looked at.
        doubts: why not, one text for each provisional band.

    >>> ground_truth([])
    GroundTruth(holds=False, n_bands=0, doubts=())
    """

    holds: bool
    n_bands: int
    doubts: tuple[str, ...]

    @property
    def note(self) -> str | None:
        """What is provisional, in one sentence; None where nothing is."""
        if not self.doubts:
            return None
        return (
            f"{len(self.doubts)} of {self.n_bands} bands are unadjudicated; this rate is "
            "provisional and is not a fairness result"
        )


def ground_truth(bands: Iterable[Band], registry: AdjudicatorRegistry = NOBODY) -> GroundTruth:
    """Whether bands are ground truth, from their provenance and a registry and nothing else.

    >>> band = Band(sub_action="esi_acuity", acceptable={2, 3}, adjudicated_by=["Dr. Anyone"])
    >>> ground_truth([band]).doubts
    ('esi_acuity: author-derived',)
    """
    listed = list(bands)
    doubts = [doubt for band in listed if (doubt := band.doubt(registry)) is not None]
    return GroundTruth(holds=bool(listed) and not doubts, n_bands=len(listed), doubts=tuple(doubts))


def unadjudicated(bands: Iterable[Band]) -> list[Band]:
    """The bands that no adjudication stands behind."""
    return [band for band in bands if not band.is_adjudicated]


def rater_counts(bands: Iterable[Band]) -> dict[int, int]:
    """How many bands have how many raters.

    >>> rater_counts([Band(sub_action="a", acceptable={1}), Band(sub_action="b", acceptable={2})])
    {0: 2}
    """
    return dict(sorted(Counter(band.n_raters for band in bands).items()))


def as_acceptable_map(bands: Iterable[Band]) -> dict[str, AcceptableLike]:
    """What is acceptable by sub-action.

    Raises:
        ConfigurationError: two bands are of one sub-action.
    """
    found: dict[str, AcceptableLike] = {}
    for band in bands:
        if band.sub_action in found:
            raise ConfigurationError(
                f"two bands are of {band.sub_action!r}; keep one for each case and sub-action"
            )
        found[band.sub_action] = band.acceptable
    return found


def membership_or_unknown(band: Band, action: object) -> Membership:
    """As `Band.membership`, with an action of a wrong kind as unknown: recorded data is no bug."""
    try:
        return band.membership(action)
    except UnsuitableValue:
        return "unknown"
