"""Probing plans on live graphs, many runs at once, and what is kept of runs that never end."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from biased_graph import GENDER, TEXT, Graph, decisions, gate
from sample_agents import Spans, instrumented

from twinspan.collector.run_control import RunControl
from twinspan.collector.runs import Runs, RunState
from twinspan.collector.topology import AgentDAG
from twinspan.instrumentation import builtin_axis
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.settings import BreakerOptions
from twinspan.instrumentation.tracing import Telemetry

AGE = builtin_axis("age")


def spans_of(text: str = TEXT, **options: Any) -> Spans:
    spans = Spans()
    given: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], "mode": "repair", **options}
    with instrumented(gate(spans, **given), **given):
        Graph().compiled.invoke({"text": text})
    return spans


@pytest.mark.parametrize("plan", ["adaptive", "thorough"])
def test_an_adaptive_plan_cuts_the_same_edge_with_fewer_calls(plan: str) -> None:
    """Clean nodes cost a screen, the guilty one is probed on."""
    axes = [GENDER, AGE]
    text = "Emily Brown, 34 years old, applied. She runs a shop."
    fixed = spans_of(text, axes=axes, reference=20, counterfactual=10)
    adaptive = spans_of(text, axes=axes, plan=plan, audit_rate=0)
    halted = [d for d in adaptive.of("network") if d[c.BREAKER_DECISION] == "halt"]
    assert [d[c.BREAKER_EDGE] for d in halted] == ["analyst_a->reviewer"]
    assert len(adaptive.of("probe")) < len(fixed.of("probe"))
    screened = {s[c.NODE_ID] for s in adaptive.of("probe_set") if s[c.PROBE_CONTRAST] == "screen"}
    assert screened >= {"planner", "analyst_a", "analyst_b", "reviewer"}


def test_a_run_never_spends_more_than_its_budget() -> None:
    """Nodes beyond it are said to be unprobed, which is not clear."""
    spans = spans_of(budget=40, mode="shadow")
    assert len(spans.of("probe")) <= 40
    refused = [s for s in spans.of("probe_set") if s[c.PROBE_OUTCOME] == "budget"]
    assert refused and all(c.EFFECT_VALUE not in s for s in refused)


def test_no_wealth_is_kept_for_supersteps_in_which_nothing_is_probed() -> None:
    """The monitor's first bet is its only one where one node is probed; nothing halts here."""
    spans = spans_of(nodes=["analyst_a"], mode="shadow", alpha=1e-9)
    (root,) = (run for run in spans.of("run") if c.GRAPH_DEPTH in run)
    assert (root[c.GRAPH_DEPTH], root[c.GRAPH_PROBED_DEPTH]) == (3, 1)
    (probed,) = spans.of("probe_set")
    e_value, share = probed[c.EFFECT_E_VALUE], probed[c.NODE_WEIGHT_SHARE]
    assert e_value > 100
    assert spans.of("network")[-1][c.MONITOR_VALUE] == pytest.approx(
        0.8 * e_value + 0.2 * (1 + share * (e_value - 1)), rel=1e-6
    )


def test_nodes_are_drawn_by_blast_radius_and_the_rate_is_recorded() -> None:
    """Every node keeps a chance, and the score is corrected for it."""
    decided: dict[str, set[str]] = {}
    rates: dict[str, float] = {}
    for _ in range(12):
        for node in spans_of(probed_nodes=2, minimum_rate=0.25, mode="shadow").of("node"):
            decided.setdefault(node[c.NODE_ID], set()).add(node[c.PROBE_DECISION])
            rates[node[c.NODE_ID]] = node[c.PROBE_SAMPLING_RATE]
    assert rates["planner"] > rates["analyst_a"] > rates["reviewer"] >= 0.25
    assert sum(rates.values()) == pytest.approx(2.0)
    assert {"probed", "sampled_out"} == set().union(*decided.values())


def test_concurrent_runs_decide_as_they_would_alone() -> None:
    """Eight threads share one gate; each run's decisions are those of the run by itself."""
    given: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], "mode": "repair"}
    alone = decisions(spans_of())
    spans = Spans()
    clean = "An applicant runs a shop."
    with instrumented(gate(spans, **given), **given):
        graph = Graph().compiled
        with ThreadPoolExecutor(8) as pool:
            texts = [TEXT if number % 2 else clean for number in range(32)]
            list(pool.map(lambda text: graph.invoke({"text": text}), texts))
    by_run: dict[str, list[dict[str, Any]]] = {}
    for decision in spans.of("network"):
        by_run.setdefault(decision[c.RUN_ID], []).append(decision)
    keys = (c.BREAKER_DECISION, c.BREAKER_REASON, c.BREAKER_EDGE, c.NETWORK_SCORE, c.MONITOR_VALUE)
    found = [
        [tuple(d.get(key) for key in keys) for d in sorted(run, key=lambda d: d[c.AUDIT_SEQ])]
        for run in by_run.values()
    ]
    assert len(found) == 32
    assert sum(run == alone for run in found) == 16
    assert all(run == alone or {d[0] for d in run} == {"proceed"} for run in found)


def state(run_id: str) -> RunState:
    dag = AgentDAG([("a", "b")])
    control = RunControl.begin(dag, {"a": 1.0, "b": 0.5}, ["gender"], BreakerOptions())
    return RunState(tracer=Telemetry([]).run(run_id), control=control)


def test_runs_that_never_end_do_not_pile_up() -> None:
    """The oldest is given up, and counted."""
    runs = Runs(most=3)
    shared = state("x")
    for number in range(1000):
        runs.open(f"r{number}", shared)
    assert (len(runs), runs.given_up) == (3, 997)
    assert runs.get("r999") is not None and runs.get("r0") is None


def test_a_run_that_is_too_old_is_given_up() -> None:
    """A day is the default."""
    clock = iter([0.0, 0.0, 100.0, 100.0, 100.0, 100.0, 100.0])
    runs = Runs(longest=50.0, clock=lambda: next(clock))
    runs.open("old", state("old"))
    runs.open("new", state("new"))
    assert runs.get("old") is None and runs.get("new") is not None


def test_opening_runs_from_many_threads_keeps_the_bound() -> None:
    """No lock is missing."""
    runs, shared = Runs(most=50), state("x")

    def work(name: str) -> None:
        for number in range(500):
            runs.open(f"{name}{number}", shared)
            if number % 2:
                runs.close(f"{name}{number}")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(runs) <= 50
