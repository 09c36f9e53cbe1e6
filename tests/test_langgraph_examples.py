"""Each LangGraph example runs by one command and shows what its text says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def shown(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("model_level.py", ["letters sent: 1", "clerk gender 1.0 15"]),
        (
            "breaker_nodes.py",
            [
                "frozen behind analyst: {'advice': 'decline'}",
                "repairs tried: ['failed', 'failed', 'failed']",
                "We approve.",
            ],
        ),
    ],
)
def test_an_example_shows_what_it_says(
    name: str,
    lines: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole output, in a fresh folder."""
    monkeypatch.chdir(tmp_path)
    assert shown(name, capsys) == lines


def test_the_three_modes_differ_in_what_the_application_gets(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shadow tells, halt stops, repair hands on."""
    monkeypatch.chdir(tmp_path)
    lines = shown("langgraph_agent.py", capsys)
    told = [line for line in lines if not line.startswith(" ")]
    assert told[0] == "shadow: none"
    assert told[1].startswith("halt: stopped at screen->invite, monitor_at_limit")
    assert told[2] == "repair: see you on Monday"
