"""Wraps functions of other packages, and puts every one of them back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wrapt import wrap_function_wrapper

Wrapper = Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]
"""Takes the wrapped function, its object, and the arguments of a call."""


class Patches:
    """The functions of one framework that are wrapped."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []

    def wrap(self, owner: Any, name: str, wrapper: Wrapper) -> None:
        """Wrap a function of a class or module; an inherited one only on this class."""
        self._originals.append((owner, name, owner.__dict__.get(name)))
        wrap_function_wrapper(owner, name, wrapper)

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Put something in the place of a class's attribute, or beside its instances' own."""
        self._originals.append((owner, name, owner.__dict__.get(name)))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Put everything back as it was, the last one first."""
        while self._originals:
            owner, name, original = self._originals.pop()
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
