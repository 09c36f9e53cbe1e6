"""`pipeline`: the run around nodes, as a decorator or as a block."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar, overload

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.frameworks.place import Place, current_place, is_unobserved
from twinspan.instrumentation.frameworks.python import active
from twinspan.instrumentation.frameworks.python.dataflow import flow_graph
from twinspan.instrumentation.frameworks.python.nodes import (
    NodeSpec,
    declared_nodes,
    name_of,
    spec_of,
)
from twinspan.instrumentation.frameworks.stepwise import run_of
from twinspan.instrumentation.gate import ANYONE, Topology

F = TypeVar("F", bound=Callable[..., Any])


class Pipeline:
    """The runs of one pipeline; made by `pipeline`."""

    def __init__(self, name: str, topology: Callable[[], Topology]) -> None:
        self.name = name
        self._topology = functools.cache(topology)
        self._open: contextlib.ExitStack | None = None

    def run(self) -> contextlib.AbstractContextManager[Place | None]:
        """One run, for a block; nothing while uninstrumented or within another run."""
        engine: Engine | None = active.engine()
        if engine is None or is_unobserved() or current_place() is not None:
            return contextlib.nullcontext(current_place())
        return run_of(engine, self._topology())

    def __enter__(self) -> Pipeline:
        self._open = contextlib.ExitStack()
        self._open.enter_context(self.run())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened.__exit__(kind, error, traceback)

    async def __aenter__(self) -> Pipeline:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


@overload
def pipeline(what: F, /) -> F: ...


@overload
def pipeline(
    what: str,
    /,
    *,
    nodes: Iterable[object] = (),
    edges: Iterable[tuple[object, object]] = (),
) -> Pipeline: ...


@overload
def pipeline(
    what: None = None,
    /,
    *,
    name: str | None = None,
    nodes: Iterable[object] = (),
    edges: Iterable[tuple[object, object]] = (),
) -> Callable[[F], F]: ...


def pipeline(
    what: Any = None,
    /,
    *,
    name: str | None = None,
    nodes: Iterable[object] = (),
    edges: Iterable[tuple[object, object]] = (),
) -> Any:
    """A run: everything that nodes do within it is one trace, and is decided as one.

    As a decorator it takes the graph from the function's text: which nodes are called, and whose
    answer reaches whom. As a block it takes the nodes that you name, else all that the process
    has declared, and their `reads`. Nodes that turn up all the same are weighed as unlisted.
    A pipeline within another one belongs to the outer run.

    Args:
        what: a function, plain or async; or the name of a block's run.
        name: the run's name; the function's if unset.
        nodes: nodes, or their names, besides those of the text.
        edges: pairs of nodes, or their names, besides those of the text.

    >>> from twinspan.instrumentation import node
    >>> @node
    ... def screen(letter: str) -> str:
    ...     return "invite" if letter else "reject"
    >>> @pipeline
    ... def hiring(letter: str) -> str:
    ...     return screen(letter)
    >>> hiring("Dear all")
    'invite'
    >>> with pipeline("hiring", nodes=[screen]):
    ...     screen("Dear all")
    'invite'
    """
    if what is None:
        return functools.partial(pipeline, name=name, nodes=nodes, edges=edges)
    named = tuple(name_of(each) for each in nodes)
    pairs = tuple((name_of(source), name_of(target)) for source, target in edges)
    if isinstance(what, str):
        specs = [s for s in (spec_of(each) for each in nodes) if s is not None]
        return Pipeline(what, lambda: _declared(what, named, pairs, specs))
    return _decorated(what, name or str(what.__name__), named, pairs)


def _decorated(
    function: Any, name: str, nodes: tuple[str, ...], edges: tuple[tuple[str, str], ...]
) -> Any:
    runs = Pipeline(name, lambda: _drawn(function, name, nodes, edges))
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def arun(*args: Any, **kwargs: Any) -> Any:
            with runs.run():
                return await function(*args, **kwargs)

        return arun

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with runs.run():
            return function(*args, **kwargs)

    return run


def _drawn(
    function: Any, name: str, nodes: tuple[str, ...], edges: tuple[tuple[str, str], ...]
) -> Topology:
    graph = flow_graph(function)
    listed = tuple(dict.fromkeys((*graph.nodes, *nodes)))
    return Topology(
        name=name,
        nodes=listed if graph.is_whole and listed else (*listed, ANYONE),
        edges=tuple(dict.fromkeys((*graph.edges, *edges))),
    )


def _declared(
    name: str, nodes: tuple[str, ...], edges: tuple[tuple[str, str], ...], specs: list[NodeSpec]
) -> Topology:
    known = specs if nodes else declared_nodes()
    listed = tuple(dict.fromkeys((*nodes, *(spec.name for spec in known))))
    reads = ((source, spec.name) for spec in known for source in spec.reads)
    return Topology(
        name=name,
        nodes=listed if nodes else (*listed, ANYONE),
        edges=tuple(dict.fromkeys((*edges, *reads))),
    )
