"""Many runs that each stay below their limit can add up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from recorded_runs import recording

from twinspan.analysis.cli import main
from twinspan.collector.detector import DetectorState, EDetector
from twinspan.instrumentation import conventions as c


def record(folder: Path, evidence: list[list[tuple[float, int]]]) -> None:
    """Runs with these monitor values and restarts."""
    with recording(folder) as (telemetry, _):
        for number, decisions in enumerate(evidence):
            run = telemetry.run(f"r{number}")
            root = run.start("invoke_workflow g", "run", {c.GEN_AI_AGENT_NAME: "g"})
            for value, restart in decisions:
                told = {c.MONITOR_VALUE: value, c.MONITOR_RESTART: restart}
                run.end(run.start("update_network_score", "network", told, parent=root))
            run.end(root, {c.RUN_SPAN_COUNT: run.ended_count + 1})


def watch(folder: Path, *more: str) -> tuple[int, list[dict[str, object]]]:
    given = ["watch", str(folder), "--format", "json", *more]
    found = CliRunner().invoke(main, given)
    return found.exit_code, json.loads(found.output)


def test_an_alarm_comes_from_runs_none_of_which_was_halted(tmp_path: Path) -> None:
    """(R + 1) e: 4, 20, 84, 340 with e = 4; at an average run length of 300 the fourth alarms."""
    record(tmp_path, [[(2.0, 0), (4.0, 0)]] * 5)
    code, rows = watch(tmp_path, "--average-run-length", "300")
    assert code == 1
    assert [row["detector"] for row in rows] == [4, 20, 84, 340, 4]
    assert [row["alarm"] for row in rows] == [False, False, False, True, False]
    assert [row["runs"] for row in rows] == [1, 2, 3, 4, 1]


def test_a_restart_ends_the_evidence_of_a_run(tmp_path: Path) -> None:
    """What came after a repair is measured against another bound."""
    record(tmp_path, [[(1.5, 0), (25.0, 0), (1.0, 1)]])
    _, rows = watch(tmp_path)
    assert rows[0]["e_value"] == 25.0


def test_without_an_alarm_the_command_ends_with_0(tmp_path: Path) -> None:
    record(tmp_path, [[(0.9, 0)]] * 3)
    code, rows = watch(tmp_path)
    assert code == 0 and len(rows) == 3


def test_a_record_without_monitored_runs_says_so(tmp_path: Path) -> None:
    record(tmp_path, [[]])
    found = CliRunner().invoke(main, ["watch", str(tmp_path), "--format", "json"])
    assert found.exit_code == 0
    assert "no run in it was monitored" in found.output


def test_the_average_run_length_is_kept() -> None:
    """Mean time to a false alarm over 300 streams of lognormal e-values with mean 1."""
    rng, detector, times = np.random.default_rng(3), EDetector(alpha=1 / 40), []
    for _ in range(300):
        state, runs = DetectorState(), 0
        while not state.alarm:
            runs += 1
            state = detector.step(state, float(np.exp(rng.normal(-0.32, 0.8))))
        times.append(runs)
    deviation = float(np.std(times)) / 300**0.5
    assert float(np.mean(times)) >= 40 - 2 * deviation
