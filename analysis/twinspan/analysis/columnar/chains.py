"""The hash chains of many runs at once; see `twinspan.analysis.chain`."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import numpy as np

from twinspan.analysis.columnar.canonical import canonical_texts
from twinspan.analysis.columnar.columns import Bools, Places
from twinspan.analysis.columnar.decisions import Decisions
from twinspan.analysis.columnar.segments import any_in
from twinspan.collector.chain import GENESIS, UNHASHED
from twinspan.instrumentation import conventions as c

_LEFT_OUT: Final = UNHASHED | {c.ERROR_TYPE}
"""What a decision's span says besides what was hashed."""


def whole_chains(decisions: Decisions, runs: int) -> Bools:
    """The runs whose decisions all have the hash of their content and of the one before.

    One that is not among them may still be whole: a decision without a hash, which an older
    writer left, or with attributes that have no column, is left to who looks at runs one by one.

    Args:
        decisions: the decisions in their order.
        runs: how many runs there are.
    """
    spans = decisions.spans
    named, own = spans.column(c.AUDIT_PREV_HASH).to_pylist(), spans.column(c.AUDIT_HASH).to_pylist()
    texts = canonical_texts(spans, _LEFT_OUT)
    fitting = [
        sha256(text.encode()).hexdigest() == said for text, said in zip(texts, own, strict=True)
    ]
    before = [GENESIS if place < 0 else own[place] for place in _predecessors(decisions).tolist()]
    linked = [said is not None and said == last for said, last in zip(named, before, strict=True)]
    whole = np.array(fitting, dtype=np.bool_) & np.array(linked, dtype=np.bool_)
    beside = np.array([bool(rest) for rest in spans.rest()], dtype=np.bool_)
    return ~any_in(~whole | beside, spans.run, runs)


def _predecessors(decisions: Decisions) -> Places:
    """The decision before each one in its run; -1 for the first."""
    order = np.lexsort((decisions.turn, decisions.run))
    before = np.full(len(decisions), -1, dtype=np.intp)
    before[order[1:]] = order[:-1]
    before[decisions.turn == 0] = -1
    return before
