"""Public names that are imported when they are first asked for.

An agent that is instrumented pays at its start for what it uses, and a command line answers
`--help` without loading a database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package that imports its public names on use.

    Args:
        package: the package's `__name__`.
        modules: public names by the module, within the package, that has them.

    >>> attribute, listed = lazy_names("json", {"decoder": ("JSONDecoder",)})
    >>> attribute("JSONDecoder").__name__, listed()
    ('JSONDecoder', ['JSONDecoder'])
    >>> attribute("nothing")
    Traceback (most recent call last):
    AttributeError: module 'json' has no attribute 'nothing'
    """
    home = {name: module for module, names in modules.items() for name in names}

    def attribute(name: str) -> Any:
        module = home.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module}"), name)

    return attribute, lambda: sorted(home)
