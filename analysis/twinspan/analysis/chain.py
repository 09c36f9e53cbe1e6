"""The hash chain over a run's decisions, checked against the record.

Every decision carries the hash of its own content and of the decision before it. One that was
altered no longer has its hash; one that was removed leaves its successor without a predecessor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from twinspan.analysis.recorded import BESIDE, RecordedRun, decided_runs
from twinspan.analysis.store import Store
from twinspan.collector.chain import GENESIS, decision_hash
from twinspan.instrumentation import conventions as c

_OUTSIDE: Final = frozenset({c.AUDIT_PREV_HASH, c.ERROR_TYPE, *BESIDE})
"""What a span has besides the content that was hashed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainBreak:
    """A place where the chain does not hold.

    Attributes:
        run_id: the run.
        writer: the process that wrote the decision.
        audit_seq: number of the decision's span.
        reason: what does not fit.
    """

    run_id: str
    writer: str | None
    audit_seq: int | None
    reason: str


def broken_links(store: Store, run_id: str | None = None) -> list[ChainBreak]:
    """Every decision whose hash or predecessor does not fit; empty if all do.

    The chain goes through all processes that worked on a run, unless one says that it found
    nothing to go on with.

    Args:
        store: opened spans.
        run_id: one run; all of them if None.
    """
    return breaks_in(decided_runs(store, run_id))


def breaks_in(runs: Iterable[RecordedRun]) -> list[ChainBreak]:
    """`broken_links` of runs that were read already."""
    return [each for run in runs for each in _breaks(run)]


def _breaks(run: RecordedRun) -> Iterator[ChainBreak]:
    previous = GENESIS
    for part in run.parts:
        if part.told is not None and part.told.get(c.RUN_RESUMED) == "lost":
            previous = GENESIS
        for step in part.supersteps:
            decision = step.told
            if decision.get(c.AUDIT_HASH) is None:
                continue
            named = str(decision.get(c.AUDIT_PREV_HASH))
            if named != previous:
                yield _break(decision, "its predecessor is missing or was altered")
            content = {key: value for key, value in decision.items() if key not in _OUTSIDE}
            if decision_hash(content, named) != decision[c.AUDIT_HASH]:
                yield _break(decision, "its content does not fit its hash")
            previous = str(decision[c.AUDIT_HASH])


def _break(decision: Mapping[str, Any], reason: str) -> ChainBreak:
    return ChainBreak(
        run_id=str(decision.get(c.RUN_ID)),
        writer=cast("str | None", decision.get(c.AUDIT_WRITER)),
        audit_seq=cast("int | None", decision.get(c.AUDIT_SEQ)),
        reason=reason,
    )
