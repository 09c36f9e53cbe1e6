"""The text that a decision is hashed in is the same for every reader of its record."""

from __future__ import annotations

import hashlib
import json
import math

from hypothesis import given
from hypothesis import strategies as st

from twinspan.collector.chain import GENESIS, canonical, decision_hash
from twinspan.instrumentation import conventions as c

_SCALARS = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.sampled_from([1e-4, 9.999e-5, 1e15, 1e16, 5e-324, -0.0, 2**63, "\x7f", "\ud800", "é"]),
)
_CONTENTS = st.dictionaries(
    st.one_of(st.sampled_from(sorted(c.CATALOGUE)), st.text()),
    st.one_of(_SCALARS, st.lists(_SCALARS, max_size=3), st.lists(_SCALARS, max_size=3).map(tuple)),
)


@given(_CONTENTS)
def test_a_decision_is_hashed_as_plain_json_with_sorted_keys(content: dict[str, object]) -> None:
    """Anybody with a JSON library arrives at the same bytes, whichever encoder wrote them."""
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert canonical(content) == plain.encode()


@given(st.floats(min_value=1e-6, max_value=1e18), st.integers(min_value=0, max_value=20))
def test_every_number_is_written_as_python_writes_it(number: float, digits: int) -> None:
    """Numbers of all sizes, rounded or not, read back to the same double."""
    for value in (number, -number, round(number, digits)):
        assert canonical({"n": value}) == f'{{"n":{value!r}}}'.encode()
        assert math.isclose(json.loads(canonical({"n": value}))["n"], value, rel_tol=0.0)


def test_a_known_decision_has_a_known_hash() -> None:
    """The chain's form is fixed: a record of today is verified by tomorrow's version."""
    attributes = {c.BREAKER_DECISION: "halt", c.MONITOR_VALUE: 24.5, c.AUDIT_SEQ: 3, "none": None}
    text = (
        f'{{"{c.AUDIT_PREV_HASH}":"{GENESIS}","{c.BREAKER_DECISION}":"halt",'
        f'"{c.MONITOR_VALUE}":24.5}}'
    )
    assert decision_hash(attributes, GENESIS) == hashlib.sha256(text.encode()).hexdigest()
