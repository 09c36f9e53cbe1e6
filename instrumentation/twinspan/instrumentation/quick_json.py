"""Canonical JSON of flat objects, several times as fast as the standard library writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

_encode: Final = msgspec.json.Encoder(order="deterministic").encode

_PLAIN: Final = frozenset({str, bool, int})


def quick_json(content: Mapping[str, Any]) -> bytes | None:
    r"""The text of `json.dumps(content, sort_keys=True, separators=(",", ":"))`.

    `msgspec` writes the same text but for numbers that need an exponent and for characters
    outside ASCII, and leaves nothing to a `default`.

    Returns:
        The text; None where it might be another one, and for what is not flat.

    >>> quick_json({"b": 0.5, "a": ("x", "y")}), quick_json({"n": 1e-7}), quick_json({"n": None})
    (b'{"a":["x","y"],"b":0.5}', None, None)
    """
    if not _is_written_alike(content):
        return None
    try:
        text = _encode(content)
    except (ValueError, OverflowError):  # a lone surrogate, an integer over 64 bits
        return None
    return text if text.isascii() and b"\x7f" not in text else None


def _is_written_alike(content: Mapping[str, Any]) -> bool:
    # In one loop: a call for each of two dozen values would cost what the encoder saves.
    for key, value in content.items():
        kind: object = type(value)  # pyright: ignore[reportUnknownVariableType]
        if type(key) is not str:
            return False
        if kind is float:
            if not (value == 0.0 or 1e-4 <= abs(value) < 1e16):
                return False
        elif kind is tuple:
            if not all([type(item) is str for item in value]):
                return False
        elif kind not in _PLAIN:
            return False
    return True
