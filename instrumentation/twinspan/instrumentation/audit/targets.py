"""Makes an agent of what a configuration names: a function, a graph, an HTTP endpoint, a model."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import httpx

from twinspan.instrumentation.audit.agents import (
    CaseRequest,
    DoneStep,
    StepRequest,
    steps_of,
)
from twinspan.instrumentation.clients import (
    Blocking,
    ChatRequest,
    ClientSettings,
    JsonSchema,
    Message,
    OpenAICompatibleClient,
    Sampling,
)
from twinspan.instrumentation.errors import ConfigurationError, MissingExtra

SINGLE_STEP: Final = "decision"
"""Name of the step of an agent that answers a case in one go."""


def load_object(place: str, folder: Path | None = None) -> Any:
    """What ``module:name`` names; modules of `folder` are found as well.

    Raises:
        ConfigurationError: there is no such module or name.

    >>> load_object("json:dumps")([1])
    '[1]'
    """
    module_name, _, name = place.partition(":")
    if not module_name or not name:
        raise ConfigurationError(f"{place!r} names no object; write it as module:name")
    added = None if folder is None else str(folder.resolve())
    if added is not None and added not in sys.path:
        sys.path.insert(0, added)
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigurationError(
            f"module {module_name!r} cannot be imported ({error}); put it beside the "
            "configuration, or install it"
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigurationError(
                f"module {module_name!r} has no {name!r}; name what it defines"
            )
        found = getattr(found, part)
    return found


class FunctionSteps:
    """A function of a prompt and a JSON schema as a step agent; it may be async.

    If it has a parameter ``seed`` it is given the step's.

    >>> agent = FunctionSteps(lambda prompt, schema: {"words": len(prompt.split())})
    >>> agent.answer(StepRequest(step="count", prompt="two words", schema={}, seed=1))
    {'words': 2}
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._seeded = _takes(function, "seed")

    def answer(self, request: StepRequest, /) -> object:
        """What the function returns."""
        extra = {"seed": request.seed} if self._seeded else {}
        return _finished(self._function(request.prompt, dict(request.schema), **extra))


class FunctionCase:
    """A function of a `CaseRequest` as a run agent; it may be async.

    >>> agent = FunctionCase(lambda request: {"approve": "good" in request.text})
    >>> request = CaseRequest(case_id="a", text="good", descriptor="", narrative="good",
    ...                       fixtures={}, seed=1)
    >>> [(step.name, step.action) for step in agent.act(request)]
    [('decision', {'approve': True})]
    """

    def __init__(self, function: Callable[[CaseRequest], Any], single: str = SINGLE_STEP) -> None:
        self._function = function
        self._single = single

    def act(self, request: CaseRequest, /) -> Iterable[DoneStep]:
        """The steps that the function's answer tells of."""
        return steps_of(_finished(self._function(request)), self._single)


class GraphCase:
    """A compiled LangGraph graph as a run agent: every node that answers is a step.

    Args:
        graph: the graph, or a function that makes one; one graph serves all runs.
        template: the input, with ``{text}``, ``{descriptor}`` and ``{narrative}`` to fill in.
        config: LangGraph's own configuration of a run.
    """

    def __init__(
        self, graph: Any, template: Mapping[str, object], config: Mapping[str, object] | None = None
    ) -> None:
        self._graph = graph if hasattr(graph, "stream") else graph()
        self._template = dict(template)
        self._config = dict(config or {})
        if not hasattr(self._graph, "stream"):
            raise ConfigurationError(
                f"{type(self._graph).__name__} is no compiled graph; call compile() on its builder"
            )
        self._parents = _static_parents(self._graph)

    def act(self, request: CaseRequest, /) -> Iterable[DoneStep]:
        """The nodes that ran, in the order in which they ended."""
        filled = request.fill(self._template)
        config = {
            **self._config,
            "configurable": {"thread_id": f"{request.case_id}-{request.seed}"},
        }
        begun: dict[str, int] = {}
        ran: list[str] = []
        for event in self._events(filled, config):
            payload = event["payload"]
            if event["type"] == "task":
                begun[payload["id"]] = time.time_ns()
            elif event["type"] == "task_result":
                yield self._step(payload, int(event["step"]), begun, ran)

    def _events(self, filled: object, config: Mapping[str, object]) -> Iterator[dict[str, Any]]:
        if _is_async_only(self._graph):
            yield from asyncio.run(_gathered(self._graph, filled, config))
        else:
            yield from self._graph.stream(filled, config, stream_mode="debug")

    def _step(
        self, payload: Mapping[str, Any], superstep: int, begun: dict[str, int], ran: list[str]
    ) -> DoneStep:
        name = str(payload["name"])
        if payload.get("error"):
            raise GraphFailed(name)
        parents = tuple(one for one in self._parents.get(name, ()) if one in ran)
        ran.append(name)
        return DoneStep(
            name=name,
            action=_state_fields(payload.get("result")),
            parents=parents,
            superstep=superstep,
            started=begun.get(payload["id"]),
            ended=time.time_ns(),
        )


class GraphFailed(RuntimeError):
    """A node of an audited graph failed."""


class _Endpoint:
    """An HTTP endpoint that is posted JSON and answers with JSON."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        self._client = httpx.Client(headers=dict(headers), timeout=timeout)
        self._url = url

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def posted(self, body: object) -> object:
        """The JSON that comes back."""
        reply = self._client.post(self._url, json=body)
        reply.raise_for_status()
        return cast(object, reply.json())


class HttpSteps(_Endpoint):
    """An HTTP endpoint that answers one step: it is posted prompt, schema, step and seed."""

    def __init__(self, url: str, *, headers: Mapping[str, str], timeout: float) -> None:
        super().__init__(url, headers, timeout)

    def answer(self, request: StepRequest, /) -> object:
        """The JSON that comes back."""
        return self.posted(
            {
                "step": request.step,
                "prompt": request.prompt,
                "schema": dict(request.schema),
                "seed": request.seed,
            }
        )


class HttpCase(_Endpoint):
    """An HTTP endpoint that does a whole case: it is posted the case's text and a seed.

    Args:
        url: the endpoint.
        headers: headers of every request.
        timeout: seconds for one answer.
        template: the body, with ``{text}`` and the like to fill in; None for case_id, text,
            descriptor, narrative and seed.
        single: the name of the step where the answer is one action.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        timeout: float,
        template: Mapping[str, object] | None = None,
        single: str = SINGLE_STEP,
    ) -> None:
        super().__init__(url, headers, timeout)
        self._template = template
        self._single = single

    def act(self, request: CaseRequest, /) -> Iterable[DoneStep]:
        """The steps that the JSON that comes back tells of."""
        body: object = {
            "case_id": request.case_id,
            "text": request.text,
            "descriptor": request.descriptor,
            "narrative": request.narrative,
            "seed": request.seed,
        }
        if self._template:
            body = request.fill(self._template)
        return steps_of(self.posted(body), self._single)


class ChatSteps:
    """A model behind an OpenAI-compatible server as a step agent; each step is one conversation.

    Args:
        options: of `OpenAICompatibleClient`.
        role: the system message; none if empty.
    """

    def __init__(self, options: Mapping[str, Any], role: str = "") -> None:
        # The runner repeats what failed and counts it; two layers would multiply the tries.
        self._client = Blocking(
            OpenAICompatibleClient(ClientSettings.resolve({"retries": 0, **options}))
        )
        self._role = role

    def answer(self, request: StepRequest, /) -> object:
        """The model's answer as a value; None where it declined or was cut off."""
        system = (Message.system(self._role),) if self._role else ()
        reply = self._client.complete(
            ChatRequest(
                messages=(*system, Message.user(request.prompt)),
                sampling=Sampling(seed=request.seed),
                schema=JsonSchema(
                    name=request.step, schema={"type": "object", **request.schema}, strict=False
                ),
            )
        )
        return reply.text if reply.outcome == "answer" else None


# --- plain pieces -----------------------------------------------------------------------------


def _takes(function: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(one.name == name or one.kind is one.VAR_KEYWORD for one in parameters)


def _finished(answer: Any) -> Any:
    """An answer, awaited if it is to be: each run has a thread, and a loop, of its own."""
    if inspect.isawaitable(answer):
        return asyncio.run(_awaited(answer))
    return answer


async def _awaited(answer: Any) -> Any:
    return await answer


def _static_parents(graph: Any) -> dict[str, tuple[str, ...]]:
    """The nodes in front of each node, as the graph was drawn."""
    parents: dict[str, list[str]] = {}
    for edge in graph.get_graph().edges:
        parents.setdefault(str(edge.target), []).append(str(edge.source))
    return {node: tuple(sources) for node, sources in parents.items()}


def _is_async_only(graph: Any) -> bool:
    """Whether a node of the graph can only be awaited."""
    nodes = cast("Mapping[str, Any]", getattr(graph, "nodes", {})).values()
    bound = [getattr(node, "bound", None) for node in nodes]
    return any(
        getattr(one, "afunc", None) is not None and getattr(one, "func", None) is None
        for one in bound
    )


async def _gathered(
    graph: Any, filled: object, config: Mapping[str, object]
) -> list[dict[str, Any]]:
    return [event async for event in graph.astream(filled, config, stream_mode="debug")]


def _state_fields(result: object) -> dict[str, object]:
    """What a node wrote, as the fields of one action: keys of nested answers by their own name.

    >>> _state_fields({"credit": {"advice": "refer", "risk": "low"}, "score": 3})
    {'advice': 'refer', 'risk': 'low', 'score': 3}
    """
    pairs: Any = result or ()
    written: dict[str, Any] = dict(pairs)
    fields: dict[str, object] = {}
    for key, value in written.items():
        if isinstance(value, Mapping):
            fields |= cast("Mapping[str, object]", value)
        elif isinstance(value, bool | int | float | str):
            fields[key] = value
        elif isinstance(value, list):
            texts = [one for one in cast("list[object]", value) if isinstance(one, str)]
            fields |= {key: texts} if len(texts) == len(cast("list[object]", value)) else {}
    return fields


def require_langgraph() -> None:
    """Refuse a graph where LangGraph is not installed."""
    if importlib.util.find_spec("langgraph") is None:
        raise MissingExtra("langgraph", extra="langgraph")
