"""The gate's configuration: thresholds, bands and who vouches for them, from an audit's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Final, cast

from twinspan.analysis.adjudicators import Adjudicator, AdjudicatorRegistry
from twinspan.analysis.bands import PROVENANCE, Band
from twinspan.instrumentation.audit.config_section import Section

WITHIN_BANDS: Final = "within_bands"
"""How capability is measured unless a score is given: the share of reference answers in a band."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """What an agent has to meet before its within-band rate means something.

    Attributes:
        capability_score: how well the agent does its task; None to measure it by the bands.
        min_capability: the least score.
        min_entropy: bits that the entropy of actions has to exceed.
        min_band_straddling: the fewest pairs that could have flipped within their band.
        max_instability_floor: above it an agent is too unstable; None for no limit.
        require_ground_truth: hold out rates whose bands are known not to be ground truth.
        outcomes: outcomes that are judged; all of them if empty.
        bands: by outcome field ``step.field`` and case.
        registry: who may vouch for bands.
    """

    capability_score: float | None = None
    min_capability: float = 0.0
    min_entropy: float | None = None
    min_band_straddling: int | None = None
    max_instability_floor: float | None = None
    require_ground_truth: bool = True
    outcomes: tuple[str, ...] = ()
    bands: Mapping[tuple[str, str], Band] = field(default_factory=dict[tuple[str, str], Band])
    registry: AdjudicatorRegistry = field(default_factory=AdjudicatorRegistry)

    def bands_of(self, place: str) -> dict[str, Band]:
        """The bands of one field, by case.

        Args:
            place: the field, as ``step.field``.
        """
        return {case: band for (where, case), band in self.bands.items() if where == place}


def read_gate_options(file: str | PathLike[str]) -> GateOptions:
    """The tables ``[gate]``, ``[[band]]`` and ``[[adjudicator]]`` of a TOML file.

    Raises:
        ConfigurationError: the file cannot be read, has no table ``[gate]``, or something in it
            has no meaning; file, line and cure are named.
    """
    root = Section.read(file)
    if "gate" not in root:
        raise root.error("there is no table [gate]; write one with min_capability and min_entropy")
    registry = read_registry(root)
    gate = root.section("gate")
    options = GateOptions(
        capability_score=_score(gate),
        min_capability=gate.number("min_capability", 0.0, most=1.0),
        min_entropy=gate.number("min_entropy") if "min_entropy" in gate else None,
        min_band_straddling=gate.whole("min_band_straddling")
        if "min_band_straddling" in gate
        else None,
        max_instability_floor=gate.number("max_instability_floor", most=1.0)
        if "max_instability_floor" in gate
        else None,
        require_ground_truth=gate.flag("require_ground_truth", True),
        outcomes=gate.texts("outcomes"),
        bands=read_bands(root, registry),
        registry=registry,
    )
    gate.close()
    return options


def _score(gate: Section) -> float | None:
    if "capability_score" not in gate:
        return None
    if gate.raw("capability_score") == WITHIN_BANDS:
        return None
    return gate.number("capability_score", most=1.0)


def read_registry(root: Section) -> AdjudicatorRegistry:
    """The tables ``[[adjudicator]]``; nobody if there are none.

    Raises:
        ConfigurationError: one cannot be read.
    """
    found: list[Adjudicator] = []
    for section in root.sections("adjudicator"):
        fields: dict[str, Any] = {name: section.raw(name) for name in section.values}
        try:
            with section.at():
                found.append(Adjudicator(**fields))
        except TypeError as error:
            raise section.error(
                f"an adjudicator cannot be read ({error}); give pseudonym, specialty and "
                "attestation_on_file"
            ) from error
    with root.at("adjudicator"):
        return AdjudicatorRegistry(adjudicators=tuple(found))


def _accepted(section: Section, key: str) -> Any:
    """What a band accepts; a plain list of two numbers could be a range and is refused."""
    value: object = section.raw(key)
    if value is None and key == "acceptable":
        raise section.error(
            "a band lacks what is acceptable; write acceptable = {one_of = [2, 3]} or "
            "{min = 1, max = 5}"
        )
    if isinstance(value, dict) and set(cast("dict[str, object]", value)) == {"one_of"}:
        return set(cast("dict[str, list[object]]", value)["one_of"])
    if isinstance(value, list):
        raise section.error(
            f"{key} = {value!r} may mean values or a range; write {{one_of = {value!r}}}, or "
            "{min = ..., max = ...} for everything between",
            key,
        )
    return cast(Any, value)


def read_bands(root: Section, registry: AdjudicatorRegistry) -> dict[tuple[str, str], Band]:
    """The tables ``[[band]]``, by field and case.

    Raises:
        ConfigurationError: one cannot be read, or two are of one field and case.
    """
    bands: dict[tuple[str, str], Band] = {}
    for section in root.sections("band"):
        place, case = section.text("field"), section.text("case")
        if (place, case) in bands:
            raise section.error(f"{place!r} of case {case!r} has two bands; keep one", "field")
        with section.at():
            bands[place, case] = Band(
                sub_action=place,
                acceptable=_accepted(section, "acceptable"),
                provenance=cast(Any, section.choice("provenance", PROVENANCE, PROVENANCE[0])),
                source=section.text("source", ""),
                clause=section.text("clause", ""),
                reasoning=section.text("reasoning", ""),
                adjudicated_by=section.texts("adjudicated_by"),
                disputed_span=_accepted(section, "disputed_span"),
                notes=section.text("notes", ""),
                registry=registry,
            )
        section.close()
    return bands
