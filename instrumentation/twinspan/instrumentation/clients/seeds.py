"""Seeds that depend on what is drawn and how often, never on the order of parallel calls."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import Final

from twinspan.instrumentation.hashing import canonical

SEED_LIMIT: Final = 2**31
"""Seeds are below this: the widest range that every server takes unchanged."""

_REMEMBERED: Final = 65_536


def counter_seed(*parts: object) -> int:
    """A seed in [0, 2**31) that depends on every part and on nothing else.

    >>> counter_seed(0, "prompt", 1) == counter_seed(0, "prompt", 1)
    True
    >>> counter_seed(0, "prompt", 1) == counter_seed(0, "prompt", 2)
    False
    """
    text = "\x1f".join(str(part) for part in parts)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % SEED_LIMIT


def digest_of(value: object) -> str:
    """A fixed-length name of a request, equal for equal requests.

    Not for records that leave the process: words are guessed from an unkeyed hash.

    >>> digest_of({"a": 1}) == digest_of({"a": 1})
    True
    """
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


class DrawCounter:
    """Numbers the draws of each prompt, so that the same prompts get the same set of seeds.

    Which of several simultaneous calls gets which number is left to chance; the multiset of
    the numbers, and so of the seeds, is not. The least recently drawn of more than 65,536
    prompts are forgotten and begin anew.

    >>> counter = DrawCounter()
    >>> counter.next("a"), counter.next("a"), counter.next("b")
    (0, 1, 0)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: OrderedDict[str, int] = OrderedDict()

    def next(self, digest: str) -> int:
        """The number of this draw of a prompt, from 0."""
        with self._lock:
            number = self._counts.pop(digest, 0)
            self._counts[digest] = number + 1
            if len(self._counts) > _REMEMBERED:
                self._counts.popitem(last=False)
            return number
