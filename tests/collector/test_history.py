"""Error history."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from twinspan.collector.history import BetaHistory, BetaPosterior, Verdict, composite_risks
from twinspan.instrumentation.errors import ConfigurationError

PRIOR = BetaPosterior(biased=1, clear=9)
VERDICTS = st.lists(
    st.builds(
        Verdict,
        verdict_id=st.sampled_from([f"s{i}" for i in range(12)]),
        node=st.sampled_from(["triage", "router"]),
        biased=st.booleans(),
    ),
    unique_by=lambda verdict: verdict.verdict_id,
)


def test_a_node_without_verdicts_has_the_prior() -> None:
    assert BetaHistory(PRIOR).probability("triage") == 0.1


def test_verdicts_move_the_mean_by_counting() -> None:
    """Two biased and one clear on top of 1 and 9: 3 of 13."""
    history = BetaHistory(PRIOR)
    for number, biased in enumerate((True, True, False)):
        history.record(Verdict(verdict_id=str(number), node="triage", biased=biased))
    assert history.probability("triage") == pytest.approx(3 / 13)
    assert history.probability("router") == 0.1


def test_a_verdict_that_is_delivered_twice_counts_once() -> None:
    history = BetaHistory(PRIOR)
    verdict = Verdict(verdict_id="s", node="triage", biased=True)
    assert history.record(verdict)
    assert not history.record(verdict)
    assert history.posterior("triage") == BetaPosterior(biased=2, clear=9)


def test_what_the_peers_did_never_moves_a_node() -> None:
    """A lone node that differs from all others keeps its own record."""
    history = BetaHistory(PRIOR)
    for peer in range(50):
        history.record(Verdict(verdict_id=str(peer), node=f"peer{peer}", biased=False))
    assert history.probability("dissenter") == PRIOR.mean


@settings(max_examples=40)
@given(VERDICTS, st.randoms(use_true_random=False))
def test_the_order_of_verdicts_plays_no_part(verdicts: list[Verdict], draw: st.DataObject) -> None:
    shuffled = list(verdicts)
    draw.shuffle(shuffled)  # type: ignore[attr-defined]  # pyright: ignore
    one = BetaHistory.of(verdicts, prior=PRIOR)
    assert BetaHistory.of(shuffled, prior=PRIOR).posteriors == one.posteriors


@settings(max_examples=40)
@given(VERDICTS, st.integers(0, 12), st.integers(0, 12))
def test_overlapping_shards_merge_to_the_whole(
    verdicts: list[Verdict], first: int, second: int
) -> None:
    low, high = sorted((first, second))
    left = BetaHistory.of(verdicts[:high], prior=PRIOR)
    right = BetaHistory.of(verdicts[low:], prior=PRIOR)
    assert left.merge(right).posteriors == BetaHistory.of(verdicts, prior=PRIOR).posteriors


def test_histories_with_different_priors_do_not_merge() -> None:
    with pytest.raises(ConfigurationError, match="different priors"):
        BetaHistory(PRIOR).merge(BetaHistory(BetaPosterior(biased=1, clear=1)))


def test_the_interval_is_the_beta_quantile() -> None:
    posterior = BetaPosterior(biased=3, clear=10)
    expected = beta(3, 10).ppf([0.05, 0.95])
    assert posterior.interval(0.9) == pytest.approx(tuple(expected))
    with pytest.raises(ConfigurationError, match="level"):
        posterior.interval(1.0)


@pytest.mark.parametrize("count", [0.0, -1.0, math.nan, math.inf])
def test_a_pseudo_count_must_be_positive(count: float) -> None:
    with pytest.raises(ConfigurationError, match="pseudo-count"):
        BetaPosterior(biased=count, clear=1)


def test_the_composite_risk_keeps_both_factors() -> None:
    history = BetaHistory(PRIOR)
    history.record(Verdict(verdict_id="s", node="leaf", biased=True))
    risks = composite_risks({"hub": 0.75, "leaf": 0.25}, history)
    assert risks["hub"].risk == pytest.approx(0.75 * 0.1)
    assert risks["leaf"].share == 0.25
    assert risks["leaf"].probability == pytest.approx(2 / 11)
    assert risks["leaf"].risk == pytest.approx(0.25 * 2 / 11)
