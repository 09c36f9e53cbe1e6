"""A biased answer is stopped, reviewed or rewritten by other models, measured again, handed on.

Run it anywhere: the models are functions behind the same interface as real ones. With real ones,
write `skeptics=["llama-3@http://localhost:8000/v1", "qwen-3@http://localhost:8001/v1"]`, or the
same in `twinspan.toml`. The last run has reviewers who agree with everything: it is not let
through, and what a person needs to decide is on the error.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from twinspan.analysis import open_store
from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation.clients import ChatRequest, ScriptedClient
from twinspan.instrumentation.errors import BiasHalt

LETTER = "Emily Brown asks for a loan. She has traded for nine years and never missed a payment."


class State(TypedDict, total=False):
    """What the agents share."""

    letter: str
    advice: str
    decision: str


def advise(state: State) -> State:
    """An adviser who declines whoever the letter calls "she"."""
    words = state.get("letter", "").lower().split()
    return {"advice": "decline" if "she" in words else "approve"}


def decide(state: State) -> State:
    """Follows the advice."""
    return {"decision": state.get("advice", "")}


def loans() -> Any:
    """The graph: advise -> decide."""
    graph: Any = StateGraph(State)
    graph.add_node("advise", advise)
    graph.add_node("decide", decide)
    graph.add_edge(START, "advise")
    graph.add_edge("advise", "decide")
    graph.add_edge("decide", END)
    return graph.compile(name="loans")


# --- models that are none -------------------------------------------------------------------------


def reviewing(request: ChatRequest, rng: object) -> str:
    """A reviewer that reads the facts, and answers as chatty models do."""
    told = request.messages[-1].content
    if "traded for nine years" not in told or '"decline"' not in told:
        return "**Verdict:** stands"
    review = {
        "verdict": "revise",
        "confidence": 0.8,
        "evidence": ["has traded for nine years"],
        "reason": "nothing in the letter speaks against a loan",
        "revision": json.dumps({"advice": "approve"}),
    }
    return f"Here is my review:\n```json\n{json.dumps(review)}\n```"


def agreeing(request: ChatRequest, rng: object) -> str:
    """A reviewer that agrees with everything."""
    return "STANDS"


def rewriting(request: ChatRequest, rng: object) -> str:
    """An editor: a diagnosis first, then the answer that the quoted rule asks for."""
    told = request.messages[-1].content
    if "Diagnosis:" not in told:
        return "The advice does not follow from the record of payments."
    return '{"advice": "approve"}' if "payments decides" in told else '{"advice": "decline"}'


ALPHA, BETA = (ScriptedClient(reviewing, model=name) for name in ("alpha", "beta"))
AGREEING = ScriptedClient(agreeing, model="gamma")
EDITOR = ScriptedClient(rewriting, model="editor")


# --- runs -----------------------------------------------------------------------------------------


def run(name: str, **repair: Any) -> None:
    """One run under one repair, and what its record says."""
    instrumentor = TwinspanInstrumentor()
    instrumentor.instrument(
        axes=["gender"], nodes=["advise"], mode="repair", record=f"spans-{name}", **repair
    )
    try:
        print(f"{name}: {loans().invoke({'letter': LETTER})['decision']}")
    except BiasHalt as halt:
        print(f"{name}: not let through, {halt.reason}; a person decides about:")
        print("   ", halt.frozen_payload)
        for tried in halt.tried:
            print("   ", tried["strategy"], tried["outcome"], tried["reason"])
    finally:
        instrumentor.uninstrument()
    with open_store(f"spans-{name}") as store:
        told = store.table(
            "SELECT strategy, outcome, panel_decision, score_before, score_after, edge "
            "FROM interventions WHERE strategy <> 'human' ORDER BY round DESC LIMIT 1"
        )
        print("   ", *told.rows)
        stances = store.table("SELECT stance, checked FROM reviews ORDER BY audit_seq").rows
        if stances:
            print("    reviews:", *stances)


def main() -> None:
    """Each repair once."""
    rules = Path("rules")
    rules.mkdir(exist_ok=True)
    (rules / "lending.md").write_text("The record of payments decides about a loan.\n")
    run("skeptics", repair="skeptics", skeptics=[ALPHA, BETA])
    run("one-dissenter", repair="skeptics", skeptics=[AGREEING, ALPHA, AGREEING])
    run("rewritten", repair="madera", editor=EDITOR, documents=rules)
    run("routed", repair="auto", skeptics=[ALPHA, BETA], editor=EDITOR, documents=rules)
    run("agreeing", repair="skeptics", skeptics=[AGREEING, ScriptedClient(agreeing, model="delta")])


if __name__ == "__main__":
    main()
