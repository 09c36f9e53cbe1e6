"""Runs of a batch with no more than their interventions are compared with."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import repeat
from typing import Any, Final

from opentelemetry.trace import INVALID_SPAN_CONTEXT

from twinspan.analysis.columnar.probe_sets import ProbeSets
from twinspan.analysis.columnar.reckoning import ReckonedBatch
from twinspan.analysis.columnar.settings import NAMES
from twinspan.analysis.columnar.spans import Spans
from twinspan.collector.recorded import SPAN_ID, RecordedPart, RecordedRun, RecordedSuperstep
from twinspan.collector.records import ProbeRecord
from twinspan.instrumentation import conventions as c

_OF_DECISIONS: Final = (
    c.SUPERSTEP_SCOPE,
    c.SUPERSTEP_INDEX,
    c.BREAKER_DECISION,
    c.NETWORK_PROBE_SETS,
    c.INTERVENTION_ID,
)


def brief_runs(reckoned: ReckonedBatch, places: Collection[int]) -> Iterator[RecordedRun]:
    """Some ordinary runs of a batch: their graph, their scores without distances, their decisions.

    Args:
        reckoned: the batch.
        places: the runs.
    """
    wanted = set(places)
    sets: dict[int, dict[str, ProbeRecord]] = {place: {} for place in wanted}
    for run, record in zip(reckoned.sets.run.tolist(), _records(reckoned.sets), strict=True):
        if run in wanted:
            sets[run][record.set_id] = record
    supersteps: dict[int, list[RecordedSuperstep]] = {place: [] for place in wanted}
    for run, told in _decisions(reckoned.decisions.spans):
        if run in wanted:
            named = told.get(c.NETWORK_PROBE_SETS) or ()
            records = tuple(sets[run][each] for each in named)
            supersteps[run].append(
                RecordedSuperstep(span_id=told[SPAN_ID], told=told, records=records, missing=0)
            )
    for place in places:
        root = zip(NAMES, reckoned.roots.told[place] or (), strict=False)
        yield RecordedRun(
            run_id=reckoned.batch.run_ids[place],
            told={name: value for name, value in root if value is not None},
            parts=(RecordedPart(told=None, supersteps=tuple(supersteps[place])),),
            probe_sets=tuple(sets[place].values()),
        )


def _decisions(spans: Spans) -> Iterator[tuple[int, dict[str, Any]]]:
    """The run of each decision, and what it says."""
    names = (*_OF_DECISIONS, SPAN_ID)
    columns = [spans.column(name).to_pylist() for name in names]
    runs: list[int] = spans.run.tolist()
    for run, row in zip(runs, zip(*columns, strict=True), strict=True):
        yield (
            run,
            {name: value for name, value in zip(names, row, strict=True) if value is not None},
        )


def _records(sets: ProbeSets) -> Iterator[ProbeRecord]:
    """The sets as the collector knows them, without distances."""
    spans = sets.spans

    def told(name: str, otherwise: object = None) -> list[Any]:
        values = spans.column(name).to_pylist()
        return values if otherwise is None else [otherwise if v is None else v for v in values]

    return map(
        ProbeRecord,
        repeat(INVALID_SPAN_CONTEXT, len(sets)),
        told(c.RUN_ID),
        told(c.PROBE_SET_ID),
        told(c.NODE_ID),
        told(c.NODE_TASK_ID),
        told(c.SUPERSTEP_SCOPE),
        told(c.SUPERSTEP_INDEX),
        told(c.PROBE_AXIS),
        told(c.PROBE_OUTCOME, "error"),
        told(c.EFFECT_VALUE),
        told(c.EFFECT_P_VALUE),
        told(c.EFFECT_E_VALUE),
        told(c.EFFECT_CI_UPPER),
        repeat(()),
        sets.n_reference.tolist(),
        sets.n_counterfactual.tolist(),
        sets.weight.tolist(),
        sets.share.tolist(),
        sets.rate.tolist(),
        told(c.PROBE_CONTRAST, "attribute_swap"),
        told(c.PROBE_ROUND, 0),
        told(c.PROBE_ESTIMATOR),
        told(c.INTERVENTION_ID),
        told(c.INTERVENTION_CANDIDATE),
    )
