"""The whole loop on real graphs: frozen, proposed, measured afresh, handed on or escalated."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from biased_graph import GENDER, TEXT, Graph, gate
from repair_world import SPECIALISTS, WOMAN, LoanReview, mend
from reviewers import rewriter, skeptic
from sample_agents import Spans, instrumented

from twinspan.collector.intervention.case import Case
from twinspan.collector.intervention.madera import Edited, MaderaEditor
from twinspan.collector.intervention.measured import Measured, Score
from twinspan.collector.intervention.verifier import FactualCheck
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import BiasHalt, ConfigurationError

Answer = dict[str, str]


def approve(answer: Answer) -> Answer:
    """What the facts say of everybody."""
    return {"a": "approve"}


def soften(answer: Answer) -> Answer:
    """A revision that changes the words and keeps the difference."""
    return {"a": "refer"} if answer["a"] == "decline" else answer


def nothing(answer: Answer) -> Answer:
    return answer


PANEL = [skeptic("alpha", approve), skeptic("beta", approve)]


def run(*, way: str = "invoke", folder: Any = None, **options: Any) -> tuple[Graph, Spans]:
    """One run of the biased graph under a repair; raises what the run raises."""
    graph, spans = Graph(), Spans()
    settings: dict[str, Any] = {
        "axes": [GENDER],
        "nodes": ["*"],
        "mode": "repair",
        "repair_samples": 16,
        **options,
    }
    with instrumented(gate(spans, folder, **settings), **settings):
        if way == "invoke":
            graph.compiled.invoke({"text": TEXT})
        else:
            asyncio.run(graph.compiled.ainvoke({"text": TEXT}))
    return graph, spans


def escalated(**options: Any) -> tuple[BiasHalt, Spans]:
    """The halt of a run that no repair saved."""
    graph, spans = Graph(), Spans()
    settings: dict[str, Any] = {
        "axes": [GENDER],
        "nodes": ["*"],
        "mode": "repair",
        "repair_samples": 16,
        **options,
    }
    with instrumented(gate(spans, **settings), **settings):
        with pytest.raises(BiasHalt) as halted:
            graph.compiled.invoke({"text": TEXT})
    assert graph.seen == []
    assert spans.of("network")[-1][c.BREAKER_STATE_TO] == "escalated"
    return halted.value, spans


# --- repairs that hold --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "strategy"),
    [
        ({"repair": "skeptics", "skeptics": PANEL}, "skeptics"),
        ({"repair": "madera", "editor": rewriter(approve)}, "madera"),
        ({"repair": "auto", "skeptics": PANEL, "editor": rewriter(approve)}, "madera"),
        ({"repair": "auto", "breadth": 0.2, "skeptics": PANEL}, "skeptics"),
        ({"repair": "auto"}, "blind_rerun"),
    ],
    ids=["skeptics", "madera", "routed to madera", "routed to skeptics", "nothing set up"],
)
def test_a_halted_run_completes_and_the_reader_sees_only_the_repaired_payload(
    options: dict[str, Any], strategy: str
) -> None:
    """Measured afresh before it is handed on."""
    graph, spans = run(**options)
    assert set(graph.seen) == {"approve"}
    (repair,) = spans.of("intervention")
    assert (repair[c.INTERVENTION_STRATEGY], repair[c.INTERVENTION_OUTCOME]) == (
        strategy,
        "cleared",
    )
    assert (repair[c.INTERVENTION_SCORE_BEFORE], repair[c.INTERVENTION_SCORE_AFTER]) == (1.0, 0.0)
    assert 0 < repair[c.INTERVENTION_UPPER_AFTER] < 0.2
    assert repair[c.ROUTE_BIASED] == 1 and repair[c.ROUTE_NODES] == 4


def test_the_loop_runs_on_an_event_loop_too() -> None:
    """As in `invoke`."""
    graph, _ = run(way="ainvoke", repair="skeptics", skeptics=PANEL)
    assert set(graph.seen) == {"approve"}


def test_a_dissenter_wins_by_measurement_against_the_vote() -> None:
    """Two let the answer stand; the one who revises it is measured, and right."""
    panel = [skeptic("alpha"), skeptic("beta", approve), skeptic("gamma")]
    graph, spans = run(repair="skeptics", skeptics=panel)
    (repair,) = spans.of("intervention")
    assert repair[c.PANEL_DECISION] == "stands"
    assert repair[c.INTERVENTION_OUTCOME] == "cleared" and set(graph.seen) == {"approve"}


def test_of_several_revisions_the_one_that_measures_best_is_handed_on() -> None:
    """Not the heaviest: one keeps the difference in other words and has the majority."""
    panel = [skeptic("alpha", soften), skeptic("beta", soften), skeptic("gamma", approve)]
    graph, spans = run(repair="skeptics", skeptics=panel)
    deltas = {a[c.INTERVENTION_CANDIDATE]: a[c.ATTEMPT_DELTA] for a in spans.of("attempt")}
    (repair,) = spans.of("intervention")
    assert sorted(deltas.values()) == [0.0, 1.0, 1.0]
    assert deltas[repair[c.INTERVENTION_CANDIDATE]] == 0.0
    assert set(graph.seen) == {"approve"}


def test_what_chose_a_candidate_is_not_what_judges_it() -> None:
    """The deciding measurement has samples of its own, and the decision names only those."""
    panel = [skeptic("alpha", soften), skeptic("beta", approve)]
    _, spans = run(repair="skeptics", skeptics=panel)
    recheck = next(d for d in spans.of("network") if d.get(c.INTERVENTION_ID))
    again = {p[c.PROBE_SET_ID]: p for p in spans.of("probe_set") if p.get(c.INTERVENTION_ID)}
    named = [again[each] for each in recheck[c.NETWORK_PROBE_SETS] if each in again]
    assert [c.INTERVENTION_CANDIDATE in each for each in named] == [False]
    assert len(again) == 4
    seeds = [p[c.PROBE_SEED] for p in spans.of("probe") if p[c.PROBE_SET_ID] in again]
    assert len(set(seeds)) == len(seeds)


def test_a_second_strategy_is_tried_where_the_first_one_fails() -> None:
    """In `auto`: the editor changes nothing, the panel does."""
    graph, spans = run(repair="auto", editor=rewriter(nothing), skeptics=PANEL)
    told = [
        (r[c.INTERVENTION_STRATEGY], r[c.INTERVENTION_OUTCOME]) for r in spans.of("intervention")
    ]
    assert told == [("madera", "failed"), ("skeptics", "cleared")]
    assert set(graph.seen) == {"approve"}


def test_of_several_repairs_only_those_that_did_not_hold_are_tried_again() -> None:
    """What one specialist's repair has been shown to do is not thrown away with another's."""
    world = LoanReview(biased=("credit", "income"), noise=0.0, bias=1.0)
    spans, tries = Spans(), Counter[str]()

    def second_time(answer: Any) -> Any:
        (node,) = answer
        return mend(answer) if node == "credit" or tries["income"] > 1 else answer

    class Twice(MaderaEditor):
        """Mends `income` in its second try only."""

        async def edit(self, case: Case, score: Score, before: Measured | None = None) -> Edited:
            tries[case.node] += 1
            return await super().edit(case, score, before)

    editor = Twice.of(rewriter(second_time))
    settings: dict[str, Any] = {
        "axes": [GENDER],
        "nodes": [*SPECIALISTS],
        "mode": "repair",
        "repair": "madera",
        "editor": editor,
    }
    with instrumented(gate(spans, **settings), **settings):
        world.compiled().invoke({"text": WOMAN})
    told = [(r[c.NODE_ID], r[c.INTERVENTION_OUTCOME]) for r in spans.of("intervention")]
    assert sorted(told) == [("credit", "cleared"), ("income", "cleared"), ("income", "failed")]
    assert tries == {"credit": 1, "income": 2}


# --- repairs that do not hold -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"repair": "skeptics", "skeptics": [skeptic("alpha"), skeptic("beta")]}, "panel_stands"),
        ({"repair": "madera", "editor": rewriter(nothing)}, "nothing_changed"),
        ({"repair": "madera", "editor": rewriter(soften)}, "no_better_attempt"),
    ],
    ids=["agreeing panel", "idle editor", "cosmetic editor"],
)
def test_a_repair_that_does_nothing_escalates(options: dict[str, Any], reason: str) -> None:
    """With the payload frozen, every try told, and all that a person needs on the error."""
    halt, spans = escalated(**options)
    assert [each["reason"] for each in halt.tried] == [reason] * 3
    assert halt.frozen_payload == {"analyst_a": {"a": "decline"}}
    *tries, person = spans.of("intervention")
    assert {each[c.INTERVENTION_REASON] for each in tries} == {reason}
    assert person[c.INTERVENTION_STRATEGY] == "human"


def test_a_revision_that_is_no_better_is_measured_and_not_handed_on() -> None:
    """Other words, same difference: the fresh measurement says so."""
    panel = [skeptic("alpha"), skeptic("beta", soften)]
    halt, _ = escalated(repair="skeptics", skeptics=panel)
    first = halt.tried[0]
    assert (first["outcome"], first["reason"]) == ("unchanged", "not_below_bound")
    assert (first["delta_before"], first["delta_after"]) == (1.0, 1.0)
    assert first["payload"] == {"a": "refer"}


class Hanging:
    """A diagnoser and rewriter that never comes back."""

    async def diagnose(self, *asked: object) -> str:
        await asyncio.sleep(3600)
        return ""

    rewrite = diagnose


class Failing(Hanging):
    """One that raises."""

    async def diagnose(self, *asked: object) -> str:
        raise ConnectionError("secret words of a prompt")


@pytest.mark.parametrize(
    ("hook", "reason"), [(Hanging, "timeout"), (Failing, "error:ConnectionError")]
)
def test_a_hook_that_hangs_or_raises_leaves_a_defined_state(
    hook: type[Hanging], reason: str
) -> None:
    """Escalated, with each try's reason; and no word of the error on a span."""
    editor = MaderaEditor(hook(), hook())
    halt, spans = escalated(repair="madera", editor=editor, repair_timeout=0.2)
    assert [each["reason"] for each in halt.tried] == [reason] * 3
    assert "secret" not in "".join(span.to_json() for span in spans.ended)


# --- facts --------------------------------------------------------------------------------------


class Rules:
    """A verifier that knows which answers there are."""

    def __init__(self, *refuted: str) -> None:
        self.refuted = refuted

    async def verify(self, case: Case, answer: Any, /) -> FactualCheck:
        if answer["a"] in self.refuted:
            return FactualCheck(verdict="refuted", reason="against_rule_4")
        return FactualCheck(verdict="verified")


def test_a_refuted_payload_is_not_handed_on_and_facts_are_the_reason() -> None:
    """Kept apart from bias: the measurement was never asked."""
    halt, spans = escalated(repair="skeptics", skeptics=PANEL, verifier=Rules("approve"))
    assert {each["reason"] for each in halt.tried} == {"refuted"}
    first = spans.of("intervention")[0]
    assert (first[c.VERIFIER_VERDICT], first[c.VERIFIER_REASON]) == ("refuted", "against_rule_4")
    assert c.INTERVENTION_SCORE_AFTER not in first


def test_what_is_verified_passes_by_measurement_alone() -> None:
    """Being right on facts is no proof of being unbiased."""
    panel = [skeptic("alpha"), skeptic("beta", soften)]
    halt, _ = escalated(repair="skeptics", skeptics=panel, verifier=Rules())
    assert halt.tried[0]["reason"] == "not_below_bound"


# --- what is told -------------------------------------------------------------------------------


def test_every_review_is_a_span_below_its_intervention_without_words() -> None:
    """Stance, confidence, how it was read, what it weighs; reasons stay in the process."""
    said = {"reason": "nobody else would be declined", "confidence": 0.9}
    panel = [skeptic("alpha", approve, **said), skeptic("beta", approve, **said)]
    _, spans = run(repair="skeptics", skeptics=panel)
    reviews = spans.of("review")
    assert {r[c.INTERVENTION_ROLE] for r in reviews} == {
        "empirical_auditor",
        "devils_advocate",
        "diversity_champion",
    }
    assert {(r[c.REVIEW_STANCE], r[c.REVIEW_CONFIDENCE], r[c.REVIEW_WEIGHT]) for r in reviews} == {
        ("revise", 0.9, 1.0)
    }
    text = "".join(span.to_json() for span in spans.ended)
    assert "nobody else" not in text and "approve" not in text


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"repair": "skeptics"}, "needs models"),
        ({"repair": "madera"}, "needs a model"),
        ({"repair": "skeptics", "skeptics": [skeptic("alpha")]}, "point of view"),
        ({"repair": "skeptics", "skeptics": [1, 2]}, "no chat client"),
        ({"repair": "oracle"}, "use one of blind, skeptics, madera, auto"),
        ({"verifier": object()}, "no verifier"),
        ({"equivalence": 0}, "above 0"),
    ],
)
def test_a_repair_that_cannot_be_set_up_is_refused_with_the_cure(
    options: dict[str, Any], told: str
) -> None:
    """Before any run begins."""
    with pytest.raises(ConfigurationError, match=told):
        gate(mode="repair", **options)


def test_models_are_named_in_a_file_as_model_and_server(tmp_path: Any) -> None:
    """So that a repair is switched on without a line of code."""
    from twinspan.collector import attach
    from twinspan.instrumentation.settings import Settings

    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "lending.md").write_text("Accounts decide.\n\nNobody's name does.\n")
    config = tmp_path / "twinspan.toml"
    config.write_text(
        "[breaker]\nmode = 'repair'\n[repair]\nrepair = 'auto'\n"
        "skeptics = ['llama-3@http://localhost:1/v1', 'qwen-3@http://localhost:2/v1']\n"
        f"editor = 'llama-3@http://localhost:1/v1'\ndocuments = '{rules}'\n"
    )
    collector = attach(Settings.resolve(config=config, environ={}))
    assert collector.settings.repair.repair == "auto"
