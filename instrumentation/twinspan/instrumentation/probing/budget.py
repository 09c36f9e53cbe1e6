"""What probing may cost, and draws that no outcome can have influenced."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, replace

from twinspan.instrumentation.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBudget:
    """The node runs one run may spend on probes; a hard limit.

    Args:
        limit: node runs, at least 0.
        spent: node runs so far.

    >>> CallBudget(limit=100).after(30).left
    70
    """

    limit: int
    spent: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.spent <= self.limit:
            raise ConfigurationError(
                f"{self.spent!r} calls of a budget of {self.limit!r}; ask the plan before spending"
            )

    @property
    def left(self) -> int:
        """Node runs that may still be spent."""
        return self.limit - self.spent

    def after(self, calls: int) -> CallBudget:
        """The budget after a round; raises :class:`ConfigurationError` when it is exceeded."""
        return replace(self, spent=self.spent + calls)


class RunBudget:
    """The budget of one live run, shared by the probes that run at once.

    >>> budget = RunBudget(10)
    >>> budget.take(8), budget.take(8), budget.left
    (True, False, 2)
    >>> RunBudget(None).take(1_000_000)
    True
    """

    def __init__(self, limit: int | None) -> None:
        self._lock = threading.Lock()
        self._budget = None if limit is None else CallBudget(limit=limit)

    @property
    def left(self) -> int | None:
        """Node runs that may still be spent; None without a limit."""
        return None if self._budget is None else self._budget.left

    def take(self, calls: int) -> bool:
        """Spend some calls, or none of them if they are too many."""
        with self._lock:
            if self._budget is None:
                return True
            if calls > self._budget.left:
                return False
            self._budget = self._budget.after(calls)
            return True


def uniform_draw(seed: int | str, *labels: str) -> float:
    """A number in [0, 1) that depends on the seed and the labels and on nothing else.

    A node is probed, or audited, when the number is below its probability. With the seed in the
    record anyone can repeat the draw, and no outcome can have influenced it.

    Args:
        seed: the run's seed.
        labels: what is drawn for, such as ``"audit"``, the node and the superstep.

    >>> uniform_draw(7, "audit", "triage", "3") == uniform_draw(7, "audit", "triage", "3")
    True
    >>> 0.0 <= uniform_draw(7, "probe", "triage", "3") < 1.0
    True
    """
    text = "\x1f".join((str(seed), *labels))
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2.0**56
