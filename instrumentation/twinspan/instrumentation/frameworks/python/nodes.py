"""`@node`: a function that is observed, probed, and left through the gate."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast, overload

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.frameworks.place import (
    Place,
    current_place,
    flow_of,
    is_unobserved,
)
from twinspan.instrumentation.frameworks.python import active
from twinspan.instrumentation.frameworks.python.calls import Call
from twinspan.instrumentation.frameworks.stepwise import Kind, Step, run_of
from twinspan.instrumentation.gate import Topology
from twinspan.instrumentation.probing.guard import current_probe
from twinspan.instrumentation.run import Parent
from twinspan.instrumentation.safety import harmless

F = TypeVar("F", bound=Callable[..., Any])

_MARK: Final = "__twinspan_node__"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NodeSpec:
    """What was declared of a node.

    Attributes:
        name: its name.
        reads: nodes whose answers it reads, where they reach it unseen.
        kind: what it is; told from the settings if None.
        function: the function itself.
        signature: its signature.
    """

    name: str
    reads: tuple[str, ...]
    kind: Kind | None
    function: Callable[..., Any]
    signature: inspect.Signature


_declared: weakref.WeakSet[Any] = weakref.WeakSet()


def declared_nodes() -> tuple[NodeSpec, ...]:
    """Every node that the process has declared, by name."""
    specs = (spec_of(function) for function in list(_declared))
    return tuple(sorted((s for s in specs if s is not None), key=lambda s: s.name))


def spec_of(function: object) -> NodeSpec | None:
    """What was declared of a function; None if it is no node."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, NodeSpec) else None


def name_of(node: object) -> str:
    """A node by its name or by its function."""
    spec = spec_of(node)
    return spec.name if spec is not None else str(node)


@overload
def node(function: F, /) -> F: ...


@overload
def node(
    function: None = None,
    /,
    *,
    name: str | None = None,
    reads: Iterable[object] = (),
    kind: Kind | None = None,
) -> Callable[[F], F]: ...


@overload
def node(
    function: F,
    /,
    *,
    name: str | None = None,
    reads: Iterable[object] = (),
    kind: Kind | None = None,
) -> F: ...


def node(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    reads: Iterable[object] = (),
    kind: Kind | None = None,
) -> Any:
    """Make a function a node: plain or async, a method too.

    Its arguments are the payload, what it returns is the answer. While it runs it is probed, if
    the settings name it; its answer reaches the caller only when it is decided: unchanged, or
    repaired, or not at all (`BiasHalt`). Without `instrument()` the function is what it was.

    An edge is observed when an object that another node returned, or a part of it, is among the
    arguments. Where an answer travels unseen (in a new text, a database, a shared state), say so
    with `reads`.

    Args:
        function: the function; give none to use `node` with options as a decorator.
        name: the node's name; the function's if unset.
        reads: nodes, or their names, whose answers the function reads.
        kind: `agent`, `function`, `router`, `tool` or `subgraph`; a `tool` is never probed.

    >>> @node
    ... def screen(letter: str) -> str:
    ...     return "invite" if letter else "reject"
    >>> screen("Dear all")
    'invite'
    """
    if function is None:
        return functools.partial(node, name=name, reads=reads, kind=kind)
    spec = NodeSpec(
        name=name or str(getattr(function, "__name__", function)),
        reads=tuple(name_of(each) for each in reads),
        kind=kind,
        function=function,
        signature=inspect.signature(function),
    )
    wrapper = _async_node(spec) if _is_async(function) else _plain_node(spec)
    setattr(wrapper, _MARK, spec)
    _declared.add(wrapper)
    return wrapper


def _is_async(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object may be called too
    )


def _plain_node(spec: NodeSpec) -> Callable[..., Any]:
    @functools.wraps(spec.function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        engine = active.engine()
        if engine is None or is_unobserved():
            return spec.function(*args, **kwargs)
        with _within_a_run(engine, spec.name) as place:
            begun = _begin(place, spec, args, kwargs, in_loop=False)
            if begun is None:
                return spec.function(*args, **kwargs)
            step, call = begun
            with step.running():
                answer = spec.function(*args, **kwargs)
            return step.close(answer, received=call.given)

    return wrapper


def _async_node(spec: NodeSpec) -> Callable[..., Any]:
    @functools.wraps(spec.function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        engine = active.engine()
        if engine is None or is_unobserved():
            return await spec.function(*args, **kwargs)
        with _within_a_run(engine, spec.name) as place:
            begun = _begin(place, spec, args, kwargs, in_loop=True)
            if begun is None:
                return await spec.function(*args, **kwargs)
            step, call = begun
            with step.running():
                answer = await spec.function(*args, **kwargs)
            return await step.aclose(answer, received=call.given)

    return wrapper


def _within_a_run(engine: Engine, node: str) -> AbstractContextManager[Place | None]:
    """The run around the code; a node that is called outside of any is a run of its own."""
    place = current_place()
    if place is None:
        return run_of(engine, Topology(name=node, nodes=(node,)))
    return nullcontext(place)


def _begin(
    place: Place | None,
    spec: NodeSpec,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    in_loop: bool,
) -> tuple[Step, Call] | None:
    """The step of a call; None for one that is not observed."""
    if place is None:
        return None
    try:
        call = Call.of(spec.signature, args, kwargs)
    except TypeError:
        return None  # the call itself will say what is wrong with it
    begun: Step | None = None
    with harmless(place.run.engine.failures, "starting a node"):
        parents, observed = parents_of(place, spec.name, call.given, spec.reads)
        begun = Step.begin(
            place,
            spec.name,
            call.payload,
            parents=parents,
            observed=observed,
            kind=spec.kind,
            rerun=_rerunner(spec, call, in_loop=in_loop),
            in_loop=in_loop,
        )
    return None if begun is None else (begun, call)


def _rerunner(spec: NodeSpec, call: Call, *, in_loop: bool) -> Callable[[Any], Any]:
    async def on_loop(payload: Any) -> Any:
        return await call.again(spec.function, payload)

    def plain(payload: Any) -> Any:
        return call.again(spec.function, payload)

    return on_loop if in_loop else plain


def parents_of(
    place: Place, node: str, given: Any, reads: Sequence[str]
) -> tuple[tuple[Parent, ...], bool]:
    """Whose answers a node reads, and whether that was observed.

    Objects tell it first; `reads` and the pipeline's own text add what travels unseen. Where
    two nodes returned the very same object, the graph settles whose it is.
    """
    handed = flow_of(place.run).handed
    seen, certain = handed.parents_of(given)
    topology = place.run.topology
    declared = tuple(place.name(each) for each in reads)
    drawn = tuple(source for source, target in topology.edges if target == place.name(node))
    if not certain and (declared or drawn):
        seen = tuple(parent for parent in seen if parent.node in {*declared, *drawn})
        certain = True
    known = {parent.node for parent in seen}
    unseen = handed.latest(each for each in declared or drawn if each not in known)
    return (*seen, *unseen), certain and (bool(declared) or not unseen)


def tool(function: F) -> F:
    """Mark a function that acts on the world: inside a probe it runs only if it is safe.

    `safe_tools` lists the names, globs allowed, of those that may run again.

    >>> @tool
    ... def send(letter: str) -> str:
    ...     return "sent"
    >>> send("Dear all")
    'sent'
    """
    name = str(getattr(function, "__name__", function))

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _check(name)
        return function(*args, **kwargs)

    @functools.wraps(function)
    async def awrapper(*args: Any, **kwargs: Any) -> Any:
        _check(name)
        return await function(*args, **kwargs)

    return cast("F", awrapper if _is_async(function) else wrapper)


def _check(name: str) -> None:
    frame = current_probe()
    if frame is not None:
        frame.check_tool(name)
