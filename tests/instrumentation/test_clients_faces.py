"""Blocking and async faces of clients, and the scripted client that needs no model."""

from __future__ import annotations

import asyncio
import contextvars
import math
import os
import threading
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest
from chat_server import Answer, ChatServer, chat, clean_environment
from numpy.typing import NDArray

from twinspan.instrumentation.clients import (
    OTHER,
    Blocking,
    BlockingChatClient,
    CandidateScorer,
    CandidateScores,
    ChatClient,
    ChatRequest,
    Completion,
    Embedder,
    LoopThread,
    OpenAICompatibleClient,
    Sampling,
    ScriptedClient,
    Threaded,
)
from twinspan.instrumentation.errors import (
    ClientTimeout,
    ConfigurationError,
    NotServed,
    RequestRejected,
)

CHAT = "/chat/completions"
ASK = ChatRequest.of("Admit?")
T = TypeVar("T")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clean_environment(monkeypatch)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


def run(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


def http_client(server: ChatServer, **options: Any) -> OpenAICompatibleClient:
    given: dict[str, Any] = {"base_url": server.url, "model": "m", "backoff": 0.001}
    return OpenAICompatibleClient(**{**given, **options})


# --- blocking ---------------------------------------------------------------------------------


def test_the_blocking_face_has_the_same_methods_and_answers(server: ChatServer) -> None:
    server.script(CHAT, chat("yes"))
    server.script("/embeddings", Answer(body={"data": [{"embedding": [1.0, 2.0]}]}))
    with Blocking(http_client(server, samples=2)) as client:
        assert client.complete(ASK).text == "yes"
        assert client.score("Admit?", ("yes", "no")).counts is not None
        assert client.embed(["a"]).tolist() == [[1.0, 2.0]]


def test_the_blocking_face_raises_the_clients_own_errors(server: ChatServer) -> None:
    server.script(CHAT, Answer(status=401, body={}), Answer(hang=True))
    with Blocking(http_client(server, timeout=0.2)) as client:
        with pytest.raises(RequestRejected):
            client.complete(ASK)
        with pytest.raises(ClientTimeout):
            client.complete(ASK)


def test_the_blocking_face_serves_many_threads_at_once(server: ChatServer) -> None:
    server.script(CHAT, chat("yes"))
    answers: list[str] = []
    with Blocking(http_client(server)) as client:
        threads = [
            threading.Thread(target=lambda: answers.append(client.complete(ASK).text))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == ["yes"] * 8


def test_the_blocking_face_works_inside_a_running_loop(server: ChatServer) -> None:
    server.script(CHAT, chat("yes"))

    async def blocks() -> str:
        with Blocking(http_client(server)) as client:
            return client.complete(ASK).text

    assert run(blocks()) == "yes"


def test_a_closed_blocking_face_starts_again_when_used() -> None:
    client = Blocking(ScriptedClient(lambda request, rng: "yes"))
    client.complete(ASK)
    client.close()
    assert client.complete(ASK).text == "yes"
    client.close()
    client.close()


def test_a_loop_thread_ends_with_its_owner() -> None:
    before = threading.active_count()
    thread = LoopThread()
    thread.run(asyncio.sleep(0))
    assert threading.active_count() == before + 1
    del thread
    assert threading.active_count() == before


def test_waiting_on_its_own_loop_is_refused_not_a_deadlock() -> None:
    with LoopThread() as thread:

        async def nested() -> None:
            thread.run(asyncio.sleep(0))

        with pytest.raises(ConfigurationError, match="own loop"):
            thread.run(nested())


def test_a_forked_child_starts_a_loop_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process number is what tells parent and child apart; forking for real would warn."""
    before = threading.active_count()
    with LoopThread() as thread:
        thread.run(asyncio.sleep(0))
        parent = os.getpid()
        with monkeypatch.context() as child:
            child.setattr("os.getpid", lambda: parent + 1)
            assert thread.run(asyncio.sleep(0, "child")) == "child"
            assert threading.active_count() == before + 2
            thread.close()
    del thread
    assert threading.active_count() == before


def test_a_client_without_a_method_is_told_which_one_it_lacks() -> None:
    class Chat:
        async def complete(self, request: ChatRequest, /) -> Completion:
            return Completion(text="yes")

    with Blocking(Chat()) as client:
        assert client.complete(ASK).text == "yes"
        with pytest.raises(ConfigurationError, match="Chat has no method 'score'"):
            client.score("Admit?", ("yes", "no"))
        with pytest.raises(ConfigurationError, match="Chat has no method 'embed'"):
            client.embed(["a"])
    with Blocking(object()) as client, pytest.raises(ConfigurationError, match="'complete'"):
        client.complete(ASK)


# --- threaded ---------------------------------------------------------------------------------

WHERE: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="outside")


class Plain:
    """A blocking client that tells in which context it was called."""

    def complete(self, request: ChatRequest, /) -> Completion:
        return Completion(text=f"{WHERE.get()} {threading.current_thread().name}")

    def score(
        self, prompt: object, candidates: Sequence[str], /, *, seed: int | None = None
    ) -> CandidateScores:
        return CandidateScores(candidates=tuple(candidates), log_probs={OTHER: 0.0}, method="exact")

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        return np.ones((len(texts), 2))


def test_a_blocking_client_is_awaited_in_a_thread_with_the_callers_context() -> None:
    async def asked() -> tuple[str, CandidateScores, tuple[int, ...]]:
        WHERE.set("in a probe")
        client = Threaded(Plain())
        answer = (await client.complete(ASK)).text
        scores = await client.score("Admit?", ("yes", "no"))
        shape = (await client.embed(["a", "b", "c"])).shape
        await client.aclose()
        return answer, scores, shape

    answer, scores, shape = run(asked())
    assert answer.startswith("in a probe twinspan-client")
    assert dict(scores.log_probs) == {OTHER: 0.0}
    assert shape == (3, 2)


def test_the_threaded_face_speaks_the_async_protocols() -> None:
    client = Threaded(Plain())
    assert isinstance(client, ChatClient)
    assert isinstance(client, CandidateScorer)
    assert isinstance(client, Embedder)
    assert isinstance(Plain(), BlockingChatClient)
    with pytest.raises(ConfigurationError, match="no method 'complete'"):
        run(Threaded(object()).complete(ASK))


# --- scripted ---------------------------------------------------------------------------------


def lenient(request: ChatRequest, rng: np.random.Generator) -> dict[str, float]:
    return {"admit": math.log(6), "discharge": math.log(3), "hm": 0.0}


async def drawn(client: ScriptedClient, prompts: Sequence[str]) -> Counter[tuple[str, str]]:
    async def one(prompt: str) -> tuple[str, str]:
        return prompt, (await client.complete(ChatRequest.of(prompt))).text

    return Counter(await asyncio.gather(*map(one, prompts)))


def test_the_order_of_parallel_calls_does_not_change_what_is_drawn() -> None:
    prompts = ["a"] * 20 + ["b"] * 20
    mixed = [prompt for pair in zip(prompts[:20], prompts[20:], strict=True) for prompt in pair]
    first = run(drawn(ScriptedClient(lenient, seed=1), prompts))
    assert first == run(drawn(ScriptedClient(lenient, seed=1), mixed))
    assert first == run(drawn(ScriptedClient(lenient, seed=1), prompts[::-1]))
    assert first != run(drawn(ScriptedClient(lenient, seed=2), prompts))
    assert len(first) == 6


def test_draws_follow_the_scripts_law() -> None:
    counts = run(drawn(ScriptedClient(lenient, seed=3), ["a"] * 2000))
    shares = [counts["a", name] / 2000 for name in ("admit", "discharge", "hm")]
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.04)


def test_temperature_zero_takes_the_likeliest_and_a_high_one_flattens() -> None:
    cold = run(drawn(ScriptedClient(lenient, temperature=0), ["a"] * 50))
    assert cold == {("a", "admit"): 50}
    hot = run(drawn(ScriptedClient(lenient, temperature=1000), ["a"] * 3000))
    assert hot["a", "hm"] / 3000 == pytest.approx(1 / 3, abs=0.04)


def test_a_seed_in_the_request_gives_the_same_answer_every_time() -> None:
    async def repeated() -> set[str]:
        client = ScriptedClient(lambda request, rng: str(rng.random()))
        request = ChatRequest.of("a", Sampling(seed=5))
        return {(await client.complete(request)).text for _ in range(5)}

    assert len(run(repeated())) == 1


def test_a_script_may_answer_in_full_or_raise() -> None:
    refusing = ScriptedClient(lambda request, rng: Completion(refusal="no", model="x"))
    assert run(refusing.complete(ASK)).outcome == "refusal"

    def failing(request: ChatRequest, rng: np.random.Generator) -> str:
        raise RequestRejected(500, cure="wait")

    with pytest.raises(RequestRejected):
        run(ScriptedClient(failing).complete(ASK))


def test_scores_of_logits_are_exact_and_do_not_disturb_the_draws() -> None:
    client = ScriptedClient(lenient, seed=1)
    scores = run(client.score("a", ("admit", "refer")))
    assert scores.method == "exact"
    assert scores.distribution() == pytest.approx([0.6, 0.0, 0.4, 0.0])
    assert run(drawn(client, ["a"] * 9)) == run(drawn(ScriptedClient(lenient, seed=1), ["a"] * 9))
    assert client.calls == 9


def test_scores_of_plain_answers_are_sampled() -> None:
    client = ScriptedClient(lambda request, rng: "admit", samples=4)
    scores = run(client.score("a", ("admit", "refer"), seed=2))
    assert (scores.method, scores.counts and scores.counts["admit"]) == ("sampled", 4)


def test_embeddings_come_from_the_function_if_there_is_one() -> None:
    client = ScriptedClient(lenient, embedding=lambda text: [len(text), 1.0])
    assert run(client.embed(["a", "bb"])).tolist() == [[1, 1], [2, 1]]
    with pytest.raises(NotServed, match="embedding="):
        run(ScriptedClient(lenient).embed(["a"]))


@pytest.mark.parametrize("logits", [{}, {"a": math.nan}, {"a": math.inf}])
def test_logits_without_a_law_are_refused(logits: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="logits"):
        run(ScriptedClient(lambda request, rng: logits).complete(ASK))
