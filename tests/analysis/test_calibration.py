"""Thresholds from recorded control runs, by the command."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from many_runs import NODES, Plant, scores_of

from twinspan.analysis.calibration import rate_interval
from twinspan.analysis.cli import main
from twinspan.analysis.store import open_store
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.scoring import compute_local_bias


@pytest.fixture(scope="module")
def controls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-four unbiased runs of four nodes, with answers drawn at random."""
    folder = tmp_path_factory.mktemp("controls") / "spans"
    rng, plant = np.random.default_rng(8), Plant.build(folder)
    for _ in range(24):
        tracer = plant.begin()
        told = {c.GRAPH_NODES: NODES, c.GRAPH_EDGES: [c.edge_name(*e) for e in pairwise(NODES)]}
        root = tracer.start("invoke_workflow review", "run", {**told, c.AUDIT_AXES: ["gender"]})
        for number, node in enumerate(NODES):
            answers = rng.choice(list("ab"), size=15)
            score = compute_local_bias(
                answers[:5].tolist(), answers[10:].tolist(), noise_floor=answers[5:10].tolist()
            )
            plant.superstep(tracer, number, node, score)
        tracer.end(root, plant.gate.close_run(tracer.run_id))
    plant.gate.shutdown()
    return folder


def calibrate(folder: Path, *more: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["calibrate", str(folder), "--target", *more])
    return found.exit_code, found.output


def test_thresholds_come_with_the_rate_that_is_left_open(controls: Path) -> None:
    code, text = calibrate(controls, "0.1", "--format", "json")
    found = json.loads(text)
    assert code == 0
    assert found["controls"] == 24 and found["level"] == "run"
    assert 0 < found["tau_exit"] < found["tau_enter"]
    assert 0 < found["rate_low"] < 0.1 < found["rate_high"] < 0.3


def test_too_few_runs_are_refused_with_the_number_that_is_needed(controls: Path) -> None:
    code, text = calibrate(controls, "0.01")
    assert code == 2
    assert "record at least 99" in text


def test_a_sweep_tries_reductions_and_alphas(controls: Path) -> None:
    """Where nothing is smoothed and the largest counts, it is a quantile of largest deltas."""
    code, text = calibrate(controls, "0.1", "--sweep", "--format", "json")
    rows = json.loads(text)
    enter = {(row["reduction"], row["alpha_fast"]): row["tau_enter"] for row in rows}
    assert code == 0 and len(enter) == 20
    with open_store(str(controls)) as store:
        largest = store.table("SELECT max(delta) FROM probe_sets GROUP BY run_id ORDER BY 1").rows
    assert enter["max", 1.0] == pytest.approx(float(str(largest[22][0])))
    assert calibrate(controls, "0.1", "--sweep", "--alpha-fast", "0.5")[0] == 2


def test_the_rate_interval_covers_the_rate() -> None:
    """The r-th smallest of n uniform controls: its exceedance lies in the interval 95 times."""
    rng, n, target = np.random.default_rng(4), 39, 0.1
    low, high = rate_interval(n, target)
    rank = int(np.ceil((n + 1) * (1 - target)))
    rates = 1 - np.sort(rng.uniform(size=(4000, n)), axis=1)[:, rank - 1]
    assert float(((rates >= low) & (rates <= high)).mean()) == pytest.approx(0.95, abs=0.01)
    assert float(rates.mean()) == pytest.approx(target, abs=0.005)


def test_the_scripted_runs_are_what_they_say() -> None:
    """Some seeds are clean throughout, some biased from some node on."""
    assert [score.delta > 0.5 for score in scores_of(2)] == [False, False, True, True]
