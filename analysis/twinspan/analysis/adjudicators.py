"""Who may say which actions are acceptable: adjudicators, attestations and scope.

A band counts as ground truth only if a named person in a registry has signed for it and works
in its field. The registry is a value that is handed to whoever asks; there is no global one to
be changed at run time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from twinspan.instrumentation.errors import ConfigurationError

CLINICAL_SCOPES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "esi_acuity": ("emergency", "acute care", "triage nurse", "emergency nursing"),
        "analgesia_tier": ("emergency", "acute care", "pain medicine", "anaesthe", "anesthe"),
        "followup_days": (
            "internal medicine",
            "endocrin",
            "diabet",
            "general medicine",
            "geriatric",
            "family medicine",
            "primary care",
        ),
        "referral": (
            "internal medicine",
            "general medicine",
            "geriatric",
            "family medicine",
            "primary care",
            "emergency",
        ),
    }
)
"""Beginnings of specialties that are at home in a clinical sub-action, as FairMedAgent has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudicator:
    """A person who reviews bands, known to readers by a pseudonym.

    Attributes:
        pseudonym: how bands name the person.
        specialty: field of work; without one no attestation counts.
        jurisdiction: where licensed.
        years_post_registration: years of practice, not negative.
        attestation_on_file: whether a signed statement is kept.
        attestation_date: its date, as written on it.
        anonymous_to_readers: whether reports give the pseudonym only.
        notes: anything else.

    >>> Adjudicator(pseudonym="a-1", specialty="geriatrics", jurisdiction="Australia",
    ...             years_post_registration=9).credential_line
    'geriatrics, licensed in Australia, 9 years post-registration'
    """

    pseudonym: str
    specialty: str | None = None
    jurisdiction: str | None = None
    years_post_registration: int | None = None
    attestation_on_file: bool = False
    attestation_date: str | None = None
    anonymous_to_readers: bool = True
    notes: str = ""

    @property
    def credential_line(self) -> str:
        """Specialty, licence and experience, never the pseudonym."""
        parts = [self.specialty or "specialty not recorded"]
        if self.jurisdiction:
            parts.append(f"licensed in {self.jurisdiction}")
        if self.years_post_registration is not None:
            parts.append(f"{self.years_post_registration} years post-registration")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdjudicatorRegistry:
    """Adjudicators by pseudonym, and which specialties are at home where.

    Attributes:
        adjudicators: each pseudonym once.
        scopes: beginnings of specialties by sub-action; a sub-action that is not listed is in
            everyone's scope.

    Raises:
        ConfigurationError: a pseudonym is blank or stands twice.

    >>> registry = AdjudicatorRegistry().registering(
    ...     Adjudicator(pseudonym="a-1", specialty="Emergency Medicine", attestation_on_file=True))
    >>> registry.attribution_problem("a-1") is None, registry.attribution_problem("a-2")
    (True, "'a-2' is not a registered adjudicator")
    """

    adjudicators: tuple[Adjudicator, ...] = ()
    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: CLINICAL_SCOPES)
    _by_pseudonym: Mapping[str, Adjudicator] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        named = {each.pseudonym: each for each in self.adjudicators}
        if len(named) < len(self.adjudicators) or any(not name.strip() for name in named):
            raise ConfigurationError(
                "a registry has a blank pseudonym or one that stands twice; name everyone once"
            )
        object.__setattr__(self, "_by_pseudonym", MappingProxyType(named))
        object.__setattr__(self, "scopes", MappingProxyType(dict(self.scopes)))

    def registering(self, *adjudicators: Adjudicator) -> AdjudicatorRegistry:
        """A registry that knows these as well; this one stays as it is."""
        return AdjudicatorRegistry(
            adjudicators=(*self.adjudicators, *adjudicators), scopes=self.scopes
        )

    def find(self, pseudonym: str) -> Adjudicator | None:
        """The adjudicator of that name, None if there is none."""
        return self._by_pseudonym.get(pseudonym)

    def attribution_problem(self, pseudonym: object) -> str | None:
        """Why a band cannot be put down to someone; None if it can."""
        if not isinstance(pseudonym, str):
            return f"{pseudonym!r} is no name of an adjudicator"
        if not pseudonym.strip():
            return "the name of an adjudicator is blank"
        known = self.find(pseudonym)
        if known is None:
            return f"{pseudonym!r} is not a registered adjudicator"
        if not known.attestation_on_file:
            return f"{pseudonym!r} has no attestation on file"
        if not (known.specialty or "").strip():
            return f"{pseudonym!r} has an attestation but no specialty"
        return None

    def attribution_problems(self, pseudonyms: Iterable[object] | None) -> list[tuple[object, str]]:
        """Everyone who cannot be named, each with the reason."""
        checked = ((each, self.attribution_problem(each)) for each in pseudonyms or ())
        return [(each, problem) for each, problem in checked if problem is not None]

    def scope_warning(self, specialty: str | None, sub_action: str) -> str | None:
        """Why a specialty is not at home in a sub-action; None where it is, or nothing is known.

        Args:
            specialty: as recorded, in any case.
            sub_action: such as ``esi_acuity`` or ``triage.esi_acuity``.

        >>> AdjudicatorRegistry().scope_warning("emergency medicine", "triage.esi_acuity") is None
        True
        >>> AdjudicatorRegistry().scope_warning("emergency medicine", "followup_days")
        "'emergency medicine' is outside the usual scope of followup_days; ask for a second rater"
        """
        name = sub_action.rpartition(".")[2]
        expected = self.scopes.get(name)
        if expected is None:
            return None
        if specialty is None or not specialty.strip():
            return f"no specialty is recorded for a rater of {name}; ask for a second rater"
        if any(re.search(rf"\b{re.escape(each)}", specialty, re.IGNORECASE) for each in expected):
            return None
        return f"{specialty!r} is outside the usual scope of {name}; ask for a second rater"

    def vouches_for(self, pseudonyms: Iterable[object], sub_action: str) -> str | None:
        """Why these adjudicators do not make a band of a sub-action ground truth.

        All of them must be attributable, and at least one must work in the sub-action's field.

        Returns:
            None if they do, else the reason.

        >>> AdjudicatorRegistry().vouches_for([], "esi_acuity")
        'nobody is named'
        """
        named = list(pseudonyms)
        if not named:
            return "nobody is named"
        if problems := self.attribution_problems(named):
            return "; ".join(problem for _, problem in problems)
        warnings = [self.scope_warning(self._specialty(each), sub_action) for each in named]
        if None in warnings:
            return None
        return "; ".join(warning for warning in warnings if warning is not None)

    def scope_report(
        self, sub_actions_by_name: Mapping[str, Iterable[str]]
    ) -> dict[str, list[str]]:
        """Warnings for each adjudicator and the sub-actions that they reviewed."""
        report: dict[str, list[str]] = {}
        for name, sub_actions in sub_actions_by_name.items():
            warnings = (self.scope_warning(self._specialty(name), each) for each in sub_actions)
            report[name] = [warning for warning in warnings if warning is not None]
        return report

    def _specialty(self, pseudonym: object) -> str | None:
        known = self.find(pseudonym) if isinstance(pseudonym, str) else None
        return known.specialty if known else None


NOBODY: Final = AdjudicatorRegistry()
"""A registry without anyone: no band is adjudicated before someone has signed."""
