"""Runs that are driven at the gate itself, by the thousand, without a framework around them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from twinspan.collector import ControlGate, Recorder
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.gate import Boundary, Topology
from twinspan.instrumentation.hashing import PayloadHasher
from twinspan.instrumentation.probing.observation import score_attributes
from twinspan.instrumentation.scoring import BiasScore, compute_local_bias
from twinspan.instrumentation.settings import Settings
from twinspan.instrumentation.tracing import RunTracer, Telemetry

NODES: Final = ("planner", "analyst", "reviewer", "writer")
GRAPH: Final = Topology(name="review", nodes=NODES, edges=tuple(itertools.pairwise(NODES)))

_CLEAN: Final = compute_local_bias(list("aabab"), list("ababa"), noise_floor=list("babaa"))
_BIASED: Final = compute_local_bias(list("aaaaa"), list("bbbbb"), noise_floor=list("aaaaa"))


def scores_of(seed: int) -> list[BiasScore]:
    """What the nodes of a run score: some runs clean, some biased from some node on."""
    first = seed % 7
    return [_BIASED if place >= first else _CLEAN for place in range(len(NODES))]


class Decisions(SpanProcessor):
    """Keeps what is decided, by run, without what differs between any two runs."""

    KEYS: Final = (
        c.BREAKER_DECISION,
        c.BREAKER_REASON,
        c.BREAKER_STATE_TO,
        c.NETWORK_SCORE_FAST,
        c.NETWORK_SCORE_SLOW,
        c.MONITOR_VALUE,
        c.MONITOR_RESTART,
    )

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_run: dict[str, list[tuple[Any, ...]]] = {}

    def on_end(self, span: ReadableSpan) -> None:
        """Note a decision."""
        told = span.attributes or {}
        if told.get(c.SPAN_TYPE) == "network":
            with self._lock:
                self._by_run.setdefault(str(told[c.RUN_ID]), []).append(
                    tuple(told.get(key) for key in self.KEYS)
                )

    def take(self, run_id: str) -> list[tuple[Any, ...]]:
        """A run's decisions, which are forgotten."""
        with self._lock:
            return self._by_run.pop(run_id)


@dataclass(frozen=True, slots=True)
class Plant:
    """A gate with its telemetry."""

    gate: ControlGate
    telemetry: Telemetry
    decisions: Decisions

    @classmethod
    def build(cls, folder: Path | None = None) -> Plant:
        """One that records where a folder is given."""
        settings = Settings.resolve({"axes": ["gender"], "nodes": ["*"]}, environ={})
        gate = ControlGate(settings, recorder=None if folder is None else Recorder(folder))
        decisions = Decisions()
        return cls(gate, Telemetry([*gate.processors, decisions]), decisions)

    def settle(self) -> None:
        """Have everything on disk, so that nothing waits in memory."""
        if self.gate.recorder is not None:
            self.gate.recorder.flush()

    def begin(self) -> RunTracer:
        """Begin a run."""
        tracer = self.telemetry.run()
        self.gate.open_run(tracer, GRAPH)
        return tracer

    def superstep(self, tracer: RunTracer, number: int, node: str, score: BiasScore) -> None:
        """One node ran and was probed; its superstep is decided."""
        span = tracer.start(
            f"probe {node}",
            "probe_set",
            {
                c.PROBE_SET_ID: f"{tracer.run_id}-{number}",
                c.NODE_ID: node,
                c.NODE_TASK_ID: f"task-{number}",
                c.SUPERSTEP_SCOPE: "",
                c.SUPERSTEP_INDEX: number,
                c.NODE_WEIGHT: 1.0 / (1 + NODES.index(node)),
                c.NODE_WEIGHT_SHARE: 0.25,
                c.PROBE_AXIS: "gender",
            },
        )
        tracer.end(span, {c.PROBE_OUTCOME: "ok", **score_attributes(score)})
        self.gate.decide(
            Boundary(
                run=tracer,
                hasher=PayloadHasher(),
                parent=Context(),
                scope="",
                superstep=number,
                executions=(),
            )
        )

    def whole(self, seed: int) -> list[tuple[Any, ...]]:
        """A run from beginning to end; what was decided."""
        tracer = self.begin()
        for number, (node, score) in enumerate(zip(NODES, scores_of(seed), strict=True)):
            self.superstep(tracer, number, node, score)
        self.gate.close_run(tracer.run_id)
        self.gate.run_ended(tracer.run_id)
        return self.decisions.take(tracer.run_id)


def concurrent_runs(threads: int, each: int, folder: Path | None = None) -> int:
    """How many of so many concurrent runs were decided otherwise than by themselves."""
    alone = [Plant.build().whole(seed) for seed in range(7)]
    plant = Plant.build(folder)

    def work(thread: int) -> int:
        seeds = range(thread, thread + each)
        return sum(plant.whole(seed) != alone[seed % 7] for seed in seeds)

    with ThreadPoolExecutor(threads) as pool:
        different = sum(pool.map(work, range(threads)))
    plant.gate.shutdown()
    return different


def endings(plant: Plant, runs: int) -> Iterator[None]:
    """Runs that begin and end."""
    for seed in range(runs):
        yield
        plant.whole(seed)


def never_ending(plant: Plant, runs: int) -> Iterator[None]:
    """Runs that begin, are probed and decided once, and are never heard of again."""
    for _ in range(runs):
        yield
        tracer = plant.begin()
        plant.superstep(tracer, 0, NODES[0], _CLEAN)
        plant.decisions.take(tracer.run_id)


def on_and_on(plant: Plant, supersteps: int) -> Iterator[None]:
    """One run that goes round and round."""
    tracer = plant.begin()
    for number in range(supersteps):
        yield
        plant.superstep(tracer, number, NODES[number % len(NODES)], _CLEAN)
        plant.decisions.take(tracer.run_id)
