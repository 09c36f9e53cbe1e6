"""A client without a model, for tests, examples and simulations: seeded and deterministic."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.clients.candidates import (
    OTHER,
    REFUSAL,
    CandidateScores,
    as_log_probs,
    check_candidates,
)
from twinspan.instrumentation.clients.checks import check_number
from twinspan.instrumentation.clients.scoring import scores_of_answers
from twinspan.instrumentation.clients.seeds import DrawCounter, counter_seed, digest_of
from twinspan.instrumentation.clients.values import (
    ChatRequest,
    Completion,
    Prompt,
    Sampling,
)
from twinspan.instrumentation.errors import ConfigurationError, NotServed

ScriptedReply = str | Completion | Mapping[str, float]
"""An answer; or a logit for each answer that may be drawn."""

Script = Callable[[ChatRequest, np.random.Generator], ScriptedReply]
"""What a scripted client says: a function of the request and of a generator of its own."""


class ScriptedClient:
    """Answers by a function instead of a model.

    The function returns an answer, or logits: a mapping from answers to log-weights, from
    which one is drawn at the request's temperature (0 takes the greatest). Draw k of a prompt
    has a generator that depends on the seed, the prompt and k alone, so that however calls
    run in parallel, a prompt's answers are the same multiset. A request with a seed of its own
    is answered alike every time, as by a server that honours seeds.

    It is a `ChatClient` and a `CandidateScorer`, and an `Embedder` if given a function for it.

    Args:
        script: what it says; whatever it raises, a call raises.
        seed: root of all draws.
        temperature: of requests that ask for none, >= 0.
        model: the name it goes by.
        embedding: a text's vector; without it `embed` raises `NotServed`.
        samples: answers drawn to score candidates if the function gives no logits.

    >>> def lenient(request, rng):
    ...     return {"admit": math.log(3), "discharge": 0.0}
    >>> client = ScriptedClient(lenient)
    >>> scores = asyncio.run(client.score("A patient of 60.", ("admit", "discharge")))
    >>> scores.distribution().tolist()
    [0.75, 0.25, 0.0, 0.0]
    """

    def __init__(
        self,
        script: Script,
        *,
        seed: int = 0,
        temperature: float = 1.0,
        model: str = "scripted",
        embedding: Callable[[str], Sequence[float]] | None = None,
        samples: int = 8,
    ) -> None:
        check_number("samples", samples, valid=lambda x: x >= 1, range_="1 or more")
        self._script = script
        self._seed = seed
        self._defaults = Sampling(model=model, temperature=temperature)
        self._embedding = embedding
        self._samples = samples
        self._draws = DrawCounter()
        self._lock = threading.Lock()
        self._calls = 0

    @property
    def calls(self) -> int:
        """Answers that were drawn so far."""
        return self._calls

    @property
    def model(self) -> str | None:
        """The name it goes by."""
        return self._defaults.model

    async def complete(self, request: ChatRequest, /) -> Completion:
        """One answer of the script."""
        request = replace(request, sampling=request.sampling.over(self._defaults))
        with self._lock:
            self._calls += 1
        # Lets other calls in between, as any call over a network would.
        await asyncio.sleep(0)
        rng = self._generator(request)
        reply = self._script(request, rng)
        if isinstance(reply, Completion):
            return replace(reply, sampling=request.sampling)
        if not isinstance(reply, str):
            reply = _draw(reply, request.sampling.temperature or 0.0, rng)
        return Completion(
            text=reply,
            finish_reason="stop",
            model=request.sampling.model,
            sampling=request.sampling,
        )

    async def score(
        self, prompt: Prompt, candidates: Sequence[str], /, *, seed: int | None = None
    ) -> CandidateScores:
        """Exact log-probabilities where the script gives logits, else counts of its answers."""
        names = check_candidates(candidates)
        request = ChatRequest.of(prompt, self._defaults)
        # Not a draw: a number would shift the draws that follow.
        reply = self._script(request, np.random.default_rng(counter_seed(self._seed, "score")))
        if isinstance(reply, Mapping):
            return _exact(reply, names, request.sampling)
        seeds = (None if seed is None else counter_seed(seed, k) for k in range(self._samples))
        answers = [
            await self.complete(ChatRequest.of(prompt, Sampling(seed=each))) for each in seeds
        ]
        return scores_of_answers(answers, names)

    async def embed(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """One row per text, shape (texts, dimensions)."""
        if self._embedding is None:
            raise NotServed("embeddings", cure="give the scripted client embedding=...")
        return np.array([self._embedding(text) for text in texts], dtype=np.float64)

    def _generator(self, request: ChatRequest) -> np.random.Generator:
        digest = digest_of(request)
        number = 0 if request.sampling.seed is not None else self._draws.next(digest)
        return np.random.default_rng(counter_seed(self._seed, digest, number))


def _probabilities(logits: Mapping[str, float], temperature: float) -> dict[str, float]:
    if not logits or not all(math.isfinite(value) for value in logits.values()):
        raise ConfigurationError("a script's logits must be finite and at least one")
    greatest = max(logits.values())
    if temperature == 0:
        ties = [name for name, value in logits.items() if value == greatest]
        return {name: 1.0 if name == ties[0] else 0.0 for name in logits}
    weights = {name: math.exp((each - greatest) / temperature) for name, each in logits.items()}
    total = math.fsum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _draw(logits: Mapping[str, float], temperature: float, rng: np.random.Generator) -> str:
    shares = _probabilities(logits, temperature)
    return list(shares)[rng.choice(len(shares), p=list(shares.values()))]


def _exact(
    logits: Mapping[str, float], names: tuple[str, ...], sampling: Sampling
) -> CandidateScores:
    masses = dict.fromkeys((*names, OTHER, REFUSAL), 0.0)
    for name, share in _probabilities(logits, sampling.temperature or 0.0).items():
        masses[name if name in masses else OTHER] += share
    return CandidateScores(
        candidates=names,
        log_probs=as_log_probs(masses),
        method="exact",
        model=sampling.model,
        sampling=sampling,
    )
