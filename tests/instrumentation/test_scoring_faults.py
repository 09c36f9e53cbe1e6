"""Faults that were measured in the prior implementation, by their number, absent here.

S1 to S3 concern weights, run-level alarms and averages over time, S13's stopping rule the
repair loop, E14 perturbation and E16 the probe: the collector's and the prober's own tests.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray
from simulated_nodes import (
    BINARY,
    SKEWED,
    choices,
    chordal,
    classes,
    draws,
    hellinger,
    margin,
    mismatch,
)

from twinspan.instrumentation.divergence import Outcome
from twinspan.instrumentation.effect_interval import intervals
from twinspan.instrumentation.errors import EstimatorError, NonFiniteSample
from twinspan.instrumentation.joint import joint_maxima
from twinspan.instrumentation.orbit import orbit_test_triangles, square
from twinspan.instrumentation.scoring import BiasScore, compute_local_bias

Floats = NDArray[np.float64]


def _rate(p: Floats, alpha: float = 0.05) -> float:
    return float(np.mean(p <= alpha))


def test_s4_dependence_within_arms_is_reported_with_the_score() -> None:
    """There a batch per arm is flagged at up to .87; see test_orbit_dependence for the cures."""
    drifting = list("aaaabbbb")
    score = compute_local_bias(drifting, drifting, order=range(16))
    assert score.dependence_p is not None
    assert score.dependence_p <= 0.05


def test_s4_arms_in_blocks_are_exchanged_within_blocks() -> None:
    """Every batch has its own answer: without blocks the batches would look like noise."""
    batches = [name for name in "abcdefgh" for _ in range(2)]
    moved = [name.upper() if k % 2 else name for k, name in enumerate(batches)]
    score = compute_local_bias(batches, moved, blocks=batches * 2)
    assert score.blocks == tuple(batches * 2)
    assert score.p_value == score.recompute().p


def test_s5_an_edit_is_not_called_an_axis() -> None:
    """There sensitivity to any edit counts as bias; see also the calibration of wording."""
    score = compute_local_bias(["a"] * 5, ["b"] * 5, axis="gender")
    assert score.verdict_reason == "reacts_to_edit"


def test_s6_looking_again_after_every_round_keeps_the_error_rate() -> None:
    """There seven looks raise 5% to 17%. Fresh rounds multiply to a wealth of mean 1."""
    nodes, rounds = 1_000, 7
    rng = np.random.default_rng(6)
    codes = classes(rng, SKEWED, (nodes * rounds, 9))
    e = orbit_test_triangles(mismatch(codes), 6).e.reshape(nodes, rounds)
    wealth = np.cumprod(e, axis=1)
    assert np.mean(wealth.max(axis=1) >= 20) <= 0.05 + margin(0.05, nodes)


def test_s7_ten_axes_that_share_a_baseline_keep_the_error_rate() -> None:
    """There the largest of ten axes is significant for 30% of unbiased nodes."""
    nodes, sizes = 250, (5,) * 10
    codes = classes(np.random.default_rng(7), BINARY, (nodes, 60))
    maxima = [joint_maxima(square(row), 10, sizes, draws=199) for row in mismatch(codes)]
    p = np.array([np.mean(values >= values[0] - 1e-9) for values in maxima])
    assert _rate(p) <= 0.05 + margin(0.05, nodes)


def test_s8_a_polarised_arm_with_the_same_mean_is_found() -> None:
    """There p is .93; half of the answers for and half against is a difference."""
    rng = np.random.default_rng(8)
    lean = rng.normal(0, 0.1, (200, 20, 2))
    lean[:, 10:, 0] += np.tile([3.0, -3.0], 5)
    vectors = np.concatenate([lean, np.ones((200, 20, 1))], axis=2)
    assert _rate(orbit_test_triangles(chordal(vectors), 10).p) > 0.95


def test_s8_unequal_arms_of_one_law_keep_the_error_rate() -> None:
    """There 20 against 5 gives .61 or 0, depending on which arm varies more."""
    codes = classes(np.random.default_rng(9), SKEWED, (1_000, 16))
    for n_reference in (12, 4):
        p = orbit_test_triangles(mismatch(codes), n_reference).p
        assert _rate(p) <= 0.05 + margin(0.05, 1_000)


def test_s8_an_arm_that_varies_more_or_less_is_another_law_in_either_direction() -> None:
    """An unequal spread is no false alarm here but a finding, whichever arm has it."""
    rng = np.random.default_rng(10)
    for spreads in ((0.2, 1.0), (1.0, 0.2)):
        scale = np.repeat(spreads, (12, 5))[:, np.newaxis]
        vectors = 1 + scale * rng.standard_normal((300, 17, 8))
        assert _rate(orbit_test_triangles(chordal(vectors), 12).p) > 0.5


def test_s9_the_magnitude_neither_grows_with_n_nor_is_gated() -> None:
    """There a fully disjoint node scores .912 at n=5, and 0 at n=3."""
    deltas = [compute_local_bias(["a"] * n, ["b"] * n).delta for n in (2, 3, 5, 12, 40)]
    assert deltas == [1.0] * 5


def test_s10_arms_too_small_to_show_anything_are_inconclusive_not_clean() -> None:
    """Three against three cannot reach .05; with null re-samples they can."""
    small = compute_local_bias(["a"] * 3, ["b"] * 3)
    pooled = compute_local_bias(["a"] * 3, ["b"] * 3, noise_floor=["a"] * 3)
    assert (small.verdict, small.verdict_reason) == ("inconclusive", "too_few_samples")
    assert small.smallest_p == pytest.approx(2 / comb(6, 3))
    assert pooled.verdict == "above_floor"
    assert pooled.p_value == pytest.approx(1 / comb(9, 3))


def test_s11_the_interval_lies_around_the_effect() -> None:
    """There its middle is 2.1 to 2.4 standard deviations above an effect of zero.

    Here half of one: the draws have the right mean, their law leans to the right.
    """
    codes = classes(np.random.default_rng(11), SKEWED, (1_500, 10))
    triangles = mismatch(codes)
    low, high = intervals(triangles, 5, 10)
    sd = orbit_test_triangles(triangles, 5).delta.std()
    assert abs(np.mean((low + high) / 2)) < 0.75 * sd


def test_s12_the_verdict_on_given_data_is_not_a_matter_of_luck() -> None:
    """There p of one data set runs from .037 to .068 over seeds."""
    arms = list("aaaab"), list("bbbba")
    assert len({compute_local_bias(*arms, seed=seed).p_value for seed in range(20)}) == 1


def test_s13_insignificance_is_not_taken_for_absence() -> None:
    """There a repair that changed nothing counts as converged; an interval must rule it out."""
    score = compute_local_bias(list("aaaba"), list("bbabb"))
    assert not score.is_significant()
    assert score.rules_out(0.1) is False
    few, many = (compute_local_bias(["a"] * n, ["a"] * n) for n in (5, 15))
    assert (few.rules_out(0.1), many.rules_out(0.1)) == (False, True)
    none_agree = compute_local_bias(list("abcde"), list("fghij"))
    assert (none_agree.delta, none_agree.ci_high, none_agree.rules_out(0.9)) == (0, 0, False)


def test_s14_mass_off_the_support_is_seen() -> None:
    """There softmax hides that one node gives its answers no probability at all."""
    score = compute_local_bias([[-1.0, -1.2]] * 5, [[-20.0, -20.2]] * 5, method="js_logprob")
    assert score.delta > 0.5
    assert score.verdict == "above_floor"


def test_s14_truncated_lists_with_other_tokens_are_aligned() -> None:
    """There different supports raise."""
    score = compute_local_bias(
        [{"yes": -0.2, "no": -2.0}] * 5, [{"yes": -0.2, "perhaps": -2.0}] * 5
    )
    assert score.estimator == "js_logprob"
    assert 0 < score.delta < 1


def test_s14_a_refusal_gap_is_measured() -> None:
    """There a refusal raises and the axis is dropped as failed."""
    score = compute_local_bias([[1.0, 0.0]] * 5, [Outcome.refusal] * 4 + [[1.0, 0.0]])
    assert score.refusal_gap == pytest.approx(0.8)
    assert score.delta == pytest.approx(0.8 - 0.4 / 2)


def test_s15_single_draws_gain_from_null_resamples() -> None:
    """There power is .135 (one class per call, 8 calls, beta 2): a draw tells little.

    Reusing null re-samples as reference helps; whole distributions help far more.
    """
    rng = np.random.default_rng(15)
    powers: dict[str, float] = {}
    for name, n in {"draws": 8, "draws, pooled": 16}.items():
        codes = draws(rng, choices(rng, 1_500, (n, 8), 2.0))
        powers[name] = _rate(orbit_test_triangles(mismatch(codes), n).p)
    shares = choices(rng, 300, (8, 8), 2.0)
    powers["distributions"] = _rate(orbit_test_triangles(hellinger(shares), 8).p)
    assert 0.12 < powers["draws"] < powers["draws, pooled"]
    assert powers["distributions"] > 0.95


def test_e10_nan_never_passes_as_a_score() -> None:
    """There one NaN gives p = .001 and magnitude 0: it fails open."""
    bad = [[1.0, 0.0]] * 4 + [[float("nan"), 0.0]]
    with pytest.raises(NonFiniteSample, match="sample 4 of the 'counterfactual' arm"):
        compute_local_bias([[1.0, 0.0]] * 5, bad)
    with pytest.raises(EstimatorError):
        replace(compute_local_bias(list("ab"), list("ab")), delta=float("nan"))


def test_e15_an_edit_that_changed_nothing_is_no_evidence_of_fairness() -> None:
    """There a perturbation without effect spends its calls and scores as clean.

    Scoring cannot see inputs; the prober says how many edits were made and skips the calls.
    """
    score = compute_local_bias(["a"] * 5, ["a"] * 5, edits=0)
    assert (score.verdict, score.verdict_reason) == ("inconclusive", "no_op")
    assert compute_local_bias(["a"] * 5, ["a"] * 5, edits=1).verdict == "within_floor"


def test_e16_one_failed_call_is_one_outcome_not_a_lost_axis() -> None:
    """There one failure in 16 calls discards the axis."""
    answers = ["a"] * 4 + [Outcome.error("timeout")]
    score = compute_local_bias(answers, ["a"] * 5)
    assert score.outcomes.count("error:timeout") == 1
    assert score.verdict == "within_floor"


def test_e16_scores_of_concurrent_probes_do_not_depend_on_their_order() -> None:
    """There probes share a generator, and latency decides p."""
    axes = {name: (list("aab" + name), list("abb" + name)) for name in "uvwxyz"}

    async def probe(name: str, delay: int) -> tuple[str, BiasScore]:
        for _ in range(delay):
            await asyncio.sleep(0)
        return name, compute_local_bias(*axes[name])

    async def run(order: list[int]) -> dict[str, BiasScore]:
        jobs = [probe(name, delay) for name, delay in zip(axes, order, strict=True)]
        return dict(await asyncio.gather(*jobs))

    assert asyncio.run(run([0, 1, 2, 3, 4, 5])) == asyncio.run(run([5, 3, 1, 0, 2, 4]))
