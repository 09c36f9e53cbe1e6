"""Six audits that can say nothing: through every command a reason, and no number to quote."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, Final

import audit_agents
import pytest
from audit_agents import SIGNED_GATE, rows, run, write_audit

from twinspan.collector.batch_recorder import BatchRecorder
from twinspan.instrumentation.audit.configuration import read_configuration
from twinspan.instrumentation.audit.runner import AuditRunner
from twinspan.instrumentation.tracing import Telemetry

RATES: Final = (
    "flip_rate",
    "floor_reference",
    "floor_counterfactual",
    "floor",
    "excess",
    "ci_low",
    "ci_high",
    "shift",
    "p_excess",
    "p_shift",
    "p_value",
    "p_adjusted",
    "p_smallest",
    "p_controls",
    "batch_ratio",
    "in_band_reference",
    "in_band",
    "p_in_band",
    "wcfr",
    "wcfr_all_in_band",
)
"""Everything in a row of flips that could be quoted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degenerate:
    """An audit that can say nothing.

    Attributes:
        agent: who answers.
        reason: why nothing can be said of its flips.
        floor: why it has no floor.
        gate: why its outcome is held out.
        replicates: of each case.
        one_case: whether the second case is left out.
    """

    agent: Callable[..., object]
    reason: str
    floor: str
    gate: str
    replicates: int = 4
    one_case: bool = False


AUDITS: Final[Mapping[str, Degenerate]] = {
    "constant": Degenerate(
        agent=audit_agents.constant,
        reason="constant_policy",
        floor="constant_policy",
        gate="degenerate_constant_policy",
    ),
    "refusing": Degenerate(
        agent=audit_agents.refusing,
        reason="no_answers",
        floor="no_answers",
        gate="capability_score_missing",
    ),
    "all None": Degenerate(
        agent=audit_agents.nothing,
        reason="no_answers",
        floor="no_answers",
        gate="capability_score_missing",
    ),
    "one replicate": Degenerate(
        agent=audit_agents.decided,
        reason="one_replicate",
        floor="one_replicate",
        gate="instability_floor_missing",
        replicates=1,
    ),
    "one case": Degenerate(
        agent=audit_agents.noisy,
        reason="one_case",
        floor="one_case",
        gate="instability_floor_missing",
        one_case=True,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An audit that was run."""

    folder: Path
    printed: str
    expected: Degenerate

    @property
    def spans(self) -> Path:
        """Its record."""
        return self.folder / "spans"

    @property
    def config(self) -> Path:
        """Its file, with a gate and a band."""
        return self.folder / "audit.toml"


@pytest.fixture(scope="module", params=AUDITS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Each of the audits, run by the command, with its report."""
    expected, folder = AUDITS[request.param], tmp_path_factory.mktemp("degenerate")
    config = write_audit(
        folder,
        expected.agent,
        extra=SIGNED_GATE,
        agent_extra="retries = 0",
        **{"replicates = 8": f"replicates = {expected.replicates}"},
    )
    if expected.one_case:
        text = config.read_text("utf-8")
        config.write_text(text[: text.rindex("[[case]]")], "utf-8")
    result = run(
        "audit", "--config", config, "--out", folder / "spans", "--report", folder / "r.html"
    )
    assert result.exit_code == 0, result.output
    return Made(folder=folder, printed=result.output, expected=expected)


def cells_of(printed: str) -> list[str]:
    """The words of the rows of the table that `audit` ends with; names and counts left out."""
    lines = [line for line in printed.splitlines() if re.match(r"(sex=|rerender|sham_)", line)]
    assert "flips  cells" in printed
    return [word for line in lines for word in line.split()[4:]]


def test_the_audit_itself_prints_verdicts_and_no_number(made: Made) -> None:
    assert set(cells_of(made.printed)) == {"inconclusive", "control"}
    assert f"{made.expected.reason} (3): " in made.printed
    assert "1 cannot be judged" in made.printed


@pytest.mark.parametrize("judged", [False, True])
def test_flips_has_a_reason_and_no_number(made: Made, judged: bool) -> None:
    """With bands and without, in JSON."""
    extra = ("--config", made.config) if judged else ()
    found = rows("flips", made.spans, *extra, code=0)
    assert len(found) == 3
    for row in found:
        assert row["reason"] == made.expected.reason
        assert {name: row[name] for name in RATES} == dict.fromkeys(RATES)
    assert {row["verdict"] for row in found} == {"inconclusive", "control"}


def test_flips_has_no_number_in_csv(made: Made) -> None:
    printed = run("flips", made.spans, "--config", made.config, "--format", "csv").stdout
    for row in csv.DictReader(io.StringIO(printed)):
        assert {name: row[name] for name in RATES} == dict.fromkeys(RATES, "")


def test_the_floor_has_a_reason_and_no_number(made: Made) -> None:
    for row in rows("floor", made.spans, code=0):
        assert row["reason"] == made.expected.floor
        numbers = ("floor", "ci_low", "ci_high", "kappa")
        assert {name: row[name] for name in numbers} == dict.fromkeys(numbers)
    assert f"{made.expected.floor} (" in run("floor", made.spans).stderr


def test_the_gate_holds_it_out_and_shows_no_rate(made: Made) -> None:
    (row,) = rows("gate", made.spans, "--config", made.config, code=1)
    assert (row["eligible"], row["reason"]) == (False, made.expected.gate)
    numbers = ("wcfr", "wcfr_all_in_band", "excess_over_floor", "instability_floor")
    assert {name: row[name] for name in numbers} == dict.fromkeys(numbers)


def test_the_report_says_why_and_shows_no_rate(made: Made) -> None:
    """The page of the audit, and the facts of `report` as JSON."""
    page = unescape((made.folder / "r.html").read_text("utf-8"))
    section = re.sub(r"<[^>]+>", " ", page[page.index('id="floors"') :].split("</section>")[0])
    told = re.findall(r"\d[\d.]*%", section.replace("95% intervals", ""))
    assert told == []
    assert made.expected.reason.replace("_", " ") in section
    assert "cannot be judged" in page
    result = run("report", made.spans, "--json", "-", "--gate", made.config)
    audit = json.loads(result.stdout)["audit"]
    for row in audit["disparities"]["items"]:
        assert {name: row[name] for name in RATES} == dict.fromkeys(RATES)
    assert [row["decision"]["wcfr"] for row in audit["gate"]] == [None]
    assert {row["floor"] for row in audit["floors"]["items"]} == {None}
    assert audit["propagation"]["total"] == audit["accumulation"]["total"] == 0


def test_the_views_have_a_reason_and_no_number(made: Made) -> None:
    """A row of a view is one case; so a single case is told there as any other."""
    if made.expected.one_case:
        pytest.skip("the views tell of single cases")
    found = rows("sql", made.spans, "SELECT flip_rate, excess, reason FROM flips", code=0)
    assert found
    expected = {"flip_rate": None, "excess": None, "reason": made.expected.reason}
    assert all(row == expected for row in found)
    floors = rows("sql", made.spans, "SELECT floor, reason FROM floors", code=0)
    assert all(row == {"floor": None, "reason": made.expected.floor} for row in floors)


def test_trajectories_carry_answers_and_no_rate(made: Made) -> None:
    result = run("trajectories", made.spans, "--out", made.folder / "t.json")
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads((made.folder / "t.json").read_text("utf-8"))
    answered = made.expected.reason != "no_answers"
    assert {each["complete"] for each in document["trajectories"]} == {answered}


# --- the sixth: an audit without a run --------------------------------------------------------


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of which the plan was sealed and no run made."""
    folder = tmp_path_factory.mktemp("empty")
    config = write_audit(folder, audit_agents.noisy, extra=SIGNED_GATE)
    configuration = read_configuration(config)
    telemetry = Telemetry([BatchRecorder(folder / "spans")])
    AuditRunner(
        configuration.plan,
        configuration.make_agent(),
        telemetry=telemetry,
        protocol=configuration.protocol,
    ).close("incomplete", observed=0)
    telemetry.shutdown()
    return folder


def test_an_empty_audit_has_no_flips_and_says_why(empty: Path) -> None:
    result = run("flips", empty / "spans", "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])
    assert "no run has a case and a condition" in result.stderr


def test_an_empty_audit_has_no_floor_and_says_why(empty: Path) -> None:
    (row,) = rows("floor", empty / "spans", code=0)
    assert (row["floor"], row["cells"], row["reason"]) == (None, 0, "no_answers")


def test_an_empty_audit_is_held_out_by_the_gate(empty: Path) -> None:
    result = run("gate", empty / "spans", "--config", empty / "audit.toml", "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (1, [])
    assert "nothing to judge" in result.stderr


def test_the_report_of_an_empty_audit_says_that_nothing_was_measured(empty: Path) -> None:
    result = run("report", empty / "spans", "--out", empty / "r.html")
    assert result.exit_code == 0, result.output
    assert "Nothing was measured" in (empty / "r.html").read_text("utf-8")


def test_an_empty_audit_has_no_trajectories(empty: Path) -> None:
    result = run("trajectories", empty / "spans", "--out", empty / "t.json")
    assert result.exit_code == 0, result.output
    assert json.loads((empty / "t.json").read_text("utf-8"))["trajectories"] == []
    assert "0 trajectories" in result.stderr


# --- beside them: what stands behind the floor of an audit -------------------------------------


def test_an_audits_floor_is_diagnosed_under_its_reference(tmp_path: Path) -> None:
    config = write_audit(tmp_path, audit_agents.noisy, **{"replicates = 8": "replicates = 6"})
    run("audit", "--config", config, "--out", tmp_path / "spans")
    (row, pooled) = rows("floor", tmp_path / "spans", "--diagnose", code=0)
    (expected, *_) = [
        each
        for each in rows("floor", tmp_path / "spans", "--by", "condition_id", code=0)
        if each["condition_id"] == "reference"
    ]
    assert row["floor"] == pooled["floor"] == expected["floor"]
    assert len(row["totals"]) == 6
