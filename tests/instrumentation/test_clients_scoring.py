"""Candidate scores from a real HTTP server whose model is small enough to enumerate."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, TypeVar

import numpy as np
import pytest
from chat_server import Answer, ChatServer, chat, clean_environment, error
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.instrumentation.clients import (
    OTHER,
    REFUSAL,
    CandidateScorer,
    CandidateScores,
    Message,
    OpenAICompatibleClient,
)
from twinspan.instrumentation.clients.candidates import (
    match_answer,
    sequence_masses,
    smoothed,
    spread,
    token_owners,
)
from twinspan.instrumentation.errors import (
    ConfigurationError,
    MalformedReply,
    NotServed,
    RequestRejected,
)

CHAT, TEXT = "/chat/completions", "/completions"
T = TypeVar("T")

# What the model says next depends on its last token only.
LAW: dict[str, dict[str, float]] = {
    "": {"Yes": 0.4, " yes": 0.1, "No": 0.2, "app": 0.2, "I": 0.05, "<end>": 0.05},
    "Advice:": {" yes": 0.3, " no": 0.2, " app": 0.5},
    " app": {"rove": 0.7, "eal": 0.2, "le": 0.1},
    " yes": {" please": 0.25, "<end>": 0.75},
    " no": {"<end>": 1.0},
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clean_environment(monkeypatch)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


def client_of(server: ChatServer, **options: Any) -> OpenAICompatibleClient:
    given: dict[str, Any] = {"base_url": server.url, "model": "m", "backoff": 0.001}
    return OpenAICompatibleClient(**{**given, **options})


def run(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


def top_of(law: Mapping[str, float], count: int) -> list[dict[str, object]]:
    likeliest = sorted(law.items(), key=lambda item: -item[1])[:count]
    return [{"token": token, "logprob": math.log(share)} for token, share in likeliest]


def first_tokens(body: dict[str, Any]) -> Answer:
    """A chat server that shows the likeliest first tokens."""
    top = top_of(LAW[""], body["top_logprobs"]) if "logprobs" in body else []
    entry = {"token": "Yes", "logprob": math.log(0.4), "top_logprobs": top}
    return chat("Yes", logprobs={"content": [entry]} if top else None)


def tokens_of(text: str) -> list[str]:
    vocabulary = sorted({*LAW, *(token for law in LAW.values() for token in law)}, key=len)
    found: list[str] = []
    while text:
        fits = [token for token in vocabulary if token and text.startswith(token)]
        token = fits[-1] if fits else text[0]
        found.append(token)
        text = text[len(token) :]
    return found


def echo(body: dict[str, Any], start: Sequence[str] = (), generated: str = "<end>") -> Answer:
    """A completion server that echoes the prompt with the probabilities of its tokens."""
    tokens = [*start, *tokens_of(body["prompt"])]
    values: list[float | None] = [None]
    for last, token in pairwise(tokens):
        share = LAW.get(last, {}).get(token, 0.01)
        values.append(math.log(share))
    columns = {"tokens": [*tokens, generated], "token_logprobs": [*values, -1.0]}
    text = body["prompt"] + generated
    return Answer(body={"choices": [{"text": text, "logprobs": columns}], "model": "served"})


def drawing(law: Mapping[str, float]) -> Callable[[dict[str, Any]], Answer]:
    """A chat server without log-probabilities that draws answers by the request's seed."""

    def answer(body: dict[str, Any]) -> Answer:
        generator = random.Random(body.get("seed"))
        return chat(generator.choices(list(law), list(law.values()))[0])

    return answer


# --- first token ------------------------------------------------------------------------------


def test_first_tokens_add_up_per_candidate_and_the_rest_is_another_answer(
    server: ChatServer,
) -> None:
    server.script_by(CHAT, first_tokens)
    scores = run(client_of(server).score("Admit?", ("yes", "no")))
    assert scores.method == "first_token"
    assert scores.distribution() == pytest.approx([0.5, 0.2, 0.3, 0.0])
    assert scores.outcomes == ("yes", "no", OTHER, REFUSAL)
    assert (scores.calls, scores.counts, scores.model) == (1, None, "served")
    assert server.bodies(CHAT)[0]["max_tokens"] == 1
    assert scores.unseen_log_prob is None


def test_a_candidate_outside_the_top_list_is_absent_not_impossible(server: ChatServer) -> None:
    server.script_by(CHAT, first_tokens)
    scores = run(client_of(server, top_logprobs=2).score("Admit?", ("yes", "I")))
    assert set(scores.log_probs) == {"yes", OTHER}
    assert math.exp(scores.log_probs[OTHER]) == pytest.approx(0.6)
    assert scores.unseen_log_prob == pytest.approx(math.log(0.2))


def test_scores_with_different_top_lists_are_aligned(server: ChatServer) -> None:
    server.script_by(CHAT, first_tokens)
    few = run(client_of(server, top_logprobs=2).score("Admit?", ("yes", "I")))
    many = run(client_of(server).score("Admit?", ("yes", "I")))
    assert few.distribution().shape == many.distribution().shape == (4,)


@pytest.mark.parametrize("absent", [-9999.0, float("-inf")], ids=["sentinel", "infinity"])
def test_a_token_without_probability_has_no_mass(server: ChatServer, absent: float) -> None:
    top = [{"token": "yes", "logprob": math.log(0.75)}, {"token": "no", "logprob": absent}]
    entry = {"token": "yes", "logprob": 0.0, "top_logprobs": [*top, {"token": "x", "logprob": -9}]}
    server.script(CHAT, chat("yes", logprobs={"content": [entry]}))
    scores = run(client_of(server).score("Admit?", ("yes", "no")))
    assert scores.distribution() == pytest.approx([0.75, 0.0, 0.25, 0.0])


def test_a_refusal_is_the_outcome_that_has_all_the_mass(server: ChatServer) -> None:
    server.script(CHAT, error(400, "no", code="content_filter"))
    scores = run(client_of(server).score("Admit?", ("yes", "no")))
    assert dict(scores.log_probs) == {REFUSAL: 0.0}


def test_probabilities_that_sum_to_more_than_one_are_malformed(server: ChatServer) -> None:
    top = [{"token": token, "logprob": math.log(0.8)} for token in ("yes", "no")]
    entry = {"token": "yes", "logprob": -0.2, "top_logprobs": top}
    server.script(CHAT, chat("yes", logprobs={"content": [entry]}))
    with pytest.raises(MalformedReply, match=r"sum to 1\.6"):
        run(client_of(server).score("Admit?", ("yes", "no")))


# --- falling back -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shown",
    [
        None,
        {},
        {"content": None},
        {"content": []},
        {"content": [{"token": "Yes", "logprob": -0.5}]},
        {"content": [{"token": "Yes", "logprob": -0.5, "top_logprobs": None}]},
        {"content": [{"token": "Yes", "logprob": -0.5, "top_logprobs": [{"token": "Yes"}]}]},
    ],
)
def test_a_server_without_log_probabilities_is_asked_for_samples(
    server: ChatServer, shown: object
) -> None:
    server.script(CHAT, chat("Yes.", logprobs=shown))
    scores = run(client_of(server, samples=3).score([Message.user("Admit?")], ("yes", "no")))
    assert scores.method == "sampled"
    assert scores.counts == {"yes": 3, "no": 0, OTHER: 0, REFUSAL: 0}
    assert scores.calls == 3


@pytest.mark.parametrize(
    "refused",
    [
        error(403, "You are not allowed to request logprobs from this model"),
        error(400, "no logprobs here", param="logprobs"),
        Answer(status=422, body={"detail": [{"loc": ["body", "logprobs"]}]}),
    ],
)
def test_a_server_that_declines_log_probabilities_is_asked_for_samples_from_then_on(
    server: ChatServer, refused: Answer
) -> None:
    server.script_by(CHAT, lambda body: refused if "logprobs" in body else chat("no"))
    client = client_of(server, samples=2)

    async def twice() -> list[str]:
        prompt = [Message.user("Admit?")]
        return [(await client.score(prompt, ("yes", "no"))).method for _ in range(2)]

    assert run(twice()) == ["sampled", "sampled"]
    assert ["logprobs" in body for body in server.bodies(CHAT)] == [True] + [False] * 4


def test_a_server_that_shows_few_alternatives_is_asked_for_few_from_then_on(
    server: ChatServer,
) -> None:
    def few(body: dict[str, Any]) -> Answer:
        if body["top_logprobs"] > 5:
            return error(400, "must be at most 5", param="top_logprobs")
        return first_tokens(body)

    server.script_by(CHAT, few)
    client = client_of(server)

    async def twice() -> list[str]:
        return [(await client.score("Admit?", ("yes", "no"))).method for _ in range(2)]

    assert run(twice()) == ["first_token"] * 2
    assert [body["top_logprobs"] for body in server.bodies(CHAT)] == [20, 5, 5]


def test_another_refusal_is_no_reason_to_fall_back(server: ChatServer) -> None:
    server.script(CHAT, error(400, "too long", code="context_length_exceeded"))
    with pytest.raises(RequestRejected):
        run(client_of(server).score("Admit?", ("yes", "no")))


def test_candidates_with_a_first_token_in_common_are_scored_by_their_whole_text(
    server: ChatServer,
) -> None:
    server.script_by(CHAT, first_tokens)
    server.script_by(TEXT, echo)
    scores = run(client_of(server).score("Advice:", ("approve", "appeal", "yes", "yes please")))
    assert scores.method == "sequence"
    expected = [0.5 * 0.7, 0.5 * 0.2, 0.3 * 0.75, 0.3 * 0.25]
    assert scores.distribution()[:4] == pytest.approx(expected)
    assert scores.distribution().sum() == pytest.approx(1)
    assert scores.calls == 4


def test_a_set_of_candidates_stays_with_its_method(server: ChatServer) -> None:
    server.script_by(CHAT, first_tokens)
    server.script_by(TEXT, echo)
    client = client_of(server)

    async def methods() -> list[str]:
        shared, distinct = ("approve", "appeal"), ("yes", "no")
        return [(await client.score("Advice:", names)).method for names in (shared, distinct) * 2]

    assert run(methods()) == ["sequence", "first_token"] * 2
    assert len(server.bodies(CHAT)) == 3


@pytest.mark.parametrize(
    "text",
    [
        Answer(status=404, body={"error": "no such path"}),
        error(400, "Only no echo is supported"),
        Answer(body={"choices": [{"text": "<end>", "logprobs": None}]}),
        Answer(
            body={
                "choices": [
                    {"text": "x", "logprobs": {"content": [{"token": "x", "logprob": -1.0}]}}
                ]
            }
        ),
        Answer(
            body={
                "choices": [
                    {
                        "text": "x",
                        "logprobs": {
                            "tokens": ["Advice:", " ap", "p", "eal", " appr", "ove", "x"],
                            "token_logprobs": [None] * 6 + [-1.0],
                        },
                    }
                ]
            }
        ),
    ],
    ids=[
        "chat only",
        "declined",
        "without log-probabilities",
        "of generated tokens only",
        "with unknown probabilities",
    ],
)
def test_without_echo_whole_texts_are_not_scored_and_samples_are_drawn(
    server: ChatServer, text: Answer
) -> None:
    server.script_by(
        CHAT, lambda body: first_tokens(body) if "logprobs" in body else chat("appeal")
    )
    server.script(TEXT, text)
    client = client_of(server, samples=2)

    async def twice() -> list[CandidateScores]:
        return [await client.score("Advice:", ("approve", "appeal")) for _ in range(2)]

    for scores in run(twice()):
        assert scores.method == "sampled"
        assert scores.counts is not None
        assert scores.counts["appeal"] == 2
    assert len(server.bodies(CHAT)) == 1 + 2 * 2
    assert len(server.bodies(TEXT)) <= 2


@pytest.mark.parametrize("method", ["first_token", "sequence"])
def test_a_method_that_is_asked_for_and_not_served_is_an_error(
    server: ChatServer, method: Any
) -> None:
    server.script(CHAT, chat("yes"))
    with pytest.raises(NotServed, match="sampled"):
        run(client_of(server).score("Admit?", ("yes", "no"), method=method))


# --- whole texts ------------------------------------------------------------------------------


def test_a_start_token_does_not_shift_the_candidate(server: ChatServer) -> None:
    server.script_by(TEXT, lambda body: echo(body, start=["<s>"]))
    scores = run(client_of(server).score("Advice:", ("yes", "no"), method="sequence"))
    assert scores.distribution()[:2] == pytest.approx([0.3, 0.2])


def test_an_impossible_candidate_has_no_mass(server: ChatServer) -> None:
    def impossible(body: dict[str, Any]) -> Answer:
        value = -math.inf if body["prompt"].endswith("no") else math.log(0.75)
        columns = {"tokens": ["Advice:", body["prompt"][7:], "!"]}
        columns["token_logprobs"] = [None, value, -1.0]
        return Answer(body={"choices": [{"text": "x", "logprobs": columns}]})

    server.script_by(TEXT, impossible)
    scores = run(client_of(server).score("Advice:", ("yes", "no"), method="sequence"))
    assert scores.distribution() == pytest.approx([0.75, 0.0, 0.25, 0.0])


def test_a_server_that_generates_nothing_is_read_alike(server: ChatServer) -> None:
    def silent(body: dict[str, Any]) -> Answer:
        reply: Any = json.loads(echo(body).content())
        for column in reply["choices"][0]["logprobs"].values():
            column.pop()
        return Answer(body=reply)

    server.script_by(TEXT, silent)
    scores = run(client_of(server).score("Advice:", ("yes", "no"), method="sequence"))
    assert scores.distribution()[:2] == pytest.approx([0.3, 0.2])


def test_a_token_across_the_prompts_end_is_told_with_its_cure(server: ChatServer) -> None:
    def straddling(body: dict[str, Any]) -> Answer:
        start, rest = body["prompt"][:4], body["prompt"][4:]
        columns = {"tokens": [start, rest, "!"], "token_logprobs": [None, -1.0, -1.0]}
        return Answer(body={"choices": [{"text": "x", "logprobs": columns}]})

    server.script_by(TEXT, straddling)
    with pytest.raises(MalformedReply, match="end the prompt with a line break"):
        run(client_of(server).score("Advice:", ("yes", "no"), method="sequence"))


def test_a_conversation_is_written_by_the_template(server: ChatServer) -> None:
    server.script_by(TEXT, echo)

    def template(messages: Sequence[Message]) -> str:
        return "".join(message.content for message in messages) + "Advice:"

    client = client_of(server, template=template)
    scores = run(client.score([Message.user("?")], ("yes", "no"), method="sequence"))
    assert scores.distribution()[:2] == pytest.approx([0.3, 0.2])
    assert server.bodies(TEXT)[0]["prompt"].startswith("?Advice: ")
    with pytest.raises(ConfigurationError, match="template"):
        run(client_of(server).score([Message.user("?")], ("a", "b"), method="sequence"))


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.integers(0, 9), min_size=14, max_size=14).filter(any),
    names=st.sets(st.text("ab", min_size=1, max_size=3), min_size=2, max_size=6),
)
def test_masses_of_texts_that_begin_alike_agree_with_enumeration(
    weights: list[int], names: set[str]
) -> None:
    """Every continuation of up to three letters has a share; its longest candidate counts."""
    texts = ["".join(letters) for size in (1, 2, 3) for letters in product("ab", repeat=size)]
    total = sum(weights)
    begun = {
        name: sum(w for text, w in zip(texts, weights, strict=True) if text.startswith(name))
        for name in names
    }
    longest: Counter[str] = Counter()
    for text, weight in zip(texts, weights, strict=True):
        fits = [name for name in names if text.startswith(name)]
        if fits:
            longest[max(fits, key=len)] += weight
    logs = {name: math.log(w / total) if w else -math.inf for name, w in begun.items()}
    for name, mass in sequence_masses(logs).items():
        assert mass == pytest.approx(longest[name] / total, abs=1e-12)


# --- sampling ---------------------------------------------------------------------------------

ANSWERS = {"Approve.": 0.5, "deny": 0.3, "I would not approve": 0.2}


def test_samples_are_counted_and_three_of_three_is_no_certainty(server: ChatServer) -> None:
    server.script(CHAT, chat("**Approve**"))
    client = client_of(server, samples=3)
    scores = run(client.score("Loan?", ("approve", "deny"), method="sampled"))
    assert scores.counts == {"approve": 3, "deny": 0, OTHER: 0, REFUSAL: 0}
    assert scores.distribution() == pytest.approx([0.7, 0.1, 0.1, 0.1])


def test_refusals_and_other_answers_are_outcomes_of_their_own(server: ChatServer) -> None:
    refusal = chat(None, message={"content": None, "refusal": "no"})
    server.script(CHAT, chat("deny"), refusal, chat("I would not approve"), chat(""))
    client = client_of(server, samples=4)
    scores = run(client.score("Loan?", ("approve", "deny"), method="sampled"))
    assert scores.counts == {"approve": 0, "deny": 1, OTHER: 2, REFUSAL: 1}


def test_a_seed_fixes_the_counts_and_gives_each_sample_its_own(server: ChatServer) -> None:
    server.script_by(CHAT, drawing(ANSWERS))
    client = client_of(server, samples=20, max_tokens=5)

    async def counted(seed: int) -> Mapping[str, int] | None:
        answered = await client.score("L?", ("approve", "deny"), method="sampled", seed=seed)
        return answered.counts

    first, again, other = run(counted(1)), run(counted(1)), run(counted(2))
    assert first == again != other
    seeds = [body["seed"] for body in server.bodies(CHAT)]
    assert len(set(seeds[:20])) == 20
    assert first is not None
    assert min(first["approve"], first["deny"], first[OTHER]) > 0


def test_usage_of_all_samples_is_added_up(server: ChatServer) -> None:
    body = {
        "choices": [{"message": {"content": "yes"}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1},
    }
    server.script(CHAT, Answer(body=body))
    client = client_of(server, samples=4)
    scores = run(client.score("Loan?", ("yes", "no"), method="sampled"))
    assert scores.usage is not None
    assert (scores.usage.input_tokens, scores.usage.output_tokens) == (20, 4)


def test_a_failing_sample_fails_the_scoring_with_a_plain_error(server: ChatServer) -> None:
    server.script(CHAT, chat("yes"), error(400, "no"))
    with pytest.raises(RequestRejected):
        run(client_of(server).score("Loan?", ("yes", "no"), method="sampled"))


# --- pieces -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "candidates", "match"),
    [
        ("yes", ("yes", "no"), "yes"),
        (" YES!", ("yes", "no"), "yes"),
        ('"No", I think', ("yes", "no"), "no"),
        ("none", ("yes", "no"), None),
        ("not no", ("yes", "no"), None),
        ("yes please", ("yes", "yes please"), "yes please"),
        ("Yes", ("yes", "Yes"), "Yes"),
        ("YES", ("yes", "Yes"), None),
        ("(A)", ("A", "B"), "A"),
        ("1) because", ("1", "2"), "1"),
        ("12", ("1", "2"), None),
        ("C++", ("C", "C++"), "C++"),
        ("Straße 1", ("strasse", "weg"), "strasse"),
        ("", ("yes", "no"), None),
    ],
)
def test_an_answer_states_a_candidate_only_if_it_begins_with_it(
    text: str, candidates: tuple[str, ...], match: str | None
) -> None:
    assert match_answer(text, candidates) == match


@pytest.mark.parametrize(
    ("token", "owners"),
    [
        ("app", ("approve", "appeal")),
        (" Appr", ("approve",)),
        ("\u2581deny", ("deny",)),
        ("deny\n", ("deny",)),
        ("denying", ()),
        ("\n", ()),
        ("The", ()),
    ],
)
def test_a_token_leads_to_the_candidates_it_can_still_become(
    token: str, owners: tuple[str, ...]
) -> None:
    assert token_owners(token, ("approve", "appeal", "deny")) == owners


@pytest.mark.parametrize(
    "candidates", ["yes", [], ["yes"], ["yes", "yes"], ["yes", " yes"], ["yes", ""], ["a", OTHER]]
)
def test_candidates_that_cannot_be_told_apart_are_refused(candidates: Any) -> None:
    client = OpenAICompatibleClient(base_url="http://127.0.0.1:9/v1", model="m")
    with pytest.raises(ConfigurationError, match="candidates"):
        run(client.score("Loan?", candidates))


@given(st.dictionaries(st.sampled_from("abcd"), st.floats(0, 0.25), min_size=1))
def test_spread_masses_always_sum_to_one(masses: dict[str, float]) -> None:
    logs = spread(masses)
    assert math.fsum(math.exp(value) for value in logs.values()) == pytest.approx(1)
    assert all(math.isfinite(value) for value in logs.values())


@given(st.lists(st.integers(0, 50), min_size=2, max_size=8))
def test_smoothed_counts_are_jeffreys_mean(counts: list[int]) -> None:
    logs = smoothed({str(place): count for place, count in enumerate(counts)})
    shares = np.exp(list(logs.values()))
    expected = (np.array(counts) + 0.5) / (sum(counts) + len(counts) / 2)
    assert shares == pytest.approx(expected)


@pytest.mark.parametrize("log_probs", [{"yes": -1.0}, {"maybe": 0.0}, {"yes": float("nan")}])
def test_scores_that_are_no_distribution_cannot_be_made(log_probs: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="must sum to 1"):
        CandidateScores(candidates=("yes", "no"), log_probs=log_probs, method="exact")


def test_the_client_is_a_scorer() -> None:
    client = OpenAICompatibleClient(base_url="http://localhost/v1", model="m")
    assert isinstance(client, CandidateScorer)
