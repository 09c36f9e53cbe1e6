"""A command's output as a picture of a terminal: an SVG that loads nothing."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

COLUMNS: Final = 132


def terminal_picture(command: str, output: str, path: Path) -> None:
    """Write what a terminal shows of a command."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    console.print(Text(f"$ {command}", style="bold"))
    for line in output.rstrip().splitlines():
        console.print(Text(line, style=_style(line)), soft_wrap=False)
    drawn = console.export_svg(title=command.partition(" ")[0])
    # The library names a font to be fetched; a picture in a repository fetches nothing.
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.S)
    path.write_text(drawn.replace("Fira Code", "ui-monospace"), encoding="utf-8")


def _style(line: str) -> str:
    if re.search(r"\bhalt\b|breach", line):
        return "red"
    if re.search(r"cleared|intervention", line):
        return "green"
    return ""
