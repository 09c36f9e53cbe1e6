"""Pairs: one case decided under the reference and under a counterfactual descriptor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Final

from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement

_CASE_NAMES: Final = ("case_id", "vignette_id")


@dataclass(frozen=True, slots=True)
class Pair:
    """A case's action under the reference descriptor and under a counterfactual one.

    Whatever is not known is None and never counts as False.

    Attributes:
        case_id: the case; pairs of one case are not independent of each other.
        action_ref: the action under the reference, usually a yes or no.
        action_cf: the action under the counterfactual descriptor.
        score_ref: a score of the same decision under the reference, any finite scale.
        score_cf: the score under the counterfactual descriptor.
        in_band_ref: whether the reference action lies in the band of acceptable actions.
        in_band_cf: whether the counterfactual one does.
        straddles_threshold: whether the band allows both values of the action. A property of
            the band; it cannot be read off observed flips.
        disputed: whether one of the two actions lies in a span that reviewers disagree about.
        replicate: which run of the case it is, where there is more than one.

    Raises:
        InvalidMeasurement: a score is NaN or infinite.

    >>> pair = Pair("v1", action_ref=True, action_cf=False)
    >>> pair.flipped, pair.swapped().action_ref, Pair("v1", action_ref=True).flipped
    (True, False, None)
    """

    case_id: str
    _: KW_ONLY
    action_ref: object = None
    action_cf: object = None
    score_ref: float | None = None
    score_cf: float | None = None
    in_band_ref: bool | None = None
    in_band_cf: bool | None = None
    straddles_threshold: bool | None = None
    disputed: bool = False
    replicate: int | str | None = None

    def __post_init__(self) -> None:
        for name, score in (("score_ref", self.score_ref), ("score_cf", self.score_cf)):
            if score is not None and not math.isfinite(score):
                raise InvalidMeasurement(name, of=self.case_id, value=score, must="be finite")

    @property
    def flipped(self) -> bool | None:
        """Whether the two actions differ; None where one is missing."""
        if self.action_ref is None or self.action_cf is None:
            return None
        return self.action_ref != self.action_cf

    @property
    def in_band(self) -> bool | None:
        """Whether both actions lie in the band: False if one does not, None if one is unknown."""
        flags = (self.in_band_ref, self.in_band_cf)
        if False in flags:
            return False
        return None if None in flags else True

    @property
    def score_difference(self) -> float | None:
        """Counterfactual score less reference score; None where one is missing."""
        if self.score_ref is None or self.score_cf is None:
            return None
        return self.score_cf - self.score_ref

    def swapped(self) -> Pair:
        """The same pair with reference and counterfactual exchanged."""
        return replace(
            self,
            action_ref=self.action_cf,
            action_cf=self.action_ref,
            score_ref=self.score_cf,
            score_cf=self.score_ref,
            in_band_ref=self.in_band_cf,
            in_band_cf=self.in_band_ref,
        )

    def as_dict(self) -> dict[str, object]:
        """The fields under FairMedAgent's names, ours added."""
        return {
            "vignette_id": self.case_id,
            "action_ref": self.action_ref,
            "action_cf": self.action_cf,
            "score_ref": self.score_ref,
            "score_cf": self.score_cf,
            "in_band_ref": self.in_band_ref,
            "in_band_cf": self.in_band_cf,
            "straddles_threshold": self.straddles_threshold,
            "disputed": self.disputed,
            "replicate": self.replicate,
        }

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> Pair:
        """A pair from plain data, the case under ``case_id`` or ``vignette_id``.

        Raises:
            ConfigurationError: the case is missing, or a field is unknown.

        >>> Pair.from_mapping({"vignette_id": "v1", "action_ref": True}).case_id
        'v1'
        """
        given = dict(fields)
        case = next((given.pop(name) for name in _CASE_NAMES if name in given), None)
        unknown = set(given) - set(cls.__slots__)
        if case is None or unknown:
            raise ConfigurationError(
                f"a pair has the unknown fields {sorted(unknown)!r} and the case {case!r}; name "
                "the case in case_id and keep to the fields of Pair"
            )
        return cls(str(case), **given)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def by_case(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Pairs by case, cases in the order in which they first appear.

    >>> list(by_case([Pair("b"), Pair("a"), Pair("b")]))
    ['b', 'a']
    """
    cases: dict[str, list[Pair]] = {}
    for pair in pairs:
        cases.setdefault(pair.case_id, []).append(pair)
    return cases
