"""An error history as a small file: recorded runs write it, live runs read it.

The file is JSON, ``{"prior": {"biased", "clear"}, "nodes": {NODE: {"biased", "clear"}}}``: counts
of runs for the nodes, pseudo-counts for the prior.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from twinspan.collector.history import BetaPosterior, composite_risks
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Runs in which a node was judged by its own probes."""

    biased: int
    clear: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedHistory:
    """P(biased | history) per node, from counts of recorded runs.

    Attributes:
        prior: belief about a node that was never judged.
        nodes: what was counted.

    >>> history = CountedHistory(
    ...     prior=BetaPosterior(biased=1, clear=1), nodes={"triage": Counts(biased=2, clear=6)}
    ... )
    >>> history.probability("triage"), history.probability("router")
    (0.3, 0.5)
    """

    prior: BetaPosterior
    nodes: Mapping[str, Counts] = field(default_factory=dict[str, Counts])

    def posterior(self, node: str) -> BetaPosterior:
        """The belief about one node."""
        found = self.nodes.get(node)
        if found is None:
            return self.prior
        return BetaPosterior(
            biased=self.prior.biased + found.biased, clear=self.prior.clear + found.clear
        )

    def probability(self, node: str) -> float:
        """The posterior mean of one node, in (0, 1)."""
        return self.posterior(node).mean

    def attributes(self, shares: Mapping[str, float]) -> dict[str, dict[str, object]]:
        """What the spans of each node say of its history and its composite risk."""
        risks = composite_risks(shares, self)
        return {node: self._told(node, risk.risk) for node, risk in risks.items()}

    def _told(self, node: str, risk: float) -> dict[str, object]:
        posterior = self.posterior(node)
        return {
            c.NODE_HISTORY_BIASED: float(posterior.biased),
            c.NODE_HISTORY_CLEAR: float(posterior.clear),
            c.NODE_BIAS_PROBABILITY: posterior.mean,
            c.NODE_RISK: risk,
        }


def write_history(path: Path, history: CountedHistory) -> None:
    """Write a history for live runs to read."""
    content = {
        "prior": {"biased": history.prior.biased, "clear": history.prior.clear},
        "nodes": {
            node: {"biased": found.biased, "clear": found.clear}
            for node, found in sorted(history.nodes.items())
        },
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_history(path: Path) -> CountedHistory:
    """Read a history.

    Raises:
        ConfigurationError: the file cannot be read, or is no history.
    """
    try:
        content = cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
        return CountedHistory(
            prior=BetaPosterior(**content["prior"]),
            nodes={node: _counts(found) for node, found in content["nodes"].items()},
        )
    except OSError as error:
        reason = str(error.strerror)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"it is no history ({error})"
    raise ConfigurationError(
        f"cannot use the history {str(path)!r}: {reason}; `twinspan history SPANS --out FILE` "
        "writes one"
    )


def _counts(found: Mapping[str, Any]) -> Counts:
    counts = Counts(biased=int(found["biased"]), clear=int(found["clear"]))
    if min(counts.biased, counts.clear) < 0:
        raise ValueError("a count is negative")
    return counts
