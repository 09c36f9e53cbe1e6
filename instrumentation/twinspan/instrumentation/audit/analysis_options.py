"""How an audit is analysed: fixed before there are results, and part of its plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, cast

from twinspan.instrumentation.audit.config_section import Section

Procedure = Literal["holm", "bh", "by", "e-bh"]
"""What p-values of many comparisons are adjusted by."""

PROCEDURES: Final[tuple[Procedure, ...]] = ("holm", "bh", "by", "e-bh")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """What is said of the analysis beforehand.

    Attributes:
        alpha: level of the tests, above 0 and at most 0.5.
        adjust: what p is adjusted by over all outcomes, axes and groups: ``holm`` keeps the chance
            of any false finding, ``bh``, ``by`` and ``e-bh`` the share of false ones.
    """

    alpha: float = 0.05
    adjust: Procedure = "holm"


def read_analysis(root: Section) -> AnalysisOptions:
    r"""The table ``[analysis]`` of an audit's file.

    Raises:
        ConfigurationError: something in it has no meaning; file, line and cure are named.

    >>> from pathlib import Path
    >>> read_analysis(Section.parse("[analysis]\nadjust = 'by'", Path("audit.toml")))
    AnalysisOptions(alpha=0.05, adjust='by')
    """
    section = root.section("analysis")
    usual = AnalysisOptions()
    found = AnalysisOptions(
        alpha=section.number("alpha", usual.alpha, least=1e-9, most=0.5),
        adjust=cast(Procedure, section.choice("adjust", PROCEDURES, usual.adjust)),
    )
    section.close()
    return found
