"""Many runs: whether they touch each other, and whether memory stays flat.

    python benchmarks/bench_runs.py                       # 8 threads x 1,000 runs, 100,000 runs
    python benchmarks/bench_runs.py --threads 8 --each 20 --runs 2000

First, threads share one gate and each run's decisions are compared with those of the same run by
itself. Then runs begin and end, begin and never end, and one run goes on and on; printed is the
resident memory along the way, with everything on disk. Ends with 1 if a decision differs, or if
memory grows in the second half by more than a twentieth.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from many_runs import Plant, concurrent_runs, endings, never_ending, on_and_on

KINDS: Final[dict[str, Callable[[Plant, int], Iterator[None]]]] = {
    "begin and end": endings,
    "never end": never_ending,
    "one that goes on": on_and_on,
}


def resident() -> float:
    """Megabytes of memory in use, where the system tells."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    (line,) = [each for each in status.read_text().splitlines() if each.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def memory(plant: Plant, work: Iterator[None], count: int, looks: int = 10) -> list[float]:
    """Resident memory at so many points along the work."""
    seen: list[float] = []
    for number, _ in enumerate(work, start=1):
        if number % max(1, count // looks) == 0:
            plant.settle()
            gc.collect()
            seen.append(resident())
    return seen


def is_flat(seen: list[float]) -> bool:
    """Whether the second half takes no more than a twentieth above the first."""
    half = len(seen) // 2
    return max(seen[half:]) <= 1.05 * max(seen[:half])


def main() -> int:
    """Print both answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--each", type=int, default=1_000, help="runs of each thread")
    parser.add_argument("--runs", type=int, default=100_000, help="runs, and supersteps of one run")
    given = parser.parse_args()
    different = concurrent_runs(given.threads, given.each)
    total = given.threads * given.each
    print(f"{total} runs in {given.threads} threads: {different} decided otherwise than alone")
    failed = different > 0
    for name, kind in KINDS.items():
        for recorded in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                plant = Plant.build(Path(folder) if recorded else None)
                seen = memory(plant, kind(plant, given.runs), given.runs)
                plant.gate.shutdown()
            failed |= not is_flat(seen)
            label = f"{name}, {'recorded' if recorded else 'not recorded'}"
            print(f"{label:<32} {' '.join(f'{each:5.0f}' for each in seen)} MB", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
