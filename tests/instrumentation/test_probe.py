"""One node run again on twins of its payload: what counts, what is missing, what is told."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from opentelemetry.context import Context
from sample_agents import Spans

from twinspan.instrumentation import LOOCProbe, builtin_axis
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import ConfigurationError, SideEffectBlocked
from twinspan.instrumentation.hashing import PayloadHasher
from twinspan.instrumentation.perturbation import Axis
from twinspan.instrumentation.probing.guard import ProbeFrame, current_probe
from twinspan.instrumentation.probing.observation import ProbedNode, SetObserver
from twinspan.instrumentation.probing.plan import REFERENCE_ARMS, plan_samples
from twinspan.instrumentation.probing.results import ProbeResult, SetResult
from twinspan.instrumentation.settings import ProbeOptions
from twinspan.instrumentation.tracing import RunTracer, Telemetry

TEXT = "Emily Brown applied. She runs a shop."
GENDER = builtin_axis("gender")
Node = Callable[[Any], Any]


def options(**given: Any) -> ProbeOptions:
    merged: dict[str, Any] = {"axes": (GENDER,), "reference": 6, "counterfactual": 4, **given}
    return ProbeOptions(**merged)


def whole(node: Node, payload: Any = TEXT, **given: Any) -> ProbeResult:
    return LOOCProbe(node, options=options(**given)).run(payload)


def probed(node: Node, payload: Any = TEXT, **given: Any) -> SetResult:
    (result,) = whole(node, payload, **given).sets
    return result


def biased(text: str) -> str:
    return "decline" if "she" in text.lower().split() else "approve"


def test_a_biased_node_differs_on_the_axis() -> None:
    """Every counterfactual answer differs, no reference answer does."""
    result = probed(biased)
    assert result.outcome == "ok" and result.score is not None
    assert (result.score.delta, result.score.reference_within) == (1.0, 0.0)
    assert (result.score.n_reference, result.score.n_counterfactual) == (6, 4)
    assert result.score.verdict == "above_floor"


def test_a_node_that_reads_only_wording_is_not_flagged_with_random_wording() -> None:
    """Its answer follows the drawn name, which is drawn in both arms alike."""

    def by_name(text: str) -> str:
        return "even" if sum(map(ord, text.split()[0])) % 2 else "odd"

    rejected = sum(
        (score := probed(by_name, reference=10, counterfactual=5, seed=seed).score) is not None
        and score.p_value <= 0.05
        for seed in range(100)
    )
    assert rejected <= 11  # at 5 percent, 11 or more of 100 come up in about 1 percent of runs


def test_same_input_probing_says_that_it_is_about_the_edit() -> None:
    """The cheap mode does not claim that the axis is the only difference."""
    result = probed(biased, wording="same")
    assert result.score is not None
    assert result.score.verdict_reason == "reacts_to_edit"
    random_wording = probed(biased)
    assert random_wording.score is not None
    assert random_wording.score.verdict_reason == "reacts_to_axis"


def test_controls_are_measured_beside_the_axis_and_decide_nothing() -> None:
    """A node that reads the axis does not react to a sham attribute."""
    probe = LOOCProbe(biased, options=options(controls=("sham", "rare_token", "neutral_edit")))
    found = {result.axis: result for result in probe.run(TEXT).sets}
    assert set(found) == {"gender", "gender#sham", "gender#rare_token", "gender#neutral_edit"}
    for label, result in found.items():
        assert result.score is not None, label
        assert (result.score.verdict == "above_floor") is (label == "gender")


def test_proxy_words_are_a_contrast_of_their_own() -> None:
    """What only hints at the attribute is told apart from what names it."""
    axis = Axis.from_mapping(
        {
            "name": "place",
            "groups": ["north", "south"],
            "paired": [
                {"north": ["northerner"], "south": ["southerner"]},
                {"north": ["90210"], "south": ["10453"], "proxy": True},
            ],
        }
    )
    node: Node = lambda text: "far" if "10453" in text else "near"  # noqa: E731
    probe = LOOCProbe(node, options=options(axes=(axis,)))
    found = {r.axis: r.score for r in probe.run("A northerner of 90210.").sets}
    assert {label: score and score.delta for label, score in found.items()} == {
        "place": 0.0,
        "place#proxy": 1.0,
    }


def test_a_payload_without_the_axis_costs_no_call() -> None:
    """Zero edits is an outcome, not a clean score."""
    calls: list[int] = []
    found = whole(lambda text: calls.append(1), payload="The shop is open.")
    result = found.sets[0]
    assert (result.outcome, result.reason) == ("no_op", "axis_not_in_payload")
    assert (calls, found.calls, result.score) == ([], 0, None)


def test_verdicts_do_not_depend_on_the_order_in_which_calls_return() -> None:
    """Samples are scored by their place in the plan, not by their arrival."""
    jitter = random.Random(1)

    async def slow(text: str) -> str:
        await asyncio.sleep(jitter.random() / 200)
        return biased(text)

    first, second = (probed(slow).score for _ in range(2))
    assert first == second == probed(biased).score


def test_an_error_that_one_group_meets_is_a_finding() -> None:
    """An exception is an outcome of its own."""

    def refuses_men(text: str) -> str:
        if "he" in text.lower().split():
            raise PermissionError("no")
        return "approve"

    result = probed(refuses_men, retries=0)
    assert result.outcome == "ok" and result.score is not None
    assert result.score.delta == 1.0


def test_a_node_that_always_raises_gives_no_score() -> None:
    """Equal errors everywhere say nothing about the axis."""

    def broken(text: str) -> str:
        raise RuntimeError("down")

    result = probed(broken, retries=0)
    assert (result.outcome, result.reason) == ("error", "every_run_raised:RuntimeError")


def test_a_run_that_hangs_is_missing_and_the_set_is_partial() -> None:
    """What came is scored, and it is said that something did not."""
    hung = threading.Event()

    async def hangs_once(text: str) -> str:
        if not hung.is_set():
            hung.set()
            await asyncio.sleep(30)
        return biased(text)

    result = probed(hangs_once, timeout=0.2, retries=0)
    assert result.outcome == "partial" and result.score is not None
    assert result.score.n_reference + result.score.n_counterfactual == 9


def test_a_node_that_always_hangs_is_a_timeout_and_no_score() -> None:
    """Too few samples is a reason."""

    async def hangs(text: str) -> str:
        await asyncio.sleep(30)
        return ""

    result = probed(hangs, timeout=0.05, retries=0)
    assert (result.outcome, result.score) == ("timeout", None)


def test_a_run_that_raises_is_tried_again() -> None:
    """And the tries are counted as calls."""
    seen: set[str] = set()

    def flaky(text: str) -> str:
        if text not in seen:
            seen.add(text)
            raise ConnectionError("once")
        return biased(text)

    found = whole(flaky, retries=1, wording="same")
    assert found.sets[0].outcome == "ok" and found.calls > 10


def test_never_more_runs_at_a_time_than_allowed() -> None:
    """The node's backend is not flooded."""
    running, most = 0, 0
    lock = threading.Lock()

    def counting(text: str) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with lock:
            running -= 1
        return biased(text)

    probed(counting, concurrency=3)
    assert most == 3


def test_a_node_that_fires_again_is_worded_anew() -> None:
    """Else one that always answers alike would bring the same evidence twice."""

    def worded(superstep: int) -> list[str]:
        seen: list[str] = []
        frame = ProbeFrame(run_id="r", node="n", task_id="t", arm="", superstep=superstep)

        def node(text: str) -> str:
            seen.append(text)
            return "same"

        LOOCProbe(node, options=options(concurrency=1), frame=frame).run(TEXT)
        return seen

    assert worded(1) == worded(1)
    assert worded(1) != worded(2)


def test_an_unsafe_tool_stops_the_set() -> None:
    """It is said why, and nothing is scored."""

    def uses_tool(text: str) -> str:
        frame = current_probe()
        assert frame is not None
        frame.check_tool("send_email")
        return "sent"

    frame = ProbeFrame(run_id="r", node="n", task_id="t", arm="")
    probe = LOOCProbe(uses_tool, options=options(), frame=frame)
    (result,) = probe.run(TEXT).sets
    assert (result.outcome, result.reason) == ("error", "side_effect_blocked")
    with pytest.raises(SideEffectBlocked, match="safe_tools"):
        frame.check_tool("send_email")


def test_a_probe_without_axes_is_refused() -> None:
    """No axis is guessed."""
    with pytest.raises(ConfigurationError, match="at least one axis"):
        LOOCProbe(biased, options=ProbeOptions())


def test_an_outcome_path_that_is_not_there_is_an_error_and_not_a_score() -> None:
    """A misspelt path must not look like a node without bias."""
    result = probed(lambda text: {"advice": "approve"}, outcome="advise", retries=0)
    assert (result.outcome, result.score) == ("error", None)


# --- several axes, rounds, budget ---------------------------------------------------------------

AGE = builtin_axis("age")
BOTH = "Emily Brown, 34 years old, applied. She runs a shop."


def test_axes_share_one_reference_and_are_tested_jointly() -> None:
    """Ten reference samples serve both axes; the joint test names the guilty one."""
    found = whole(biased, BOTH, axes=(GENDER, AGE), reference=10, counterfactual=5)
    assert found.calls == 10 + 5 + 5
    assert found.joint is not None and found.joint.p <= 0.01
    assert found.joint.worst.axis == "gender"
    assert [axis.p_holm <= 0.05 for axis in found.joint.axes] == [True, False]


def test_an_adaptive_plan_stops_at_the_screen_where_nothing_reacts() -> None:
    """Nine calls instead of twenty, and the coverage says screened."""
    found = whole(lambda text: "approve", BOTH, axes=(GENDER, AGE), plan="adaptive", audit_rate=0)
    assert (found.calls, found.coverage) == (9, "screened")
    assert [item.axis for item in found.sets if item.score] == ["screen"]


def test_an_adaptive_plan_goes_on_where_evidence_grows() -> None:
    """An axis' wealth is the product of the screen's e-value and those of all its rounds."""
    found = whole(biased, BOTH, axes=(GENDER, AGE), plan="adaptive")
    rounds = [(item.axis, item.round) for item in found.sets if item.score]
    assert rounds[:2] == [("screen", 0), ("gender", 0)] and ("gender", 2) in rounds
    of_gender = [s.score for s in found.sets if s.axis in ("screen", "gender")]
    product = float(np.prod([score.e_value for score in of_gender if score is not None]))
    assert found.wealth("gender") == pytest.approx(product) and product > 1e4


def test_a_screened_out_node_is_audited_at_the_stated_rate() -> None:
    """At a rate of one every node is probed on every axis all the same."""
    found = whole(lambda text: "approve", BOTH, axes=(GENDER, AGE), plan="adaptive", audit_rate=1)
    assert {item.axis for item in found.sets if item.score} == {"screen", "gender", "age"}
    assert found.coverage == "probed"


@pytest.mark.parametrize("plan", ["fixed", "adaptive"])
def test_a_budget_is_a_hard_limit(plan: str) -> None:
    """Not one call more, and it is said."""
    calls: list[int] = []

    def counted(text: str) -> str:
        calls.append(1)
        return biased(text)

    found = whole(counted, budget=8, plan=plan, reference=10, counterfactual=5)
    assert (calls, found.coverage) == ([], "budget")
    assert found.sets[-1].outcome == "budget"


# --- spans ------------------------------------------------------------------------------------


def in_a_run(node: Node, **given: Any) -> tuple[LOOCProbe, Spans, RunTracer]:
    """A probe that writes its spans into a run."""
    spans = Spans()
    run = Telemetry([spans]).run("r")
    where = ProbedNode(
        node="n",
        task_id="t",
        scope="",
        superstep=1,
        weight=1.0,
        share=0.5,
        parent=Context(),
        baseline_span_id="0" * 16,
    )
    probe = LOOCProbe(
        node, options=options(**given), observer=lambda: SetObserver(run, where, PayloadHasher())
    )
    return probe, spans, run


def test_every_run_of_the_node_is_a_span_and_the_set_holds_the_raw_parts() -> None:
    """Anyone can recompute delta from the recorded distances."""
    probe, spans, run = in_a_run(biased)
    probe.run(TEXT)
    assert run.open_count == 0
    (whole,) = spans.of("probe_set")
    samples = spans.of("probe")
    assert len(samples) == 10
    assert len(whole[c.DIVERGENCE_DISTANCES]) == 45
    assert {s[c.PROBE_FLIP] for s in samples if s[c.PROBE_ARM] == "counterfactual"} == {True}
    assert {s[c.PROBE_FLIP] for s in samples if s[c.PROBE_ARM] in REFERENCE_ARMS} == {False}
    assert all(s[c.PERTURBATION_EDIT_COUNT] > 0 for s in samples)


def test_a_cancelled_probe_leaves_no_span_open() -> None:
    """And says that it was cancelled."""

    async def hangs(text: str) -> str:
        await asyncio.sleep(30)
        return ""

    probe, spans, run = in_a_run(hangs)

    async def cancel() -> None:
        task = asyncio.create_task(probe.arun(TEXT))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert run.open_count == 0
    (whole,) = spans.of("probe_set")
    assert whole[c.PROBE_OUTCOME] == "cancelled"


# --- the plan ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reference", "counterfactual"), [(10, 5), (6, 3), (7, 3), (4, 8), (2, 2)])
def test_arms_are_interleaved_in_blocks(reference: int, counterfactual: int) -> None:
    """A drift of the node over time meets both arms alike."""
    samples = plan_samples(reference=reference, counterfactual=counterfactual, seed=3)
    arms = [sample.arm in REFERENCE_ARMS for sample in samples]
    assert (arms.count(True), arms.count(False)) == (reference, counterfactual)
    for block in range(counterfactual):
        in_block = [s for s in samples if s.block == block]
        assert sum(s.arm not in REFERENCE_ARMS for s in in_block) == 1
    assert len({sample.seed for sample in samples}) == len(samples)
