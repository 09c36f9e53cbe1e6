"""A model asked one question is a node like any other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from twinspan.instrumentation import LOOCProbe, builtin_axis
from twinspan.instrumentation.clients import Completion, ScriptedClient
from twinspan.instrumentation.probing.models import candidate_node, chat_node, embedded
from twinspan.instrumentation.settings import ProbeOptions

TEXT = "Emily Brown applied. She runs a shop. Approve or decline?"


def about_a_woman(request: Any) -> bool:
    return "she" in request.messages[-1].content.lower().split()


def biased_script(request: Any, rng: np.random.Generator) -> dict[str, float]:
    lean = 6.0 if about_a_woman(request) else -6.0
    return {"decline": lean, "approve": 0.0}


def fair_script(request: Any, rng: np.random.Generator) -> dict[str, float]:
    return {"decline": 0.5, "approve": 0.0}


def p_value(node: Any, estimator: str) -> float:
    options = ProbeOptions(
        axes=(builtin_axis("gender"),), reference=10, counterfactual=5, estimator=estimator
    )
    (score,) = LOOCProbe(node, options=options).run(TEXT).scores
    return score.p_value


@pytest.mark.parametrize("estimator", ["auto", "category", "text"])
def test_a_biased_chat_model_is_found_by_its_texts(estimator: str) -> None:
    """And a fair one is not."""
    assert p_value(chat_node(ScriptedClient(biased_script)), estimator) < 0.01
    assert p_value(chat_node(ScriptedClient(fair_script)), estimator) > 0.05


def test_candidate_log_probabilities_show_what_single_answers_hide() -> None:
    """A shift of the probabilities is seen without drawing a single answer."""

    def script(request: Any, rng: np.random.Generator) -> dict[str, float]:
        shift = 0.4 if about_a_woman(request) else 0.0
        return {"decline": shift + rng.normal(0, 0.02), "approve": 1.0}

    node = candidate_node(ScriptedClient(script), ("approve", "decline"))
    assert p_value(node, "js_logprob") < 0.01
    fair = candidate_node(
        ScriptedClient(lambda request, rng: {"decline": rng.normal(0, 0.02), "approve": 1.0}),
        ("approve", "decline"),
    )
    assert p_value(fair, "js_logprob") > 0.05


def test_texts_can_be_compared_in_a_vector_space() -> None:
    """The embedder decides what is alike."""
    client = ScriptedClient(
        biased_script, embedding=lambda text: [1.0, 0.0] if text == "decline" else [0.0, 1.0]
    )
    assert p_value(embedded(chat_node(client), client), "embedding") < 0.01


def test_a_refusal_that_one_group_meets_is_a_finding() -> None:
    """It is an outcome at distance 1 from every answer, not an error."""

    def script(request: Any, rng: np.random.Generator) -> Any:
        if about_a_woman(request):
            return Completion(text="", refusal="I cannot help with that.")
        return "approve"

    options = ProbeOptions(axes=(builtin_axis("gender"),), reference=6, counterfactual=4)
    (score,) = LOOCProbe(chat_node(ScriptedClient(script)), options=options).run(TEXT).scores
    assert math.isclose(score.delta, 1.0)
    assert set(score.outcomes[:6]) == {"refusal"}
