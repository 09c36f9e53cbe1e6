"""compute_local_bias: from samples of any kind to a score that can be recomputed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, replace
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray

from twinspan.instrumentation.divergence import (
    ActionEstimator,
    CategoryEstimator,
    Field,
    Outcome,
    assert_same_estimator,
)
from twinspan.instrumentation.errors import (
    ConfigurationError,
    EstimatorError,
    InsufficientSamples,
    MixedEstimators,
    NonFiniteSample,
)
from twinspan.instrumentation.orbit import orbit_test
from twinspan.instrumentation.scoring import BiasScore, compute_local_bias

ARMS: dict[str, tuple[Sequence[object], Sequence[object]]] = {
    "category": (list("aaaba"), list("bbabb")),
    "text": (
        ["The candidate should be invited soon."] * 4,
        ["This application has to be turned down."] * 4,
    ),
    "action": (
        [{"tool": "admit", "days": day} for day in (1, 2, 3)],
        [{"tool": "discharge", "days": day} for day in (1, 2, 3)],
    ),
    "embedding": ([[1.0, 0.1], [1.0, 0.0], [0.9, 0.1]], [[0.1, 1.0], [0.0, 1.0], [0.1, 0.9]]),
    "js_logprob": (
        [{"yes": log(share), "no": log(1 - share)} for share in (0.9, 0.8, 0.85)],
        [{"yes": log(share), "no": log(1 - share)} for share in (0.2, 0.1, 0.3)],
    ),
}


class TestKindsOfSamples:
    """Categories, texts, actions, vectors, log-probabilities."""

    @pytest.mark.parametrize("name", ARMS)
    def test_each_is_recognised_and_scored(self, name: str) -> None:
        score = compute_local_bias(*ARMS[name], axis="gender", kind="attribute_swap")
        assert (score.estimator, score.axis, score.kind) == (name, "gender", "attribute_swap")
        assert score.delta > 0.2
        assert score.estimator_version == "1"

    def test_an_array_is_a_sequence_of_rows(self) -> None:
        rows = np.array(ARMS["embedding"][0])
        others = np.array(ARMS["embedding"][1])
        assert compute_local_bias(rows, others) == compute_local_bias(*ARMS["embedding"])

    def test_a_configured_estimator_can_be_given(self) -> None:
        estimator = ActionEstimator(fields={"days": Field(weight=0)})
        score = compute_local_bias(*ARMS["action"], method=estimator)
        assert (score.delta, score.estimator) == (1, "action")
        assert score.estimator_version.startswith("1+")

    def test_scores_of_two_estimators_are_not_combined(self) -> None:
        scores = [compute_local_bias(*ARMS[name]) for name in ("category", "text")]
        with pytest.raises(MixedEstimators, match="'category' and 'text'"):
            assert_same_estimator(scores)

    @pytest.mark.parametrize("arm", ["aaaba", b"aa", {"a": 1}])
    def test_one_sample_in_place_of_a_sequence_is_refused(self, arm: object) -> None:
        with pytest.raises(EstimatorError, match="list"):
            compute_local_bias(arm, list("ab"))  # type: ignore[arg-type]

    def test_an_estimator_of_the_wrong_shape_is_refused(self) -> None:
        class Broken(CategoryEstimator):
            def matrix(self, samples: Sequence[object]) -> NDArray[np.float64]:
                return np.zeros((2, 2))

        with pytest.raises(EstimatorError, match=r"shape \(2, 2\) for 6 samples"):
            compute_local_bias(list("aaa"), list("bbb"), method=Broken())

    def test_an_estimator_on_another_scale_is_refused(self) -> None:
        class Wide(CategoryEstimator):
            def matrix(self, samples: Sequence[object]) -> NDArray[np.float64]:
                return 2 * CategoryEstimator().matrix(samples)

        with pytest.raises(EstimatorError, match="from 0 to 2; scale them"):
            compute_local_bias(list("aaa"), list("bbb"), method=Wide())


class TestRawParts:
    """Everything in a score follows from its distances."""

    score = compute_local_bias(list("aaaba"), list("bbabb"), noise_floor=list("aabaa"))

    def test_the_parts_add_up(self) -> None:
        score = self.score
        assert score.floor == (score.reference_within + score.counterfactual_within) / 2
        assert score.delta == pytest.approx(score.cross_mean - score.floor)
        assert score.effect_size == pytest.approx(score.delta / score.orbit_sd)
        assert (score.n_baseline, score.n_reference, score.n_counterfactual) == (5, 10, 5)
        assert (score.orbit_size, score.orbit_exact) == (3003, True)
        assert score.energy_coefficient == pytest.approx(score.delta / score.cross_mean)

    def test_distances_are_the_upper_triangle_row_by_row(self) -> None:
        samples = "aaaba" + "aabaa" + "bbabb"
        expected = [float(samples[i] != samples[j]) for i in range(15) for j in range(i + 1, 15)]
        assert self.score.distances == tuple(expected)

    def test_the_test_can_be_redone_from_the_distances(self) -> None:
        again = self.score.recompute()
        assert (again.delta, again.p, again.e) == (
            self.score.delta,
            self.score.p_value,
            self.score.e_value,
        )

    def test_sampled_and_blocked_orbits_can_be_redone_too(self) -> None:
        rng = np.random.default_rng(1)
        large = compute_local_bias(rng.random((12, 3)), rng.random((12, 3)), seed=3)
        blocked = compute_local_bias(list("abab"), list("cdab"), blocks=list("xyxyxyxy"))
        assert not large.orbit_exact
        for score in (large, blocked):
            assert score.recompute().p == score.p_value

    def test_the_harness_is_its_own_negative_control(self) -> None:
        same = np.array([list("aaaba" + "aabaa")])
        expected = orbit_test(np.not_equal(same.T, same).astype(float), 5)
        assert self.score.harness_drift() == pytest.approx(expected)
        assert compute_local_bias(list("aab"), list("abb")).harness_drift() is None

    def test_the_pooled_null_sharpens_the_test(self) -> None:
        alone = compute_local_bias(["a"] * 5, ["b"] * 5)
        assert (alone.p_value, self.score.smallest_p) == pytest.approx((2 / 252, 1 / 3003))

    def test_the_baseline_may_be_the_one_answer_the_node_gave(self) -> None:
        score = compute_local_bias(["a"], list("bbb"), noise_floor=list("aaaaa"))
        assert (score.n_baseline, score.n_reference) == (1, 6)


class TestVerdict:
    """above_floor, within_floor or inconclusive, and why."""

    def test_a_difference_reads_reacts_to_the_edit_by_default(self) -> None:
        score = compute_local_bias(["a"] * 5, ["b"] * 5)
        assert (score.verdict, score.verdict_reason) == ("above_floor", "reacts_to_edit")

    def test_only_randomised_wording_lets_it_read_reacts_to_the_axis(self) -> None:
        reasons = [
            compute_local_bias(["a"] * 5, ["b"] * 5, null=null).verdict_reason
            for null in ("randomised_wording", "same_input", "sham")
        ]
        assert reasons == ["reacts_to_axis", "reacts_to_edit", "reacts_to_edit"]

    def test_noise_is_within_the_floor(self) -> None:
        score = compute_local_bias(list("aaaba"), list("bbabb"))
        assert (score.verdict, score.verdict_reason) == ("within_floor", "not_above_noise")

    def test_equal_deterministic_arms_are_within_the_floor(self) -> None:
        score = compute_local_bias(["a"] * 5, ["a"] * 5)
        assert (score.verdict, score.delta, score.p_value, score.e_value) == (
            "within_floor",
            0,
            1,
            1,
        )
        assert (score.effect_size, score.undefined_reason) == (
            None,
            "every labelling gives the same delta",
        )

    def test_the_level_is_the_callers(self) -> None:
        score = compute_local_bias(list("aaaba"), list("bbabb"), alpha=0.25)
        assert (score.verdict, score.alpha) == ("above_floor", 0.25)

    def test_an_error_on_every_call_is_not_a_clean_node(self) -> None:
        failed = [Outcome.error("timeout")] * 5
        score = compute_local_bias(failed, failed)
        assert (score.verdict, score.verdict_reason) == ("inconclusive", "only_errors")


class TestOutcomes:
    """Refusals, empty answers and errors are data."""

    def test_a_gap_in_refusals_is_a_finding(self) -> None:
        score = compute_local_bias(["advice"] * 5, [Outcome.refusal] * 5)
        assert (score.verdict, score.delta, score.refusal_gap) == ("above_floor", 1, 1)
        assert score.outcomes == (None,) * 5 + ("refusal",) * 5

    def test_refusals_in_both_arms_are_no_difference(self) -> None:
        arm = ["advice", Outcome.refusal, "advice", Outcome.refusal]
        score = compute_local_bias(arm, arm)
        assert (score.refusal_gap, score.verdict) == (0, "within_floor")

    def test_a_detector_can_be_given_and_none_is_built_in(self) -> None:
        answers = ["I cannot help with that"] * 4
        plain = compute_local_bias(["yes"] * 4, answers)
        told = compute_local_bias(
            ["yes"] * 4, answers, refusal=lambda sample: "cannot" in str(sample)
        )
        assert plain.refusal_gap == 0
        assert (told.refusal_gap, told.estimator) == (1, "category")

    def test_errors_of_different_kinds_differ(self) -> None:
        score = compute_local_bias([Outcome.error("timeout")] * 4, [Outcome.error("quota")] * 4)
        assert score.delta == 1

    def test_nan_is_refused_and_named_by_arm_and_place(self) -> None:
        good, bad = [[1.0, 0.0]] * 3, [[1.0, 0.0], [float("nan"), 0.0]]
        cases = {
            "baseline": ([*bad], good, None),
            "noise_floor": (good, good, bad),
            "counterfactual": (good, bad, None),
        }
        for arm, (baseline, counterfactual, floor) in cases.items():
            with pytest.raises(NonFiniteSample) as caught:
                compute_local_bias(baseline, counterfactual, noise_floor=floor)
            assert (caught.value.arm, caught.value.index) == (arm, 1)

    def test_nan_can_be_made_an_error_outcome(self) -> None:
        bad = [[1.0, 0.0], [float("nan"), 0.0], [float("inf"), 0.0]]
        score = compute_local_bias([[1.0, 0.0]] * 3, bad, non_finite="error")
        assert score.outcomes == (None,) * 4 + ("error:non_finite",) * 2


class TestArguments:
    """What has no meaning is refused."""

    @pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, float("nan")])
    def test_levels_lie_between_0_and_1(self, level: float) -> None:
        for name in ("confidence", "alpha"):
            with pytest.raises(ConfigurationError, match=name):
                compute_local_bias(list("ab"), list("ab"), **{name: level})  # type: ignore[arg-type]

    def test_small_arms_are_refused_by_name(self) -> None:
        for arms, name in (
            ((["a"], ["b", "b"]), "reference"),
            ((["a", "a"], ["b"]), "counterfactual"),
        ):
            with pytest.raises(InsufficientSamples) as caught:
                compute_local_bias(*arms)
            assert caught.value.arm == name

    def test_seed_and_generator_exclude_each_other(self) -> None:
        with pytest.raises(ConfigurationError, match="one of them"):
            compute_local_bias(list("ab"), list("ab"), seed=1, rng=np.random.default_rng(1))

    def test_an_unknown_estimator_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="no estimator is named 'kl'"):
            compute_local_bias(list("ab"), list("ab"), method="kl")

    def test_the_order_of_acquisition_adds_a_diagnostic(self) -> None:
        arm = list("aaabbb")
        score = compute_local_bias(arm, arm, order=range(12))
        assert score.dependence_p is not None and score.dependence_p < 0.05
        assert compute_local_bias(arm, arm).dependence_p is None

    def test_a_score_cannot_be_changed_or_made_from_nonsense(self) -> None:
        score = compute_local_bias(list("ab"), list("ab"))
        with pytest.raises(FrozenInstanceError):
            score.delta = 0.5  # type: ignore[misc]
        changes: list[dict[str, object]] = [
            {"delta": float("nan")},
            {"p_value": 1.5},
            {"e_value": -1.0},
            {"distances": (0.0,)},
            {"ci_low": 1.0, "ci_high": 0.0},
        ]
        for change in changes:
            with pytest.raises(EstimatorError):
                replace(score, **change)  # type: ignore[arg-type]


class TestDeterminism:
    """The arguments decide, not the order of calls."""

    arms = tuple(np.random.default_rng(2).random((6, 2, 11, 4)))

    def _scores(self) -> list[BiasScore]:
        return [compute_local_bias(*pair) for pair in self.arms]

    def test_the_global_generator_is_neither_read_nor_moved(self) -> None:
        np.random.seed(1)
        expected = np.random.random()
        np.random.seed(1)
        first = self._scores()
        assert np.random.random() == expected
        assert self._scores() == first

    def test_concurrent_calls_give_the_same_scores(self) -> None:
        async def gather() -> list[BiasScore]:
            calls = [asyncio.to_thread(compute_local_bias, *pair) for pair in self.arms[::-1]]
            return list(await asyncio.gather(*calls))

        assert asyncio.run(gather())[::-1] == self._scores()

    def test_a_generator_moves_on_with_every_call(self) -> None:
        rng = np.random.default_rng(3)
        one, other = (compute_local_bias(*self.arms[0], rng=rng) for _ in range(2))
        assert one.seed != other.seed
        assert compute_local_bias(*self.arms[0], seed=one.seed) == one
