"""Keyed hashes of payloads.

A bare hash of "female" is guessed at once, so a run hashes with a key of its own that never
leaves the process: equal payloads of one run have equal hashes, and nothing else can be told.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any, Final, cast

from twinspan.instrumentation.quick_json import quick_json

_BYTES: Final = 16
"""Of a hash: 128 bits, 32 hex characters."""

_VOLATILE: Final = frozenset({"id", "response_metadata", "usage_metadata"})
"""Fields of a message that differ between equal answers."""


def _plain(value: object) -> object:
    """What `json` does not know, in terms it does; an unknown object is only its type."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        fields = cast("dict[str, object]", dump())
        return {key: item for key, item in fields.items() if key not in _VOLATILE}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(cast(Any, value))
    if isinstance(value, set | frozenset):
        return sorted(cast("set[object]", value), key=repr)
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        return tolist()
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    return f"<{type(value).__module__}.{type(value).__qualname__}>"


_encode: Final = json.JSONEncoder(
    default=_plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True
).encode


def canonical(payload: object) -> str:
    """One text for equal payloads, whatever the order of their keys.

    >>> canonical({"b": 1, "a": (2, 3)})
    '{"a":[2,3],"b":1}'
    """
    quick = _quickly(payload)
    if quick is not None:
        return quick.decode()
    try:
        return _encode(payload)
    except (TypeError, ValueError):
        # Keys of mixed types cannot be sorted, and a payload may contain itself.
        return repr(payload)


def _quickly(payload: object) -> bytes | None:
    if isinstance(payload, dict):
        return quick_json(cast("dict[str, object]", payload))
    return None


class PayloadHasher:
    """Hashes the payloads of one run.

    >>> hasher = PayloadHasher(key=b"k" * 32)
    >>> hasher({"a": 1}) == hasher({"a": 1}), hasher("x") == hasher("y")
    (True, False)
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key if key is not None else secrets.token_bytes(32)

    def __call__(self, payload: object) -> str:
        """The keyed hash of a payload, 32 hex characters."""
        return self.of_text(canonical(payload))

    def of_text(self, text: str) -> str:
        """The keyed hash of a payload that was made canonical before."""
        content = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, key=self._key, digest_size=_BYTES).hexdigest()
