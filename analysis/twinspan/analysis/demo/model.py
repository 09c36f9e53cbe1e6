"""A stand-in chat model: seeded, with a temperature, and biased where it is told to be.

It answers like a model that weighs facts: each role has a score for each of its options, noise of
the given temperature is added, the best option wins. The bias is a shift of one role's scores for
applicants whom the text calls by a woman's words. Nothing else in the demo knows of it.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import threading
from collections import Counter
from typing import Any, Final

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

Scores = dict[str, float]

_WOMAN: Final = re.compile(r"\b(she|her|hers|woman|mrs|ms)\b", re.IGNORECASE)

OPTIONS: Final[dict[str, dict[str, Scores]]] = {
    "planner": {
        "focus": {"income": 1.2, "debt": 0.8, "history": 0.2},
        "depth": {"standard": 1.5, "deep": 0.0},
    },
    "credit analyst": {
        "advice": {"approve": 2.2, "refer": 0.4, "decline": -0.8},
        "risk": {"low": 1.4, "medium": 0.8, "high": -0.6},
    },
    "affordability analyst": {
        "advice": {"approve": 1.2, "refer": 0.8, "decline": -0.4},
        "risk": {"low": 0.8, "medium": 1.0, "high": -0.2},
    },
    "reviewer": {
        "verdict": {"approve": 0.4, "refer": 0.0, "decline": -0.4},
    },
}
"""What each role may answer, by field, with the score of each option."""

BIAS: Final[dict[str, Scores]] = {
    "advice": {"approve": -2.6, "refer": 0.2, "decline": 2.4},
    "risk": {"low": -2.0, "medium": 0.0, "high": 2.2},
}
"""The shift for a woman, in a biased role."""

FOLLOW: Final = 1.6
"""How much a reviewer's score for a verdict grows with each analyst who advises it."""


class StandInChatModel(BaseChatModel):
    """Answers one of the demo's roles with a JSON object.

    Equal prompts are numbered as they come, and the number seeds the noise: however calls are
    scheduled, the answers to a prompt are the same ones.

    Attributes:
        seed: seed of all noise.
        temperature: scale of the noise; 0 answers the best option always.
        biased_role: the role that treats women worse; None for no bias.
    """

    seed: int = 0
    temperature: float = 0.5
    biased_role: str | None = None

    _asked: Counter[str] = PrivateAttr(default_factory=Counter[str])
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "twinspan-stand-in"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        role, text = str(messages[0].content), str(messages[-1].content)
        rng = self._noise(f"{role}\n{text}")
        answer = {
            field: self._choose(rng, self._scores(role, field, text)) for field in OPTIONS[role]
        }
        message = AIMessage(content=json.dumps(answer))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _noise(self, prompt: str) -> random.Random:
        with self._lock:
            number = self._asked[prompt]
            self._asked[prompt] += 1
        digest = hashlib.sha256(f"{self.seed}\x1f{number}\x1f{prompt}".encode()).digest()
        return random.Random(digest)

    def _scores(self, role: str, field: str, text: str) -> Scores:
        scores = dict(OPTIONS[role][field])
        if role == self.biased_role and _WOMAN.search(text):
            scores = {option: scores[option] + BIAS[field][option] for option in scores}
        if role == "reviewer":
            for option in scores:
                scores[option] += FOLLOW * text.count(f'"advice": "{option}"')
        return scores

    def _choose(self, rng: random.Random, scores: Scores) -> str:
        # The option with the largest score plus Gumbel noise is a draw from the softmax.
        def noisy(option: str) -> float:
            gumbel = -math.log(-math.log(rng.uniform(1e-12, 1 - 1e-12)))
            return scores[option] + self.temperature * gumbel

        return max(scores, key=noisy)
