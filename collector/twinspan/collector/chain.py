"""The hash chain over a run's decisions: a decision removed or altered shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.quick_json import quick_json

GENESIS: Final = "0" * 64
"""What the first decision of a run names as its predecessor."""

UNHASHED: Final = frozenset({c.AUDIT_HASH, c.AUDIT_SEQ, c.AUDIT_WRITER})
"""Keys outside the content: the hash itself, and what says who wrote it when."""


_encode: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


def canonical(content: Mapping[str, object]) -> bytes:
    """Attributes as JSON: keys sorted, no spaces, ASCII, numbers as Python writes them.

    >>> canonical({"b": 0.5, "a": ("x", "y")}), canonical({"n": 1e-7})
    (b'{"a":["x","y"],"b":0.5}', b'{"n":1e-07}')
    """
    quick = quick_json(content)
    return _encode(content).encode() if quick is None else quick


def decision_hash(attributes: Mapping[str, object], previous: str) -> str:
    """SHA-256 of a decision's attributes in canonical form and of its predecessor's hash.

    Numbers are written with the shortest text that reads back to the same double, so any
    reader of the recorded file arrives at the same hash.

    >>> first = decision_hash({"twinspan.breaker.decision": "proceed"}, GENESIS)
    >>> first == decision_hash({"twinspan.breaker.decision": "halt"}, GENESIS)
    False
    """
    content: dict[str, object] = {
        key: value for key, value in attributes.items() if key not in UNHASHED and value is not None
    }
    content[c.AUDIT_PREV_HASH] = previous
    return hashlib.sha256(canonical(content)).hexdigest()
