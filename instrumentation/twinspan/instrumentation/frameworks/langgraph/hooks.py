"""Installs and removes the hooks in LangGraph's runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.pregel import Pregel
from langgraph.pregel._runner import PregelRunner

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.errors import BiasHalt
from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.frameworks.langgraph.events import held_events
from twinspan.instrumentation.frameworks.langgraph.models import note_call
from twinspan.instrumentation.frameworks.langgraph.queues import keep_chunks, keep_no_chunks
from twinspan.instrumentation.frameworks.langgraph.scope import (
    GraphScope,
    current_holder,
    place_of_holder,
    scope_in,
    with_scope,
)
from twinspan.instrumentation.frameworks.langgraph.superstep import Superstep
from twinspan.instrumentation.frameworks.langgraph.threads import Thread
from twinspan.instrumentation.frameworks.langgraph.topology import topology_of
from twinspan.instrumentation.frameworks.place import current_place, forget_place, tell_place
from twinspan.instrumentation.patching import hook, unhook
from twinspan.instrumentation.probing.guard import current_probe, is_unobserved
from twinspan.instrumentation.run import LiveRun
from twinspan.instrumentation.safety import harmless

_HOOKED = (
    (Pregel, "stream"),
    (Pregel, "astream"),
    (Pregel, "astream_events"),
    (PregelRunner, "tick"),
    (PregelRunner, "atick"),
    (BaseTool, "run"),
    (BaseTool, "arun"),
    (BaseChatModel, "generate"),
    (BaseChatModel, "agenerate"),
)


class _Hooks:
    """The wrappers of one instrumentation."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # --- runs --------------------------------------------------------------------------------

    def _thread(self, graph: Any, config: Any) -> Thread | None:
        """The thread of a root graph that begins."""
        thread: Thread | None = None
        if not is_unobserved() and current_place() is None:
            with harmless(self._engine.failures, "reading a thread"):
                thread = Thread.of(graph, config)
        return thread

    def _scope(
        self, graph: Any, config: Any, thread: Thread | None, resumed: str | None
    ) -> tuple[GraphScope, bool] | None:
        """The scope of a graph that begins, and whether a run begins with it."""
        if is_unobserved():
            return None
        found: tuple[GraphScope, bool] | None = None
        with harmless(self._engine.failures, "starting a run"):
            place = current_place()
            if place is not None:
                found = (scope_in(place, topology_of(graph).name), False)
            else:
                run = LiveRun.open(
                    self._engine,
                    topology_of(graph),
                    attributes=_conversation(config),
                    resumed=resumed,
                    resumable=thread is not None,
                )
                found = (GraphScope(run=run), True)
        return found

    def stream(self, wrapped: Any, graph: Any, args: Any, kwargs: Any) -> Iterator[Any]:
        """A graph's run, from its first chunk to its last."""
        input_, config, kwargs = _arguments(args, kwargs)
        thread, resumed = self._thread(graph, config), None
        if thread is not None:
            with harmless(self._engine.failures, "reading a checkpoint"):
                resumed = thread.run_to_resume(input_)
        begun = self._scope(graph, config, thread, resumed)
        if begun is None:
            yield from wrapped(input_, config, **kwargs)
            return
        scope, is_root = begun
        chunks = wrapped(input_, with_scope(graph, config, scope), **kwargs)
        try:
            while (chunk := _next(scope, chunks)) is not _END:
                yield chunk
        except BaseException as error:
            try:
                with scope.current():
                    chunks.close()
                if is_root and _may_go_on(error):
                    with harmless(self._engine.failures, "finishing probes"):
                        scope.run.finish_probes()
            finally:
                _close(scope, is_root, error)
            raise
        else:
            _close(scope, is_root, None)

    async def astream(self, wrapped: Any, graph: Any, args: Any, kwargs: Any) -> AsyncIterator[Any]:
        """The same on an event loop."""
        input_, config, kwargs = _arguments(args, kwargs)
        thread, resumed = self._thread(graph, config), None
        if thread is not None:
            with harmless(self._engine.failures, "reading a checkpoint"):
                resumed = await thread.arun_to_resume(input_)
        begun = self._scope(graph, config, thread, resumed)
        if begun is None:
            async for chunk in wrapped(input_, config, **kwargs):
                yield chunk
            return
        scope, is_root = begun
        chunks = wrapped(input_, with_scope(graph, config, scope), **kwargs)
        try:
            while (chunk := await _anext(scope, chunks)) is not _END:
                yield chunk
        except BaseException as error:
            try:
                with scope.current():
                    await chunks.aclose()
                if is_root and _may_go_on(error):
                    with harmless(self._engine.failures, "finishing probes"):
                        await scope.run.afinish_probes()
            finally:
                _close(scope, is_root, error)
            raise
        else:
            _close(scope, is_root, None)

    def astream_events(self, wrapped: Any, graph: Any, args: Any, kwargs: Any) -> Any:
        """What nodes, models and tools tell of a root graph, held back where that is asked for."""
        is_inner = is_unobserved() or current_place() is not None
        if not self._engine.holds_stream or is_inner or kwargs.get("version") == "v3":
            # The third version is made of the graph's stream, whose chunks wait anyway.
            return wrapped(*args, **kwargs)
        return held_events(wrapped, *_arguments(args, kwargs))

    # --- supersteps --------------------------------------------------------------------------

    def tick(self, wrapped: Any, runner: Any, args: Any, kwargs: Any) -> Iterator[None]:
        """A superstep's tasks, then its boundary."""
        tasks = tuple(args[0] if args else kwargs.pop("tasks"))
        superstep = Superstep.of(runner, tasks)
        if superstep is None:
            yield from wrapped(tasks, **kwargs)
            return
        kwargs["schedule_task"] = superstep.calling(kwargs["schedule_task"])
        with _scheduling(runner, "schedule_error_handler", superstep.handling):
            yield from self._tick(wrapped, superstep, runner, kwargs, tasks)
        yield

    def _tick(
        self, wrapped: Any, superstep: Superstep, runner: Any, kwargs: Any, tasks: Any
    ) -> Iterator[None]:
        given = superstep.instrumented(tasks)
        try:
            if not superstep.holds:
                yield from wrapped(given, **kwargs)
                superstep.close()
                return
            # Nothing is streamed meanwhile, so nobody needs to be woken for it.
            kwargs["get_waiter"] = None
            with superstep.holding(runner):
                try:
                    for _ in wrapped(given, **kwargs):
                        pass
                except Exception as error:
                    superstep.close_after(error)
                    raise
                superstep.close()
        except GraphBubbleUp as left:
            superstep.close_after(left)
            raise
        finally:
            superstep.settle()

    async def atick(self, wrapped: Any, runner: Any, args: Any, kwargs: Any) -> AsyncIterator[None]:
        """The same on an event loop."""
        tasks = tuple(args[0] if args else kwargs.pop("tasks"))
        superstep = Superstep.of(runner, tasks)
        if superstep is None:
            async for _ in wrapped(tasks, **kwargs):
                yield
            return
        kwargs["schedule_task"] = superstep.acalling(kwargs["schedule_task"])
        with _scheduling(runner, "aschedule_error_handler", superstep.ahandling):
            async for _ in self._atick(wrapped, superstep, runner, kwargs, tasks):
                yield
        yield

    async def _atick(
        self, wrapped: Any, superstep: Superstep, runner: Any, kwargs: Any, tasks: Any
    ) -> AsyncIterator[None]:
        given = superstep.instrumented(tasks)
        try:
            if not superstep.holds:
                async for _ in wrapped(given, **kwargs):
                    yield
                await superstep.aclose()
                return
            kwargs["get_waiter"] = None
            with superstep.holding(runner):
                try:
                    async for _ in wrapped(given, **kwargs):
                        pass
                except Exception as error:
                    await superstep.aclose_after(error)
                    raise
                await superstep.aclose()
        except GraphBubbleUp as left:
            await superstep.aclose_after(left)
            raise
        finally:
            superstep.settle()

    # --- tools -------------------------------------------------------------------------------

    def tool(self, wrapped: Any, tool: Any, args: Any, kwargs: Any) -> Any:
        """A tool call; inside a probe only safe tools pass."""
        frame = current_probe()
        if frame is not None:
            frame.check_tool(tool.name)
        elif (holder := current_holder.get()) is not None:
            holder.tools.append(tool.name)
        return wrapped(*args, **kwargs)

    def model(self, wrapped: Any, model: Any, args: Any, kwargs: Any) -> Any:
        """A chat model's call, plain or async; noted where models are probed."""
        with harmless(self._engine.failures, "a model call"):
            note_call(model, args, kwargs)
        return wrapped(*args, **kwargs)


_END: Final = object()


def _next(scope: GraphScope, chunks: Iterator[Any]) -> Any:
    """A graph's next chunk, made below the run's span; no context crosses a yield."""
    with scope.current():
        return next(chunks, _END)


async def _anext(scope: GraphScope, chunks: AsyncIterator[Any]) -> Any:
    """The same on an event loop."""
    with scope.current():
        return await anext(chunks, _END)


class _scheduling:
    """Have a runner's scheduler of error handlers observed for one superstep.

    A class, since every superstep passes it: a generator would cost three times as much.
    """

    __slots__ = ("_name", "_observed", "_runner", "_schedule")

    def __init__(self, runner: Any, name: str, observed: Callable[[Any], Any]) -> None:
        self._runner = runner
        self._name = name
        self._observed = observed
        self._schedule = getattr(runner, name, None)

    def __enter__(self) -> None:
        if self._schedule is not None:
            setattr(self._runner, self._name, self._observed(self._schedule))

    def __exit__(self, *_: object) -> None:
        if self._schedule is not None:
            setattr(self._runner, self._name, self._schedule)


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    rest = dict(kwargs)
    given = list(args)
    input_ = given.pop(0) if given else rest.pop("input", None)
    config = given.pop(0) if given else rest.pop("config", None)
    return input_, config, rest


def _conversation(config: Any) -> dict[str, object]:
    thread = names.configurable_of(config).get(names.THREAD_ID)
    return {} if thread is None else {c.GEN_AI_CONVERSATION_ID: str(thread)}


def _may_go_on(error: BaseException) -> bool:
    """Whether a call failed in a way after which a run is taken up as it stands."""
    return isinstance(error, Exception) and not isinstance(error, BiasHalt)


def _run_outcome(scope: GraphScope, error: BaseException | None) -> str:
    if error is None:
        stopped = scope.run.interrupted or scope.at_breakpoint
        return "interrupted" if stopped else "completed"
    if isinstance(error, BiasHalt):
        return "halted"
    if isinstance(error, GeneratorExit | asyncio.CancelledError | KeyboardInterrupt):
        return "cancelled"
    return "interrupted" if isinstance(error, GraphBubbleUp) else "failed"


def _close(scope: GraphScope, is_root: bool, error: BaseException | None) -> None:
    if is_root:
        with harmless(scope.run.engine.failures, "ending a run"):
            scope.run.close(_run_outcome(scope, error), error)


def install(engine: Engine) -> None:
    """Hook LangGraph for every graph of the process, compiled before or after."""
    hooks = _Hooks(engine)
    wrappers = (
        hooks.stream,
        hooks.astream,
        hooks.astream_events,
        hooks.tick,
        hooks.atick,
        hooks.tool,
        hooks.tool,
        hooks.model,
        hooks.model,
    )
    tell_place(place_of_holder)
    for (owner, name), wrapper in zip(_HOOKED, wrappers, strict=True):
        hook(owner, name, wrapper)
    keep_chunks()


def uninstall() -> None:
    """Put LangGraph back as it was."""
    forget_place(place_of_holder)
    for owner, name in _HOOKED:
        unhook(owner, name)
    keep_no_chunks()
