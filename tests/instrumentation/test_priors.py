"""Synthetic in-domain payloads: what counts, what does not, and that all is told."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import pytest
from chat_server import Answer, ChatServer, chat, clean_environment

from twinspan.instrumentation.clients import (
    ChatRequest,
    Completion,
    OpenAICompatibleClient,
    ScriptedClient,
    Threaded,
)
from twinspan.instrumentation.errors import (
    ConfigurationError,
    IncompletePrior,
    PerturbationError,
    ProbeError,
    RequestRejected,
)
from twinspan.instrumentation.probing.priors import (
    SyntheticPrior,
    SyntheticPriorGenerator,
    prompt_version,
)

EXAMPLE = "She is 60 and asks for 500 EUR."
T = TypeVar("T")
Script = Callable[[ChatRequest, np.random.Generator], Any]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clean_environment(monkeypatch)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


def run(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


def pronouns(payload: object) -> Iterable[str]:
    return re.findall(r"\b(?:he|she)\b", json.dumps(payload), re.IGNORECASE)


def variation(payload: object) -> str:
    return json.dumps({"payload": payload})


def good(request: ChatRequest, rng: np.random.Generator) -> str:
    return variation(f"She is {rng.integers(20, 10**6)} and asks for 7 EUR.")


def generator_of(script: Script, **options: Any) -> SyntheticPriorGenerator:
    given: dict[str, Any] = {"axis": "gender", "axis_terms": pronouns, "count": 4, "seed": 1}
    return SyntheticPriorGenerator(ScriptedClient(script), **{**given, **options})


def partial(script: Script, **options: Any) -> SyntheticPrior:
    prior = run(generator_of(script, **options).generate(EXAMPLE, allow_partial=True))
    assert prior.calls == len(prior.payloads) + sum(prior.rejected.values())
    return prior


# --- what comes out ---------------------------------------------------------------------------


def test_it_makes_as_many_distinct_payloads_as_were_asked_for() -> None:
    prior = run(generator_of(good, count=12).generate(EXAMPLE))
    assert prior.outcome == "complete"
    assert len({str(each.payload) for each in prior.payloads}) == 12
    assert (prior.calls, prior.rejected) == (12, {})


def test_every_payload_tells_where_it_comes_from() -> None:
    prior = run(generator_of(good).generate(EXAMPLE))
    origins = [each.provenance for each in prior.payloads]
    assert {origin.source for origin in origins} == {"synthetic"}
    assert {origin.model for origin in origins} == {"scripted"}
    assert {origin.prompt for origin in origins} == {prompt_version()}
    assert [origin.call for origin in origins] == [0, 1, 2, 3]
    assert len({origin.seed for origin in origins}) == 4


def test_the_same_seed_gives_the_same_prior_whatever_the_concurrency() -> None:
    def payloads(**options: Any) -> list[object]:
        prior = run(generator_of(good, count=9, **options).generate(EXAMPLE))
        return [each.payload for each in prior.payloads]

    assert payloads(concurrency=1) == payloads(concurrency=5) == payloads(concurrency=100)
    assert payloads(seed=1) != payloads(seed=2)


def test_both_faces_give_the_same_prior() -> None:
    assert generator_of(good).generate_sync(EXAMPLE) == run(generator_of(good).generate(EXAMPLE))


def test_the_model_is_told_the_axis_and_sees_the_example_alone_in_its_turn() -> None:
    requests: list[ChatRequest] = []

    def listening(request: ChatRequest, rng: np.random.Generator) -> str:
        requests.append(request)
        return good(request, rng)

    run(generator_of(listening, axis="marital status").generate(EXAMPLE))
    system, user = requests[0].messages
    assert "marital status" in system.content
    assert EXAMPLE not in system.content
    assert json.loads(user.content) == EXAMPLE
    assert requests[0].schema is not None
    assert len({request.messages[0].content for request in requests}) == 4


def test_structured_payloads_keep_their_keys_and_types() -> None:
    example = {"who": "She", "age": 60, "notes": [{"text": "tired"}], "urgent": True}
    replies = iter(
        [
            {"who": "She", "age": 61.5, "notes": [{"text": "a"}, {"text": "b"}], "urgent": False},
            {"who": "She", "age": "61", "notes": [{"text": "a"}], "urgent": True},
            {"who": "She", "age": 61, "notes": [{"text": "a", "by": "x"}], "urgent": True},
            {"who": "She", "age": 61, "notes": [{"text": "a"}]},
            {"who": "She", "age": 61, "notes": [{"text": "a"}], "urgent": 1},
            {"who": "He", "age": 61, "notes": [{"text": "a"}], "urgent": True},
            {"who": "She", "age": 64, "notes": [{"text": "a"}], "urgent": True},
        ]
    )
    generator = generator_of(lambda request, rng: variation(next(replies)), count=2, max_calls=9)
    prior = run(generator.generate(example))
    assert [each.payload["age"] for each in prior.payloads] == [61.5, 64]  # type: ignore[index]
    assert prior.rejected == {"shape_changed": 4, "axis_changed": 1}


# --- what does not count ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (variation(EXAMPLE), "unchanged"),
        (variation("  she IS 60 and\nasks for 500 EUR. "), "unchanged"),
        (variation("He is 60 and asks for 7 EUR."), "axis_changed"),
        (variation("Someone is 60 and asks for 7 EUR."), "axis_changed"),
        (variation(" \n"), "empty"),
        (variation(["She"]), "shape_changed"),
        (variation(None), "empty"),
        ("Sure! Here is a variation: She is 61.", "malformed"),
        ('{"text": "She is 61."}', "malformed"),
        ("[]", "malformed"),
        ('{"payload": NaN}', "malformed"),
        ("", "empty"),
        (Completion(refusal="no"), "refusal"),
        (Completion(text='{"payl', finish_reason="length"), "truncated"),
    ],
)
def test_a_reply_that_is_no_neutral_variation_is_counted_by_its_reason(
    reply: str | Completion, reason: str
) -> None:
    prior = partial(lambda request, rng: reply, max_calls=6)
    assert prior.outcome == "empty"
    assert prior.rejected == {reason: 6}


def test_a_payload_counts_once() -> None:
    prior = partial(lambda request, rng: variation("She is 61."), max_calls=5)
    assert prior.outcome == "partial"
    assert len(prior.payloads) == 1
    assert prior.rejected == {"duplicate": 4}


def test_rejected_calls_are_made_up_for_within_the_bound() -> None:
    def fussy(request: ChatRequest, rng: np.random.Generator) -> str:
        return good(request, rng) if rng.random() < 0.5 else variation("He is 61.")

    prior = run(generator_of(fussy, count=10, max_calls=60).generate(EXAMPLE))
    assert len(prior.payloads) == 10
    assert prior.rejected["axis_changed"] == prior.calls - 10 > 0
    assert prior.calls <= 60


# --- failing clients --------------------------------------------------------------------------


def failing(request: ChatRequest, rng: np.random.Generator) -> str:
    raise RequestRejected(500, cure="wait")


def test_too_few_payloads_are_an_error_that_tells_by_how_much_and_carries_them() -> None:
    answers = iter([variation("She is 61."), variation("She is 62.")])

    def twice(request: ChatRequest, rng: np.random.Generator) -> str:
        return next(answers, "nonsense")

    with pytest.raises(IncompletePrior, match=r"2 of 4 .* 9 call\(s\) \(malformed: 7\)") as caught:
        run(generator_of(twice, max_calls=9).generate(EXAMPLE))
    assert isinstance(caught.value, ProbeError)
    assert isinstance(caught.value.prior, SyntheticPrior)
    assert caught.value.prior.outcome == "partial"
    assert (caught.value.accepted, caught.value.requested, caught.value.calls) == (2, 4, 9)


def test_a_client_that_raises_is_given_up_after_some_patience() -> None:
    prior = partial(failing, count=50, concurrency=2, patience=3)
    assert prior.rejected == {"RequestRejected": 4}


def test_an_unexpected_error_of_a_client_is_told_by_its_name() -> None:
    def broken(request: ChatRequest, rng: np.random.Generator) -> str:
        raise ZeroDivisionError

    assert partial(broken).rejected == {"ZeroDivisionError": 4}


def test_a_client_that_fails_now_and_then_does_not_end_the_generation() -> None:
    def flaky(request: ChatRequest, rng: np.random.Generator) -> str:
        return failing(request, rng) if rng.random() < 0.4 else good(request, rng)

    prior = partial(flaky, count=10, max_calls=100, patience=10, concurrency=1)
    assert prior.outcome == "complete"
    assert prior.rejected["RequestRejected"] > 0


def test_a_client_that_hangs_is_a_timeout() -> None:
    class Hanging:
        async def complete(self, request: ChatRequest, /) -> Completion:
            await asyncio.Event().wait()
            raise AssertionError

    generator = SyntheticPriorGenerator(
        Hanging(), axis="gender", axis_terms=pronouns, count=2, timeout=0.05, patience=2
    )
    with pytest.raises(IncompletePrior, match=r"0 of 2 .* 2 call.*timeout: 2"):
        run(generator.generate(EXAMPLE))


def test_a_cancelled_generation_cancels_its_calls() -> None:
    ended: list[str] = []

    class Waiting:
        async def complete(self, request: ChatRequest, /) -> Completion:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("call")
            raise AssertionError

    async def cancelled() -> None:
        generator = SyntheticPriorGenerator(
            Waiting(), axis="gender", axis_terms=pronouns, concurrency=3
        )
        task = asyncio.create_task(generator.generate(EXAMPLE))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancelled())
    assert ended == ["call"] * 3


def test_a_blocking_client_serves_as_well() -> None:
    class Plain:
        def complete(self, request: ChatRequest, /) -> Completion:
            return Completion(text=good(request, np.random.default_rng(request.sampling.seed)))

    generator = SyntheticPriorGenerator(
        Threaded(Plain()), axis="gender", axis_terms=pronouns, count=3
    )
    assert len(generator.generate_sync(EXAMPLE).payloads) == 3


def test_a_real_server_is_asked_and_its_failures_are_counted(server: ChatServer) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        seed = body["seed"]
        if seed % 3 == 0:
            return Answer(status=400, body={"error": "no"})
        return chat(variation(f"She is {seed} and asks for 7 EUR."))

    server.script_by("/chat/completions", answer)
    client = OpenAICompatibleClient(base_url=server.url, model="m")
    generator = SyntheticPriorGenerator(
        client, axis="gender", axis_terms=pronouns, count=6, max_calls=40, patience=40
    )
    prior = generator.generate_sync(EXAMPLE)
    assert {each.provenance.model for each in prior.payloads} == {"served"}
    assert set(prior.rejected) == {"RequestRejected"}
    sent = server.bodies("/chat/completions")
    assert sent[0]["response_format"]["json_schema"]["name"] == "variation"
    assert len({body["seed"] for body in sent}) == prior.calls


# --- arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "example", ["", "  ", None, {}, {"a": ""}, [None, " "], {1, 2}, object(), float("nan")]
)
def test_an_example_that_is_no_payload_is_refused_before_any_call(example: object) -> None:
    generator = generator_of(failing)
    with pytest.raises(PerturbationError, match="example payload"):
        run(generator.generate(example))


@pytest.mark.parametrize(
    "options",
    [
        {"count": 0},
        {"max_calls": 3},
        {"concurrency": 0},
        {"patience": 0},
        {"timeout": 0},
        {"temperature": -1},
    ],
)
def test_options_without_meaning_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        generator_of(good, **options)


def test_payloads_are_not_part_of_the_repr() -> None:
    prior = run(generator_of(good).generate(EXAMPLE))
    assert "She" not in repr(prior)
