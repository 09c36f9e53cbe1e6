"""Wraps methods of frameworks so that others may wrap and unwrap the same ones.

Instrumentations take a wrapper off by replacing a method by what its outermost layer wraps,
whoever put that layer there. Where ours is the outermost, somebody else's `uninstrument()` would
take ours away and leave theirs. A `Hook` gives them what they mean: the method without the layer
below ours.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import getattr_static
from typing import Any, Final

from wrapt import BaseObjectProxy, BoundFunctionWrapper, FunctionWrapper

Wrapper = Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]
"""What stands in for a method: called with the method, its object, its arguments."""


class _BoundHook(BoundFunctionWrapper[Any, Any]):
    """A hook as it is read from the class or an object."""

    @property
    def __wrapped__(self) -> Any:  # type: ignore[override]  # pyright: ignore
        return self._self_parent.without_layer_below()


_RAW: Final[Callable[[Any], Any]] = vars(BaseObjectProxy)["__wrapped__"].__get__
"""Reads what a layer wraps, past what a class of ours makes of it."""


class Hook(FunctionWrapper[Any, Any]):
    """Our layer around a method."""

    __bound_function_wrapper__ = _BoundHook

    @property
    def below(self) -> Any:
        """What this layer wraps."""
        return _RAW(self)

    def without_layer_below(self) -> Any:
        """The method without the layer that somebody else put below ours."""
        below = self.below
        return Hook(_RAW(below), self._self_wrapper) if _is_layer(below) else below


def hook(owner: type, name: str, wrapper: Wrapper) -> None:
    """Put a layer of ours around a method of a class, an inherited one too.

    >>> class Agent:
    ...     def run(self) -> str:
    ...         return "done"
    >>> hook(Agent, "run", lambda run, agent, args, kwargs: run(*args, **kwargs) + "!")
    >>> Agent().run()
    'done!'
    >>> unhook(Agent, "run")
    >>> Agent().run()
    'done'
    """
    setattr(owner, name, Hook(getattr_static(owner, name), wrapper))


def unhook(owner: type, name: str) -> None:
    """Take our layer away, whatever lies around it; nothing happens where there is none."""
    layer: Any = owner.__dict__.get(name)
    if isinstance(layer, Hook):
        if _is_inherited(owner, name, layer.below):
            delattr(owner, name)
        else:
            setattr(owner, name, layer.below)
        return
    while _is_layer(layer):
        below = _RAW(layer)
        if isinstance(below, Hook):
            layer.__wrapped__ = below.below
            return
        layer = below


def _is_inherited(owner: type, name: str, method: Any) -> bool:
    return any(vars(base).get(name) is method for base in owner.__mro__[1:])


def _is_layer(method: Any) -> bool:
    return isinstance(method, BaseObjectProxy)
