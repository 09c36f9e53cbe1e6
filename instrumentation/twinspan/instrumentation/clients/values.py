"""What goes to a model and what comes back, as frozen values.

The words of prompts and answers are left out of every `repr`: a value that ends up in a log
or a traceback tells its shape, not its content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, Self

from twinspan.instrumentation.clients.checks import check_number
from twinspan.instrumentation.errors import ConfigurationError, MalformedReply

Role = Literal["system", "developer", "user", "assistant", "tool"]
Outcome = Literal["answer", "tool_calls", "refusal", "truncated", "empty"]

_FENCE: Final = "```"


# --- what is asked ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool that a model wants to be run.

    Attributes:
        id: the call's name within its conversation.
        name: the tool.
        arguments: its arguments as JSON text, as the model wrote them.
    """

    id: str
    name: str
    arguments: str = field(repr=False)

    def parsed(self) -> object:
        """The arguments as a value.

        Raises:
            MalformedReply: if the model wrote no JSON.

        >>> ToolCall(id="1", name="add", arguments='{"a": 1}').parsed()
        {'a': 1}
        """
        return _parse_json(self.arguments, f"the arguments of tool {self.name!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation; its text is not part of its `repr`.

    >>> Message.user("Should we admit her?")
    Message(role='user', tool_calls=(), tool_call_id=None)
    """

    role: Role
    content: str = field(default="", repr=False)
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None

    @classmethod
    def system(cls, content: str) -> Self:
        """What the model is told to be."""
        return cls(role="system", content=content)

    @classmethod
    def user(cls, content: str) -> Self:
        """What the model is asked."""
        return cls(role="user", content=content)

    @classmethod
    def assistant(cls, content: str) -> Self:
        """What the model has said."""
        return cls(role="assistant", content=content)


Prompt = str | Sequence[Message]
"""A conversation, or its single user turn as plain text."""


def as_messages(prompt: Prompt) -> tuple[Message, ...]:
    """A prompt as a conversation.

    Raises:
        ConfigurationError: if there is no turn in it.

    >>> as_messages("hello")[0].role
    'user'
    """
    messages = (Message.user(prompt),) if isinstance(prompt, str) else tuple(prompt)
    if not messages:
        raise ConfigurationError("a prompt has no message; give it at least one user turn")
    return messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How an answer is drawn; what is None is left to the server.

    Attributes:
        model: the model's name.
        temperature: 0 for the most likely answer, 1 for the model's own law; >= 0.
        top_p: share of the likeliest tokens that are drawn from, in (0, 1].
        seed: seed of the draw, where the server honours one; a 64-bit integer.
        max_tokens: longest answer in tokens, >= 1.
        stop: texts that end an answer.

    Raises:
        ConfigurationError: for a number outside its range.
    """

    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature, valid=lambda x: x >= 0, range_="0 or more")
        check_number("top_p", self.top_p, valid=lambda x: 0 < x <= 1, range_="in (0, 1]")
        check_number("max_tokens", self.max_tokens, valid=lambda x: x >= 1, range_="1 or more")
        check_number("seed", self.seed, valid=lambda x: -(2**63) <= x < 2**63, range_="64 bits")

    def over(self, defaults: Sampling) -> Sampling:
        """These settings, with what they leave open taken from `defaults`.

        >>> Sampling(seed=7).over(Sampling(seed=1, temperature=0.5)).temperature
        0.5
        """
        left_open: dict[str, Any] = {
            each.name: getattr(defaults, each.name)
            for each in fields(self)
            if getattr(self, each.name) in (None, ())
        }
        return replace(self, **left_open)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool that a model may ask for.

    Attributes:
        name: the tool.
        description: what it does, for the model.
        parameters: JSON schema of its arguments.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchema:
    """The form an answer must have, for servers that enforce one.

    Attributes:
        name: a short word for the form, letters, digits, `_` and `-`.
        schema: the JSON schema.
        strict: whether the server is to enforce every detail of it.
    """

    name: str
    schema: Mapping[str, object]
    strict: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One question to a chat model.

    Attributes:
        messages: the conversation, at least one turn.
        sampling: how the answer is drawn.
        tools: tools the model may ask for.
        tool_choice: `auto`, `none`, `required`, or the name of one tool.
        schema: form of a structured answer; read it with `Completion.json`.
        logprobs: None for no log-probabilities, else how many alternatives to ask per token.
    """

    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str | None = None
    schema: JsonSchema | None = None
    logprobs: int | None = None

    def __post_init__(self) -> None:
        as_messages(self.messages)
        check_number("logprobs", self.logprobs, valid=lambda x: x >= 0, range_="0 or more")

    @classmethod
    def of(cls, prompt: Prompt, sampling: Sampling | None = None) -> Self:
        """The plainest request with this prompt.

        >>> ChatRequest.of("hello").messages[0].content
        'hello'
        """
        return cls(messages=as_messages(prompt), sampling=sampling or Sampling())


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest:
    """One text for a model to continue, without a chat template.

    Attributes:
        prompt: the text.
        sampling: how the continuation is drawn.
        logprobs: None for no log-probabilities, else how many alternatives to ask per token.
        echo: whether the prompt's own tokens come back, with their log-probabilities.
    """

    prompt: str = field(repr=False)
    sampling: Sampling = Sampling()
    logprobs: int | None = None
    echo: bool = False


# --- what comes back --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that a call was counted as; None where the server did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """One token of an answer.

    Attributes:
        token: its text.
        logprob: natural log of its probability; None where the server did not say (the first
            token of an echoed prompt has none).
        top: the likeliest tokens at this place with their log-probabilities.
    """

    token: str = field(repr=False)
    logprob: float | None
    top: tuple[tuple[str, float], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's answer.

    Attributes:
        text: what it said; "" if nothing.
        tool_calls: tools it wants to be run.
        finish_reason: the server's word for why it stopped, such as `stop` or `length`.
        refusal: None unless the model or its server declined; the words of it, maybe "".
        reasoning: what it thought aloud where the server tells it apart; never part of `text`.
        usage: tokens counted; None where the server did not say.
        model: the model that answered, by the server's word.
        logprobs: the answer's tokens; None where none were asked for or served.
        sampling: how the answer was drawn, after all defaults.
    """

    text: str = field(default="", repr=False)
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    refusal: str | None = field(default=None, repr=False)
    reasoning: str | None = field(default=None, repr=False)
    usage: Usage | None = None
    model: str | None = None
    logprobs: tuple[TokenLogprob, ...] | None = field(default=None, repr=False)
    sampling: Sampling = Sampling()

    @property
    def refused(self) -> bool:
        """Whether the model or its server declined to answer."""
        return self.refusal is not None

    @property
    def outcome(self) -> Outcome:
        """What kind of answer this is; an empty or refused one is an outcome, not an error.

        >>> Completion(text="yes", finish_reason="stop").outcome
        'answer'
        >>> Completion(refusal="").outcome, Completion().outcome
        ('refusal', 'empty')
        """
        if self.refused:
            return "refusal"
        if self.tool_calls:
            return "tool_calls"
        if self.finish_reason == "length":
            return "truncated"
        return "answer" if self.text.strip() else "empty"

    def json(self) -> object:
        r"""The answer of a structured request as a value; a Markdown fence around it is dropped.

        Raises:
            MalformedReply: if the model wrote no JSON.

        >>> Completion(text='```json\n{"a": 1}\n```').json()
        {'a': 1}
        """
        return _parse_json(_without_fence(self.text), "the answer")


def _without_fence(text: str) -> str:
    stripped = text.strip()
    if not (stripped.startswith(_FENCE) and stripped.endswith(_FENCE)):
        return stripped
    _, _, body = stripped.removesuffix(_FENCE).partition("\n")
    return body


def _no_constant(name: str) -> object:
    """JSON has no NaN and no infinity, though Python's reader takes them."""
    raise ValueError(name)


def _parse_json(text: str, what: str) -> object:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        # Without the cause: a decoder's error carries the whole text.
        raise MalformedReply(
            f"{what} is not JSON ({len(text)} characters); "
            "ask for it by a schema, or use a model that follows one"
        ) from None
