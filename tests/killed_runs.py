"""Kills a recording process at random moments and looks at what it leaves behind.

    python tests/killed_runs.py [--kills 100] [--seed 0]

The demo runs over and over in a child that says through a pipe which spans have ended and which
decisions are on disk; after SIGKILL the record is compared with what was said. Ends with 1 if a
decision is lost, a span that had ended a second before is missing, or a run that is not whole
does not say so.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

from opentelemetry.sdk.trace import ReadableSpan

from twinspan.analysis.demo.run import run_demo
from twinspan.analysis.store import open_store
from twinspan.analysis.verify import verify
from twinspan.collector.recorder import Recorder
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import SourceError

ONE_SECOND: Final = 1.0


@dataclass(kw_only=True)
class Said:
    """What the child said before it was killed.

    Attributes:
        ended: by run, the number of each span that ended and when, on the monotonic clock.
        committed: by run, numbers of decisions that were on disk before the child went on.
        killed: when it was killed.
    """

    ended: dict[str, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    committed: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    killed: float = 0.0


@dataclass(kw_only=True)
class Found:
    """What became of one kill.

    Attributes:
        runs: runs in the record.
        lost_decisions: decisions that were committed and are not there.
        lost_spans: other spans that had ended and are not there.
        oldest_lost: seconds before the kill at which the oldest of them had ended.
        hidden: runs that are not whole and do not say so.
        mismatches: runs of which something does not fit.
    """

    runs: int = 0
    lost_decisions: int = 0
    lost_spans: int = 0
    oldest_lost: float = 0.0
    hidden: list[str] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)


class _Talking(Recorder):
    """A recorder that says what it was told and what it has on disk."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.decisions: dict[str, list[int]] = defaultdict(list)

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span and say so."""
        super().on_end(span)
        attributes = span.attributes or {}
        run_id, seq = str(attributes[c.RUN_ID]), int(str(attributes[c.AUDIT_SEQ]))
        if attributes[c.SPAN_TYPE] == "network":
            self.decisions[run_id].append(seq)
        _say(f"E {run_id} {seq} {time.monotonic()}")

    def commit(self, run_id: str) -> bool:
        """Commit, and say which decisions are on disk now."""
        decided = self.decisions.pop(run_id, [])
        done = super().commit(run_id)
        for seq in decided if done else ():
            _say(f"C {run_id} {seq}")
        return done


_pipe = -1


def _say(line: str) -> None:
    os.write(_pipe, f"{line}\n".encode())


def _child(folder: Path, write_end: int) -> NoReturn:
    """Record one demo run after the other, until killed."""
    global _pipe
    _pipe = write_end
    import twinspan.collector.attaching as attaching

    attaching.__dict__["Recorder"] = _Talking
    seed = 0
    while True:
        run_demo(folder, seed=seed)
        seed += 1


def kill_once(folder: Path, after: float) -> Said:
    """Start a child, kill it some seconds after its first span, and return what it said."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            _child(folder, write_end)
        finally:
            os._exit(1)
    os.close(write_end)
    said = Said()
    with os.fdopen(read_end, "rb") as pipe:
        pending = pipe.readline()
        deadline = time.monotonic() + after
        lines = [pending]
        os.set_blocking(pipe.fileno(), False)
        while time.monotonic() < deadline:
            lines += pipe.readlines()
            time.sleep(0.002)
        said.killed = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.set_blocking(pipe.fileno(), True)
        lines += pipe.readlines()
    for line in b"".join(lines).decode().splitlines():
        word, run_id, seq, *when = line.split()
        if word == "E" and when:
            said.ended[run_id][int(seq)] = float(when[0])
        elif word == "C":
            said.committed[run_id].add(int(seq))
    return said


def compare(folder: Path, said: Said) -> Found:
    """What the record has of what was said."""
    found = Found()
    there: dict[str, set[int]] = defaultdict(set)
    states: dict[str, str] = {}
    try:
        with open_store(folder) as store:
            for run_id, seq in store.table("SELECT run_id, audit_seq FROM spans").rows:
                there[str(run_id)].add(int(str(seq)))
            for each in verify(store):
                states[each.run_id] = each.verdict
                if each.verdict == "mismatch":
                    found.mismatches.append(each.run_id)
    except SourceError:
        pass  # killed before anything was a second old
    found.runs = len(there)
    for run_id, ended in said.ended.items():
        found.lost_decisions += len(said.committed[run_id] - there[run_id])
        lost = [when for seq, when in ended.items() if seq not in there[run_id]]
        found.lost_spans += len(lost)
        found.oldest_lost = max([found.oldest_lost, *(said.killed - when for when in lost)])
        if lost and there[run_id] and states.get(run_id) != "incomplete":
            found.hidden.append(run_id)
    return found


def kill_many(kills: int, seed: int) -> list[Found]:
    """Kill as often, each time at a random moment of a fresh record."""
    chosen = random.Random(seed)
    results: list[Found] = []
    with tempfile.TemporaryDirectory() as scratch:
        run_demo(None, seed=0)  # everything is imported before the first fork
        for number in range(kills):
            folder = Path(scratch) / str(number)
            said = kill_once(folder, chosen.uniform(0.0, 3.0))
            results.append(compare(folder, said))
    return results


def main() -> int:
    """Kill, compare and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    results = kill_many(options.kills, options.seed)
    decisions = sum(each.lost_decisions for each in results)
    oldest = max(each.oldest_lost for each in results)
    odd = sum(len(each.hidden) + len(each.mismatches) for each in results)
    print(f"{len(results)} kills, {sum(each.runs for each in results)} runs on disk")
    print(f"committed decisions lost: {decisions}")
    print(f"other spans lost: {sum(each.lost_spans for each in results)}")
    print(f"the oldest of them had ended {oldest:.2f} s before the kill")
    print(f"runs that are not whole and do not say so, or do not fit: {odd}")
    return int(decisions > 0 or odd > 0 or oldest > ONE_SECOND)


if __name__ == "__main__":
    sys.exit(main())
