"""The study of repairs, reduced: every table is filled, and what must hold holds."""

from __future__ import annotations

import pytest
import study_intervention as study


def rows(report: study.Report) -> list[list[str]]:
    """The cells of the last table."""
    lines = [line for line in report.lines if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.parametrize("world", [study.Scripted(), study.Demo()], ids=lambda each: each.name)
def test_a_repair_that_works_completes_what_was_halted(world: study.World) -> None:
    """B_fast falls below tau_exit by re-measurement, and the record verifies."""
    report = study.Report()
    study.loop(report, world, range(2), {"auto": study.REPAIRS["auto"]}, "reduced")
    ((_, halted, recovered, below, _, escalated, unverified),) = rows(report)
    assert not halted.startswith("0/") and escalated.startswith("0/")
    assert recovered.split(" ")[0] == f"{halted[0]}/{halted[0]}"
    assert below == f"{halted[0]} of {halted[0]}" and unverified == "0"


def test_a_repair_of_words_only_lets_nothing_through() -> None:
    """Every halted run ends with a person."""
    report = study.Report()
    ways = {"words": study.IDLE["skeptics of words only"]}
    study.loop(report, study.Demo(), range(2), ways, "reduced")
    ((_, halted, recovered, *_),) = rows(report)
    assert halted.startswith("2/2") and recovered.startswith("0/2")


def test_the_four_conditions_cost_calls_in_their_order() -> None:
    """The baseline least, the loop most; telling alone changes no verdict."""
    report = study.Report()
    study.conditions(report, study.Scripted(), range(1))
    told = {row[0]: row for row in rows(report)}
    calls = [int(told[name][4]) for name in ("baseline", "probe + centrality", "probe only")]
    assert calls == sorted(calls)
    assert told["probe only"][1] == told["baseline"][1]


def test_votes_gain_by_trust_only_where_evidence_is_on_the_right_side() -> None:
    """And where it is on the other side they lose; measurement hands the right one on anyway."""
    report = study.Report()
    study.panels(report, 40)
    gains = [float(row[3]) for row in rows(report)]
    assert gains[0] > 0.5 and gains[-1] <= 0
    assert {row[4] for row in rows(report)} == {"0"}
    assert {row[5] for row in rows(report)} == {"1.000"}


def test_a_repair_needs_samples_to_be_shown_to_work() -> None:
    """Ten and five cannot show it of anybody; twenty can, and seldom of one at the bound."""
    report = study.Report()
    study.bounds(report, 100)
    told = {row[0]: [float(cell) for cell in row[1:]] for row in rows(report)}
    assert told["always the same answer"] == [0, 1, 1, 1]
    assert told["0.8 to 0.2"][2] > 0.8
    assert told["biased, delta 0.2"][2] < 0.15 and told["biased, delta 0.5"][2] == 0


def test_the_agent_behind_a_repaired_node_reads_the_repaired_payload() -> None:
    """By the hashes on the spans."""
    report = study.Report()
    study.readers(report, study.Demo(), range(1))
    ((read, repaired, handed),) = rows(report)
    assert read == repaired == handed == "1"
