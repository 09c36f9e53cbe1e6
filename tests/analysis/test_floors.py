"""Floors: counted, exact, with honest intervals, and equal to what was published."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_runs import ScoredRun, recording
from shared_data import shared

from twinspan.analysis.disagreement import (
    PairCount,
    disagreement,
    kappa,
    korn_graubard,
    majority_disagreement,
    pooled,
)
from twinspan.analysis.floors import FloorRow, floor_rows, floor_table
from twinspan.analysis.importing import import_spans
from twinspan.analysis.store import Store, open_store
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import ConfigurationError

CARRIED = Path(__file__).parents[2] / "examples" / "floor16"

PUBLISHED = {
    "escalate_icu": 16,
    "any_opioid": 18,
    "referral": 54,
    "high_acuity": 55,
    "admit": 102,
    "cs_caution": 129,
}
"""Flips of 720 pairs of the first agent's replicates."""

SECOND = {
    "escalate_icu": 5,
    "any_opioid": 8,
    "referral": 9,
    "admit": 10,
    "high_acuity": 16,
    "cs_caution": 48,
}
"""Flips of 240 pairs of the second agent's."""

INTERVALS = {
    "escalate_icu": (0.000, 0.133, 0.91),
    "any_opioid": (0.002, 0.094, 0.95),
    "referral": (0.012, 0.228, 0.83),
    "high_acuity": (0.012, 0.233, 0.83),
    "admit": (0.053, 0.286, 0.70),
    "cs_caution": (0.069, 0.349, 0.58),
    "pooled": (0.055, 0.128, None),
}


# --- counting -------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 4), max_size=12))
def test_counting_equals_comparing_every_pair(answers: list[int]) -> None:
    """For any answers of any number of kinds."""
    pairs = list(itertools.combinations(answers, 2))
    expected = PairCount(flips=sum(a != b for a, b in pairs), cells=len(pairs))
    assert disagreement(list(Counter(answers).values())) == expected


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=8), st.sampled_from([1, 3]))
def test_the_closed_form_of_majorities_equals_every_split(answers: list[bool], group: int) -> None:
    """Every pair of disjoint groups, voted and compared."""
    flips = cells = 0
    places = range(len(answers))
    for first in itertools.combinations(places, group):
        rest = [place for place in places if place not in first]
        for second in itertools.combinations(rest, group):
            if first < second:
                cells += 1
                votes = [2 * sum(answers[p] for p in side) > group for side in (first, second)]
                flips += votes[0] != votes[1]
    counts = [sum(answers), len(answers) - sum(answers)]
    assert majority_disagreement(counts, group) == PairCount(flips=flips, cells=cells)


def test_a_majority_of_one_is_a_single_replicate() -> None:
    """Both counts are the same thing."""
    assert majority_disagreement([7, 3], 1) == disagreement([7, 3])


@pytest.mark.parametrize("group", [0, 2, 4, -1])
def test_a_vote_that_can_tie_is_refused(group: int) -> None:
    """Even groups have no majority."""
    with pytest.raises(ConfigurationError, match="odd"):
        majority_disagreement([3, 3], group)


def test_a_majority_of_three_answers_is_refused() -> None:
    """The message says how to make a yes or no of it."""
    with pytest.raises(ConfigurationError, match="outcome rule"):
        majority_disagreement([3, 3, 3], 3)


def test_intervals_are_never_of_zero_width() -> None:
    """Nothing seen is not nothing there; everything seen is not everything."""
    for flips in (0, 45):
        interval = korn_graubard([PairCount(flips=flips, cells=45)] * 16)
        assert interval is not None
        assert interval[1] - interval[0] > 0.1
    assert korn_graubard([PairCount(flips=1, cells=45)]) is None
    assert korn_graubard([]) is None


def test_kappa_is_one_for_agreement_and_none_for_a_constant() -> None:
    """Two cases that always answer differently from each other agree within themselves."""
    assert kappa(PairCount(flips=0, cells=12), [4, 4]) == 1
    assert kappa(PairCount(flips=0, cells=12), [8]) is None
    assert kappa(PairCount(flips=0, cells=0), [1, 1]) is None


def test_kappa_is_the_variance_split() -> None:
    """1 - floor / (2 p (1 - p) VN / (VN - 1)), written out."""
    cases = [(3, 7), (9, 1), (0, 10)]
    pairs = pooled([disagreement(case) for case in cases])
    ones, total = sum(case[0] for case in cases), 30
    mean = ones / total
    chance = 2 * mean * (1 - mean) * total / (total - 1)
    expected = 1 - (pairs.rate or 0) / chance
    assert kappa(pairs, [ones, total - ones]) == pytest.approx(expected, abs=1e-12)


# --- recorded agents ------------------------------------------------------------------------------


def _flips(rows: list[FloorRow]) -> dict[str, int]:
    return {row.action: row.flips for row in rows}


def _cells(rows: list[FloorRow]) -> set[int]:
    return {row.cells for row in rows if row.action != "pooled"}


@pytest.fixture(scope="module")
def stores() -> Iterator[Callable[[Path], Store]]:
    """Opens a source once for all tests of this module."""
    with ExitStack() as stack:
        opened: dict[Path, Store] = {}

        def opening(source: Path) -> Store:
            if source not in opened:
                opened[source] = stack.enter_context(open_store(source))
            return opened[source]

        yield opening


Opening = Callable[[Path], Store]


@pytest.fixture(scope="module", params=["carried", "shared", "imported"])
def first(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, stores: Opening
) -> Store:
    """The first agent: as carried here, as it was published, and as imported Parquet."""
    if request.param == "shared":
        return stores(shared("fairmedagent/floor16"))
    if request.param == "imported":
        out = tmp_path_factory.mktemp("imported")
        import_spans(CARRIED / "first", out)
        return stores(out)
    return stores(CARRIED / "first")


@pytest.fixture(scope="module", params=["carried", "shared"])
def second(request: pytest.FixtureRequest, stores: Opening) -> Store:
    """The second agent, as carried here and as it was published."""
    if request.param == "shared":
        return stores(shared("fairmedagent/floor16_sonnet"))
    return stores(CARRIED / "second")


def test_the_published_floors_come_out_exactly(first: Store) -> None:
    """Six outcomes, single replicates and majorities of three and five."""
    rows = floor_rows(first)
    assert _flips(rows) == {**PUBLISHED, "pooled": 374}
    assert _cells(rows) == {720}
    assert [row.action for row in rows] == [*PUBLISHED, "pooled"]
    assert rows[-1].cells == 4320
    assert {row.replicates for row in rows} == {10}
    assert {row.cases for row in rows} == {16}
    three, five = floor_rows(first, majority=3)[-1], floor_rows(first, majority=5)[-1]
    assert (three.flips, three.cells) == (12660, 201600)
    assert (five.flips, five.cells) == (636, 12096)
    assert three.floor == pytest.approx(0.0628, abs=5e-5)
    assert five.floor == pytest.approx(0.0526, abs=5e-5)


def test_intervals_and_kappa_are_those_of_the_table(first: Store) -> None:
    """To the three and two digits that were tabulated independently."""
    rows = {row.action: row for row in floor_rows(first)}
    for action, (low, high, beyond) in INTERVALS.items():
        assert rows[action].ci_low == pytest.approx(low, abs=6e-4)
        assert rows[action].ci_high == pytest.approx(high, abs=6e-4)
        assert rows[action].kappa == (None if beyond is None else pytest.approx(beyond, abs=6e-3))


def test_the_second_agents_floors_come_out_exactly(second: Store) -> None:
    """Six replicates; a majority of five does not fit twice into them."""
    rows = floor_rows(second)
    assert _flips(rows) == {**SECOND, "pooled": 96}
    assert _cells(rows) == {240}
    three = floor_rows(second, majority=3)[-1]
    assert (three.flips, three.cells) == (46, 960)
    assert floor_rows(second, majority=5)[-1].floor is None


def test_two_agents_in_one_folder_are_never_each_others_replicates() -> None:
    """Broken down by model each has its own floors; together only their pairs are added."""
    with open_store(CARRIED) as store:
        by_model = floor_rows(store, by=["model"])
        together = floor_rows(store)[-1]
    assert [row.flips for row in by_model if row.action == "pooled"] == [374, 96]
    assert (together.flips, together.cells) == (374 + 96, 4320 + 1440)


@pytest.mark.parametrize(
    ("carried", "published", "runs"),
    [("first", "fairmedagent/floor16", 160), ("second", "fairmedagent/floor16_sonnet", 96)],
)
def test_the_carried_values_are_the_published_ones(
    stores: Opening, carried: str, published: str, runs: int
) -> None:
    """The reduced files hold the same answers as the files they were reduced from."""
    query = (
        "SELECT model, case_id, condition_id, replicate, action, value FROM actions ORDER BY ALL"
    )
    ours, theirs = (
        stores(source).table(query).rows for source in (CARRIED / carried, shared(published))
    )
    assert ours == theirs
    assert len(ours) == runs * 6


# --- tables ---------------------------------------------------------------------------------------


def _replicates(folder: Path, *answers: tuple[str, str, object]) -> Path:
    """Runs of (case, condition, answer)."""
    with recording(folder) as (telemetry, _):
        for number, (case, condition, answer) in enumerate(answers):
            root = {c.CASE_ID: case, c.CONDITION_ID: condition}
            run = ScoredRun(telemetry, f"r{number}", root=root)
            run.node("s", 1, {f"{c.ACTION_PREFIX}x": answer})
            run.end()
    return folder


def test_conditions_are_apart_and_pooled_within_their_case(tmp_path: Path) -> None:
    """Answers of two conditions are no pair."""
    runs = [("c1", "a", True), ("c1", "a", True), ("c1", "b", False), ("c1", "b", True)]
    with open_store(_replicates(tmp_path, *runs)) as store:
        (row, _) = floor_rows(store)
        assert (row.flips, row.cells, row.cases, row.replicates) == (1, 2, 1, 2)
        assert row.ci_low is None
        by = floor_table(store, by=["condition_id"])
    assert by.columns[:4] == ("condition_id", "action", "flips", "cells")
    assert [row[:4] for row in by.rows] == [
        ("a", "s.x", 0, 1),
        ("a", "pooled", 0, 1),
        ("b", "s.x", 1, 1),
        ("b", "pooled", 1, 1),
    ]


def test_more_than_two_answers_have_a_floor(tmp_path: Path) -> None:
    """1 - sum C(n_k, 2) / C(N, 2), and the same in SQL."""
    answers = ["a", "a", "b", "c"]
    with open_store(_replicates(tmp_path, *(("c1", "x", each) for each in answers))) as store:
        (row, _) = floor_rows(store)
        assert (row.flips, row.cells) == (5, 6)
        assert store.table("SELECT flips, cells, floor, kinds, replicates FROM floors").rows == (
            (5, 6, 5 / 6, 3, 4),
        )


def test_runs_without_a_case_or_a_second_replicate_have_no_floor(tmp_path: Path) -> None:
    """No pair is not zero disagreement."""
    with recording(tmp_path) as (telemetry, _):
        for run_id, root in (("r1", {}), ("r2", {}), ("r3", {c.CASE_ID: "c1"})):
            run = ScoredRun(telemetry, run_id, root=root)
            run.node("s", 1, {f"{c.ACTION_PREFIX}x": True})
            run.end()
    with open_store(tmp_path) as store:
        rows = floor_rows(store)
    assert [(row.action, row.cells, row.floor) for row in rows] == [
        ("s.x", 0, None),
        ("pooled", 0, None),
    ]


def test_missing_answers_drop_out(tmp_path: Path) -> None:
    """A replicate that did not answer is no disagreement."""
    with recording(tmp_path) as (telemetry, _):
        answers: list[dict[str, object]] = [{"x": True}, {"x": True}, {"y": 1}]
        for number, fields in enumerate(answers):
            run = ScoredRun(
                telemetry,
                f"r{number}",
                root={c.CASE_ID: "c1", c.AUDIT_OUTCOMES: ["x=s.x"]},
            )
            run.node("s", 1, {f"{c.ACTION_PREFIX}{k}": v for k, v in fields.items()})
            run.end()
    with open_store(tmp_path) as store:
        (row, _) = floor_rows(store)
    assert (row.flips, row.cells, row.replicates) == (0, 1, 2)


def test_an_unknown_column_is_refused_with_those_there_are(stores: Opening) -> None:
    """The message lists what a table can be broken down by."""
    with pytest.raises(ConfigurationError, match=r"take one of .*model"):
        floor_rows(stores(CARRIED / "first"), by=["modle"])
