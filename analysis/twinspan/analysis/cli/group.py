"""A group whose commands are imported on use, and whose errors are one sentence."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from typing import Any, Final, NoReturn, cast

import click

from twinspan.instrumentation.errors import RecordError, SourceError, TwinspanError

WRONG_USE: Final = 2
UNREADABLE: Final = 3


class LazyGroup(click.Group):
    """A group that knows where its commands are and imports them when they are asked for.

    Args:
        commands_at: `module:attribute` below `package`, by the command's name.
        package: the package that holds the modules.
    """

    def __init__(
        self, *arguments: Any, commands_at: Mapping[str, str], package: str, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._commands_at = commands_at
        self._package = package

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands that are installed."""
        return sorted(name for name, place in self._commands_at.items() if self._is_there(place))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        place = self._commands_at.get(cmd_name)
        if place is None or not self._is_there(place):
            return None
        module, _, attribute = place.partition(":")
        return cast(click.Command, getattr(import_module(self._module(module)), attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by what their docstrings begin with, without importing them."""
        names = self.list_commands(ctx)
        room = formatter.width - 6 - max(map(len, names), default=0)
        rows = [(name, self._summary(self._commands_at[name], room)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _summary(self, place: str, limit: int) -> str:
        module, _, attribute = place.partition(":")
        found = find_spec(self._module(module))
        source = Path(found.origin).read_text("utf-8") if found and found.origin else ""
        for statement in ast.parse(source).body:
            if isinstance(statement, ast.FunctionDef) and statement.name == attribute:
                first, _, _ = (ast.get_docstring(statement) or "").partition("\n\n")
                return shorten(first, max(limit, 20), placeholder="...")
        return ""

    def _is_there(self, place: str) -> bool:
        return find_spec(self._module(place.partition(":")[0])) is not None

    def _module(self, name: str) -> str:
        return f"{self._package}.{name}"

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **extra: Any,
    ) -> NoReturn:
        """Run a command line and exit: every error is a sentence on stderr and a code."""
        extra["standalone_mode"] = False
        try:
            code = super().main(args, prog_name or "twinspan", **extra)
        except click.exceptions.Exit as exit_:
            sys.exit(exit_.exit_code)
        except click.Abort:
            _fail("stopped", 130)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(error.exit_code)
        except click.ClickException as error:
            _fail(_with_help(error), error.exit_code)
        except (TwinspanError, OSError) as error:
            _fail(str(error), code_of(error))
        sys.exit(code if isinstance(code, int) else 0)


def code_of(error: BaseException) -> int:
    """The exit code of an error: 3 for what cannot be read or written, else 2.

    >>> code_of(SourceError("x")), code_of(ValueError("x"))
    (3, 2)
    """
    return UNREADABLE if isinstance(error, SourceError | RecordError | OSError) else WRONG_USE


def _with_help(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    return message if context is None else f"{message}; see {context.command_path} --help"


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"twinspan: {' '.join(message.split())}", err=True)
    sys.exit(code)
