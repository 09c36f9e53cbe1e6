"""What many runs recorded beside what is recomputed, in columns.

Only whether everything fits is asked: what does not is named by `twinspan.analysis.verify`, which
then looks at the run alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from twinspan.analysis.columnar.chains import whole_chains
from twinspan.analysis.columnar.columns import Bools, Floats, Places
from twinspan.analysis.columnar.guards import DECISIONS, REASONS, STATES
from twinspan.analysis.columnar.probe_sets import ProbeSets
from twinspan.analysis.columnar.reckoning import ReckonedBatch, Reckoning
from twinspan.analysis.columnar.segments import any_in
from twinspan.analysis.columnar.settings import Settings
from twinspan.analysis.columnar.spans import Spans
from twinspan.instrumentation import conventions as c

TOLERANCE: Final = 1e-9
"""Relative and absolute: recorded numbers are doubles, but sums may be taken in another order."""


class Compared(NamedTuple):
    """What comparing came to, one of each a run.

    Attributes:
        fits: the run is ordinary, and everything that was compared fits.
        checked: how many numbers and words were compared.
    """

    fits: Bools
    checked: Places


def compare(reckoned: ReckonedBatch) -> Compared:
    """Compare scores, weights, network score, monitor, decisions and chain of a batch."""
    runs = len(reckoned.batch)
    checked = np.zeros(runs, dtype=np.intp)
    if reckoned.reckoning is None:
        return Compared(np.zeros(runs, dtype=np.bool_), checked)
    wrong = ~whole_chains(reckoned.decisions, runs)
    decided = _decisions(reckoned.decisions.spans, reckoned.reckoning)
    for of_run, compared, fits in (
        *_scores(reckoned.sets),
        *_weights(reckoned.sets, reckoned.settings),
        *((reckoned.decisions.run, _all(reckoned.decisions.run), fits) for fits in decided),
    ):
        wrong |= any_in(compared & ~fits, of_run, runs)
        checked += np.bincount(of_run[compared], minlength=runs)
    return Compared(reckoned.ordinary & ~wrong, checked)


def _all(run: Places) -> Bools:
    return np.ones(len(run), dtype=np.bool_)


def close(recorded: Floats, recomputed: Floats) -> Bools:
    """Which numbers are equal within `TOLERANCE`; NaN stands for no number, and equals itself.

    >>> close(np.array([1.0, np.nan, 2.0]), np.array([1.0 + 1e-12, np.nan, 2.1]))
    array([ True,  True, False])
    """
    with np.errstate(invalid="ignore"):
        apart = np.abs(recorded - recomputed)
        most = np.maximum(np.abs(recorded), np.abs(recomputed)) * TOLERANCE
        near: Bools = (apart <= np.maximum(most, TOLERANCE)) & np.isfinite(apart)
    near |= recorded == recomputed
    near |= np.isnan(recorded) & np.isnan(recomputed)
    return near


Check = tuple[Places, Bools, Bools]
"""The run of each row, whether it is compared, and whether it fits."""


def _scores(sets: ProbeSets) -> Iterator[Check]:
    """delta, p and e of every probe set that has a score."""
    orbits = sets.orbits
    for name, again in (
        (c.EFFECT_VALUE, orbits.delta),
        (c.EFFECT_P_VALUE, orbits.p),
        (c.EFFECT_E_VALUE, orbits.e),
    ):
        yield sets.run, sets.scored, _number_fits(sets.spans, name, again)


def _number_fits(spans: Spans, name: str, again: Floats) -> Bools:
    told = spans.numbers(name)
    return close(told.values, again) & ~told.odd


def _weights(sets: ProbeSets, settings: Settings) -> Iterator[Check]:
    """Weight and share of every probe set whose node is in a graph that is spelled out."""
    size = len(sets.node.words) + 1
    keys, inverse = np.unique(
        settings.of_run[sets.run] * size + sets.node.codes + 1, return_inverse=True
    )
    found = np.full((len(keys), 2), np.nan)
    listed: list[int] = keys.tolist()
    for row, key in enumerate(listed):
        which, code = divmod(key, size)
        setting, node = settings.each[which], sets.node.words[code - 1] if code else ""
        if node in setting.shares:
            found[row] = setting.weights[node], setting.shares[node]
    again = found[inverse]
    known = ~np.isnan(again[:, 0])
    yield sets.run, known, close(sets.weight, again[:, 0])
    yield sets.run, known, close(sets.share, again[:, 1])


def _decisions(spans: Spans, again: Reckoning) -> Iterator[Bools]:
    """What each decision says of itself."""
    numbers = (
        (c.NETWORK_STEP, again.step.astype(np.float64)),
        (c.NETWORK_SCORE_FAST, again.fast),
        (c.NETWORK_SCORE_SLOW, again.slow),
        (c.NETWORK_SCORE_RAW, again.raw_fast),
        (c.NETWORK_OBSERVED_WEIGHT, again.observed),
        (c.MONITOR_VALUE, again.monitor),
        (c.MONITOR_THRESHOLD, again.limit),
        (c.MONITOR_SPARSE, again.sparse),
        (c.BREAKER_ENFORCED, again.enforced.astype(np.float64)),
    )
    words = (
        (c.BREAKER_STATE_FROM, STATES, again.state_from),
        (c.BREAKER_STATE_TO, STATES, again.state_to),
        (c.BREAKER_DECISION, DECISIONS, again.decision),
        (c.BREAKER_REASON, REASONS, again.reason),
    )
    for name, values in numbers:
        yield _number_fits(spans, name, values)
    for name, known, places in words:
        yield _word_fits(spans, name, [each.value for each in known], places)


def _word_fits(spans: Spans, name: str, known: Sequence[str], places: Places) -> Bools:
    told = spans.words(name)
    fits: Bools = told.codes_of(known)[places] == told.codes
    return fits
