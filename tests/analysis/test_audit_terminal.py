"""`twinspan audit` on a terminal: it asks before the first call and shows how far it is."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from audit_agents import rows, write_audit

AGENT = """
import pathlib

def decide(prompt, schema, seed):
    with pathlib.Path(__file__).with_name("calls").open("a") as calls:
        calls.write(".")
    return {"approve": seed % 2 == 0}
"""

PATIENCE = 120.0
"""Seconds after which a command that says nothing is taken to hang."""


HEARS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Becomes the command that follows, with Ctrl-C heard as under a login shell.

Whoever starts the tests may have the signal ignored (a shell does that to what it puts into the
background) or blocked (a supervisor does), and what is started from there inherits either.
"""


def hearing(*command: object) -> list[str]:
    """The command that becomes this one, and hears Ctrl-C wherever the tests themselves run."""
    return [sys.executable, "-c", HEARS, *(str(each) for each in command)]


@pytest.fixture(scope="module")
def interrupts_arrive() -> None:
    """Skip where the machine itself lets no interrupt reach a process that only sleeps."""
    asleep = "import time; print(flush=True); time.sleep(30)"
    with subprocess.Popen(
        hearing(sys.executable, "-c", asleep),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as sleeper:
        assert sleeper.stdout is not None
        sleeper.stdout.readline()
        sleeper.send_signal(signal.SIGINT)
        try:
            sleeper.wait(timeout=15)
        except subprocess.TimeoutExpired:
            sleeper.kill()
            pytest.skip("no interrupt reaches a sleeping process on this machine")


class Terminal:
    """A command on a terminal of its own: what it shows there, and what is typed."""

    def __init__(self, *command: object) -> None:
        self._end, of_command = pty.openpty()
        self._process = subprocess.Popen(
            hearing(*command),
            stdin=of_command,
            stdout=subprocess.PIPE,
            stderr=of_command,
            start_new_session=True,
        )
        os.close(of_command)
        self.shown = ""

    def type(self, text: str) -> None:
        """What a person types."""
        os.write(self._end, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C, and again while nothing happens, as a person does.

        One that comes in the instant before Python begins to read is noticed after the read only.
        """
        for _ in range(10):
            self._process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=PATIENCE / 10)
                return

    def wait_for(self, enough: Callable[[str], bool]) -> str:
        """Read until enough is shown, or until nothing more comes."""
        deadline = time.monotonic() + PATIENCE
        while not enough(self.shown) and time.monotonic() < deadline:
            if not select.select([self._end], [], [], 0.2)[0]:
                continue
            try:
                told = os.read(self._end, 65_536)
            except OSError:  # the other end was closed
                break
            if not told:
                break
            self.shown += told.decode("utf-8", "replace")
        return self.shown

    def end(self) -> tuple[int, str]:
        """Its exit code, and what it printed beside the terminal."""
        self.wait_for(lambda _shown: False)
        try:
            printed, _ = self._process.communicate(timeout=PATIENCE)
        finally:
            self._process.kill()
            self._process.communicate()
            os.close(self._end)
        return self._process.returncode, printed.decode()


def audit_on_a_terminal(folder: Path, *extra: object) -> Terminal:
    """The command, with an agent that counts its calls."""
    (folder / "counting_agent.py").write_text(AGENT)
    config = write_audit(folder, "counting_agent:decide", **{"replicates = 8": "replicates = 2"})
    command = [sys.executable, "-m", "twinspan.analysis.cli", "audit", "--config", config]
    return Terminal(*command, "--out", folder / "spans", *extra)


def calls(folder: Path) -> int:
    """How often the agent was asked."""
    counted = folder / "calls"
    return len(counted.read_text()) if counted.exists() else 0


def test_it_says_what_it_costs_and_asks_before_the_first_call(tmp_path: Path) -> None:
    """Yes starts it; a bar counts the runs to the last one."""
    terminal = audit_on_a_terminal(tmp_path)
    shown = terminal.wait_for(lambda told: "Start? [Y/n]" in told)
    assert "= 16 runs against counting_agent:decide" in shown and "16 calls" in shown
    assert calls(tmp_path) == 0
    terminal.type("y\n")
    code, printed = terminal.end()
    assert code == 0, terminal.shown
    assert calls(tmp_path) == 16
    places = [int(place) for place in re.findall(r"(\d+)/16", terminal.shown)]
    assert places == sorted(places) and places[-1] == 16 and len(set(places)) > 1
    assert "verdict" in printed and "/16" not in printed and "Start?" not in printed


@pytest.mark.usefixtures("interrupts_arrive")
@pytest.mark.parametrize("says_no", [lambda it: it.type("n\n"), Terminal.interrupt])
def test_a_no_and_an_interrupt_run_nothing_and_record_nothing(
    tmp_path: Path, says_no: Callable[[Terminal], None]
) -> None:
    terminal = audit_on_a_terminal(tmp_path)
    terminal.wait_for(lambda told: "Start?" in told)
    says_no(terminal)
    code, printed = terminal.end()
    assert code not in (0, 3)
    assert "Traceback" not in terminal.shown and printed == ""
    assert calls(tmp_path) == 0 and not (tmp_path / "spans").exists()


def test_yes_in_advance_is_not_asked_again(tmp_path: Path) -> None:
    terminal = audit_on_a_terminal(tmp_path, "--yes")
    assert terminal.end()[0] == 0
    assert "Start?" not in terminal.shown and "16/16" in terminal.shown


def test_what_is_recorded_already_is_neither_asked_for_nor_counted_again(tmp_path: Path) -> None:
    audit_on_a_terminal(tmp_path, "--yes").end()
    terminal = audit_on_a_terminal(tmp_path)
    assert terminal.end()[0] == 0
    assert "Start?" not in terminal.shown and "/16" not in terminal.shown
    assert calls(tmp_path) == 16


def test_without_a_terminal_nobody_is_asked_and_nothing_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "counting_agent.py").write_text(AGENT)
    config = write_audit(tmp_path, "counting_agent:decide", **{"replicates = 8": "replicates = 2"})
    command = [sys.executable, "-m", "twinspan.analysis.cli", "audit", "--config", str(config)]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "spans")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Start?" not in done.stderr and "/16" not in done.stderr
    assert rows("sql", tmp_path / "spans", "SELECT count(*) AS n FROM runs") == [{"n": 16}]
