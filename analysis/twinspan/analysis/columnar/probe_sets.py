"""The probe sets of a batch, with what their distances come to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import comb

import numpy as np

from twinspan.analysis.columnar.columns import Bools, Floats, Places, Words
from twinspan.analysis.columnar.segments import any_in
from twinspan.analysis.columnar.spans import NEEDED, REST, Spans
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import TwinspanError
from twinspan.instrumentation.evidence import OrbitBets
from twinspan.instrumentation.orbit import staked_chunks
from twinspan.instrumentation.probing.contrast import CONTROLS, SCREEN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbeSets:
    """Probe sets; see `ProbeRecord` for what the columns say.

    Attributes:
        spans: their spans.
        node, task, axis: names, with codes in the order of the names.
        scored: which have a score.
        delta: the score as recorded; NaN without one.
        n_reference, n_counterfactual: samples, 0 where that is not said.
        weight, share, rate: as recorded.
        is_control, is_screen: what the counterfactual arm changed.
        measures: it re-measures an intervention.
        estimator: the distance in force.
        orbits: what the distances of those with a score come to.
        odd: runs of which a set says something out of place.
    """

    spans: Spans
    node: Words
    task: Words
    axis: Words
    scored: Bools
    delta: Floats
    n_reference: Places
    n_counterfactual: Places
    weight: Floats
    share: Floats
    rate: Floats
    is_control: Bools
    is_screen: Bools
    measures: Bools
    estimator: Words
    orbits: SetOrbits
    odd: Bools

    @property
    def run(self) -> Places:
        """Place of each set's run in the batch."""
        return self.spans.run

    def __len__(self) -> int:
        return len(self.spans)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetOrbits:
    """What the distances of probe sets come to; NaN for a set without a score.

    Attributes:
        delta, p, e, sd: see `StakedOrbit`.
        highest: the largest e-value of the orbit.
        unknown: sets with a score whose distances are none.
    """

    delta: Floats
    p: Floats
    e: Floats
    sd: Floats
    highest: Floats
    unknown: Bools
    _bets: dict[int, tuple[OrbitBets, int]]

    def e_values(self, place: int) -> Floats:
        """The e-values of one set's whole orbit in ascending order."""
        bets, row = self._bets[place]
        return bets.of(row)


def probe_sets_of(spans: Spans, runs: int) -> ProbeSets:
    """Read probe sets, and enumerate the orbits of those that have a score."""
    delta = spans.numbers(c.EFFECT_VALUE)
    scored = spans.there(c.EFFECT_VALUE)
    n_reference = _counts(spans, c.DIVERGENCE_REFERENCE_COUNT)
    n_counterfactual = _counts(spans, c.DIVERGENCE_COUNTERFACTUAL_COUNT)
    contrast = spans.words(c.PROBE_CONTRAST)
    weight, share = spans.numbers(c.NODE_WEIGHT), spans.numbers(c.NODE_WEIGHT_SHARE)
    rate = spans.numbers(c.PROBE_SAMPLING_RATE)
    orbits = _orbits(spans, scored, n_reference, n_counterfactual)
    odd = delta.odd | weight.odd | share.odd | rate.odd | orbits.unknown | _incomplete(spans)
    return ProbeSets(
        spans=spans,
        node=spans.words(c.NODE_ID).ranked(),
        task=spans.words(c.NODE_TASK_ID).ranked(),
        axis=spans.words(c.PROBE_AXIS),
        scored=scored,
        delta=delta.values,
        n_reference=n_reference,
        n_counterfactual=n_counterfactual,
        weight=np.nan_to_num(weight.values),
        share=np.nan_to_num(share.values),
        rate=np.where(np.isnan(rate.values), 1.0, rate.values),
        is_control=np.isin(contrast.codes, contrast.codes_of(sorted(CONTROLS))),
        is_screen=contrast.codes == contrast.codes_of([SCREEN])[0],
        measures=spans.there(c.INTERVENTION_ID),
        estimator=spans.words(c.PROBE_ESTIMATOR),
        orbits=orbits,
        odd=any_in(odd, spans.run, runs),
    )


def probed_axes(sets: ProbeSets, runs: int) -> list[tuple[str, ...]]:
    """The axes that each run's sets name, in their order, controls and screens left out."""
    found: list[dict[str, None]] = [{} for _ in range(runs)]
    told = np.flatnonzero(~(sets.is_control | sets.is_screen))
    pairs = zip(sets.run[told].tolist(), sets.axis.codes[told].tolist(), strict=True)
    for run, code in pairs:
        if code >= 0:
            found[run][sets.axis.words[code]] = None
    return [tuple(axes) for axes in found]


def _incomplete(spans: Spans) -> Bools:
    """Sets that lack what gives a score its place, or say something beside their columns."""
    lacking = np.zeros(len(spans), dtype=np.bool_)
    for name in NEEDED["probe_set"]:
        lacking |= ~spans.there(name)
    rest = [text not in (None, "{}") for text in spans.column(REST).to_pylist()]
    return lacking | np.array(rest, dtype=np.bool_)


def _counts(spans: Spans, name: str) -> Places:
    return np.nan_to_num(spans.numbers(name).values).astype(np.intp)


def _orbits(
    spans: Spans, scored: Bools, n_reference: Places, n_counterfactual: Places
) -> SetOrbits:
    numbers = {name: np.full(len(spans), np.nan) for name in ("delta", "p", "e", "sd", "highest")}
    bets: dict[int, tuple[OrbitBets, int]] = {}
    unknown = scored.copy()
    distances = spans.lists(c.DIVERGENCE_DISTANCES)
    values = np.asarray(distances.values.to_numpy(zero_copy_only=False), dtype=np.float64)
    ends = np.cumsum(distances.lengths)
    shapes: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for place in np.flatnonzero(scored).tolist():
        shapes[int(n_reference[place]), int(n_counterfactual[place])].append(place)
    for (first, second), places in shapes.items():
        pairs = comb(first + second, 2)
        alike = np.array(places, dtype=np.intp)
        alike = alike[distances.lengths[alike] == pairs]
        rows = values[(ends[alike] - pairs)[:, np.newaxis] + np.arange(pairs)]
        finite = np.isfinite(rows).all(axis=1)
        alike, rows, at = alike[finite], rows[finite], 0
        if not len(alike):
            continue
        try:
            chunks = list(staked_chunks(rows, first))
        except TwinspanError:
            continue
        unknown[alike] = False
        for chunk in chunks:
            own = alike[at : at + len(chunk.delta)]
            at += len(own)
            for name, column in numbers.items():
                column[own] = chunk.bets.highest if name == "highest" else getattr(chunk, name)
            bets.update((place, (chunk.bets, row)) for row, place in enumerate(own.tolist()))
    return SetOrbits(**numbers, unknown=unknown, _bets=bets)
