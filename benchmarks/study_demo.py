"""How often the demo halts: biased, unbiased, unbiased at a high temperature.

    python benchmarks/study_demo.py                 # 50 biased runs, 200 and 200 unbiased ones
    python benchmarks/study_demo.py --runs 1000     # more of the unbiased

Everything is read back from the recorded files. The last column is the largest B_fast of a run
that the given share of the runs does not exceed: the demo's thresholds rest on it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from twinspan.analysis import open_store
from twinspan.analysis.demo.run import HOT, run_demo

COUNTS = """
SELECT count(DISTINCT run_id) FILTER (decision = 'halt' AND edge = 'analyst_a->reviewer'),
       count(DISTINCT run_id) FILTER (decision = 'halt'),
       (SELECT count(*) FROM runs),
       (SELECT count(*) FROM runs WHERE outcome = 'completed')
FROM decisions
"""

LARGEST = """
SELECT quantile_cont(largest, 0.95)
FROM (SELECT max(b_fast) AS largest FROM network GROUP BY run_id)
"""


def study(name: str, seeds: range, **options: Any) -> None:
    """Run the demo once a seed and print what the record says."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            run_demo(Path(folder), seed=seed, **options)
        with open_store(folder) as store:
            at_edge, halted, runs, completed = store.table(COUNTS).rows[0]
            ((largest,),) = store.table(LARGEST).rows
    interval = binomtest(int(str(halted)), int(str(runs))).proportion_ci(method="wilson")
    print(
        f"{name:<10} {runs:>5} {halted:>6} {at_edge:>9} {completed:>10}   "
        f"{interval.low:.3f}-{interval.high:.3f}   {largest:.3f}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--biased", type=int, default=50, metavar="RUNS")
    parser.add_argument("--runs", type=int, default=200, help="unbiased runs of each kind")
    given = parser.parse_args()
    print("demo        runs halted  at edge  completed   halted, 95%   B_fast 95%")
    study("biased", range(given.biased))
    study("unbiased", range(1000, 1000 + given.runs), biased=False)
    study("hot", range(1000, 1000 + given.runs), biased=False, temperature=HOT)


if __name__ == "__main__":
    main()
