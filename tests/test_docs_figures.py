"""Every figure in the README and the documentation stands below the command that makes it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from studies.__main__ import LOCAL_ONLY, STUDIES

from twinspan.analysis.cli import main as twinspan

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

COMMAND = re.compile(r"(?:`|^    |^\$ )(?:python|make|twinspan) \S", re.MULTILINE)
"""A command: in backquotes, set in, or behind a prompt."""

TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
BLOCK = re.compile(r"^```(?:text|console)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[[^\]]*\]\([^)]+\)")
FIGURE = re.compile(r"(?<![\w.-])-?\d*\.\d+(?![\w.])|\d+ of \d+|\d+/\d+|\d[\d,]* percent")
"""A measured number: a decimal fraction, a share, percents. Versions and counts are none."""


def sections(page: str) -> list[str]:
    """A page's opening, and each part that a heading of the second degree begins."""
    return re.split(r"^(?=## )", page, flags=re.MULTILINE)


def without_command(page: str) -> list[str]:
    """The tables, outputs and pictures of a page for which no command is told before them.

    What the page's opening tells is told for all of it.
    """
    opening, *parts = sections(page)
    missing: list[str] = []
    for part in (opening, *parts):
        for pattern in (TABLE, BLOCK, PICTURE):
            for found in pattern.finditer(part):
                text = found.group()
                if pattern is not PICTURE and not FIGURE.search(text):
                    continue
                if not COMMAND.search(opening + part[: found.start()] + text):
                    missing.append(text.splitlines()[0])
    return missing


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_figure_is_without_a_command(path: Path) -> None:
    assert without_command(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "figure",
    ["| a |\n|---|\n| 0.5 |\n", "```text\nrate 0.5\n```\n", "![rates](rates.svg)\n"],
    ids=["a table", "an output", "a picture"],
)
def test_a_figure_without_a_command_is_found(figure: str) -> None:
    """And only that."""
    page = f"# A study\n\nWords.\n\n## Told\n\n    python -m studies neutral\n\n{figure}"
    assert without_command(page) == []
    assert len(without_command(f"{page}\n## Not told\n\n{figure}")) == 1


def told(kind: str) -> set[str]:
    """What the pages call of a kind of command."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    return set(re.findall(kind, text))


def test_every_script_that_is_named_is_there_and_takes_the_options_that_are_named() -> None:
    scripts = told(r"python ((?:benchmarks|docs|examples)/\w+\.py)")
    assert scripts
    for script in scripts:
        assert (ROOT / script).exists(), script


def test_every_study_that_is_named_is_one() -> None:
    named = told(r"python -m studies (\w+)")
    assert named
    assert named <= {*STUDIES, *LOCAL_ONLY, "effects", "all", "compare"}


def test_every_study_is_told_of_with_its_command() -> None:
    page = (ROOT / "docs" / "studies" / "real-model.md").read_text(encoding="utf-8")
    named = set(re.findall(r"python -m studies (\w+)", page))
    assert {*STUDIES, *LOCAL_ONLY, "effects"} <= named


def test_every_target_and_subcommand_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in told(r"(?:^|`|    )make ([a-z][a-z-]+)"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    listed = twinspan.list_commands(click.Context(twinspan))
    for command in told(r"(?:^|`|\$ |    )twinspan ([a-z]+)(?= |`|\n)"):
        assert command in listed, command


def test_the_studies_can_be_asked_for_their_options() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "studies", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "compare" in done.stdout


def test_the_page_of_the_studies_shows_the_tables_that_are_kept() -> None:
    """`docs/refresh_studies.py` mends it."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "refresh_studies.py"), "--check"], check=False
    )
    assert done.returncode == 0


def test_every_picture_that_is_shown_is_there() -> None:
    for path in PAGES:
        for target in re.findall(r"!\[[^\]]*\]\(([^):]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
