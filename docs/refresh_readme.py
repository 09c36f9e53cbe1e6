"""Runs the README's commands and puts what they print below them.

A block that begins with `$ ` lines and stands in a ```console fence is a transcript. This script
runs its commands in an empty folder and writes the output into the README; with --check it only
says whether the README still tells the truth. Run ids, which are new every time, are shortened.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(```console\n)(.*?)(```)", re.DOTALL)
RUN_ID = re.compile(r"\b[0-9a-f]{32}\b")


def transcript(commands: list[str], folder: Path) -> str:
    """The commands with what they print, as in a terminal."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    lines: list[str] = []
    for command in commands:
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stderr}")
        lines += [f"$ {command}", *RUN_ID.sub("RUN", done.stdout).rstrip().splitlines(), ""]
    return "\n".join(line.rstrip() for line in lines[:-1]) + "\n"


def refreshed(text: str) -> str:
    """The text with every transcript run again."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")

        def again(block: re.Match[str]) -> str:
            commands = [
                line.removeprefix("$ ")
                for line in block.group(2).splitlines()
                if line.startswith("$ ")
            ]
            return block.group(1) + transcript(commands, Path(folder)) + block.group(3)

        return BLOCK.sub(again, text)


def main() -> int:
    """Refresh the README, or check it."""
    before = README.read_text(encoding="utf-8")
    after = refreshed(before)
    if "--check" in sys.argv:
        if before != after:
            print("README.md does not say what its commands print; run docs/refresh_readme.py")
        return int(before != after)
    README.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
