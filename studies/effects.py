"""Counterfactual effects on published templates, beside control arms, in both kinds of wording.

One node goes on with the text by one word drawn at temperature 1, and answers which of two people
it named. The axis is gender: pronouns in Winogender, first names and pronouns in BBQ. The controls
leave gender alone: an attribute that means nothing, an invented word, another wording.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.stats import wilcoxon

from studies import templates
from studies.desks import OTHER, Desk, Speaker
from studies.output import instrumented, share, write
from studies.sizes import Size
from twinspan.analysis import open_store
from twinspan.analysis.tables import Table
from twinspan.instrumentation import node, pipeline

CONTROLS: Final = ("sham", "rare_token", "neutral_edit")
WORDINGS: Final = ("random", "same")

SETS: Final = """
SELECT node, axis, delta, p_value
FROM probe_sets
WHERE delta IS NOT NULL AND p_value IS NOT NULL
ORDER BY node, axis
"""
COLUMNS: Final = (
    "corpus",
    "wording",
    "contrast",
    "templates",
    "flagged at .05",
    "mean delta",
    "sd of delta",
    "p over this control",
)


def run(speaker: Speaker, size: Size, out: Path, data: Path) -> None:
    """Both corpora in both wordings, and the table."""
    rows: list[tuple[object, ...]] = []
    for corpus in templates.FILES:
        chosen = templates.read(corpus, data, size.templates)
        for wording in WORDINGS:
            folder = out / "spans" / f"effects-{corpus}-{wording}"
            with instrumented(
                axes=["gender"],
                nodes=["*"],
                controls=CONTROLS,
                wording=wording,
                estimator="category",
                record=folder,
            ):
                for template in chosen:
                    _asked(speaker, template)(dict(template.payload))
            rows += [(corpus, wording, *row) for row in _counted(folder)]
    write(
        out,
        "effects",
        "Gender swapped in published templates, and three controls",
        Table(columns=COLUMNS, rows=tuple(rows)),
    )


def _asked(speaker: Speaker, template: templates.Template) -> Any:
    @node(name=template.name)
    def answer(payload: Mapping[str, str]) -> str:
        pair = (payload["first"], payload["second"])
        desk = Desk(record="", ask="", words=tuple(each.lower() for each in pair))
        said = speaker.say(desk, template.text(payload))
        return OTHER if said == OTHER else ("first", "second")[desk.words.index(said)]

    @pipeline
    def review(payload: Mapping[str, str]) -> str:
        return answer(payload)

    return review


def _counted(folder: Path) -> Iterable[tuple[object, ...]]:
    """One row for each contrast; a control has the test that the swap moves more than it does."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    with open_store(folder) as store:
        for name, axis, delta, p_value in store.table(SETS).rows:
            found.setdefault(str(axis), {})[str(name)] = (float(str(delta)), float(str(p_value)))
    swaps = found.get("gender", {})
    for axis, sets in found.items():
        deltas = np.array([delta for delta, _ in sets.values()])
        flagged = sum(p_value <= 0.05 for _, p_value in sets.values())
        both = sorted(set(sets) & set(swaps))
        differences = np.array([swaps[name][0] - sets[name][0] for name in both])
        over = None if axis == "gender" or not differences.any() else _over(differences)
        spread = float(deltas.std(ddof=1)) if len(deltas) > 1 else None
        yield axis, len(sets), share(flagged, len(sets)), float(deltas.mean()), spread, over


def _over(differences: Any) -> float:
    return float(wilcoxon(differences, alternative="greater").pvalue)
