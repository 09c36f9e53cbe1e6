"""Options, values and retry rules of model clients."""

from __future__ import annotations

import dataclasses
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinspan.instrumentation import clients, conventions
from twinspan.instrumentation.clients import (
    ChatRequest,
    ClientSettings,
    Completion,
    OpenAICompatibleClient,
    Sampling,
    Secret,
    ToolCall,
    Usage,
    span_attributes,
)
from twinspan.instrumentation.clients.retrying import (
    Explanation,
    RetryPolicy,
    asked_wait,
    explain,
    is_transient,
)
from twinspan.instrumentation.clients.seeds import SEED_LIMIT, DrawCounter, counter_seed, digest_of
from twinspan.instrumentation.clients.settings import VARIABLES, ClientOptions
from twinspan.instrumentation.clients.wire import encode
from twinspan.instrumentation.errors import ConfigurationError, MalformedReply

# --- settings ---------------------------------------------------------------------------------


def test_an_argument_wins_over_the_environment_and_that_over_the_default() -> None:
    environ = {
        "OPENAI_BASE_URL": "http://env/v1",
        "OPENAI_API_KEY": " key\n",
        "TWINSPAN_MODEL": "env",
        "TWINSPAN_CLIENT_TIMEOUT": "7.5",
        "TWINSPAN_CLIENT_RETRIES": "",
    }
    settings = ClientSettings.resolve({"model": "argument", "seed": None}, environ=environ)
    assert (settings.base_url, settings.model) == ("http://env/v1", "argument")
    assert settings.api_key == Secret("key")
    assert (settings.timeout, settings.retries, settings.seed) == (7.5, 3, None)


def test_every_option_has_a_keyword_and_every_variable_an_option() -> None:
    names = {each.name for each in dataclasses.fields(ClientSettings)}
    assert set(ClientOptions.__annotations__) == names
    assert set(VARIABLES) < names
    assert len(set(VARIABLES.values())) == len(VARIABLES)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"model": None}, "TWINSPAN_MODEL"),
        ({"modle": "m"}, "no client option 'modle'"),
        ({"base_url": "localhost:8000"}, "http://localhost:8000/v1"),
        ({"base_url": "ftp://host/v1"}, "no web address"),
        ({"base_url": ""}, "no web address"),
        ({"base_url": "http://[::1"}, "no web address"),
        ({"base_url": 7}, "no web address"),
        ({"timeout": 0}, "timeout is 0.0; it must be over 0"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"timeout": "soon"}, "no number"),
        ({"retries": -1}, "retries"),
        ({"retries": 1.5}, "retries is 1.5"),
        ({"concurrency": 0}, "concurrency"),
        ({"samples": 0}, "samples"),
        ({"top_logprobs": 1}, "top_logprobs"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"structured": "xml"}, "json_schema, json_object, off"),
    ],
)
def test_an_option_without_meaning_is_refused_with_its_name(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        ClientSettings.resolve({"model": "m", **options}, environ={})


@pytest.mark.parametrize("key", ["sk-1\nX: y", "sk-\u00e9", "sk\x00"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY") as caught:
        OpenAICompatibleClient(model="m", api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "headers", [{"x": "a\nb"}, {"x\n": "a"}, {"": "a"}, {"x y": "a"}, {"x": "se\u00e9cret"}]
)
def test_a_header_that_cannot_be_sent_is_refused_without_its_value(headers: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="plain ASCII") as caught:
        OpenAICompatibleClient(model="m", headers=headers)
    assert "cret" not in str(caught.value)


def test_a_password_in_the_base_url_is_refused_without_being_shown() -> None:
    with pytest.raises(ConfigurationError, match="use api_key") as caught:
        OpenAICompatibleClient(model="m", base_url="http://user:pa55@host/v1")
    assert "pa55" not in str(caught.value)


def test_a_secret_shows_itself_only_on_request() -> None:
    settings = ClientSettings(model="m", api_key=Secret("sk-1"), headers={"x-key": "sk-2"})
    shown = f"{settings!r} {settings} {settings.api_key} {settings.api_key!r:>20}"
    assert "sk-" not in shown
    assert settings.api_key is not None
    assert settings.api_key.reveal() == "sk-1"
    assert hash(Secret("a")) == hash(Secret("a"))
    assert Secret("a") != "a"


def test_settings_and_options_are_not_given_together() -> None:
    with pytest.raises(ConfigurationError, match="not both"):
        OpenAICompatibleClient(ClientSettings(model="m"), model="n")
    assert OpenAICompatibleClient(ClientSettings(model="m")).settings.model == "m"


def test_the_default_server_is_a_url() -> None:
    assert ClientSettings(model="m").server == "https://api.openai.com/v1"


# --- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "numbers", [{"seed": 2**63}, {"temperature": float("inf")}, {"top_p": 1.1}, {"max_tokens": 0}]
)
def test_sampling_outside_its_range_is_refused(numbers: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Sampling(**numbers)


def test_settings_of_zero_are_settings() -> None:
    assert Sampling(temperature=0.0, seed=0).over(Sampling(temperature=1.0, seed=9)) == Sampling(
        temperature=0.0, seed=0
    )


def test_a_conversation_needs_a_turn() -> None:
    with pytest.raises(ConfigurationError, match="at least one user turn"):
        ChatRequest.of([])


@pytest.mark.parametrize("text", ["", "yes", '{"a": 1', "```json\n{\n```", "[" * 100_000])
def test_a_structured_answer_that_is_no_json_is_malformed_and_not_shown(text: str) -> None:
    with pytest.raises(MalformedReply, match=f"{len(text.strip('`'))}|characters") as caught:
        Completion(text=text).json()
    assert caught.value.__cause__ is None
    with pytest.raises(MalformedReply, match="tool 'f'"):
        ToolCall(id="1", name="f", arguments=text).parsed()


@pytest.mark.parametrize(
    "text", ['{"a": 1}', ' {"a": 1}\n', '```\n{"a": 1}\n```', '```json\n{"a": 1}```']
)
def test_a_fence_around_json_is_dropped(text: str) -> None:
    assert Completion(text=text).json() == {"a": 1}


def test_values_survive_pickling() -> None:
    request = ChatRequest.of("hello", Sampling(seed=1))
    assert pickle.loads(pickle.dumps(request)) == request


def test_a_request_that_json_cannot_hold_is_refused_without_being_shown() -> None:
    with pytest.raises(ConfigurationError, match="tools and schema") as caught:
        encode({"secret words": {1, 2}})
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigurationError):
        encode({"a": float("nan")})


def test_span_attributes_name_what_is_known_and_only_that() -> None:
    answer = Completion(
        text="words",
        sampling=Sampling(model="m", temperature=0.0, seed=3),
        usage=Usage(input_tokens=5),
    )
    assert span_attributes(answer) == {
        conventions.GEN_AI_REQUEST_MODEL: "m",
        conventions.GEN_AI_REQUEST_TEMPERATURE: 0.0,
        conventions.GEN_AI_REQUEST_SEED: 3,
        conventions.GEN_AI_INPUT_TOKENS: 5,
    }
    assert span_attributes(Completion()) == {}


def test_the_face_of_the_folder_is_what_it_lists() -> None:
    assert len(set(clients.__all__)) == len(clients.__all__)
    assert all(hasattr(clients, name) for name in clients.__all__)


# --- retries ----------------------------------------------------------------------------------


@given(
    retries=st.integers(0, 8),
    backoff=st.floats(0, 10),
    longest=st.floats(0, 60),
    attempt=st.integers(1, 12),
    asked=st.none() | st.floats(0, 100),
)
def test_a_wait_is_within_its_bounds_and_never_shorter_than_asked(
    retries: int, backoff: float, longest: float, attempt: int, asked: float | None
) -> None:
    policy = RetryPolicy(retries=retries, backoff=backoff, longest_wait=longest)
    wait = policy.wait(attempt, "key", asked)
    if attempt > retries or (asked is not None and asked > longest):
        assert wait is None
    else:
        assert wait is not None
        assert (asked or 0.0) <= wait <= longest


def test_waits_double_and_are_the_same_in_every_run() -> None:
    policy = RetryPolicy(retries=9, backoff=1.0, longest_wait=100.0)
    for attempt in range(1, 6):
        wait = policy.wait(attempt, "key")
        assert wait == policy.wait(attempt, "key") != policy.wait(attempt, "other")
        assert wait is not None
        assert 2.0 ** (attempt - 2) <= wait <= 2.0 ** (attempt - 1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:00 GMT"}, 60.0),
        ({"retry-after": "Wed, 31 Dec 2025 00:00:00 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:00 -0000"}, 60.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
    ],
)
def test_the_servers_wait_is_read_in_all_its_forms(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert asked_wait(headers, now=datetime(2026, 1, 1, tzinfo=UTC)) == seconds


@pytest.mark.parametrize("status", [200, 301, 400, 401, 404, 422, 600])
def test_lasting_statuses_are_not_transient(status: int) -> None:
    assert not is_transient(status)


@pytest.mark.parametrize(
    ("body", "code", "fields"),
    [
        ({"error": {"code": "x", "type": "y"}}, "x", set()),
        ({"error": {"code": None, "type": "y"}}, "y", set()),
        ({"error": {"code": 500, "type": "server_error"}}, "server_error", set()),
        ({"error": "unknown field seed"}, None, {"seed"}),
        ({"object": "error", "type": "BadRequestError", "code": 400}, "BadRequestError", set()),
        ({"error": {"code": "a b"}}, None, set()),
        ({"error": {"param": "top_logprobs"}}, None, {"top_logprobs"}),
        ({"error": {"message": "stopped echoing seeds"}}, None, set()),
        ("oops", None, set()),
        (None, None, set()),
    ],
)
def test_an_explanation_keeps_plain_words_and_known_fields_only(
    body: object, code: str | None, fields: set[str]
) -> None:
    explanation = explain(body)
    assert (explanation.code, set(explanation.fields)) == (code, fields)


def test_a_status_in_the_body_is_read_as_number_or_text() -> None:
    assert explain({"error": {"code": "429"}}) == Explanation(status=429)
    assert explain({"error": {"status": 503}}).status == 503
    assert explain({"error": {"code": True}}).status is None


# --- seeds ------------------------------------------------------------------------------------


@given(st.lists(st.text(), max_size=4))
def test_seeds_fit_every_server(parts: list[str]) -> None:
    assert 0 <= counter_seed(*parts) < SEED_LIMIT


def test_the_counter_forgets_the_least_recently_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinspan.instrumentation.clients.seeds._REMEMBERED", 2)
    counter = DrawCounter()
    assert [counter.next(name) for name in "ababcab"] == [0, 0, 1, 1, 0, 0, 0]


def test_equal_requests_have_equal_digests_and_others_do_not() -> None:
    assert digest_of(ChatRequest.of("a")) == digest_of(ChatRequest.of("a"))
    assert digest_of(ChatRequest.of("a")) != digest_of(ChatRequest.of("b"))
    assert digest_of(ChatRequest.of("a", Sampling(seed=1))) != digest_of(ChatRequest.of("a"))
