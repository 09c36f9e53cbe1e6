"""A run that stops and goes on keeps its control, also in another process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from biased_graph import GENDER, TEXT, Graph, State, gate
from click.testing import CliRunner
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from resumable import THREAD, Agent, recorded
from sample_agents import instrumented

from twinspan.analysis.cli import main
from twinspan.analysis.store import open_store
from twinspan.analysis.verify import verify
from twinspan.collector import ControlGate, Recorder, reset_run
from twinspan.collector.decision import BreakerState
from twinspan.collector.resetting import reset_state
from twinspan.collector.resuming import state_of
from twinspan.collector.run_files import read_run
from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import (
    BiasHalt,
    ConfigurationError,
    NothingToReset,
    UnknownRun,
)
from twinspan.instrumentation.tracing import Telemetry

PROGRAM = Path(__file__).parents[1] / "resumable.py"

DECIDED = """
SELECT superstep, decision, reason, state_from, state_to, b_fast, b_slow, monitor, step, margin,
       monitor_threshold, enforced, edge
FROM decisions
ORDER BY start_time
"""


def stage(folder: Path, name: str, *more: str) -> int:
    """One stage of a run, in a process of its own."""
    given = [str(folder / "spans"), str(folder / "threads.db"), name, *more]
    return subprocess.run([sys.executable, str(PROGRAM), *given], check=False).returncode


def table(folder: Path, query: str) -> list[tuple[object, ...]]:
    with open_store(str(folder / "spans")) as store:
        return [tuple(row) for row in store.table(query).rows]


def verdicts(folder: Path) -> list[str]:
    with open_store(str(folder / "spans")) as store:
        return [each.verdict for each in verify(store)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    """The decisions of the run in one process."""
    folder = tmp_path_factory.mktemp("whole")
    assert stage(folder, "whole") == 0
    return table(folder, DECIDED)


def test_e4_a_run_that_was_interrupted_goes_on_in_another_process(
    tmp_path: Path, whole: list[tuple[object, ...]]
) -> None:
    """The analyst was probed before the interrupt and is decided after it, once."""
    assert [stage(tmp_path, name) for name in ("begin", "answer")] == [0, 0]
    assert table(tmp_path, DECIDED) == whole
    assert [row[0] for row in whole] == [1, 2, 3, 4]
    assert len({row[5] for row in whole}) == 3, "scores came in before and after the interrupt"
    assert verdicts(tmp_path) == ["verified"]
    assert table(tmp_path, "SELECT writers, completeness, outcome FROM runs") == [
        (2, "complete", "completed")
    ]
    assert table(
        tmp_path, "SELECT run_resumed FROM spans WHERE span_type = 'run' ORDER BY ALL"
    ) == [
        ("recorded",),
        (None,),
    ]


def test_e4_a_process_that_was_killed_is_taken_over(
    tmp_path: Path, whole: list[tuple[object, ...]]
) -> None:
    """Its decisions stand, the superstep that it was in is executed again, and the gap shows."""
    codes = [stage(tmp_path, name) for name in ("begin", "crash", "continue")]
    assert (codes[0], codes[2]) == (0, 0) and codes[1] < 0
    assert table(tmp_path, DECIDED) == whole
    assert verdicts(tmp_path) == ["incomplete"]
    assert table(tmp_path, "SELECT incomplete_reason FROM runs") == [
        ("a process that worked on it left no root span",)
    ]


def test_sql_and_collector_agree_on_a_run_of_several_processes(tmp_path: Path) -> None:
    agent = Agent(str(tmp_path / "threads.db"))
    for step in (agent.begin, agent.answer):
        with recorded(tmp_path / "spans"):
            step()
    rows = table(
        tmp_path, "SELECT b_fast, b_fast_recomputed, b_slow, b_slow_recomputed FROM network"
    )
    assert len(rows) == 4
    assert all(row[0] == pytest.approx(row[1]) for row in rows)
    assert all(row[2] == pytest.approx(row[3]) for row in rows)


def test_a_thread_that_gets_new_input_begins_a_new_run(tmp_path: Path) -> None:
    agent = Agent(str(tmp_path / "threads.db"))
    with recorded(tmp_path / "spans"):
        agent.begin()
        agent.answer()
        agent.begin()
    assert table(tmp_path, "SELECT outcome, writers FROM runs ORDER BY start_time") == [
        ("completed", 2),
        ("interrupted", 1),
    ]


def test_a_call_at_an_older_checkpoint_begins_a_new_run(tmp_path: Path) -> None:
    """It leaves the path that was decided."""
    agent = Agent(str(tmp_path / "threads.db"))
    with recorded(tmp_path / "spans"):
        agent.begin()
        agent.answer()
        older = list(agent.compiled.get_state_history(THREAD))[2].config
        agent.compiled.invoke(None, older)
    assert len(table(tmp_path, "SELECT run_id FROM runs")) == 2


def test_an_edit_of_the_state_does_not_begin_a_new_run(tmp_path: Path) -> None:
    agent = Agent(str(tmp_path / "threads.db"))
    with recorded(tmp_path / "spans"):
        agent.begin()
        agent.compiled.update_state(THREAD, {"plan": "approve"}, as_node="planner")
        agent.go_on()
        agent.answer()
    assert table(tmp_path, "SELECT writers, outcome FROM runs") == [(3, "completed")]
    assert verdicts(tmp_path) == ["verified"]


def test_a_run_that_stops_at_a_breakpoint_is_no_completed_one(tmp_path: Path) -> None:
    saver = InMemorySaver()
    options: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"]}
    with instrumented(gate(folder=tmp_path / "spans", **options), **options):
        graph = Graph(saver).compiled
        graph.invoke({"text": TEXT}, THREAD, interrupt_before=["reviewer"])
        graph.invoke(None, THREAD)
    assert table(tmp_path, "SELECT outcome, writers FROM runs") == [("completed", 2)]
    roots = "SELECT run_outcome FROM spans WHERE span_type = 'run' ORDER BY start_time"
    assert table(tmp_path, roots) == [("interrupted",), ("completed",)]


def test_a_run_goes_on_on_an_event_loop_too(tmp_path: Path) -> None:
    options: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"]}

    async def work() -> None:
        graph = Graph(InMemorySaver()).compiled
        await graph.ainvoke({"text": TEXT}, THREAD, interrupt_before=["reviewer"])
        await graph.ainvoke(None, THREAD)

    with instrumented(gate(folder=tmp_path / "spans", **options), **options):
        asyncio.run(work())
    assert table(tmp_path, "SELECT outcome, writers FROM runs") == [("completed", 2)]
    assert [row[0] for row in table(tmp_path, DECIDED)] == [1, 2, 3]
    assert verdicts(tmp_path) == ["verified"]


def test_a_failure_beside_a_probed_node_costs_none_of_its_scores(tmp_path: Path) -> None:
    """The node's writes are kept for whoever goes on, and so is its measurement."""
    broken = [True]

    def other(_: Any) -> dict[str, str]:
        if broken.pop() if broken else False:
            raise ConnectionError("not yet")
        return {"b": "approve"}

    graph: Any = StateGraph(State)
    graph.add_node("analyst", lambda s: {"a": "decline" if "She" in s["text"] else "approve"})
    graph.add_node("other", other)
    graph.add_node("reviewer", lambda s: {"verdict": s["a"]})
    graph.add_edge(START, "analyst")
    graph.add_edge(START, "other")
    graph.add_edge(["analyst", "other"], "reviewer")
    compiled = graph.compile(checkpointer=InMemorySaver())
    options: dict[str, Any] = {"axes": [GENDER], "nodes": ["analyst"]}
    with instrumented(gate(folder=tmp_path / "spans", **options), **options):
        with pytest.raises(ConnectionError):
            compiled.invoke({"text": TEXT}, THREAD)
        assert compiled.invoke(None, THREAD)["verdict"] == "decline"
    told = "SELECT superstep, decision, len(probe_sets) FROM decisions ORDER BY start_time"
    assert table(tmp_path, told)[0] == (1, "halt", 1), "counted once, however often it ran"
    assert table(tmp_path, "SELECT DISTINCT outcome FROM probe_sets") == [("ok",)]
    assert table(tmp_path, "SELECT outcome, writers FROM runs") == [("completed", 2)]
    assert verdicts(tmp_path) == ["verified"]


def test_without_a_record_a_run_goes_on_in_the_process_it_began_in(tmp_path: Path) -> None:
    agent = Agent(str(tmp_path / "threads.db"))
    with recorded(tmp_path, record=None):
        engine = TwinspanInstrumentor.engine
        assert engine is not None and isinstance(engine.collector, ControlGate)
        agent.begin()
        (kept,) = engine.collector.runs.stopped()
        # The planner, and the analyst beside the node that waits for a person.
        assert kept.control.accumulator.state.step == 2
        agent.answer()
        assert kept.control.accumulator.state.step == 3
        assert engine.collector.runs.stopped() == []


def test_a_changed_configuration_begins_control_anew_and_says_so(tmp_path: Path) -> None:
    """Evidence of one bound is not spent under another; the record verifies all the same."""
    agent = Agent(str(tmp_path / "threads.db"))
    with recorded(tmp_path / "spans", alpha=0.05):
        agent.begin()
    with recorded(tmp_path / "spans", alpha=0.01):
        agent.answer()
    told = table(tmp_path, "SELECT run_resumed FROM spans WHERE span_type = 'run' ORDER BY ALL")
    assert ("reconfigured",) in told
    assert [row[10] for row in table(tmp_path, DECIDED)] == pytest.approx([20, 20, 100, 100, 100])
    assert verdicts(tmp_path) == ["verified"]


# --- a run that was halted, executed again ----------------------------------------------------


class Halted:
    """A run that its gate stops at the analyst, as often as it is executed."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.saver = InMemorySaver()
        self.graph = Graph(self.saver)
        self.options: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], "mode": "halt"} | options

    def execute(self, given: Any) -> bool:
        """Execute by a process of its own; whether the run was halted."""
        collector = gate(folder=self.folder / "spans", **self.options)
        with instrumented(collector, **self.options):
            try:
                self.graph.compiled.invoke(given, THREAD)
            except BiasHalt:
                return True
        return False

    @property
    def run_id(self) -> str:
        ((run_id,),) = table(self.folder, "SELECT run_id FROM runs")
        return str(run_id)


@pytest.fixture
def escalated(tmp_path: Path) -> Halted:
    run = Halted(tmp_path, max_retries=2)
    assert [run.execute({"text": TEXT}), run.execute(None), run.execute(None)] == [True] * 3
    return run


def test_a_halted_superstep_that_is_executed_again_is_measured_again(escalated: Halted) -> None:
    """Fresh samples against a restarted monitor each time, then a person must decide."""
    rows = table(escalated.folder, DECIDED)
    assert [row[4] for row in rows] == ["normal", "intervention", "intervention", "escalated"]
    assert [row[2] for row in rows[1:]] == [
        "monitor_at_limit",
        "monitor_at_limit",
        "retries_exhausted",
    ]
    limits = [row[10] for row in rows[1:]]
    assert limits == pytest.approx([20, 80, 160])
    seeds = (
        "SELECT DISTINCT probe_seed FROM spans WHERE node_id = 'analyst_a' AND span_type = 'probe'"
    )
    assert len(table(escalated.folder, seeds)) == 45, "three times fifteen samples, none twice"
    assert verdicts(escalated.folder) == ["verified"]


def test_a_halted_superstep_that_is_mended_passes(tmp_path: Path) -> None:
    """Somebody repaired the agent; what is measured now is what counts."""
    run = Halted(tmp_path)
    assert run.execute({"text": TEXT})
    run.graph.biased = False
    assert not run.execute(None)
    rows = table(tmp_path, DECIDED)
    assert [(row[1], row[2]) for row in rows[1:3]] == [
        ("halt", "monitor_at_limit"),
        ("proceed", "remeasured_below_limits"),
    ]
    assert rows[2][5] == 0.0, "the frozen payload never reached the network"
    assert verdicts(tmp_path) == ["verified"]


def test_an_escalated_run_stays_escalated_until_a_person_resets_it(escalated: Halted) -> None:
    escalated.graph.biased = False
    assert escalated.execute(None)
    spans = str(escalated.folder / "spans")
    found = CliRunner().invoke(main, ["reset", spans, escalated.run_id, "--by", "Ada"])
    assert (found.exit_code, found.output) == (
        0,
        f"run {escalated.run_id}: escalated -> normal, reset by Ada\n",
    )
    assert not escalated.execute(None)
    assert [row[1:5] for row in table(escalated.folder, DECIDED)][-4:] == [
        ("escalate", "awaiting_person", "escalated", "escalated"),
        ("proceed", "reset_by_person", "escalated", "normal"),
        ("proceed", "within_limits", "normal", "normal"),
        ("proceed", "within_limits", "normal", "normal"),
    ]
    by = "SELECT reset_by FROM decisions WHERE reason = 'reset_by_person'"
    assert table(escalated.folder, by) == [("Ada",)]
    assert verdicts(escalated.folder) == ["verified"]


def test_a_reset_run_that_is_biased_still_is_halted_again(escalated: Halted) -> None:
    """A person lets it go on, not through: it is measured, at a smaller alpha."""
    reset_run(escalated.folder / "spans", escalated.run_id, by="Ada")
    assert escalated.execute(None)
    last = table(escalated.folder, DECIDED)[-1]
    assert last[1:5] == ("halt", "monitor_at_limit", "normal", "intervention")
    assert last[10] == pytest.approx(20 * 2**4)
    assert verdicts(escalated.folder) == ["verified"]


def test_a_run_can_be_reset_through_its_live_gate(tmp_path: Path) -> None:
    """In shadow mode an escalated run goes on, and what passed stays in the score."""
    options: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], "max_retries": 1, "cooldown": 0}
    collector = gate(folder=tmp_path / "spans", **options)
    with instrumented(collector, **options):
        stream = Graph().compiled.stream({"text": TEXT})
        states: list[str] = []
        for _ in stream:
            (run_id,) = collector.runs.ids()
            state = collector.runs.get(run_id)
            assert state is not None
            states.append(state.control.state.state.value)
            if states[-1] == "escalated":
                before = state.control.accumulator.state.fast
                collector.reset(run_id, by="Ada")
                assert state.control.accumulator.state.fast == before
    assert "escalated" in states
    reasons = [row[2] for row in table(tmp_path, DECIDED)]
    assert "reset_by_person" in reasons
    assert verdicts(tmp_path) == ["verified"]


def test_what_cannot_be_reset_is_refused(tmp_path: Path, escalated: Halted) -> None:
    spans = escalated.folder / "spans"
    with pytest.raises(ConfigurationError, match="give a name"):
        reset_run(spans, escalated.run_id, by=" ")
    with pytest.raises(UnknownRun, match="no run 'nobody'"):
        reset_run(spans, "nobody", by="Ada")
    reset_run(spans, escalated.run_id, by="Ada")
    with pytest.raises(NothingToReset, match="'normal'"):
        reset_run(spans, escalated.run_id, by="Ada")


def test_a_forged_reset_is_named(escalated: Halted) -> None:
    """Appended with a chain that fits, to a run that is not stopped."""
    spans = escalated.folder / "spans"
    reset_run(spans, escalated.run_id, by="Ada")
    assert verdicts(escalated.folder) == ["verified"]
    forge_reset(spans, escalated.run_id)
    with open_store(str(spans)) as store:
        (found,) = verify(store)
    assert found.verdict == "mismatch"
    named = {(each.what, each.recorded, each.recomputed) for each in found.mismatches}
    assert (c.BREAKER_REASON, "reset_by_person", "within_limits") in named


def forge_reset(spans: Path, run_id: str) -> None:
    """Write a reset as a genuine one is written, of a run that is claimed to be escalated."""
    run = read_run(spans, run_id)
    assert run is not None
    recorder = Recorder(spans)
    state = state_of(run, Telemetry([recorder]).run(run_id, resumed=True))
    state.control.state = replace(state.control.state, state=BreakerState.ESCALATED)
    reset_state(state, by="Mallory")
    recorder.shutdown()


def test_an_altered_reset_is_named(escalated: Halted) -> None:
    """Somebody else's name under it."""
    spans = escalated.folder / "spans"
    reset_run(spans, escalated.run_id, by="Ada")
    for path in spans.rglob("*.parquet"):
        rows = pq.read_table(path)
        if "Ada" in rows.column("breaker_reset_by").to_pylist():
            place = rows.column_names.index("breaker_reset_by")
            pq.write_table(rows.set_column(place, "breaker_reset_by", pa.array(["Bob"])), path)
    with open_store(str(spans)) as store:
        (found,) = verify(store)
    assert [each.recomputed for each in found.mismatches] == ["its content does not fit its hash"]


def test_a_run_without_a_thread_leaves_nothing_behind(tmp_path: Path) -> None:
    """Nobody can go on with it, so nothing of it is kept."""
    collector = gate(mode="shadow")
    with instrumented(collector, axes=[GENDER], nodes=["*"]):
        Graph().compiled.invoke({"text": TEXT})
    assert collector.runs.stopped() == [] and len(collector.runs) == 0


def test_a_command_on_a_thread_of_nobody_begins_a_run() -> None:
    """Checkpoints that were written before twinspan was switched on name no run."""
    saver = InMemorySaver()
    graph = Graph(saver).compiled
    graph.invoke({"text": TEXT}, THREAD, interrupt_before=["reviewer"])
    collector = gate(mode="shadow")
    with instrumented(collector, axes=[GENDER], nodes=["*"]):
        assert graph.invoke(Command(goto="reviewer"), THREAD)["verdict"] == "decline"
