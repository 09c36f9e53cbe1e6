"""Runs made with the real SDK, for tests of what is recorded."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from opentelemetry.sdk.trace import ReadableSpan, Span
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from twinspan.collector.accumulator import NetworkAccumulator
from twinspan.collector.chain import GENESIS, decision_hash
from twinspan.collector.recorder import Recorder
from twinspan.collector.rows import RowBuilder
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.settings import Reduction
from twinspan.instrumentation.tracing import RunTracer, Telemetry


@contextmanager
def recording(folder: Path, **options: Any) -> Generator[tuple[Telemetry, Recorder]]:
    """A telemetry that records into a folder, shut down at the end."""
    recorder = Recorder(folder, **options)
    telemetry = Telemetry([recorder])
    try:
        yield telemetry, recorder
    finally:
        telemetry.shutdown()


def ended_spans(*attributes: Mapping[str, object]) -> Sequence[ReadableSpan]:
    """Ended spans with these attributes, of one run `r1`."""
    memory = InMemorySpanExporter()
    run = Telemetry([SimpleSpanProcessor(memory)]).run("r1")
    for each in attributes:
        run.end(run.start("invoke_node a", "node", each))
    return memory.get_finished_spans()


def table_of(spans: Iterable[ReadableSpan]) -> pa.Table:
    """The rows of ended spans."""
    builder = RowBuilder()
    for span in spans:
        builder.add_span(span)
    return builder.table()


def small_run(telemetry: Telemetry, run_id: str, *, nodes: int = 3) -> RunTracer:
    """A finished run: its nodes and its root, which says how many spans there are."""
    run = telemetry.run(run_id)
    root = run.start("invoke_workflow g", "run", {c.GRAPH_ID: "g"})
    for number in range(nodes):
        run.end(run.start(f"invoke_node n{number}", "node", {c.NODE_ID: f"n{number}"}, parent=root))
    run.end(root, {c.RUN_SPAN_COUNT: run.ended_count + 1})
    return run


def rows(folder: Path, query: str = "*") -> list[tuple[object, ...]]:
    """What plain DuckDB reads from a folder of parts, without anything of ours."""
    pattern = f"{folder}/**/*.parquet"
    with duckdb.connect() as connection:
        return connection.execute(
            f"SELECT {query} FROM read_parquet('{pattern}', hive_partitioning = false)"
        ).fetchall()


def parts(folder: Path) -> list[Path]:
    """The parts below a folder."""
    return sorted(folder.rglob("*.parquet"))


class ScoredRun:
    """A run with probe sets and decisions, written as the collector writes them.

    The network's numbers come from the collector's own accumulator, so that a test can compare
    them with what SQL makes of the recorded distances.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        run_id: str,
        *,
        reduction: Reduction = "impact_sum",
        alphas: tuple[float, float] = (0.7, 0.1),
        root: Mapping[str, object] | None = None,
    ) -> None:
        self.run = telemetry.run(run_id)
        self.accumulator = NetworkAccumulator(
            fast_alpha=alphas[0], slow_alpha=alphas[1], reduction=reduction
        )
        self.hash = GENESIS
        self.root = self.run.start(
            "invoke_workflow g", "run", {c.GEN_AI_AGENT_NAME: "g", **(root or {})}
        )

    def node(self, node: str, superstep: int, extra: Mapping[str, object] | None = None) -> Span:
        """A node span; its task is the node's name and superstep unless told otherwise."""
        span = self.run.start(
            f"invoke_node {node}",
            "node",
            {
                c.NODE_ID: node,
                c.NODE_TASK_ID: f"{node}/{superstep}",
                c.SUPERSTEP_INDEX: superstep,
                c.SUPERSTEP_SCOPE: "",
                **(extra or {}),
            },
            parent=self.root,
        )
        self.run.end(span, {c.NODE_OUTCOME: (extra or {}).get(c.NODE_OUTCOME, "ok")})
        return span

    def probe_set(
        self,
        node: str,
        superstep: int,
        distances: Sequence[float],
        n_reference: int,
        n_counterfactual: int,
        *,
        axis: str = "gender",
        weight: float | None = 1.0,
        counts: tuple[int, int] | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> str:
        """A probe set with one counterfactual probe; returns its id.

        `counts` is what the span says of the arms, where that is to be wrong.
        """
        set_id = uuid.uuid4().hex
        place = {
            c.PROBE_SET_ID: set_id,
            c.NODE_ID: node,
            c.NODE_TASK_ID: f"{node}/{superstep}",
            c.PROBE_AXIS: axis,
        }
        span = self.run.start(
            f"probe {node}",
            "probe_set",
            {
                **place,
                c.SUPERSTEP_INDEX: superstep,
                c.SUPERSTEP_SCOPE: "",
                c.NODE_WEIGHT: weight,
                **(extra or {}),
            },
            parent=self.root,
        )
        probe = self.run.start(
            "probe counterfactual",
            "probe",
            {
                **place,
                c.PROBE_ARM: "counterfactual",
                c.PERTURBATION_ID: f"{axis}:one>other",
                c.PERTURBATION_TARGETS: ["/text"],
            },
            parent=span,
        )
        self.run.end(probe, {c.PROBE_OUTCOME: "ok"})
        self.run.end(
            span,
            {
                c.PROBE_OUTCOME: "ok",
                c.DIVERGENCE_DISTANCES: list(distances),
                c.DIVERGENCE_REFERENCE_COUNT: (counts or (n_reference,))[0],
                c.DIVERGENCE_COUNTERFACTUAL_COUNT: (counts or (0, n_counterfactual))[1],
                c.EFFECT_VALUE: delta_of(distances, n_reference, n_counterfactual),
                c.EFFECT_P_VALUE: 0.5,
                c.EFFECT_E_VALUE: 1.0,
            },
        )
        return set_id

    def decide(
        self,
        superstep: int,
        probe_sets: Sequence[str],
        *,
        decision: str = "proceed",
        extra: Mapping[str, object] | None = None,
    ) -> None:
        """A decision on what the accumulator says now, chained to the one before."""
        state = self.accumulator.state
        scored = state.step > 0
        span = self.run.start(
            c.SPAN_NETWORK,
            "network",
            {
                c.SUPERSTEP_INDEX: superstep,
                c.SUPERSTEP_SCOPE: "",
                c.NETWORK_ALPHA_FAST: self.accumulator.fast_alpha,
                c.NETWORK_ALPHA_SLOW: self.accumulator.slow_alpha,
                c.NETWORK_REDUCTION: self.accumulator.reduction,
                c.NETWORK_STEP: state.step,
                c.NETWORK_SCORE: state.fast if scored else None,
                c.NETWORK_SCORE_FAST: state.fast if scored else None,
                c.NETWORK_SCORE_SLOW: state.slow if scored else None,
                c.NETWORK_SCORE_RAW: state.fast_average.raw if scored else None,
                c.NETWORK_PROBE_SETS: list(probe_sets),
                c.BREAKER_STATE_FROM: "normal",
                c.BREAKER_STATE_TO: "normal" if decision == "proceed" else "intervention",
                c.BREAKER_DECISION: decision,
                c.BREAKER_REASON: "within_limits",
                c.BREAKER_ENFORCED: True,
                **(extra or {}),
            },
            parent=self.root,
        )
        previous, self.hash = self.hash, decision_hash(dict(span.attributes or {}), self.hash)
        self.run.end(span, {c.AUDIT_PREV_HASH: previous, c.AUDIT_HASH: self.hash})

    def end(self, extra: Mapping[str, object] | None = None) -> None:
        """The root span, with the number of spans."""
        self.run.end(
            self.root,
            {
                c.RUN_OUTCOME: "completed",
                c.RUN_SPAN_COUNT: self.run.ended_count + 1,
                **(extra or {}),
            },
        )


def delta_of(distances: Sequence[float], n: int, m: int) -> float:
    """Excess disagreement from the whole matrix, as its definition says."""
    size = n + m
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size, 1)] = distances
    matrix += matrix.T
    within_x = matrix[:n, :n].sum() / (n * (n - 1))
    within_y = matrix[n:, n:].sum() / (m * (m - 1))
    return float(matrix[:n, n:].mean() - (within_x + within_y) / 2)
