"""Texts as counts of hashed pieces.

The hash is part of an estimator's version: it is fixed arithmetic on code points, the same in
every process and on every machine, unlike Python's own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]

BITS: Final = 20
"""Pieces of one kind fall into 2 ** BITS buckets."""

_WIDTH: Final = 3
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_MIX: Final = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64
)
_FINAL: Final = np.uint64(0xFF51AFD7ED558CCD)
_HALF: Final = np.uint64(33)
_SHIFT: Final = np.uint64(64 - BITS)


def text_vectors(texts: Sequence[str]) -> Floats:
    """Each text as the direction of its characters and words.

    Half of a vector counts runs of three characters, the other half words and pairs of
    neighbouring words; a count c weighs ``1 + ln c``, and both halves have length 1. Case,
    compatibility forms and the amount of white space do not count.

    Args:
        texts: N texts, each with at least one character that is not white space.

    Returns:
        N rows of non-negative features, one column per bucket that occurs.

    >>> one, other = text_vectors(["Yes,  hire her", "yes, hire HER"])
    >>> bool((one == other).all())
    True
    """
    plain = [normalise(text) for text in texts]
    halves = (
        _directions([_characters(text) for text in plain]),
        _directions([_words(text) for text in plain]),
    )
    return np.concatenate(halves, axis=1)


def normalise(text: str) -> str:
    r"""Compatibility-composed, case-folded, single-spaced text.

    >>> normalise("  Straße\n ﬁn ")
    'strasse fin'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _characters(plain: str) -> Hashes:
    encoded = f" {plain} ".encode("utf-32-le", "surrogatepass")
    points = np.frombuffer(encoded, dtype="<u4").astype(np.uint64)
    return _mixed([points[start : len(points) - _WIDTH + 1 + start] for start in range(_WIDTH)])


def _words(plain: str) -> Hashes:
    tokens = _TOKEN.findall(plain) or [plain]
    codes = [crc32(token.encode("utf-8", "surrogatepass")) for token in tokens]
    hashes = np.array(codes, dtype=np.uint64)
    return np.concatenate([_mixed([hashes]), _mixed([hashes[:-1], hashes[1:]])])


def _mixed(parts: Sequence[Hashes]) -> Hashes:
    """One 64-bit hash per position from one or more aligned arrays, wrapping around."""
    mixed = np.zeros(len(parts[0]), dtype=np.uint64)
    for part, factor in zip(parts, _MIX, strict=False):
        mixed = (mixed ^ (part * factor)) * _FINAL
        mixed ^= mixed >> _HALF
    return mixed


def _directions(hashes: Sequence[Hashes]) -> Floats:
    """Weighted counts of each text's pieces by bucket, as rows of length 1."""
    buckets = np.concatenate(hashes) * _FINAL >> _SHIFT
    owner = np.arange(len(hashes)).repeat([len(pieces) for pieces in hashes])
    distinct, column = np.unique(buckets, return_inverse=True)
    cells = np.bincount(owner * len(distinct) + column, minlength=len(hashes) * len(distinct))
    counts = cells.reshape(len(hashes), len(distinct)).astype(np.float64)
    weights = np.where(counts > 0, 1.0 + np.log(np.maximum(counts, 1.0)), 0.0)
    lengths: Floats = np.linalg.norm(weights, axis=1, keepdims=True)
    return weights / lengths
