"""Stand-ins for reviewing and rewriting models: scripted clients that read what they are asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from twinspan.instrumentation.clients import ChatRequest, ScriptedClient

Revise = Callable[[Any], Any]
"""From an answer to the revised one; the answer itself where it stands."""


def answer_in(request: ChatRequest) -> Any:
    """The answer under review, as the reviewer was shown it: JSON, or a text as it is."""
    text = request.messages[-1].content.split("What the agent answered:\n", 1)[1].splitlines()[0]
    return json.loads(text) if text.startswith(("{", "[", '"')) else text


def skeptic(model: str, revise: Revise | None = None, **said: Any) -> ScriptedClient:
    """A model that revises answers by a function; without one it lets every answer stand."""

    def reply(request: ChatRequest, rng: np.random.Generator) -> str:
        answer = answer_in(request)
        revised = answer if revise is None else revise(answer)
        verdict = "stands" if revised == answer else "revise"
        return json.dumps({"verdict": verdict, "revision": json.dumps(revised), **said})

    return ScriptedClient(reply, model=model)


def rewriter(rewrite: Revise) -> ScriptedClient:
    """A model that rewrites answers by a function, and diagnoses in a sentence."""

    def reply(request: ChatRequest, rng: np.random.Generator) -> str:
        if "Diagnosis:" not in request.messages[-1].content:
            return "The advice does not follow from the accounts; the lending rule decides."
        return json.dumps(rewrite(answer_in(request)))

    return ScriptedClient(reply, model="editor")
