"""Runs a program in this process as `python SCRIPT` or `python -m MODULE` would.

What a program can see of how it was started is as Python makes it: `sys.argv`, `sys.path[0]`,
the module `__main__` with its `__file__` and `__name__`, its exit code, the traceback of what it
does not catch. Threads it leaves running and functions it registered with `atexit` run to their
end.
"""

from __future__ import annotations

import io
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Final

from twinspan.instrumentation.errors import ProgramNotFound

FAILED: Final = 1
"""Exit code of a program that ends with an exception."""

STOPPED: Final = 130
"""Exit code of a program that is interrupted from the keyboard."""


def run_script(script: str, arguments: Sequence[str] = ()) -> int:
    """Run a file, or a folder or archive that holds a `__main__.py`.

    Returns:
        0, or the code of an exception that was not caught, which is shown as Python shows it.

    Raises:
        ProgramNotFound: if there is no such program.
        SystemExit: whatever the program exits with.
    """
    path = Path(script)
    if not path.exists():
        raise ProgramNotFound(script)
    sys.argv[:] = [script, *arguments]
    if path.is_dir() or path.suffix in (".zip", ".pyz"):
        return _run(lambda: runpy.run_path(script, run_name="__main__"))
    _look_first_in(path.resolve().parent)
    return _run(lambda: _execute(_compiled(path), path.resolve()))


def run_module(module: str, arguments: Sequence[str] = ()) -> int:
    """Run a module, or a package's `__main__`, found as `python -m` finds it.

    Returns:
        0, or the code of an exception that was not caught, which is shown as Python shows it.

    Raises:
        ProgramNotFound: if there is no such module.
        SystemExit: whatever the program exits with.
    """
    _look_first_in(Path.cwd())
    spec = _spec_of(module)
    loader = None if spec is None else spec.loader
    if spec is None or spec.origin is None or not isinstance(loader, InspectLoader):
        raise ProgramNotFound(module)
    origin, name = spec.origin, spec.name
    sys.argv[:] = [origin, *arguments]
    return _run(lambda: _execute(loader.get_code(name), Path(origin), spec))


def _spec_of(module: str) -> ModuleSpec | None:
    try:
        spec = find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = find_spec(f"{module}.__main__")
    except (ImportError, ValueError):
        return None
    return spec


def _look_first_in(folder: Path) -> None:
    """Have modules found where the program lies, unless Python was told not to (`python -P`)."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[:1] = [str(folder)]


def _compiled(script: Path) -> CodeType:
    with io.open_code(str(script.resolve())) as file:
        return compile(file.read(), str(script.resolve()), "exec", dont_inherit=True)


def _execute(code: CodeType | None, origin: Path, spec: ModuleSpec | None = None) -> None:
    """Run code as the module `__main__`, which it stays: what it leaves behind may need it."""
    main = ModuleType("__main__")
    main.__file__ = str(origin)
    main.__spec__ = spec
    main.__package__ = None if spec is None else spec.parent
    main.__loader__ = SourceFileLoader("__main__", str(origin)) if spec is None else spec.loader
    vars(main)["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    if code is not None:
        exec(code, vars(main))


def _run(program: Callable[[], object]) -> int:
    try:
        program()
    except SystemExit:
        raise
    except BaseException as error:
        shown = error.with_traceback(_without_ours(error.__traceback__))
        sys.excepthook(type(shown), shown, shown.__traceback__)
        return STOPPED if isinstance(error, KeyboardInterrupt) else FAILED
    return 0


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's first line on."""
    ours = (__file__, runpy.__file__, "<frozen runpy>")
    while traceback is not None and traceback.tb_frame.f_code.co_filename in ours:
        traceback = traceback.tb_next
    return traceback
