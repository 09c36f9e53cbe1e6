"""A real HTTP server on this machine that speaks the OpenAI protocol, for tests of clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import pytest

ENVIRONMENT = (
    "OPENAI_BASE_URL",
    "OPENAI_API_KEY",
    "TWINSPAN_MODEL",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)


def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what the surrounding machine would tell a client."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer: a status and a body, or no answer at all."""

    status: int = 200
    body: object = None
    raw: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    hang: bool = False
    drop: bool = False

    def content(self) -> bytes:
        return self.raw if self.raw is not None else json.dumps(self.body).encode()


@dataclass(frozen=True, slots=True)
class Received:
    """One request as the server saw it."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


Script = Callable[[dict[str, Any]], Answer]


def chat(content: object = "yes", **extra: Any) -> Answer:
    """A chat answer; `extra` goes into the choice."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, **extra}
    return Answer(body={"choices": [choice], "model": "served"})


def error(status: int, message: str, **fields: Any) -> Answer:
    """An error in OpenAI's form."""
    return Answer(status=status, body={"error": {"message": message, **fields}})


class ChatServer:
    """Answers each path by a script: answers in turn (the last repeats), or a function."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.most_at_once = 0
        self.hung = threading.Event()
        self.left = threading.Event()
        self._at_once = 0
        self._release = threading.Event()
        self._lock = threading.Lock()
        self._scripts: dict[str, list[Answer] | Script] = {}
        self._rest = [Answer(status=404, body={"error": "no such path"})]
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def script(self, path: str, *answers: Answer) -> None:
        self._scripts["/v1" + path] = list(answers)

    def script_all(self, answer: Answer) -> None:
        """Give one answer on whatever path, also a proxy's."""
        self._rest = [answer]

    def script_by(self, path: str, function: Script) -> None:
        self._scripts["/v1" + path] = function

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [each.body for each in self.received if each.path == "/v1" + path]

    def answer(self, path: str, body: dict[str, Any]) -> Answer:
        script = self._scripts.get(path, self._rest)
        if callable(script):
            return script(body)
        with self._lock:
            return script.pop(0) if len(script) > 1 else script[0]

    def hang(self) -> None:
        self.hung.set()
        self._release.wait(30)

    def entered(self, change: int) -> None:
        with self._lock:
            self._at_once += change
            self.most_at_once = max(self.most_at_once, self._at_once)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # One segment per answer: else delayed acknowledgements cost 40 ms each.
            wbufsize = -1

            def do_POST(self) -> None:
                outer.entered(+1)
                try:
                    self._answer()
                finally:
                    outer.entered(-1)

            def _answer(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                path = self.path.partition("?")[0]
                body = json.loads(content)
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.received.append(Received(self.path, headers, body))
                answer = outer.answer(path, body)
                if answer.hang:
                    outer.hang()
                if answer.hang or answer.drop:
                    self.close_connection = True
                    return
                self._send(answer)

            def _send(self, answer: Answer) -> None:
                content = answer.content()
                self.send_response(answer.status)
                self.send_header("content-length", str(len(content)))
                if "content-type" not in answer.headers:
                    self.send_header("content-type", "application/json")
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def finish(self) -> None:
                super().finish()
                outer.left.set()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
