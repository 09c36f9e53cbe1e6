"""Registered contrasts of an audit's file: which differences can be defended, and which never."""

from __future__ import annotations

from typing import Final

from twinspan.analysis.contrasts import CLINICAL_CONTRASTS, ConfoundedPair, ContrastRegistry
from twinspan.instrumentation.audit.config_section import Section

PRESETS: Final = {"clinical": CLINICAL_CONTRASTS}


def read_contrasts(root: Section) -> ContrastRegistry | None:
    """The tables ``[contrasts]`` and ``[[contrast]]``; None if there are none.

    Raises:
        ConfigurationError: something in them has no meaning.
    """
    if "contrasts" not in root and "contrast" not in root:
        return None
    section = root.section("contrasts")
    if "preset" in section:
        name = section.choice("preset", list(PRESETS), "")
        section.close()
        return PRESETS[name]
    never = section.texts("never_exempt")
    section.close()
    pairs: list[ConfoundedPair] = []
    for each in root.sections("contrast"):
        with each.at():
            ages = each.raw("ages")
            pairs.append(
                ConfoundedPair(
                    attribute=each.text("attribute"),
                    sub_action=each.text("sub_action"),
                    direction=each.text("direction"),
                    ages=None if ages is None else (int(ages[0]), int(ages[1])),
                    needs_adjudication=each.flag("needs_adjudication"),
                    adjudicated_by=each.texts("adjudicated_by"),
                    rationale=each.text("rationale", ""),
                )
            )
        each.close()
    with root.at("contrast"):
        return ContrastRegistry(pairs=tuple(pairs), never_exempt=frozenset(never))
