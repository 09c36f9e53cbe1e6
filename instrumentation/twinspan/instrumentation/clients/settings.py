"""Options of a model client: argument over environment over default."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, TypedDict, cast, get_args

import httpx

from twinspan.instrumentation.clients.checks import check_number
from twinspan.instrumentation.clients.values import Sampling
from twinspan.instrumentation.errors import ConfigurationError

StructuredMode = Literal["json_schema", "json_object", "off"]
"""How a server is asked for structured answers; `off` leaves it to the prompt."""

_STRUCTURED: Final[tuple[str, ...]] = get_args(StructuredMode)

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"

VARIABLES: Final[Mapping[str, str]] = {
    "base_url": "OPENAI_BASE_URL",
    "api_key": "OPENAI_API_KEY",
    "model": "TWINSPAN_MODEL",
    "embedding_model": "TWINSPAN_EMBEDDING_MODEL",
    "temperature": "TWINSPAN_CLIENT_TEMPERATURE",
    "top_p": "TWINSPAN_CLIENT_TOP_P",
    "seed": "TWINSPAN_CLIENT_SEED",
    "max_tokens": "TWINSPAN_CLIENT_MAX_TOKENS",
    "timeout": "TWINSPAN_CLIENT_TIMEOUT",
    "retries": "TWINSPAN_CLIENT_RETRIES",
    "backoff": "TWINSPAN_CLIENT_BACKOFF",
    "longest_wait": "TWINSPAN_CLIENT_LONGEST_WAIT",
    "concurrency": "TWINSPAN_CLIENT_CONCURRENCY",
    "top_logprobs": "TWINSPAN_CLIENT_TOP_LOGPROBS",
    "samples": "TWINSPAN_CLIENT_SAMPLES",
    "structured": "TWINSPAN_CLIENT_STRUCTURED",
}
"""The environment variable of each option."""


class Secret:
    """A text that shows itself only on request.

    >>> key = Secret("sk-123")
    >>> key, str(key), key.reveal()
    (Secret(***), 'Secret(***)', 'sk-123')
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


class ClientOptions(TypedDict, total=False):
    """The options of `ClientSettings` as keywords; a key may be plain text, None is "not given"."""

    base_url: str | None
    api_key: str | Secret | None
    model: str | None
    embedding_model: str | None
    temperature: float | None
    top_p: float | None
    seed: int | None
    max_tokens: int | None
    timeout: float | None
    retries: int | None
    backoff: float | None
    longest_wait: float | None
    concurrency: int | None
    top_logprobs: int | None
    samples: int | None
    structured: StructuredMode | None
    headers: Mapping[str, str] | None
    trust_env: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How a client reaches its server and asks.

    Attributes:
        base_url: root of the server's API, mostly ending in `/v1`; a query in it is kept.
        api_key: sent as a bearer token; none is sent if unset.
        model: the model that answers.
        embedding_model: the model that embeds; `model` if unset.
        temperature: of answers that do not ask for one; the server's default if unset.
        top_p: the same, in (0, 1].
        seed: root of the seeds that answers are drawn with. Each draw of a prompt gets a
            seed of its own from it, since one seed for all draws would make them copies.
        max_tokens: longest answer in tokens; the server's default if unset.
        timeout: seconds for one try of a request, from sending it to its last byte.
        retries: further tries after a broken connection or a status of 408, 409, 425, 429 or
            5xx. A timed-out try is not repeated.
        backoff: seconds before the first further try; doubled for each next one.
        longest_wait: most seconds between two tries; a server that asks for more gets none.
        concurrency: requests under way at once, per event loop.
        top_logprobs: alternatives asked for per token; hosted services mostly allow 20.
        samples: answers drawn where candidates have to be scored by sampling.
        structured: how structured answers are asked for.
        headers: further headers, for gateways; not shown.
        trust_env: whether proxies and certificates of the environment are used, as by httpx.

    Raises:
        ConfigurationError: for a value without meaning.

    >>> ClientSettings(base_url="http://localhost:8000/v1", model="m", api_key=Secret("k")).api_key
    Secret(***)
    """

    base_url: str = DEFAULT_BASE_URL
    api_key: Secret | None = None
    model: str | None = None
    embedding_model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    timeout: float = 60.0
    retries: int = 3
    backoff: float = 0.5
    longest_wait: float = 30.0
    concurrency: int = 8
    top_logprobs: int = 20
    samples: int = 8
    structured: StructuredMode = "json_schema"
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    trust_env: bool = True

    def __post_init__(self) -> None:
        _check_url(self.base_url)
        _check_key(self.api_key)
        _check_headers(self.headers)
        if self.model is None and self.embedding_model is None:
            raise ConfigurationError(
                f"no model is named; give model=... or set {VARIABLES['model']}"
            )
        if self.structured not in _STRUCTURED:
            raise ConfigurationError(
                f"structured is {self.structured!r}; use one of {', '.join(_STRUCTURED)}"
            )
        self._check_numbers()

    def _check_numbers(self) -> None:
        check_number("timeout", self.timeout, valid=lambda x: x > 0, range_="over 0 s")
        for name in ("retries", "backoff", "longest_wait"):
            check_number(name, getattr(self, name), valid=lambda x: x >= 0, range_="0 or more")
        for name in ("concurrency", "samples"):
            check_number(name, getattr(self, name), valid=lambda x: x >= 1, range_="1 or more")
        check_number("top_logprobs", self.top_logprobs, valid=lambda x: x >= 2, range_="2 or more")
        self.sampling()

    def sampling(self) -> Sampling:
        """How answers are drawn that do not say otherwise; without a seed.

        >>> ClientSettings(model="m", temperature=0.2, seed=3).sampling().seed is None
        True
        """
        return Sampling(
            model=self.model,
            temperature=self.temperature,
            top_p=self.top_p,
            max_tokens=self.max_tokens,
        )

    @property
    def server(self) -> str:
        """The base URL as messages show it: without query.

        >>> ClientSettings(base_url="http://host/v1?api-key=x", model="m").server
        'http://host/v1'
        """
        return str(httpx.URL(self.base_url).copy_with(query=None, fragment=None))

    @classmethod
    def resolve(
        cls, arguments: Mapping[str, object], *, environ: Mapping[str, str] | None = None
    ) -> ClientSettings:
        """Take each option from the arguments, else the environment, else its default.

        Args:
            arguments: options by name; None counts as not given. A key may be plain text.
            environ: the environment; the process's if unset.

        Raises:
            ConfigurationError: for an unknown option or a value without meaning.

        >>> s = ClientSettings.resolve({"timeout": 5}, environ={"TWINSPAN_MODEL": "llama"})
        >>> s.model, s.timeout
        ('llama', 5.0)
        """
        env = os.environ if environ is None else environ
        unknown = sorted(set(arguments) - {each.name for each in fields(cls)})
        if unknown:
            raise ConfigurationError(
                f"there is no client option {unknown[0]!r}; "
                f"known: {', '.join(each.name for each in fields(cls))}"
            )
        found: dict[str, object] = {
            name: env[variable] for name, variable in VARIABLES.items() if env.get(variable)
        }
        found.update({name: value for name, value in arguments.items() if value is not None})
        return cls(**cast("dict[str, Any]", {n: _converted(n, v) for n, v in found.items()}))


# --- one option -------------------------------------------------------------------------------


def _check_url(base_url: str) -> None:
    """Refuse what is no web address, or carries a password; neither is repeated in the message."""
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError):
        url = httpx.URL("")
    if url.scheme not in {"http", "https"} or not url.host:
        raise ConfigurationError(
            "base_url is no web address; use one like 'http://localhost:8000/v1'"
        )
    if url.userinfo:
        raise ConfigurationError(
            "base_url holds a user name or password; leave it out and use api_key or headers"
        )


def _fits_header(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _check_headers(headers: Mapping[str, str]) -> None:
    """As for a key: a value that cannot be sent would be shown in the HTTP library's error."""
    for name, value in headers.items():
        if not (_HEADER_NAME.fullmatch(name) and _fits_header(value)):
            raise ConfigurationError(
                f"header {name!r} cannot be sent; use plain ASCII without line breaks"
            )


def _check_key(key: Secret | None) -> None:
    """Refuse a key that no header can carry: the HTTP library would show it in its error."""
    if key is not None and not _fits_header(key.reveal()):
        raise ConfigurationError(
            f"api_key has characters that no header can carry; look at {VARIABLES['api_key']}"
        )


def _secret(value: object) -> Secret:
    return value if isinstance(value, Secret) else Secret(str(value).strip())


def _whole(value: object) -> int:
    number = int(cast(Any, value))
    if number != float(cast(Any, value)):
        raise ValueError
    return number


def _real(value: object) -> float:
    return float(cast(Any, value))


_CONVERTERS: Final[Mapping[str, Callable[[object], object]]] = {
    "api_key": _secret,
    "temperature": _real,
    "top_p": _real,
    "timeout": _real,
    "backoff": _real,
    "longest_wait": _real,
    "seed": _whole,
    "max_tokens": _whole,
    "retries": _whole,
    "concurrency": _whole,
    "top_logprobs": _whole,
    "samples": _whole,
}


def _converted(name: str, value: object) -> object:
    try:
        return _CONVERTERS[name](value) if name in _CONVERTERS else value
    except (TypeError, ValueError, OverflowError):
        raise ConfigurationError(f"{name} is {value!r}, which is no number of its kind") from None
