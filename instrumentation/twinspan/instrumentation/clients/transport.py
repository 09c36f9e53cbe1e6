"""Sends JSON to a server and brings JSON back: pooling, bounds, retries, errors.

Connections belong to the event loop that opened them. A client may be used from several loops
(one `asyncio.run` after another, loops in threads), so each loop gets a pool of its own, which
closes when the loop shuts down or when the client is closed in it.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import ssl
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import httpx

from twinspan.instrumentation.clients.replies import decode
from twinspan.instrumentation.clients.retrying import (
    Explanation,
    RetryPolicy,
    asked_wait,
    explain,
    is_transient,
    rejection,
)
from twinspan.instrumentation.clients.settings import ClientSettings
from twinspan.instrumentation.clients.wire import encode
from twinspan.instrumentation.errors import (
    ClientError,
    ClientTimeout,
    ConfigurationError,
    MalformedReply,
    RequestRejected,
    ServerUnreachable,
)
from twinspan.instrumentation.narrowing import as_mapping

REPLY_LIMIT: Final = 128 * 1024 * 1024
"""Bytes of a reply that are read; a larger one is malformed."""

_CONNECT_SECONDS: Final = 10.0
_HIGH: Final = 300


@dataclass(frozen=True, slots=True)
class _Pool:
    """What one event loop needs to talk to the server."""

    client: httpx.AsyncClient
    slots: asyncio.Semaphore
    keeper: AsyncGenerator[None]


_kept: Final[dict[AsyncGenerator[None], asyncio.AbstractEventLoop]] = {}
"""Keepers of open pools: one that was lost would be closed too late to end its connections."""


async def _opened(client: httpx.AsyncClient, concurrency: int) -> _Pool:
    """A pool that closes with its loop, even if whoever opened it is long gone.

    A loop closes the async generators that were started on it when it shuts down: the only
    hook it offers for closing connections in time.
    """
    for keeper in [each for each, loop in list(_kept.items()) if loop.is_closed()]:
        _kept.pop(keeper, None)
    keeper = _keep(client)
    await anext(keeper)
    _kept[keeper] = asyncio.get_running_loop()
    return _Pool(client, asyncio.Semaphore(concurrency), keeper)


async def _keep(client: httpx.AsyncClient) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        await client.aclose()


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: httpx.Headers
    body: bytes

    def value(self) -> object:
        return decode(self.body, self.headers.get("content-type", ""))

    def explanation(self) -> Explanation:
        try:
            return explain(self.value())
        except MalformedReply:
            return Explanation()


class Transport:
    """Posts JSON bodies to the paths below one base URL.

    Every failure is a `ClientError` that shows neither key, nor prompt, nor reply.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._policy = RetryPolicy(
            retries=settings.retries,
            backoff=settings.backoff,
            longest_wait=settings.longest_wait,
        )
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}

    async def post(self, path: str, body: Mapping[str, object]) -> object:
        """The JSON value that a path answers with.

        Raises:
            ClientTimeout: if a try takes longer than the timeout; it is not repeated.
            ServerUnreachable: if no connection holds, after all retries.
            RequestRejected: for an error status, after all retries of a passing one.
            MalformedReply: if the reply is not JSON.
            ConfigurationError: if the body is none.
        """
        content = encode(body)
        pool = await self._pool()
        async with pool.slots:
            return await self._insist(pool.client, path, content)

    async def aclose(self) -> None:
        """Close the connections of the running loop; the next request opens new ones."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            _kept.pop(pool.keeper, None)
            await pool.keeper.aclose()

    # --- pools --------------------------------------------------------------------------------

    async def _pool(self) -> _Pool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None or pool.client.is_closed:
            self._forget_closed_loops()
            pool = await _opened(self._client(), self._settings.concurrency)
            self._pools[loop] = pool
        return pool

    def _forget_closed_loops(self) -> None:
        for loop in [each for each in list(self._pools) if each.is_closed()]:
            self._pools.pop(loop, None)

    def _client(self) -> httpx.AsyncClient:
        settings = self._settings
        headers = {"content-type": "application/json", **settings.headers}
        if settings.api_key is not None:
            headers["authorization"] = f"Bearer {settings.api_key.reveal()}"
        try:
            return self._configured(headers)
        except (ValueError, ImportError, httpx.InvalidURL, OSError):
            # Without the cause, whose text may show a proxy's password.
            raise ConfigurationError(
                "the environment's proxies or certificates cannot be used; look at HTTP_PROXY, "
                "HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE, or set trust_env to False"
            ) from None

    def _configured(self, headers: Mapping[str, str]) -> httpx.AsyncClient:
        settings = self._settings
        return httpx.AsyncClient(
            headers=headers,
            # The whole try has a bound of its own, so that a server which sends a byte now
            # and then cannot hold a slot for ever.
            timeout=httpx.Timeout(None, connect=min(_CONNECT_SECONDS, settings.timeout)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            verify=_certificates(
                settings.trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
            ),
            trust_env=settings.trust_env,
        )

    def _url(self, path: str) -> httpx.URL:
        base = httpx.URL(self._settings.base_url)
        return base.copy_with(path=base.path.rstrip("/") + path, fragment=None)

    # --- tries --------------------------------------------------------------------------------

    async def _insist(self, client: httpx.AsyncClient, path: str, content: bytes) -> object:
        attempt = 0
        while True:
            attempt += 1
            asked = None
            try:
                reply = await self._try(client, path, content, attempt)
                asked = asked_wait(reply.headers)
                return self._answer(reply, attempt)
            except (ServerUnreachable, RequestRejected) as failed:
                wait = self._wait(failed, attempt, content, asked)
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    def _wait(
        self, failed: ClientError, attempt: int, content: bytes, asked: float | None
    ) -> float | None:
        if isinstance(failed, RequestRejected) and not is_transient(failed.status):
            return None
        return self._policy.wait(attempt, hashlib.sha256(content).hexdigest(), asked)

    async def _try(
        self, client: httpx.AsyncClient, path: str, content: bytes, attempt: int
    ) -> _Reply:
        try:
            async with asyncio.timeout(self._settings.timeout):
                return await _exchange(client, self._url(path), content)
        except TimeoutError:
            raise ClientTimeout(self._settings.timeout) from None
        except httpx.HTTPError as error:
            raise self._translated(error, attempt) from None

    def _answer(self, reply: _Reply, attempt: int) -> object:
        """The value of a reply that is an answer; an error may come with a status of 200."""
        if not 200 <= reply.status < _HIGH:
            raise self._rejection(reply.status, reply.explanation(), attempt)
        value = reply.value()
        body = as_mapping(value)
        if body is not None and body.get("error") and not {"choices", "data"} & set(body):
            explanation = explain(body)
            raise self._rejection(explanation.status or reply.status, explanation, attempt)
        return value

    def _rejection(self, status: int, explanation: Explanation, attempt: int) -> RequestRejected:
        """The error for an error's reply; a code that repeats our key is left out."""
        key = self._settings.api_key
        if key is not None and key.reveal() and key.reveal() in (explanation.code or ""):
            explanation = replace(explanation, code=None)
        return rejection(status, explanation, attempt)

    def _translated(self, error: httpx.HTTPError, attempt: int) -> ClientError:
        """Our error for one of httpx, whose own texts may hold parts of headers or replies."""
        if isinstance(error, httpx.DecodingError):
            return MalformedReply("the reply's compression is broken; look at the server or proxy")
        if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
            return ClientError(
                f"the request cannot be sent ({type(error).__name__}); check headers and proxies"
            )
        return ServerUnreachable(self._settings.server, cause=_cause(error), attempts=attempt)


@lru_cache(maxsize=8)
def _certificates(trust_env: bool, file: str | None, folder: str | None) -> ssl.SSLContext:
    """Loaded once, since it takes 50 ms; `file` and `folder` are what httpx reads it from."""
    return httpx.create_ssl_context(trust_env=trust_env)


async def _exchange(client: httpx.AsyncClient, url: httpx.URL, content: bytes) -> _Reply:
    async with client.stream("POST", url, content=content) as response:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > REPLY_LIMIT:
                raise MalformedReply(
                    f"the reply is longer than {REPLY_LIMIT} bytes; ask for less at once"
                )
        return _Reply(response.status_code, response.headers, bytes(body))


def _cause(error: BaseException) -> str:
    """The kind of a connection's failure in words that hold nothing of its content."""
    details = [type(error).__name__]
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError) and cause.reason:
            details.append(cause.reason)
            break
        if isinstance(cause, OSError) and cause.errno is not None:
            details.append(errno.errorcode.get(cause.errno, str(cause.errno)))
            break
        cause = cause.__cause__ or cause.__context__
    return ", ".join(details)
