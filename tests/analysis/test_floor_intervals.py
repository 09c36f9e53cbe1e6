"""Intervals of floors by resampling, leave-one-out, batch effects, comparisons."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from audit_world import FLOOR_LAWS, answers, batch_arm, pair_counts
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from shared_data import shared

from twinspan.analysis.batch_effect import batch_effect, batch_effects
from twinspan.analysis.dialects.fairmedagent import default_rules
from twinspan.analysis.disagreement import PairCount, disagreement, korn_graubard
from twinspan.analysis.floor_comparison import compare_floors, rank_agreement
from twinspan.analysis.floor_intervals import (
    base_rate,
    counts_by_case,
    floor_interval,
    floor_of,
    leave_one_out,
)
from twinspan.analysis.inference.bootstrap import bootstrap_ratio
from twinspan.analysis.pairing import replicate_table
from twinspan.analysis.replicate_table import ReplicateTable
from twinspan.instrumentation.audit.trajectories import read_trajectories
from twinspan.instrumentation.errors import ConfigurationError


def published(folder: str) -> dict[str, ReplicateTable]:
    """The tables of the six outcomes of a folder of released replicates."""
    runs = [
        run
        for number, file in enumerate(sorted(shared(f"fairmedagent/{folder}").glob("rep*.json")), 1)
        for run in read_trajectories(json.loads(file.read_text("utf-8")), replicate=number)
    ]
    return {
        rule.name: replicate_table(runs, rule, "ref_white_man_private") for rule in default_rules()
    }


def table_of(array: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> ReplicateTable:
    return ReplicateTable(
        cases=tuple(f"v{n}" for n in range(array.shape[0])),
        replicates=tuple(range(array.shape[1])),
        answers=tuple(map(tuple, array.tolist())),
    )


answer = st.sampled_from([None, "a", "b", "c"])
small_tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.lists(answer, min_size=width, max_size=width), min_size=1, max_size=4
    ).map(
        lambda rows: ReplicateTable(
            cases=tuple(f"v{n}" for n in range(len(rows))),
            replicates=tuple(range(width)),
            answers=tuple(map(tuple, rows)),
        )
    )
)


@settings(deadline=None)
@given(small_tables)
def test_a_table_counts_what_the_floor_counts(table: ReplicateTable) -> None:
    for case, row in zip(table.cases, table.answers, strict=True):
        known = [value for value in row if value is not None]
        assert table.counts[case] == disagreement([known.count(kind) for kind in set(known)])


@settings(max_examples=40, deadline=None)
@given(small_tables, st.data())
def test_weighted_pairs_are_those_of_copies_that_are_not_compared_with_themselves(
    table: ReplicateTable, data: st.DataObject
) -> None:
    width = len(table.replicates)
    weights = data.draw(st.lists(st.integers(0, 3), min_size=width, max_size=width))
    flips, cells = table.pairs(np.array([weights], dtype=float))
    for place, row in enumerate(table.answers):
        drawn = [(j, row[j]) for j in range(width) for _ in range(weights[j])]
        compared = [
            (a, b)
            for (i, a), (j, b) in itertools.combinations(drawn, 2)
            if i != j and a is not None and b is not None
        ]
        assert cells[0, place] == len(compared)
        assert flips[0, place] == sum(a != b for a, b in compared)


def test_a_table_is_made_from_rows_in_any_order() -> None:
    table = ReplicateTable.of([("a", 10, True), ("a", 2, False), ("b", 2, None)])
    assert (table.replicates, table.answers) == ((2, 10), ((False, True), (None, None)))
    with pytest.raises(ConfigurationError, match="twice"):
        ReplicateTable.of([("a", 1, True), ("a", 1, True)])
    with pytest.raises(ConfigurationError, match="do not fill"):
        ReplicateTable(cases=("a",), replicates=(1, 2), answers=((True,),))


def test_resampling_cases_is_the_bootstrap_of_their_pairs() -> None:
    rng = np.random.default_rng(3)
    table = table_of(answers(rng, rng.beta(0.3, 0.7, 16), 10))
    counts = list(table.counts.values())
    ours = floor_interval([table], resample="cases", draws=20_000).ends
    plain = bootstrap_ratio(
        np.array([c.flips for c in counts], float), np.array([c.cells for c in counts], float),
        draws=20_000, seed=9,
    ).ends  # fmt: skip
    assert ours == pytest.approx(plain, abs=0.01)


def test_resampling_both_is_wider_than_either_if_replicates_switch_policy() -> None:
    rng = np.random.default_rng(4)
    table = table_of(batch_arm(rng, cases=16, replicates=8, switch=0.8))
    widths = {}
    for resample in ("cases", "replicates", "both"):
        low, high = floor_interval([table], resample=resample, draws=2000).ends
        assert low is not None and high is not None
        widths[resample] = high - low
    assert widths["both"] > max(widths["cases"], widths["replicates"])


def test_what_cannot_be_resampled_says_why() -> None:
    one_case = table_of(np.array([[True, False, True]]))
    assert floor_interval([one_case]).reason == "fewer_than_two_cases"
    two_runs = table_of(np.array([[True, False], [True, True]]))
    assert floor_interval([two_runs]).reason == "fewer_than_three_replicates"
    assert floor_interval([two_runs], resample="cases", draws=99).reason is None
    empty = ReplicateTable(cases=(), replicates=(), answers=())
    assert floor_interval([empty]).reason == "no_pairs"


def test_outcomes_of_other_runs_are_not_pooled() -> None:
    first, second = table_of(np.ones((2, 3), bool)), table_of(np.ones((3, 3), bool))
    with pytest.raises(ConfigurationError, match="same runs"):
        floor_interval([first, second])


@pytest.mark.parametrize("law", FLOOR_LAWS)
def test_korn_graubard_covers_and_the_bootstrap_of_few_unstable_cases_does_not(law: str) -> None:
    shares, truth = FLOOR_LAWS[law]
    rng = np.random.default_rng(5)
    runs, exact, resampled = 150, 0, 0
    for number in range(runs):
        counts = pair_counts(answers(rng, shares(rng, 16), 10))
        low, high = korn_graubard(counts) or (1.0, 0.0)
        exact += low <= truth <= high
        flips = np.array([count.flips for count in counts], float)
        found = bootstrap_ratio(flips, np.full(16, 45.0), draws=300, seed=number)
        resampled += (found.low or 0.0) <= truth <= (found.high or 0.0)
    assert exact / runs >= 0.93 - 3 * math.sqrt(0.93 * 0.07 / runs)
    if law.startswith("sparse, floor .033"):
        assert resampled / runs < 0.85


def test_the_published_floors_hang_on_no_single_case() -> None:
    tables = list(published("floor16").values())
    assert floor_of(tables) == PairCount(flips=374, cells=4320)
    found = leave_one_out(tables)
    assert (found.low, found.high) == pytest.approx((0.080, 0.0923), abs=5e-5)
    without = leave_one_out(tables, by="replicate")
    assert (without.low, without.high) == pytest.approx((0.081, 0.091), abs=5e-4)


def test_the_published_intervals_are_met() -> None:
    tables = published("floor16")
    pooled = floor_interval(list(tables.values()), resample="cases", draws=5000, seed=42)
    assert pooled.ends == pytest.approx((0.056, 0.117), abs=0.002)
    icu = floor_interval([tables["escalate_icu"]], resample="cases", draws=5000)
    assert icu.ends == pytest.approx((0.0, 0.067), abs=0.003)
    both = floor_interval([tables["escalate_icu"]], draws=5000)
    assert both.high == pytest.approx(0.09, abs=0.008)


def test_the_policy_switch_of_the_second_model_would_have_been_seen() -> None:
    tables = published("floor16_sonnet")
    found = batch_effect(tables["cs_caution"])
    assert found.totals == (1, 1, 1, 7, 7, 1)
    assert found.ratio == pytest.approx(6.0, abs=0.05)
    assert found.p_value is not None and found.p_value < 0.001
    assert "6.0 times as much" in str(found.warning())
    every, adjusted = batch_effects(list(tables.values()))
    flagged = [e.action for e, p in zip(every, adjusted, strict=True) if (p or 1) <= 0.05]
    assert flagged == ["cs_caution"]


def test_the_first_models_replicates_vary_as_was_found() -> None:
    tables = published("floor16")
    assert batch_effect(tables["cs_caution"]).ratio == pytest.approx(4.7, abs=0.05)
    assert batch_effect(tables["admit"]).ratio == pytest.approx(1.7, abs=0.05)
    assert batch_effect(tables["referral"]).warning() is None


def test_base_rates_stand_beside_the_floors() -> None:
    tables = published("floor16")
    assert base_rate(tables["escalate_icu"]).value == 22 / 160
    nothing = base_rate(ReplicateTable(cases=("a",), replicates=(1,), answers=((None,),)))
    assert (nothing.value, nothing.reason) == (None, "nothing_to_compare")


def test_two_models_are_compared_case_by_case() -> None:
    first, second = published("floor16"), published("floor16_sonnet")
    found = compare_floors(counts_by_case(first.values()), counts_by_case(second.values()))
    assert found.value == pytest.approx(374 / 4320 - 96 / 1440)
    assert found.p_value is not None and 0.05 < found.p_value < 0.1
    caution = compare_floors(first["cs_caution"].counts, first["escalate_icu"].counts)
    assert caution.value == pytest.approx(0.157, abs=5e-4)
    assert caution.p_value == pytest.approx(0.03125)


def test_the_published_rank_correlation_and_its_exact_p() -> None:
    first, second = (
        {name: floor_of([table]).rate for name, table in published(folder).items()}
        for folder in ("floor16", "floor16_sonnet")
    )
    found = rank_agreement(first, second)
    assert found.correlation == pytest.approx(0.942857, abs=1e-6)
    assert found.p_value == pytest.approx(12 / 720)


def test_independent_cases_have_a_batch_ratio_of_one_and_uniform_p_values() -> None:
    rng = np.random.default_rng(6)
    found = [
        batch_effect(table_of(answers(rng, rng.beta(1, 1, 12), 6)), draws=199, seed=number)
        for number in range(150)
    ]
    assert np.mean([each.ratio or 0 for each in found]) == pytest.approx(1.0, abs=0.1)
    p_values = [each.p_value or 0 for each in found]
    assert stats.kstest(p_values, "uniform").pvalue > 0.001
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 150)


def test_a_batch_effect_of_categories_is_found() -> None:
    rows = tuple(tuple("xyxyzz") for _ in range(6))
    table = ReplicateTable(cases=tuple("abcdef"), replicates=tuple(range(6)), answers=rows)
    assert batch_effect(table).ratio == pytest.approx(6.0)


def test_tables_without_variation_or_too_small_say_so() -> None:
    assert (
        batch_effect(table_of(np.ones((3, 3), bool))).reason == "no_case_varies_between_replicates"
    )
    found = batch_effect(table_of(np.ones((1, 3), bool)))
    assert (found.reason, found.ratio) == ("fewer_than_two_cases_or_replicates", None)
    nothing = ReplicateTable(cases=("a", "b"), replicates=(1, 2), answers=((None,) * 2,) * 2)
    assert batch_effect(nothing).totals == (0, 0)


def test_floors_without_shared_cases_are_not_compared() -> None:
    found = compare_floors({"a": PairCount(flips=1, cells=3)}, {"b": PairCount(flips=1, cells=3)})
    assert (found.value, found.p_value, found.left_out) == (None, None, 2)
    assert found.reason == "no_case_has_pairs_on_both_sides"


def test_rank_agreement_needs_actions_and_an_order() -> None:
    assert rank_agreement({"a": 0.1}, {"a": 0.2}).reason == "fewer_than_three_actions"
    level = dict.fromkeys("abc", 0.1)
    assert rank_agreement(level, {"a": 0.1, "b": 0.2, "c": 0.3}).reason is not None
    many = {str(n): n / 20 for n in range(12)}
    found = rank_agreement(many, many)
    assert not found.exact
    assert found.correlation == pytest.approx(1.0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=7))
def test_the_rank_correlation_is_scipys(floors: list[tuple[int, int]]) -> None:
    first = {str(n): a / 5 for n, (a, _) in enumerate(floors)}
    second = {str(n): b / 5 for n, (_, b) in enumerate(floors)}
    found = rank_agreement(first, second)
    if found.reason is None:
        expected = stats.spearmanr(list(first.values()), list(second.values())).statistic
        assert found.correlation == pytest.approx(expected)
