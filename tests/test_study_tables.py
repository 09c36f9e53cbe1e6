"""A study's tables set beside the expected ones, and drawn."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from studies import compare
from studies.__main__ import main
from studies.compare import ASKED, EXPECTED, Asked, agreement
from studies.output import share, write
from studies.pictures import picture, points

from twinspan.analysis.tables import Table

RATES = Table(
    columns=("way", "probes", "rejected at .05", "mean delta", "median seconds a run"),
    rows=(("dealt", 200, share(10, 200), 0.002, 0.5), ("one by one", 200, share(19, 200), 0.02, 1)),
)


def changed(folder: Path, table: str, column: str, to: str) -> None:
    """Write another value into the first row of a table."""
    path = folder / f"{table}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0][column] = to
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def found(tmp_path: Path) -> Path:
    """The expected tables, as if they had come out."""
    return Path(shutil.copytree(EXPECTED, tmp_path / "out"))


# --- comparing ------------------------------------------------------------------------------------


def test_the_expected_tables_are_reproduced_by_themselves_and_are_as_asked(found: Path) -> None:
    result = CliRunner().invoke(main, ["compare", "--out", str(found)])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1] == "reproduced"
    assert result.output.count("holds: ") == len(ASKED)


@pytest.mark.parametrize(
    ("expected", "other", "verdict"),
    [
        ("0.050 [0.02, 0.11]", "0.050 [0.02, 0.11]", "same"),
        ("0.050 [0.02, 0.11]", "0.100 [0.05, 0.17]", "within"),
        ("0.050 [0.02, 0.11]", "0.300 [0.20, 0.42]", "outside"),
        ("0.8468300653594762", "0.8468300653594766", "same"),
        ("0.5", "0.54", "within"),
        ("0.5", "0.66", "outside"),
        ("30", "35", "within"),
        ("30", "60", "outside"),
        ("dealt", "one by one", "outside"),
        ("0.5", "", "outside"),
    ],
)
def test_a_cell_agrees_within_its_uncertainty(expected: str, other: str, verdict: str) -> None:
    assert agreement(expected, other) == verdict


def test_a_share_beyond_its_interval_is_not_reproduced(found: Path) -> None:
    changed(found, "lists", "rejected at .05", share(500, 1000))
    result = CliRunner().invoke(main, ["compare", "--out", str(found)])
    assert result.exit_code == 1
    assert "lists: row 1, 'rejected at .05': 0.500" in result.output
    assert result.output.splitlines()[-1] == "not reproduced"


def test_a_table_that_is_missing_is_not_reproduced(found: Path) -> None:
    (found / "prior.csv").unlink()
    assert not compare.run(found)


def test_times_are_not_compared(found: Path) -> None:
    changed(found, "breaker", "median seconds a run", "1000")
    assert compare.run(found)


def test_what_is_asked_and_not_found_fails(found: Path) -> None:
    """Even where it is what was expected."""
    changed(found, "neutral", "rejected at .05", share(60, 200))
    assert not compare.run(found, expected=found)


def test_at_most_means_within_the_error_of_the_simulation() -> None:
    at_most = Asked(what="", table="", row=(), column="", most=0.05)
    at_least = Asked(what="", table="", row=(), column="", least=0.9)
    assert at_most.holds((0.06, 0.03, 0.10)) and not at_most.holds((0.13, 0.08, 0.21))
    assert at_least.holds((0.9, 0.8, 0.95)) and not at_least.holds((0.89, 0.8, 0.95))


# --- pictures -------------------------------------------------------------------------------------


def test_a_table_is_drawn_with_its_intervals_and_its_nominal_level(tmp_path: Path) -> None:
    write(tmp_path, "rates", "Rates", RATES)
    drawn = ElementTree.parse(tmp_path / "rates.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    dots = [float(dot.attrib["cx"]) for dot in drawn.iter(f"{space}circle")]
    levels = [path for path in drawn.iter(f"{space}path") if path.get("class") == "nominal"]
    assert len(dots) == len(levels) == 2
    assert dots[0] < dots[1], "the larger share is farther to the right"
    assert "http" not in (tmp_path / "rates.svg").read_text().replace("http://www.w3.org/", "")


def test_only_shares_are_drawn() -> None:
    assert [point.label for point in points(RATES)] == [
        "dealt: rejected at .05",
        "one by one: rejected at .05",
    ]
    assert picture("Times", Table(columns=("way", "seconds"), rows=(("dealt", 1.5),))) is None
