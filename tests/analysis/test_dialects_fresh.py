"""What other instrumentations record of a program, here and now, reads as what it is."""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter, defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest
from model_programs import PROGRAMS, Program, arun, run
from other_instrumentations import EACH, beside

from twinspan.analysis.store import Store, open_store
from twinspan.collector.otlp_json import span_line

NODES = [others for others in EACH if set(others) & {"openinference", "traceloop"}]
"""The official instrumentation has no span for a plain node."""


def recorded(others: tuple[str, ...], program: Program, folder: Path, *, on_loop: bool) -> Path:
    """A file of what they record of a program's runs."""
    app = program.build()

    def work() -> Path:
        with beside(others, ours=False) as world:
            if on_loop:
                asyncio.run(arun(program, app))
            else:
                run(program, app)
        path = folder / "others.jsonl"
        path.write_text("".join(span_line(span) for span in world.watch.ended), encoding="utf-8")
        return path

    return contextvars.Context().run(work)


Read = tuple[Store, Program]


@pytest.fixture(params=PROGRAMS)
def name(request: pytest.FixtureRequest) -> str:
    """Each program."""
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def read(
    request: pytest.FixtureRequest, name: str, others: tuple[str, ...], tmp_path: Path
) -> Generator[Read]:
    """A program and what was recorded of it."""
    program = PROGRAMS[name]
    with open_store(recorded(others, program, tmp_path, on_loop=request.param)) as store:
        yield store, program


def _plain(node: object) -> str:
    return str(node).rpartition("/")[2]


def _supersteps(store: Store) -> Mapping[str, Mapping[int, list[str]]]:
    rows: list[tuple[Any, ...]] = list(
        store.table("SELECT DISTINCT task_id, node, scope, superstep FROM nodes").rows
    )
    holders = {task: str(node) for task, node, _, _ in rows}
    found: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for _, node, scope, step in rows:
        found[holders[scope] if scope else ""][step].append(_plain(node))
    return {h: {step: sorted(nodes) for step, nodes in of.items()} for h, of in found.items()}


@pytest.mark.parametrize("others", NODES, ids="+".join)
def test_a_recording_reads_as_what_ran(read: Read) -> None:
    """Nodes in their supersteps, attempts, the edges, the ends, each call once."""
    store, program = read
    assert _supersteps(store) == program.supersteps
    edges = store.table("SELECT DISTINCT source, target FROM edges").rows
    assert {(_plain(a), _plain(b)) for a, b in edges} == program.edges
    ends = store.table("SELECT outcome FROM runs ORDER BY start_unix_nano").rows
    assert tuple(row[0] for row in ends) == program.outcomes
    outcomes = Counter(str(row[0]) for row in store.table("SELECT outcome FROM nodes").rows)
    assert {how: many for how, many in outcomes.items() if how != "ok"} == program.attempts
    calls = store.table(
        "SELECT count(*), count(node), count(model), count(output_tokens) FROM llm_calls"
    )
    assert calls.rows == ((program.calls,) * 4,)


@pytest.mark.parametrize("others", [("genai",)], ids="+".join)
def test_without_nodes_runs_and_calls_are_read(read: Read) -> None:
    """Of the official instrumentation's spans: the runs, their ends, each call once."""
    store, program = read
    ends = store.table("SELECT outcome FROM runs ORDER BY start_unix_nano").rows
    failed = [outcome == "failed" for outcome in program.outcomes]
    assert [row[0] == "failed" for row in ends] == failed
    assert store.table("SELECT count(*) FROM llm_calls").rows == ((program.calls,),)
