"""The way on which a biased payload came to the edge that was cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twinspan.analysis.findings.measured import SETS
from twinspan.analysis.findings.records import Step
from twinspan.analysis.findings.wording import product
from twinspan.analysis.flow import Flow, flow_of, heaviest_path
from twinspan.analysis.json_values import finite_row
from twinspan.analysis.store import Store
from twinspan.analysis.trail_records import Contribution
from twinspan.instrumentation.conventions import split_edge

Row = Mapping[str, Any]


class Flows:
    """Each run's graph, loops set aside, made when it is asked for."""

    def __init__(self, store: Store, runs: Sequence[str]) -> None:
        self._nodes: dict[str, list[str]] = {}
        self._edges: dict[str, list[tuple[str, str]]] = {}
        self._made: dict[str, Flow] = {}
        if not runs:
            return
        for run, node in store.table(
            "SELECT run_id, node FROM nodes WHERE run_id IN (SELECT unnest(?)) "
            "GROUP BY ALL ORDER BY min(start_unix_nano), min(audit_seq)",
            [list(runs)],
        ).rows:
            self._nodes.setdefault(str(run), []).append(str(node))
        for run, source, target in store.table(
            "SELECT run_id, source, target FROM edges WHERE run_id IN (SELECT unnest(?)) "
            "ORDER BY last_audit_seq, source, target",
            [list(runs)],
        ).rows:
            self._edges.setdefault(str(run), []).append((str(source), str(target)))

    def of(self, run_id: str) -> Flow:
        """The flow of one run."""
        if run_id not in self._made:
            edges = self._edges.get(run_id, [])
            self._made[run_id] = flow_of(self._nodes.get(run_id, []), edges)
        return self._made[run_id]


class Scores:
    """The largest impact of each node of a run, and each probe set by its span."""

    def __init__(self, store: Store, runs: Sequence[str]) -> None:
        self.by_span: dict[str, Row] = {}
        self._by_run: dict[str, list[Row]] = {}
        self._readers: dict[str, _Reader] = {}
        if not runs:
            return
        for row in store.table(
            f"{SETS} WHERE run_id IN (SELECT unnest(?)) ORDER BY audit_seq", [list(runs)]
        ).dicts():
            self.by_span[str(row["span_id"])] = finite_row(row)
            self._by_run.setdefault(str(row["run_id"]), []).append(finite_row(row))

    def before(self, run_id: str, audit_seq: int) -> dict[str, Contribution]:
        """What was measured on each node until a decision, the largest impact where several.

        Asked in the order of the decisions, each probe set is looked at once.
        """
        reader = self._readers.get(run_id)
        if reader is None or reader.until > audit_seq:
            reader = self._readers[run_id] = _Reader(self._by_run.get(run_id, ()))
        return reader.read(audit_seq)


class _Reader:
    """Reads a run's probe sets up to one decision after the other.

    Attributes:
        until: number of the latest decision.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.until = -1
        self._rows = rows
        self._place = 0
        self._found: dict[str, Contribution] = {}

    def read(self, audit_seq: int) -> dict[str, Contribution]:
        """Go on to a decision, and tell what was found so far."""
        self.until = audit_seq
        while self._place < len(self._rows) and self._seq() <= audit_seq:
            self._keep(self._rows[self._place])
            self._place += 1
        return dict(self._found)

    def _seq(self) -> int:
        return self._rows[self._place]["audit_seq"] or 0

    def _keep(self, row: Row) -> None:
        if row["delta"] is None or row["node"] is None:
            return
        each = _contribution(row)
        known = self._found.get(each.node)
        if known is None or (each.impact or 0.0) > (known.impact or 0.0):
            self._found[each.node] = each


def _contribution(row: Row) -> Contribution:
    return Contribution(
        node=str(row["node"]),
        axis=str(row["axis"]),
        weight=row["weight"],
        magnitude=row["delta"],
        impact=product(row["weight"], row["delta"]),
        delta=row["delta"],
        ci_low=row["ci_low"],
        ci_high=row["ci_high"],
        p_value=row["p_value"],
        e_value=row["e_value"],
        perturbations=(),
        targets=(),
        span_id=str(row["span_id"]),
    )


class Ways:
    """The ways of biased payloads through runs.

    Args:
        store: opened spans.
        runs: runs with a breach.
    """

    def __init__(self, store: Store, runs: Sequence[str]) -> None:
        self.flows = Flows(store, runs)
        self.scores = Scores(store, runs)

    def to(self, run_id: str, edges: Sequence[str], audit_seq: int) -> tuple[tuple[Step, ...], ...]:
        """For each cut edge, the way to it on which the most impact lies.

        Args:
            run_id: the run.
            edges: the edges that were cut, `a->b`.
            audit_seq: number of the decision; what was measured later did not matter.
        """
        measured = self.scores.before(run_id, audit_seq)
        impacts = {node: each.impact or 0.0 for node, each in measured.items()}
        paths: list[tuple[Step, ...]] = []
        for source, target in map(split_edge, edges):
            way = heaviest_path(self.flows.of(run_id), source, impacts)
            steps = [Step(node=node, contribution=measured.get(node)) for node in way]
            consumer = [Step(node=target, contribution=None, is_cut=True)] if target else []
            paths.append((*steps, *consumer))
        return tuple(paths)
