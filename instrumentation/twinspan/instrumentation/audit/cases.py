"""Cases: what an audited agent is asked about, without a word on who it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, cast

from twinspan.instrumentation.errors import ConfigurationError

_ALIASES: Final = {"clinical_core": "narrative", "tool_results": "fixtures"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case of an audit, of whatever domain.

    Attributes:
        id: its name, each once in an audit.
        narrative: what the agent reads, without a descriptor.
        fixtures: what a tool answers, by what has to be ordered for it.
        tags: free labels, such as a domain or a level of difficulty.

    Raises:
        ConfigurationError: the id is blank.

    >>> case = Case(id="chest", narrative="Chest pain for an hour.", fixtures={"ecg": "normal"})
    >>> case.fixtures["ecg"], case.tags
    ('normal', ())
    """

    id: str
    narrative: str
    fixtures: Mapping[str, str] = field(default_factory=dict[str, str])
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.id.strip():
            raise ConfigurationError("a case has a blank id; give each case a name of its own")
        object.__setattr__(self, "fixtures", MappingProxyType(dict(self.fixtures)))
        object.__setattr__(self, "tags", tuple(self.tags))

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> Case:
        """A case from plain data, also under FairMedAgent's names.

        ``clinical_core`` is the narrative, ``tool_results`` are the fixtures, a ``domain``
        becomes a tag; what is acceptable and canaries are no part of a case here.

        Raises:
            ConfigurationError: a field is missing, unknown or of a wrong type.

        >>> Case.from_mapping({"id": "a", "clinical_core": "Fever.", "domain": "triage"}).tags
        ('triage',)
        """
        given = {_ALIASES.get(name, name): value for name, value in fields.items()}
        domain = given.pop("domain", None)
        for name in ("acceptable", "canary"):
            given.pop(name, None)
        unknown = sorted(set(given) - set(cls.__slots__))
        fixtures: object = given.get("fixtures", {})
        if unknown or not isinstance(given.get("id"), str) or not isinstance(fixtures, Mapping):
            raise ConfigurationError(
                f"a case has the fields {sorted(fields)!r}; give id, narrative and, if any, "
                "fixtures by what is ordered, and tags"
            )
        tags = cast("Iterable[Any]", given.get("tags", ()))
        return cls(
            id=cast(str, given["id"]),
            narrative=str(given.get("narrative", "")),
            fixtures={str(name): str(text) for name, text in _items(cast(Any, fixtures))},
            tags=(*map(str, tags), *([str(domain)] if domain else [])),
        )

    def as_dict(self) -> dict[str, object]:
        """Plain data, for a plan's hash and for files."""
        return {
            "id": self.id,
            "narrative": self.narrative,
            "fixtures": dict(self.fixtures),
            "tags": list(self.tags),
        }


def _items(mapping: Mapping[Any, Any]) -> Iterable[tuple[object, object]]:
    return mapping.items()
