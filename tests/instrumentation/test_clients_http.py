"""The OpenAI-compatible client against a real HTTP server."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import socket
import threading
import traceback
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import numpy as np
import pytest
from chat_server import Answer, ChatServer, chat, clean_environment, error

from twinspan.instrumentation.clients import (
    ChatClient,
    ChatRequest,
    Embedder,
    JsonSchema,
    Message,
    OpenAICompatibleClient,
    Sampling,
    TextRequest,
    ToolCall,
    ToolSpec,
)
from twinspan.instrumentation.errors import (
    ClientError,
    ClientTimeout,
    ConfigurationError,
    MalformedReply,
    NotServed,
    RequestRejected,
    ServerUnreachable,
)

KEY = "sk-very-secret-key"
WORDS = "Mrs Okafor is 81 and asks for morphine"
ASK = ChatRequest.of(WORDS)
CHAT = "/chat/completions"

T = TypeVar("T")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clean_environment(monkeypatch)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


def client_of(server: ChatServer, **options: Any) -> OpenAICompatibleClient:
    given: dict[str, Any] = {
        "base_url": server.url,
        "model": "m",
        "api_key": KEY,
        "backoff": 0.001,
        "timeout": 20,
    }
    return OpenAICompatibleClient(**{**given, **options})


def run(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


# --- asking -----------------------------------------------------------------------------------


def test_a_question_goes_out_as_the_protocol_writes_it_and_the_answer_comes_back(
    server: ChatServer,
) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    reply = {
        "choices": [{"message": {"content": "admit"}, "finish_reason": "stop"}],
        "model": "m-2026",
        "usage": usage,
    }
    server.script(CHAT, Answer(body=reply))
    request = ChatRequest(
        messages=(Message.system("You triage."), Message.user(WORDS)),
        sampling=Sampling(temperature=0.5, max_tokens=7, seed=11, stop=("\n",), top_p=0.9),
    )
    answer = run(client_of(server).complete(request))
    assert server.bodies(CHAT) == [
        {
            "model": "m",
            "temperature": 0.5,
            "top_p": 0.9,
            "seed": 11,
            "max_tokens": 7,
            "stop": ["\n"],
            "messages": [
                {"role": "system", "content": "You triage."},
                {"role": "user", "content": WORDS},
            ],
        }
    ]
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
    assert (answer.text, answer.model, answer.finish_reason) == ("admit", "m-2026", "stop")
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (9, 1)
    assert answer.sampling == Sampling(
        model="m", temperature=0.5, top_p=0.9, seed=11, max_tokens=7, stop=("\n",)
    )


def test_without_a_key_no_authorization_is_sent(server: ChatServer) -> None:
    server.script(CHAT, chat())
    run(OpenAICompatibleClient(base_url=server.url, model="m").complete(ASK))
    assert "authorization" not in server.received[0].headers


def test_the_client_takes_its_server_key_and_model_from_the_environment(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("TWINSPAN_MODEL", "from-environment")
    server.script(CHAT, chat())
    run(OpenAICompatibleClient().complete(ASK))
    assert server.bodies(CHAT)[0]["model"] == "from-environment"
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_query_and_further_headers_of_a_gateway_are_kept(server: ChatServer) -> None:
    server.script(CHAT, chat())
    client = client_of(server, base_url=server.url + "/?api-version=3", headers={"api-key": "x"})
    run(client.complete(ASK))
    assert server.received[0].path == "/v1/chat/completions?api-version=3"
    assert server.received[0].headers["api-key"] == "x"


def test_tools_and_their_results_go_out_and_tool_calls_come_back(server: ChatServer) -> None:
    call = {"id": "c1", "function": {"name": "lookup", "arguments": '{"id": 4}'}}
    server.script(CHAT, chat(None, message={"content": None, "tool_calls": [call]}))
    request = ChatRequest(
        messages=(
            Message.user("who?"),
            Message(
                role="assistant",
                tool_calls=(ToolCall(id="c0", name="lookup", arguments="{}"),),
            ),
            Message(role="tool", content="nobody", tool_call_id="c0"),
        ),
        tools=(ToolSpec(name="lookup", parameters={"type": "object"}),),
        tool_choice="lookup",
    )
    answer = run(client_of(server).complete(request))
    sent = server.bodies(CHAT)[0]
    assert sent["messages"][1]["tool_calls"][0]["function"]["name"] == "lookup"
    assert sent["messages"][2]["tool_call_id"] == "c0"
    assert sent["tools"][0]["function"]["parameters"] == {"type": "object"}
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "lookup"}}
    assert answer.outcome == "tool_calls"
    assert answer.tool_calls[0].parsed() == {"id": 4}


def test_a_structured_answer_is_asked_for_by_schema_and_read_as_json(server: ChatServer) -> None:
    server.script(CHAT, chat('{"admit": true}'))
    schema = JsonSchema(name="triage", schema={"type": "object"})
    request = ChatRequest(messages=ASK.messages, schema=schema)
    assert run(client_of(server).complete(request)).json() == {"admit": True}
    run(client_of(server, structured="json_object").complete(request))
    run(client_of(server, structured="off").complete(request))
    first, second, third = server.bodies(CHAT)
    assert first["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "triage", "schema": {"type": "object"}, "strict": True},
    }
    assert second["response_format"] == {"type": "json_object"}
    assert "response_format" not in third


def test_a_server_without_structured_answers_is_named_as_such(server: ChatServer) -> None:
    server.script(CHAT, error(400, "unknown field response_format"))
    schema = JsonSchema(name="x", schema={})
    with pytest.raises(NotServed, match="set structured to"):
        run(client_of(server).complete(ChatRequest(messages=ASK.messages, schema=schema)))


def test_the_newer_name_of_the_token_limit_is_found_and_remembered(server: ChatServer) -> None:
    def newer_only(body: dict[str, Any]) -> Answer:
        if "max_tokens" in body:
            return error(
                400,
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                param="max_tokens",
                code="unsupported_parameter",
            )
        return chat()

    server.script_by(CHAT, newer_only)
    client = client_of(server, max_tokens=5)

    async def twice() -> None:
        await client.complete(ASK)
        await client.complete(ASK)

    run(twice())
    limits = [body.get("max_completion_tokens") for body in server.bodies(CHAT)]
    assert limits == [None, 5, 5]


def test_a_prompt_with_a_lone_surrogate_can_be_sent(server: ChatServer) -> None:
    server.script(CHAT, chat())
    run(client_of(server).complete(ChatRequest.of("a\ud800b")))
    assert server.bodies(CHAT)[0]["messages"][0]["content"] == "a\ud800b"


def test_each_draw_of_a_prompt_has_a_seed_of_its_own_in_any_order(server: ChatServer) -> None:
    server.script(CHAT, chat())

    async def drawn(seed: int) -> list[int]:
        client = client_of(server, seed=seed)
        prompts = ["a", "b", "a", "a", "b"]
        answers = await asyncio.gather(*(client.complete(ChatRequest.of(p)) for p in prompts))
        return sorted(answer.sampling.seed or -1 for answer in answers)

    first, again, other = run(drawn(1)), run(drawn(1)), run(drawn(2))
    assert first == again
    assert len(set(first)) == 5
    assert not set(first) & set(other)


def test_the_completions_path_continues_a_text(server: ChatServer) -> None:
    columns = {
        "tokens": ["1", "+1", "=2"],
        "token_logprobs": [None, -1.0, -0.5],
        "top_logprobs": [None, {"+1": -1.0}, {"=2": -0.5, "=3": -1.0}],
    }
    choice = {"text": "1+1=2", "logprobs": columns}
    server.script("/completions", Answer(body={"choices": [choice]}))
    request = TextRequest(prompt="1+1", logprobs=2, echo=True)
    answer = run(client_of(server).complete_text(request))
    assert server.bodies("/completions") == [
        {"model": "m", "prompt": "1+1", "logprobs": 2, "echo": True}
    ]
    assert answer.text == "1+1=2"
    assert answer.logprobs is not None
    assert [token.logprob for token in answer.logprobs] == [None, -1.0, -0.5]
    assert answer.logprobs[2].top == (("=2", -0.5), ("=3", -1.0))


@pytest.mark.parametrize(
    "entry",
    [
        {
            "id": 7,
            "token": " to",
            "logprob": -0.5,
            "bytes": [32],
            "top_logprobs": [
                {"id": 7, "token": " to", "logprob": -0.5},
                {"id": 8, "token": " be", "logprob": -1.5},
            ],
        },
        {
            "token": " to",
            "prob": math.exp(-0.5),
            "top_probs": [
                {"token": " to", "prob": math.exp(-0.5)},
                {"token": " be", "prob": math.exp(-1.5)},
            ],
        },
        {
            "content": " to",
            "probs": [
                {"tok_str": " to", "prob": math.exp(-0.5)},
                {"tok_str": " be", "prob": math.exp(-1.5)},
                {"tok_str": " no", "prob": 0.0},
            ],
        },
    ],
    ids=["newer", "after sampling", "older"],
)
@pytest.mark.parametrize("at_top", [True, False])
def test_llama_cpps_own_probabilities_are_read(
    server: ChatServer, entry: dict[str, Any], at_top: bool
) -> None:
    native = {"completion_probabilities": [entry]}
    choice = {"text": " to", "logprobs": None, **({} if at_top else native)}
    server.script("/completions", Answer(body={"choices": [choice], **(native if at_top else {})}))
    answer = run(client_of(server).complete_text(TextRequest(prompt="x", logprobs=2)))
    assert answer.logprobs is not None
    assert answer.logprobs[0].token == " to"
    assert dict(answer.logprobs[0].top) == pytest.approx({" to": -0.5, " be": -1.5})


def test_a_continuation_may_be_declined_too(server: ChatServer) -> None:
    server.script(
        "/completions",
        error(400, "no", code="content_filter"),
        Answer(body={"choices": [{"text": "", "finish_reason": "content_filter"}]}),
        error(400, "no"),
        Answer(body={"choices": [{"text": None}]}),
    )

    async def outcomes() -> list[str]:
        client, request = client_of(server), TextRequest(prompt="x")
        refused: list[str] = [(await client.complete_text(request)).outcome for _ in range(2)]
        with pytest.raises(RequestRejected):
            await client.complete_text(request)
        with pytest.raises(MalformedReply, match="text is null"):
            await client.complete_text(request)
        return refused

    assert run(outcomes()) == ["refusal"] * 2


# --- refusals are answers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        chat(None, message={"content": None, "refusal": "I cannot help with that."}),
        chat(None, finish_reason="content_filter"),
        error(400, "filtered", code="content_filter"),
        error(
            400,
            "filtered",
            code="400",
            innererror={"code": "ResponsibleAIPolicyViolation"},
        ),
    ],
    ids=["by the model", "by the finish reason", "by an error", "by an inner error"],
)
def test_a_refusal_is_an_answer_however_it_is_told(server: ChatServer, answer: Answer) -> None:
    server.script(CHAT, answer)
    completion = run(client_of(server).complete(ASK))
    assert completion.refused
    assert completion.outcome == "refusal"
    assert len(server.received) == 1


# --- failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 503])
def test_a_passing_failure_is_tried_again(server: ChatServer, status: int) -> None:
    server.script(CHAT, error(status, "busy"), error(status, "busy"), chat())
    assert run(client_of(server).complete(ASK)).text == "yes"
    assert len(server.received) == 3


def test_a_rate_limit_with_a_wait_that_is_short_enough_is_kept_to(server: ChatServer) -> None:
    limited = Answer(status=429, body={}, headers={"retry-after": "0"})
    server.script(CHAT, limited, chat())
    assert run(client_of(server).complete(ASK)).text == "yes"


def test_a_server_that_asks_for_a_long_rest_is_left_alone(server: ChatServer) -> None:
    server.script(CHAT, Answer(status=429, body={}, headers={"retry-after": "3600"}), chat())
    with pytest.raises(RequestRejected, match="429 in 1 try; lower the concurrency") as caught:
        run(client_of(server).complete(ASK))
    assert caught.value.status == 429
    assert len(server.received) == 1


def test_retries_end_and_the_error_tells_how_many_there_were(server: ChatServer) -> None:
    page = Answer(
        status=502, raw=b"<html>Bad Gateway</html>", headers={"content-type": "text/html"}
    )
    server.script(CHAT, page)
    with pytest.raises(RequestRejected, match="502 in 3 tries; look at the server's log"):
        run(client_of(server, retries=2).complete(ASK))
    assert len(server.received) == 3


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (error(401, f"Incorrect API key provided: {KEY}"), "set a valid api_key"),
        (error(404, "no model", code="model_not_found"), r"\(model_not_found\)"),
        (error(400, WORDS, code="context_length_exceeded"), "shorten the prompt"),
        (Answer(status=422, body={"detail": [{"loc": ["body", "seed"]}]}), "it names seed"),
        (Answer(status=307, headers={"location": "http://elsewhere"}), "final address"),
        (Answer(body={"error": {"code": 401, "message": WORDS}}), "answered 401"),
        (Answer(status=400, body={"error": f"{WORDS} {KEY}"}), "answered 400"),
        (error(400, "x", code=f"{KEY} {WORDS}"), "answered 400 in"),
        (error(400, "x", code=KEY), "answered 400 in"),
        (error(400, "x", type=f"not.{KEY}"), "answered 400 in"),
    ],
)
def test_a_lasting_failure_is_told_at_once_with_its_cure_and_without_its_words(
    server: ChatServer, answer: Answer, told: str
) -> None:
    server.script(CHAT, answer)
    with pytest.raises(RequestRejected, match=told) as caught:
        run(client_of(server).complete(ASK))
    assert len(server.received) == 1
    assert_tells_nothing(caught.value)


def test_an_error_with_a_good_status_is_tried_again_if_it_passes(server: ChatServer) -> None:
    server.script(CHAT, Answer(body={"error": {"code": 503, "message": "warming up"}}), chat())
    assert run(client_of(server).complete(ASK)).text == "yes"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(raw=b'{"choices": [{"mess'),
        Answer(raw=b"<html>hello</html>", headers={"content-type": "text/html"}),
        Answer(raw=b"data: {}\n\n", headers={"content-type": "text/event-stream"}),
        Answer(raw=b""),
        Answer(raw=b"[" * 100_000),
        Answer(raw=b"\xff\xfe\xfa"),
        Answer(raw=b"broken", headers={"content-encoding": "gzip"}),
        Answer(body=[]),
        Answer(body="yes"),
        Answer(body={}),
        Answer(body={"choices": None}),
        Answer(body={"choices": []}),
        Answer(body={"choices": ["yes"]}),
        Answer(body={"choices": [{}]}),
        Answer(body={"choices": [{"message": "yes"}]}),
        chat(7),
        chat({"text": "yes"}),
        chat(None, message={"tool_calls": "lookup"}),
        chat(None, message={"tool_calls": [{"function": {}}]}),
        chat("yes", logprobs={"content": ["yes"]}),
        chat("yes", logprobs={"content": [{"token": "yes", "logprob": "high"}]}),
        chat("yes", logprobs={"content": [{"token": "yes", "logprob": 0.5}]}),
        chat("yes", logprobs={"content": [{"logprob": -0.5}]}),
        chat("yes", logprobs={"content": [{"token": "yes", "prob": 1.5}]}),
        chat("yes", logprobs={"tokens": [7], "token_logprobs": [-1.0]}),
        chat("yes", logprobs={"content": [{"token": "yes", "top_logprobs": [3]}]}),
        chat("yes", logprobs={"tokens": ["yes"], "token_logprobs": []}),
        Answer(
            raw=b'{"choices":[{"message":{"content":"y"},"logprobs":{"content":['
            b'{"token":"y","logprob":NaN}]}}]}'
        ),
        Answer(
            raw=b'{"choices":[{"message":{"content":"y"},"logprobs":{"content":['
            b'{"token":"y","logprob":-1' + b"0" * 400 + b"}]}}]}"
        ),
    ],
)
def test_nonsense_is_malformed_and_not_tried_again(server: ChatServer, answer: Answer) -> None:
    server.script(CHAT, answer)
    with pytest.raises(MalformedReply, match=";") as caught:
        run(client_of(server).complete(ASK))
    assert len(server.received) == 1
    assert_tells_nothing(caught.value)


@pytest.mark.parametrize(
    ("answer", "outcome", "text"),
    [
        (chat(None), "empty", ""),
        (chat(""), "empty", ""),
        (chat(None, finish_reason="length"), "truncated", ""),
        (chat([{"type": "text", "text": "a"}, {"type": "image"}, "b"]), "answer", "ab"),
        (chat("<think>hm</think>\n\nyes"), "answer", "yes"),
        (chat("<think>unfinished"), "answer", "<think>unfinished"),
        (chat("yes", logprobs=None), "answer", "yes"),
        (chat("yes", logprobs={"content": None}), "answer", "yes"),
        (chat("yes", logprobs={}), "answer", "yes"),
        (chat("yes", finish_reason=3), "answer", "yes"),
        (chat("yes", message={"content": "yes", "refusal": ""}), "answer", "yes"),
    ],
)
def test_known_quirks_of_servers_are_read(
    server: ChatServer, answer: Answer, outcome: str, text: str
) -> None:
    server.script(CHAT, answer)
    completion = run(client_of(server).complete(ASK))
    assert (completion.outcome, completion.text) == (outcome, text)
    assert completion.logprobs is None
    assert completion.usage is None


@pytest.mark.parametrize(
    "usage", [None, "12", [], {}, {"prompt_tokens": "9"}, {"prompt_tokens": -1}]
)
def test_a_count_of_tokens_that_is_none_is_unknown_not_zero(
    server: ChatServer, usage: object
) -> None:
    body = {"choices": [{"message": {"content": "yes"}}], "usage": usage, "model": 4}
    server.script(CHAT, Answer(body=body))
    completion = run(client_of(server).complete(ASK))
    assert completion.usage is None or completion.usage.input_tokens is None
    assert completion.model is None


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart_from_the_answer(server: ChatServer, name: str) -> None:
    server.script(CHAT, chat(None, message={"content": "yes", name: "because"}))
    completion = run(client_of(server).complete(ASK))
    assert (completion.text, completion.reasoning) == ("yes", "because")


def test_tool_calls_of_local_servers_are_read(server: ChatServer) -> None:
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    server.script(
        CHAT,
        chat(None, message={"tool_calls": [call]}),
        chat(None, message={"function_call": {"name": "g", "arguments": "{}"}}),
    )

    async def both() -> tuple[ToolCall, ToolCall]:
        client = client_of(server)
        first, second = await client.complete(ASK), await client.complete(ASK)
        return first.tool_calls[0], second.tool_calls[0]

    first, second = run(both())
    assert (first.id, first.name, first.parsed()) == ("call_0", "f", {"a": 1})
    assert second.name == "g"


def test_a_hanging_server_times_out_and_is_not_asked_again(server: ChatServer) -> None:
    server.script(CHAT, Answer(hang=True))
    with pytest.raises(ClientTimeout, match=r"no answer within 0\.2 s") as caught:
        run(client_of(server, timeout=0.2).complete(ASK))
    assert caught.value.seconds == 0.2
    assert len(server.received) == 1


def test_a_broken_connection_is_tried_again(server: ChatServer) -> None:
    server.script(CHAT, Answer(drop=True), chat())
    assert run(client_of(server).complete(ASK)).text == "yes"


def test_a_server_that_is_not_there_is_named_with_the_kind_of_failure() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = OpenAICompatibleClient(
        base_url=f"http://127.0.0.1:{port}/v1?api-key={KEY}",
        api_key=KEY,
        model="m",
        backoff=0.001,
        retries=1,
    )
    with pytest.raises(ServerUnreachable, match=r"ECONNREFUSED\) in 2 tries; check") as caught:
        run(client.complete(ASK))
    assert caught.value.attempts == 2
    assert_tells_nothing(caught.value)


def assert_tells_nothing(failure: ClientError) -> None:
    """Neither key nor prompt is in the error, its attributes, or its printed traceback."""
    told = "".join(traceback.format_exception(failure)) + repr(vars(failure)) + repr(failure)
    assert KEY not in told
    assert "Okafor" not in told
    assert failure.__cause__ is None


# --- secrets ----------------------------------------------------------------------------------


def test_the_key_and_the_words_are_in_no_log_and_no_repr(
    server: ChatServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script(CHAT, error(500, WORDS), chat("she may not"))
    client = client_of(server)
    answer = run(client.complete(ASK))
    shown = caplog.text + repr(client) + repr(client.settings) + repr(ASK) + repr(answer)
    assert KEY not in shown
    assert "Okafor" not in shown
    assert "may not" not in shown


# --- loops, concurrency, cancellation -----------------------------------------------------------


def test_one_client_serves_several_loops_one_after_another(server: ChatServer) -> None:
    server.script(CHAT, chat())
    client = client_of(server)
    assert [run(client.complete(ASK)).text for _ in range(3)] == ["yes"] * 3


def test_one_client_serves_loops_in_several_threads_at_once(server: ChatServer) -> None:
    server.script(CHAT, chat())
    client = client_of(server)
    answers: list[str] = []

    async def asked() -> None:
        found = await asyncio.gather(*(client.complete(ASK) for _ in range(5)))
        answers.extend(answer.text for answer in found)

    threads = [threading.Thread(target=lambda: asyncio.run(asked())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["yes"] * 15


def test_no_more_calls_are_under_way_than_the_concurrency_allows(server: ChatServer) -> None:
    server.script(CHAT, chat())

    async def many() -> None:
        async with client_of(server, concurrency=3) as client:
            await asyncio.gather(*(client.complete(ASK) for _ in range(30)))

    run(many())
    assert len(server.received) == 30
    assert 1 <= server.most_at_once <= 3


def test_a_cancelled_call_frees_its_place_and_its_connection(server: ChatServer) -> None:
    server.script(CHAT, Answer(hang=True), chat())

    async def cancelled_then_asked() -> str:
        async with client_of(server, concurrency=1) as client:
            task = asyncio.create_task(client.complete(ASK))
            await asyncio.to_thread(server.hung.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await client.complete(ASK)).text

    assert run(cancelled_then_asked()) == "yes"


def test_a_closed_client_can_be_used_again(server: ChatServer) -> None:
    server.script(CHAT, chat())

    async def twice() -> None:
        client = client_of(server)
        await client.aclose()
        await client.complete(ASK)
        await client.aclose()
        await client.complete(ASK)
        await client.aclose()
        await client.aclose()

    run(twice())
    assert len(server.received) == 2


def test_the_proxy_of_the_environment_is_used_unless_it_is_not_to_be(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
    server.script_all(chat("through the proxy"))
    client = client_of(server, base_url="http://model.invalid/v1")
    assert run(client.complete(ASK)).text == "through the proxy"
    assert server.received[0].path == "http://model.invalid/v1/chat/completions"
    with pytest.raises(ServerUnreachable):
        blind = client_of(server, base_url="http://127.0.0.1:9/v1", trust_env=False, retries=0)
        run(blind.complete(ASK))


@pytest.mark.parametrize("proxy", ["socks9://u:pa55@host", "http://u:pa55@[::1"])
def test_a_proxy_that_cannot_be_used_is_told_without_its_password(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(ConfigurationError, match="look at HTTP_PROXY") as caught:
        run(OpenAICompatibleClient(base_url="http://host/v1", model="m").complete(ASK))
    assert "pa55" not in "".join(traceback.format_exception(caught.value))


def test_a_server_that_speaks_no_tls_is_named_with_the_kind_of_failure(server: ChatServer) -> None:
    client = client_of(server, base_url=server.url.replace("http:", "https:"), retries=0)
    with pytest.raises(ServerUnreachable, match=r"ConnectError, \w+\) in 1 try"):
        run(client.complete(ASK))


# --- embeddings -------------------------------------------------------------------------------


def embedded(*vectors: object) -> Answer:
    rows = [{"index": number, "embedding": vector} for number, vector in enumerate(vectors)]
    return Answer(body={"data": rows})


def test_texts_become_rows_in_their_order_whatever_the_order_of_the_reply(
    server: ChatServer,
) -> None:
    rows = [{"index": 1, "embedding": [3, 4.5]}, {"index": 0, "embedding": [1, 2]}]
    server.script("/embeddings", Answer(body={"data": rows}))
    vectors = run(client_of(server, embedding_model="e").embed(["a", "b"]))
    assert vectors.dtype == np.float64
    assert vectors.tolist() == [[1, 2], [3, 4.5]]
    assert server.bodies("/embeddings") == [
        {"input": ["a", "b"], "encoding_format": "float", "model": "e"}
    ]


def test_many_texts_go_out_in_batches_and_come_back_in_order(server: ChatServer) -> None:
    server.script_by(
        "/embeddings", lambda body: embedded(*([float(text), 1.0] for text in body["input"]))
    )
    vectors = run(client_of(server).embed([str(number) for number in range(300)]))
    assert vectors[:, 0].tolist() == list(range(300))
    assert sorted(len(body["input"]) for body in server.bodies("/embeddings")) == [44, 128, 128]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=[{"index": 0, "embedding": [[1.0, 2.0]]}]),
        Answer(body={"data": [{"embedding": [1.0, 2.0]}]}),
        Answer(body={"data": [{"index": 0, "embedding": "AACAPwAAAEA="}]}),
    ],
    ids=["older llama.cpp", "without numbers", "base64"],
)
def test_other_forms_of_vectors_are_read(server: ChatServer, answer: Answer) -> None:
    server.script("/embeddings", answer)
    assert run(client_of(server).embed(["a"])).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body={}),
        Answer(body={"data": []}),
        embedded([1.0], [2.0]),
        embedded([]),
        embedded(None),
        embedded([1.0, None]),
        embedded([1.0, "2"]),
        embedded([True]),
        embedded("no base64!"),
        embedded("AACAPw=="[:-1]),
        Answer(body={"data": [{"index": 4, "embedding": [1.0]}]}),
        Answer(raw=b'{"data": [{"index": 0, "embedding": [NaN]}]}'),
        Answer(raw=b'{"data": [{"index": 0, "embedding": [1e999]}]}'),
        Answer(raw=b'{"data": [{"index": 0, "embedding": [1' + b"0" * 400 + b"]}]}"),
    ],
)
def test_a_vector_that_is_none_never_becomes_a_number(server: ChatServer, answer: Answer) -> None:
    server.script("/embeddings", answer)
    with pytest.raises(MalformedReply):
        run(client_of(server).embed(["a"]))


def test_ragged_vectors_are_malformed(server: ChatServer) -> None:
    server.script("/embeddings", embedded([1.0], [1.0, 2.0]))
    with pytest.raises(MalformedReply, match="differ in length"):
        run(client_of(server).embed(["a", "b"]))


def test_no_text_needs_no_server_and_a_bare_text_is_refused() -> None:
    client = OpenAICompatibleClient(base_url="http://127.0.0.1:9/v1", model="m")
    assert run(client.embed([])).shape == (0, 0)
    with pytest.raises(ConfigurationError, match="list of texts"):
        run(client.embed("abc"))


def test_a_failed_batch_fails_the_whole_call_with_a_plain_error(server: ChatServer) -> None:
    server.script("/embeddings", error(400, "no"))
    with pytest.raises(RequestRejected):
        run(client_of(server).embed(["a"] * 300))


def test_the_client_speaks_the_protocols() -> None:
    client = OpenAICompatibleClient(base_url="http://localhost/v1", model="m")
    assert isinstance(client, ChatClient)
    assert isinstance(client, Embedder)


def test_a_reply_that_is_too_long_is_malformed(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinspan.instrumentation.clients.transport.REPLY_LIMIT", 1000)
    server.script(CHAT, Answer(raw=json.dumps(["x" * 2000]).encode()))
    with pytest.raises(MalformedReply, match="longer than"):
        run(client_of(server).complete(ASK))
