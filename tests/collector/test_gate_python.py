"""The gate in plain Python: nobody has an answer before it is decided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from biased_graph import GENDER, TEXT, Graph, decisions, gate, says
from click.testing import CliRunner
from sample_agents import Spans, instrumented

from twinspan.analysis import open_store
from twinspan.analysis.cli import main
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation import node, parallel, pipeline, step, tool
from twinspan.instrumentation.errors import BiasHalt

SEEN: list[str] = []


@node
def planner(text: str) -> str:
    return "look at income"


@node
def analyst_a(text: str, plan: str) -> str:
    return "decline" if says(text, "she") else "approve"


@node
def analyst_b(text: str, plan: str) -> str:
    return "approve"


@node
def reviewer(a: str, b: str) -> str:
    SEEN.append(a)
    return a


@node(name="planner")
async def aplanner(text: str) -> str:
    return "look at income"


@node(name="analyst_a")
async def aanalyst_a(text: str, plan: str) -> str:
    await asyncio.sleep(0)
    return "decline" if says(text, "she") else "approve"


@node(name="analyst_b")
async def aanalyst_b(text: str, plan: str) -> str:
    return "approve"


@node(name="reviewer")
async def areviewer(a: str, b: str) -> str:
    SEEN.append(a)
    return a


@pipeline(name="review")
def in_sequence(text: str) -> str:
    plan = planner(text)
    a = analyst_a(text, plan)
    b = analyst_b(text, plan)
    return reviewer(a, b)


@pipeline(name="review")
def together(text: str) -> str:
    plan = planner(text)
    a, b = parallel(lambda: analyst_a(text, plan), lambda: analyst_b(text, plan))
    return reviewer(a, b)


@pipeline(name="review")
def in_a_pool(text: str) -> str:
    plan = planner(text)
    with ThreadPoolExecutor(2) as pool:
        a, b = pool.submit(analyst_a, text, plan), pool.submit(analyst_b, text, plan)
        return reviewer(a.result(), b.result())


@pipeline(name="review")
async def _gathered(text: str) -> str:
    plan = await aplanner(text)
    a, b = await asyncio.gather(aanalyst_a(text, plan), aanalyst_b(text, plan))
    return await areviewer(a, b)


@pipeline(name="review")
async def _together_on_a_loop(text: str) -> str:
    plan = await aplanner(text)
    a, b = await parallel(aanalyst_a(text, plan), aanalyst_b(text, plan))
    return await areviewer(a, b)


def gathered(text: str) -> str:
    return asyncio.run(_gathered(text))


def together_on_a_loop(text: str) -> str:
    return asyncio.run(_together_on_a_loop(text))


PROGRAMS = [in_sequence, together, in_a_pool, gathered, together_on_a_loop]


def run(
    program: Callable[[str], Any], text: str = TEXT, folder: Path | None = None, **options: Any
) -> tuple[Any, Spans]:
    SEEN.clear()
    spans = Spans()
    settings = {"axes": [GENDER], "nodes": ["*"], **options}
    with instrumented(gate(spans, folder, **options), **settings):
        return program(text), spans


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_reader_sees_only_the_repaired_answer(program: Callable[[str], str]) -> None:
    """The run completes, the biased answer is handed to nobody."""
    result, spans = run(program, mode="repair")
    assert (result, SEEN) == ("approve", ["approve"])
    halts = [d for d in spans.of("network") if d[c.BREAKER_DECISION] == "halt"]
    assert [d[c.BREAKER_EDGE] for d in halts] == ["analyst_a->reviewer"]
    (repair,) = spans.of("intervention")
    assert repair[c.INTERVENTION_OUTCOME] == "cleared"
    assert (repair[c.INTERVENTION_SCORE_BEFORE], repair[c.INTERVENTION_SCORE_AFTER]) == (1.0, 0.0)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_halt_raises_where_the_node_was_called(program: Callable[[str], str]) -> None:
    """The reader never ran; the frozen answer is on the error."""
    with pytest.raises(BiasHalt) as halted:
        run(program, mode="halt")
    assert halted.value.edge == "analyst_a->reviewer"
    assert halted.value.frozen_payload == {"analyst_a": "decline"}
    assert SEEN == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_shadow_mode_tells_and_lets_pass(program: Callable[[str], str]) -> None:
    """The decision is the same, and not enforced."""
    result, spans = run(program, mode="shadow")
    assert (result, SEEN) == ("decline", ["decline"])
    halt = next(d for d in spans.of("network") if d[c.BREAKER_DECISION] == "halt")
    assert (halt[c.BREAKER_EDGE], halt[c.BREAKER_ENFORCED]) == ("analyst_a->reviewer", False)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_letter_without_the_axis_runs_through(program: Callable[[str], str]) -> None:
    """Nothing was varied, so nothing is known and nothing is stopped."""
    result, spans = run(program, text="An applicant runs a shop.", mode="halt")
    assert result == "approve"
    assert {p[c.PROBE_OUTCOME] for p in spans.of("probe_set")} == {"no_op"}


def test_an_unbiased_pipeline_runs_through() -> None:
    """The axis is in the letter, and no node reacts to it."""
    fair = pipeline(name="fair")(lambda text: reviewer(analyst_b(text, "p"), "approve"))
    result, spans = run(fair, mode="halt")
    assert result == "approve"
    assert {d[c.BREAKER_DECISION] for d in spans.of("network")} == {"proceed"}
    assert any(p.get(c.EFFECT_VALUE) == 0 for p in spans.of("probe_set"))


@pytest.mark.parametrize("program", [together, together_on_a_loop])
@pytest.mark.parametrize("mode", ["shadow", "halt", "repair"])
def test_decisions_are_those_of_the_same_graph_in_langgraph(
    program: Callable[[str], str], mode: str
) -> None:
    """Scores, evidence, edges and reasons up to the cut, number by number.

    Further on the two reviewers differ: a LangGraph node reads the whole state.
    """
    halted = suppress(BiasHalt)
    spans, graph = Spans(), Spans()
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], "mode": mode}
    with halted, instrumented(gate(spans, mode=mode), **settings):
        program(TEXT)
    with halted, instrumented(gate(graph, mode=mode), **settings):
        Graph().compiled.invoke({"text": TEXT})
    cut = 3 if mode == "repair" else 2
    assert decisions(spans)[:cut] == decisions(graph)[:cut]
    assert decisions(spans)[1][0] == "halt"


def test_what_the_reader_read_is_what_the_intervention_handed_on() -> None:
    """Hashes tell it, as in any framework."""
    _, spans = run(in_sequence, mode="repair")
    nodes = {n[c.NODE_ID]: n for n in spans.of("node")}
    (repair,) = spans.of("intervention")
    read = nodes["reviewer"]
    handed = dict(zip(read[c.NODE_PARENTS], read[c.NODE_PARENT_HASHES], strict=True))
    assert repair[c.INTERVENTION_PAYLOAD_HASH] == handed["analyst_a"]
    assert repair[c.INTERVENTION_HANDED_HASH] == read[c.NODE_INPUT_HASH]
    assert repair[c.INTERVENTION_PAYLOAD_HASH] != nodes["analyst_a"][c.NODE_OUTPUT_HASH]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_probe_leaves_no_trace_in_the_run(program: Callable[[str], str]) -> None:
    """Nodes that are run again are no nodes of the run."""
    _, spans = run(program, mode="shadow")
    assert len(spans.of("node")) == 4
    assert len(spans.traces) == 1


def test_a_state_that_a_node_alters_is_probed_as_it_was_before() -> None:
    """The node's own changes are in no probe, and no probe's changes are in the state."""

    @node
    def analyst(state: dict[str, Any]) -> dict[str, Any]:
        state["calls"].append(1)
        verdict = "decline" if says(state["text"], "she") else "approve"
        state["text"] = "gone"
        return {"verdict": verdict, "calls": len(state["calls"])}

    def program(text: str) -> Any:
        with pipeline("stateful", nodes=[analyst]):
            return analyst({"text": text, "calls": []})

    result, spans = run(program, mode="shadow")
    assert result == {"verdict": "decline", "calls": 1}
    (probe,) = spans.of("probe_set")
    assert probe[c.EFFECT_VALUE] == 0.5  # of two fields one differs: every twin began at no calls


def test_a_tool_inside_a_probe_is_blocked_unless_it_is_safe() -> None:
    """The run's own call goes through, the probes' do not, and the probe says so."""
    sent: list[str] = []

    @tool
    def send(to: str) -> str:
        sent.append(to)
        return "sent"

    @node
    def agent(text: str) -> str:
        return send(text[:5])

    _, spans = run(agent, mode="shadow")
    assert sent == ["Emily"]
    assert spans.of("probe_set")[0][c.EFFECT_UNDEFINED] == "side_effect_blocked"
    run(agent, mode="shadow", safe_tools=["send"])
    assert len(sent) == 1 + 16


def test_a_block_is_probed_and_decided_if_it_says_how_to_run_again() -> None:
    """And its result is the repaired one after the block."""

    def answer(text: str) -> str:
        return "decline" if says(text, "she") else "approve"

    def program(text: str) -> str:
        with pipeline("blocks", nodes=["analyst"]):
            with step("analyst", text, rerun=answer) as analyst:
                analyst.result = answer(text)
            return str(analyst.result)

    result, _ = run(program, mode="repair")
    assert result == "approve"


def test_a_node_that_the_graph_does_not_list_is_stopped_all_the_same() -> None:
    """It is weighed as unlisted, and whoever would have read its answer has none."""

    def program(text: str) -> str:
        with pipeline("open", nodes=[]):
            with step("late", text, rerun=lambda t: says(t, "she")) as late:
                late.result = says(text, "she")
            return str(late.result)

    with pytest.raises(BiasHalt) as halted:
        run(program, mode="halt")
    assert halted.value.edge == "late->*"


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_record_of_a_run_is_verified_and_tells_the_breach(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    """The same commands over the same files as for any framework."""
    run(program, folder=tmp_path, mode="repair")
    verified = CliRunner().invoke(main, ["verify", str(tmp_path)])
    assert verified.exit_code == 0, verified.output
    trail = CliRunner().invoke(main, ["trail", str(tmp_path)])
    assert "breach: superstep" in trail.output
    assert "node analyst_a <- axis gender" in trail.output
    assert "handed on at analyst_a->reviewer" in trail.output
    dag = CliRunner().invoke(main, ["dag", str(tmp_path), "--format", "json"])
    assert '"source": "analyst_a", "target": "reviewer"' in " ".join(dag.output.split())


def test_answers_of_different_kinds_are_decided_all_the_same() -> None:
    """A letter and a label have no common scale: the second is the monitor's alone, and halted."""

    @node
    def summarise(text: str) -> str:
        return "The applicant runs a shop in town, and all of the accounts are in order."

    @node
    def judge(text: str, summary: str) -> str:
        return "decline" if says(text, "she") else "approve"

    @pipeline
    def mixed(text: str) -> str:
        return judge(text, summarise(text))

    with pytest.raises(BiasHalt) as halted:
        run(mixed, mode="halt")
    assert halted.value.edge == "judge->__end__"


def test_the_record_of_such_a_run_is_verified(tmp_path: Path) -> None:
    """Scale, score and evidence are computed again, in Python and in SQL."""

    @node
    def summarise(text: str) -> str:
        return "The applicant runs a shop in town, and all of the accounts are in order."

    @node
    def judge(text: str, summary: str) -> str:
        return "decline" if says(text, "she") else "approve"

    def mixed(text: str) -> str:
        with pipeline("mixed", nodes=[summarise, judge]):
            return judge(text, summarise(text))

    run(mixed, folder=tmp_path, mode="repair")
    verified = CliRunner().invoke(main, ["verify", str(tmp_path)])
    assert verified.exit_code == 0, verified.output
    with open_store(tmp_path) as store:
        rows = store.table("SELECT b_fast, b_fast_recomputed FROM network ORDER BY audit_seq").rows
    assert rows and all(told == again for told, again in rows)


def test_a_block_that_cannot_be_run_again_is_not_said_to_be_probed() -> None:
    """Coverage is never overstated."""

    def program(text: str) -> None:
        with pipeline("blocks", nodes=["analyst"]), step("analyst", text) as analyst:
            analyst.result = "approve"

    _, spans = run(program, mode="halt")
    (ended,) = spans.of("node")
    assert ended[c.PROBE_DECISION] == "exempt"
    assert spans.of("probe_set") == []


def test_probing_models_says_of_a_plain_node_that_nothing_was_measured() -> None:
    """A plain function's model calls are not seen."""
    _, spans = run(analyst_b_alone, mode="halt", level="model")
    assert [(p[c.PROBE_OUTCOME], p.get(c.EFFECT_VALUE)) for p in spans.of("probe_set")] == [
        ("no_op", None)
    ]


def analyst_b_alone(text: str) -> str:
    return analyst_b(text, "plan")
