"""The README tells the truth: its commands print what it says, its code runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from twinspan.instrumentation import TwinspanInstrumentor

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_transcript_is_what_its_commands_print() -> None:
    """Run again in an empty folder; `docs/refresh_readme.py` mends it."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "refresh_readme.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_code_to_add_it_to_an_agent_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it stands there."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        try:
            exec(compile(block, "README.md", "exec"), {})
        finally:
            TwinspanInstrumentor().uninstrument()


def test_every_file_that_it_links_to_is_there() -> None:
    """Relative links only."""
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_two_commands_are_in_the_makefile() -> None:
    """And the one for contributors."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("demo", "test", "check"):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)
