"""How often each node was found biased in recorded runs, as a probability."""

from __future__ import annotations

from twinspan.analysis.store import Store
from twinspan.analysis.tables import Table
from twinspan.collector.history import BetaPosterior
from twinspan.collector.history_file import CountedHistory, Counts

LEVEL = 0.95


def recorded_history(store: Store, prior: BetaPosterior) -> CountedHistory:
    """Counts of the view `history` with a prior.

    Args:
        store: opened spans.
        prior: belief about a node that was never judged.
    """
    rows = store.table("SELECT node, biased, clear FROM history ORDER BY node").rows
    return CountedHistory(
        prior=prior,
        nodes={
            str(node): Counts(biased=int(str(biased)), clear=int(str(clear)))
            for node, biased, clear in rows
        },
    )


def history_table(history: CountedHistory) -> Table:
    """One row per node: counts, P(biased | history) and its 95 % credible interval."""
    rows = [
        (node, found.biased + found.clear, found.biased, found.clear, *_belief(history, node))
        for node, found in history.nodes.items()
    ]
    rows.sort(key=lambda row: (-float(row[4]), str(row[0])))
    columns = ("node", "runs", "biased", "clear", "probability", "ci_low", "ci_high")
    return Table(columns=columns, rows=tuple(rows))


def _belief(history: CountedHistory, node: str) -> tuple[float, float, float]:
    posterior = history.posterior(node)
    return (posterior.mean, *posterior.interval(LEVEL))
