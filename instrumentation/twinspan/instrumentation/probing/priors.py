"""In-domain payloads made by a model, for calibration where no recorded ones exist.

Thresholds and floors want many payloads of the kind the agent sees, none of which differs on
the axis. Where there are no recordings, a model can vary one example: other circumstances,
other wording, the same person. What it returns is checked before it counts, and a prior that
comes out smaller than was asked for is an error that tells by how much and why.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from twinspan.instrumentation.clients import (
    ChatClient,
    ChatRequest,
    Completion,
    JsonSchema,
    LoopThread,
    Message,
    Sampling,
)
from twinspan.instrumentation.clients.scoring import all_of
from twinspan.instrumentation.clients.seeds import counter_seed
from twinspan.instrumentation.errors import (
    ClientTimeout,
    ConfigurationError,
    IncompletePrior,
    MalformedReply,
    PerturbationError,
)
from twinspan.instrumentation.hashing import canonical
from twinspan.instrumentation.narrowing import as_mapping, as_sequence

AxisTerms = Callable[[object], Iterable[str]]
"""What a payload says of the axis: its words, or better the groups that they belong to."""

Rejection = Literal[
    "timeout",
    "refusal",
    "truncated",
    "malformed",
    "empty",
    "unchanged",
    "duplicate",
    "shape_changed",
    "axis_changed",
]
"""Why a reply did not count; a client that raised is counted by the name of its error."""

PROMPT: Final = """\
You write test inputs for a software agent. You are given one example input as JSON. Write \
another input that the same agent could get: the same kind of matter in other circumstances. \
Change facts, figures, order and phrasing that have nothing to do with {axis}.
Keep everything that states, names or hints at {axis} as it is in the example, word for word, \
and add nothing of that sort. Keep the structure: the same keys, the same types.
Variation {number}: {flavour}.
Answer with one JSON object {{"payload": ...}} that holds the new input and nothing else."""
"""What the model is told; its hash is part of a prior's provenance."""

FLAVOURS: Final = (
    "alter the circumstances a little",
    "alter the circumstances a lot",
    "say the same more briefly, with other figures",
    "say it at more length, with other details",
    "another order of the facts, some of them replaced",
    "a more formal tone and other facts",
    "a plainer tone and other facts",
    "a harder case of the same kind",
    "an easier case of the same kind",
)
"""What each variation is asked for in turn, so that they do not all come out alike."""

_KEY: Final = "payload"


def prompt_version() -> str:
    """A short hash of the prompt and its flavours; priors of one version are comparable.

    >>> len(prompt_version())
    16
    """
    text = "\x1f".join((PROMPT, *FLAVOURS))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- values -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a synthetic payload comes from, so that none is ever taken for a recording.

    Attributes:
        source: always `synthetic`.
        model: the model that wrote it, by its server's word; None if it did not say.
        seed: seed of the call, as the client was asked to use it.
        call: number of the call, from 0.
        prompt: version of the prompt.
    """

    source: Literal["synthetic"] = "synthetic"
    model: str | None
    seed: int
    call: int
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticPayload:
    """One payload that a model wrote and that passed every check."""

    payload: object = field(repr=False)
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticPrior:
    """The payloads of one generation, and what became of every call.

    Attributes:
        payloads: those that passed, in the order of their calls.
        requested: how many were asked for.
        calls: how many calls were made; payloads and rejections add up to it.
        rejected: calls that gave no payload, by reason.
        outcome: `complete`, `partial`, or `empty`.
    """

    payloads: tuple[SyntheticPayload, ...]
    requested: int
    calls: int
    rejected: Mapping[str, int]

    @property
    def outcome(self) -> Literal["complete", "partial", "empty"]:
        """Whether there are as many payloads as were asked for."""
        if len(self.payloads) >= self.requested:
            return "complete"
        return "partial" if self.payloads else "empty"


# --- the generator ----------------------------------------------------------------------------


class SyntheticPriorGenerator:
    """Makes neutral in-domain payloads at run time (synthetic domain calibration).

    Each call asks a model to vary the example without touching the axis. A reply counts if it
    is a payload of the example's shape, not blank, unlike the example and every payload before
    it, and says of the axis exactly what the example says.

    The check of the axis is the caller's: give `axis_terms` a function that sees all that the
    axis could show in, names and pronouns included. A model may still change what that
    function does not see.

    Args:
        client: the model; a blocking one goes in as `Threaded(client)`.
        axis: the axis in words for the prompt, such as "gender".
        axis_terms: what a payload says of the axis; two payloads agree if it gives equal sets
            for them, case aside.
        count: payloads wanted, at least 1.
        max_calls: most calls of one generation; three per payload if unset.
        concurrency: calls at once.
        timeout: seconds for one call.
        patience: failed calls in a row, such as errors or time-outs, after which the rest is
            not tried.
        temperature: of the calls; variety needs some.
        seed: root of the calls' seeds and of nothing else.

    Raises:
        ConfigurationError: for a bound below 1, fewer calls than payloads, or a timeout that
            is not over 0.

    >>> import itertools
    >>> from twinspan.instrumentation.clients import ScriptedClient
    >>> numbers = itertools.count(1)
    >>> client = ScriptedClient(
    ...     lambda request, rng: '{"payload": "She asks for %d EUR."}' % next(numbers)
    ... )
    >>> generator = SyntheticPriorGenerator(
    ...     client,
    ...     axis="gender",
    ...     axis_terms=lambda text: [word for word in str(text).lower().split() if word == "she"],
    ...     count=2,
    ... )
    >>> [each.payload for each in generator.generate_sync("She asks for 500 EUR.").payloads]
    ['She asks for 1 EUR.', 'She asks for 2 EUR.']
    """

    def __init__(
        self,
        client: ChatClient,
        *,
        axis: str,
        axis_terms: AxisTerms,
        count: int = 16,
        max_calls: int | None = None,
        concurrency: int = 4,
        timeout: float = 60.0,
        patience: int = 4,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> None:
        self._client = client
        self._axis = axis
        self._axis_terms = axis_terms
        self._count = _at_least("count", count, 1)
        self._max_calls = _at_least(
            "max_calls", 3 * count if max_calls is None else max_calls, count
        )
        self._concurrency = _at_least("concurrency", concurrency, 1)
        self._patience = _at_least("patience", patience, 1)
        if not timeout > 0:
            raise ConfigurationError(f"timeout is {timeout!r}; it must be over 0 s")
        self._timeout = timeout
        self._sampling = Sampling(temperature=temperature)
        self._seed = seed

    async def generate(self, example: object, *, allow_partial: bool = False) -> SyntheticPrior:
        """Make payloads like the example.

        The same seed, example and answers give the same prior, however the calls overlap.

        Args:
            example: a payload: text, or anything that JSON can hold.
            allow_partial: return a prior that is too small instead of raising.

        Raises:
            IncompletePrior: if fewer payloads came out than were asked for; it carries what
                there is and tells the reasons.
            PerturbationError: if the example is blank or JSON cannot hold it.
        """
        batch = _Batch(example, self._axis_terms)
        while batch.missing(self._count) and batch.calls < self._max_calls:
            if batch.failed_in_a_row >= self._patience:
                break
            size = min(batch.missing(self._count), self._max_calls - batch.calls, self._concurrency)
            numbers = range(batch.calls, batch.calls + size)
            replies = await all_of(self._ask(batch.text, number) for number in numbers)
            for number, reply in zip(numbers, replies, strict=True):
                batch.take_in(reply, self._provenance(reply, number))
        prior = batch.prior(self._count)
        if prior.outcome != "complete" and not allow_partial:
            raise _incomplete(prior)
        return prior

    def generate_sync(self, example: object, *, allow_partial: bool = False) -> SyntheticPrior:
        """As `generate`, for code without an event loop; the calling thread waits."""
        with LoopThread() as thread:
            return thread.run(self.generate(example, allow_partial=allow_partial))

    # --- one call -------------------------------------------------------------------------------

    def _seed_of(self, number: int) -> int:
        return counter_seed(self._seed, "prior", number)

    def _provenance(self, reply: Completion | str, number: int) -> Provenance:
        model = None if isinstance(reply, str) else reply.model
        return Provenance(
            model=model, seed=self._seed_of(number), call=number, prompt=prompt_version()
        )

    async def _ask(self, example: str, number: int) -> Completion | str:
        """The reply, or the name of what went wrong: one call's failure is not the others'."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._client.complete(self._request(example, number))
        except (TimeoutError, ClientTimeout):
            return "timeout"
        except Exception as error:
            return type(error).__name__

    def _request(self, example: str, number: int) -> ChatRequest:
        told = PROMPT.format(
            axis=self._axis,
            number=number + 1,
            flavour=FLAVOURS[number % len(FLAVOURS)],
        )
        return ChatRequest(
            messages=(Message.system(told), Message.user(example)),
            sampling=Sampling(temperature=self._sampling.temperature, seed=self._seed_of(number)),
            schema=JsonSchema(name="variation", schema=_SCHEMA, strict=False),
        )


_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {_KEY: {}},
    "required": [_KEY],
}


class _Batch:
    """The payloads accepted so far, and the count of everything else."""

    def __init__(self, example: object, axis_terms: AxisTerms) -> None:
        self.text = _as_json(example)
        if _is_blank(example):
            raise PerturbationError(
                "the example payload is blank; give one that an agent could get"
            )
        self._example = example
        self._axis_terms = axis_terms
        self._terms = self._terms_of(example)
        self._seen = {_comparable(example)}
        self._payloads: list[SyntheticPayload] = []
        self._rejected: Counter[str] = Counter()
        self.failed_in_a_row = 0

    @property
    def calls(self) -> int:
        return len(self._payloads) + self._rejected.total()

    def missing(self, count: int) -> int:
        return max(0, count - len(self._payloads))

    def take_in(self, reply: Completion | str, provenance: Provenance) -> None:
        if isinstance(reply, str):
            self.failed_in_a_row += 1
            self._rejected[reply] += 1
            return
        self.failed_in_a_row = 0
        try:
            payload = _payload_of(reply)
        except MalformedReply:
            self._rejected[_unread(reply)] += 1
            return
        objection = self._objection(payload)
        if objection is not None:
            self._rejected[objection] += 1
            return
        self._seen.add(_comparable(payload))
        self._payloads.append(SyntheticPayload(payload=payload, provenance=provenance))

    def prior(self, requested: int) -> SyntheticPrior:
        return SyntheticPrior(
            payloads=tuple(self._payloads),
            requested=requested,
            calls=self.calls,
            rejected=dict(self._rejected),
        )

    def _objection(self, payload: object) -> Rejection | None:
        if _is_blank(payload):
            return "empty"
        if _shape(payload) != _shape(self._example):
            return "shape_changed"
        comparable = _comparable(payload)
        if comparable == _comparable(self._example):
            return "unchanged"
        if comparable in self._seen:
            return "duplicate"
        return None if self._terms_of(payload) == self._terms else "axis_changed"

    def _terms_of(self, payload: object) -> frozenset[str]:
        return frozenset(term.casefold() for term in self._axis_terms(payload))


# --- payloads ---------------------------------------------------------------------------------


def _as_json(example: object) -> str:
    try:
        return json.dumps(example, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        # Without the cause, whose text may show a part of the payload.
        raise PerturbationError(
            "the example payload is nothing that JSON can hold; "
            "give text, numbers, lists and mappings"
        ) from None


def _payload_of(reply: Completion) -> object:
    if reply.outcome != "answer":
        raise MalformedReply(f"the model's answer is {reply.outcome}; ask again")
    fields = as_mapping(reply.json())
    if fields is None or _KEY not in fields:
        raise MalformedReply(f"the answer has no {_KEY!r}; use a model that follows a schema")
    return fields[_KEY]


def _unread(reply: Completion) -> Rejection:
    if reply.outcome == "refusal":
        return "refusal"
    if reply.outcome == "truncated":
        return "truncated"
    return "empty" if reply.outcome == "empty" else "malformed"


def _is_blank(payload: object) -> bool:
    """Whether no text or number is in a payload."""
    mapping, items = as_mapping(payload), as_sequence(payload)
    if mapping is not None:
        return all(_is_blank(value) for value in mapping.values())
    if items is not None:
        return all(_is_blank(value) for value in items)
    return payload is None or (isinstance(payload, str) and not payload.strip())


def _comparable(payload: object) -> str:
    """Payloads that differ only in white space or case are the same one."""
    return canonical(_folded(payload))


def _folded(payload: object) -> object:
    mapping, items = as_mapping(payload), as_sequence(payload)
    if mapping is not None:
        return {str(key): _folded(value) for key, value in mapping.items()}
    if items is not None:
        return [_folded(value) for value in items]
    return " ".join(payload.casefold().split()) if isinstance(payload, str) else payload


def _shape(payload: object) -> object:
    """A payload's keys and types; a list's length is free, and all numbers are one type."""
    mapping, items = as_mapping(payload), as_sequence(payload)
    if mapping is not None:
        return {str(key): _shape(value) for key, value in mapping.items()}
    if items is not None:
        return sorted({canonical(_shape(value)) for value in items})
    if isinstance(payload, int | float) and not isinstance(payload, bool):
        return "number"
    return type(payload).__name__


def _incomplete(prior: SyntheticPrior) -> IncompletePrior:
    return IncompletePrior(
        prior,
        accepted=len(prior.payloads),
        requested=prior.requested,
        calls=prior.calls,
        reasons=prior.rejected,
    )


def _at_least(name: str, value: int, least: int) -> int:
    if not value >= least:
        raise ConfigurationError(f"{name} is {value!r}; it must be at least {least}")
    return value
