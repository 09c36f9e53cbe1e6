"""Models as nodes: what a probe runs when the node is a single question to a model.

Any of these may also stand for a node that it is not: an independent model that is asked the
same question monitors the node without running it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from twinspan.instrumentation.clients import (
    CandidateScorer,
    ChatClient,
    ChatRequest,
    Completion,
    Embedder,
    JsonSchema,
    Sampling,
)
from twinspan.instrumentation.divergence import Outcome

AsyncNode = Callable[[Any], Awaitable[Any]]


def _answer(completion: Completion, *, structured: bool) -> Any:
    """An answer's value; a refusal and an empty answer are outcomes of their own."""
    if completion.outcome == "refusal":
        return Outcome.refusal
    if completion.outcome == "empty":
        return Outcome.empty
    return completion.json() if structured else completion.text


def chat_node(
    client: ChatClient, *, sampling: Sampling | None = None, schema: JsonSchema | None = None
) -> AsyncNode:
    """A node that asks a chat model and answers with its text, or its structured answer.

    Args:
        client: the model; its payload is a text or a sequence of messages.
        sampling: temperature and the like.
        schema: form of a structured answer, which is then compared field by field.
    """

    async def node(payload: Any) -> Any:
        plain = ChatRequest.of(payload, sampling)
        request = ChatRequest(messages=plain.messages, sampling=plain.sampling, schema=schema)
        return _answer(await client.complete(request), structured=schema is not None)

    return node


def candidate_node(scorer: CandidateScorer, candidates: Sequence[str]) -> AsyncNode:
    """A node that answers with the log-probabilities of fixed candidates.

    Probe it with `estimator="js_logprob"` or `"hellinger"`; any other answer and a refusal are
    entries of their own.
    """

    async def node(payload: Any) -> Any:
        return dict((await scorer.score(payload, tuple(candidates))).log_probs)

    return node


def embedded(node: AsyncNode, embedder: Embedder) -> AsyncNode:
    """A node whose text answers are placed in a vector space.

    Probe it with `estimator="embedding"`. What is no text (a refusal, an empty answer) stays
    what it is.
    """

    async def placed(payload: Any) -> Any:
        answer = await node(payload)
        if not isinstance(answer, str) or not answer.strip():
            return answer
        return (await embedder.embed([answer]))[0]

    return placed
