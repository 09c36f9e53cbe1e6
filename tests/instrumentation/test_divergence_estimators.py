"""What every estimator must satisfy, and what each of them sees."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.instrumentation.divergence import (
    ESTIMATORS,
    ActionEstimator,
    CategoryEstimator,
    EmbeddingEstimator,
    Estimator,
    Field,
    HellingerEstimator,
    JensenShannonEstimator,
    Outcome,
    TextEstimator,
    cosine_distance,
    jsd,
)
from twinspan.instrumentation.divergence.ngrams import text_vectors
from twinspan.instrumentation.errors import (
    ConfigurationError,
    EstimatorError,
    NonFiniteSample,
)

SAMPLES: dict[str, list[object]] = {
    "category": ["a", "b", "a", 1, True, None, Outcome.refusal],
    "action": [{"tool": "x", "n": 3}, {"tool": "y", "n": 5}, {"tool": "x"}, Outcome.refusal, {}],
    "text": ["One two three.", "one two four!", "Ünïcode 🙂 text", "", Outcome.error("timeout")],
    "embedding": [[1.0, 2.0], [1.0, 2.0], [2.0, -1.0], [0.0, 0.0], Outcome.refusal],
    "js_logprob": [{"a": log(0.9)}, {"b": log(0.9)}, {"a": log(0.5), "b": log(0.5)}, None],
    "hellinger": [{"a": log(0.9)}, {"b": log(0.9)}, {"a": log(0.5), "b": log(0.5)}, None],
}

each = pytest.mark.parametrize("name", ESTIMATORS)


class TestEveryEstimator:
    """The contract of a distance."""

    @each
    def test_is_an_estimator_and_names_itself(self, name: str) -> None:
        assert isinstance(ESTIMATORS[name], Estimator)
        assert ESTIMATORS[name].name == name
        assert ESTIMATORS[name].version and ESTIMATORS[name].scale

    @each
    def test_gives_a_symmetric_float64_matrix_in_0_to_1_with_a_zero_diagonal(
        self, name: str
    ) -> None:
        distances = ESTIMATORS[name].matrix(SAMPLES[name])
        assert distances.dtype == np.float64
        assert distances.shape == (len(SAMPLES[name]),) * 2
        assert (distances == distances.T).all()
        assert (np.diagonal(distances) == 0).all()
        assert ((distances >= 0) & (distances <= 1)).all()

    @each
    def test_does_not_care_about_the_order_of_samples(self, name: str) -> None:
        forward = ESTIMATORS[name].matrix(SAMPLES[name])
        backward = ESTIMATORS[name].matrix(SAMPLES[name][::-1])
        assert backward[::-1, ::-1] == pytest.approx(forward, abs=1e-12)

    @each
    def test_puts_equal_samples_at_distance_exactly_0(self, name: str) -> None:
        assert not ESTIMATORS[name].matrix([SAMPLES[name][0]] * 3).any()

    @each
    def test_keeps_outcomes_at_distance_1_from_all_else(self, name: str) -> None:
        samples = [SAMPLES[name][0], Outcome.refusal, Outcome.error("x"), Outcome.refusal]
        expected = [[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 1], [1, 0, 1, 0]]
        assert ESTIMATORS[name].matrix(samples).tolist() == expected

    @each
    def test_takes_a_probe_set_of_outcomes_alone(self, name: str) -> None:
        distances = ESTIMATORS[name].matrix([Outcome.refusal, None, Outcome.error("x")])
        assert distances.tolist() == (1 - np.eye(3)).tolist()

    @each
    def test_separates_its_clearest_pair(self, name: str) -> None:
        assert ESTIMATORS[name].matrix(SAMPLES[name])[0, 1] > 0 or name == "embedding"


class TestCategories:
    """The same or not."""

    def test_true_one_and_text_are_three_categories(self) -> None:
        distances = CategoryEstimator().matrix([True, 1, "1", 1.0])
        assert distances.tolist() == [[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 1], [1, 0, 1, 0]]

    def test_values_that_cannot_be_hashed_are_compared_by_content(self) -> None:
        samples: list[object] = [["a", {"b": 1}], ["a", {"b": 1}], np.array([1, 2]), {1, 2}]
        distances = CategoryEstimator().matrix(samples)
        assert (distances[0, 1], distances[0, 2], distances[2, 3]) == (0, 1, 1)

    def test_nan_is_no_category(self) -> None:
        with pytest.raises(NonFiniteSample) as caught:
            CategoryEstimator().matrix(["a", None, float("nan")])
        assert caught.value.index == 2


class TestActions:
    """Gower's mean over fields."""

    def test_nested_fields_are_compared_one_by_one(self) -> None:
        one = {"tool": "prescribe", "arguments": {"drug": "X", "days": 5}}
        other = {"tool": "prescribe", "arguments": {"drug": "Y", "days": 10}}
        third = {"tool": "prescribe", "arguments": {"drug": "Y", "days": 15}}
        distances = ActionEstimator().matrix([one, other, third])
        assert distances[0] == pytest.approx([0, (0 + 1 + 0.5) / 3, (0 + 1 + 1) / 3])

    def test_a_missing_field_is_a_value_of_its_own(self) -> None:
        samples: list[object] = [{"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": None}, {"a": 1, "b": 3}]
        distances = ActionEstimator().matrix(samples)
        assert distances[1].tolist() == [0.5, 0, 0, 0.5]

    def test_lists_are_sets_with_jaccard_distance(self) -> None:
        samples: list[object] = [{"t": ["x", "y"]}, {"t": ("y", "z")}, {"t": []}, {"u": 1}]
        distances = ActionEstimator(fields={"u": Field(weight=0)}).matrix(samples)
        assert distances[0] == pytest.approx([0, 2 / 3, 1, 1])
        assert distances[2, 3] == 1

    def test_two_empty_lists_are_the_same(self) -> None:
        samples: list[object] = [{"t": [], "a": 1}, {"t": [], "a": 1}, {"t": ["x"], "a": 1}]
        assert ActionEstimator().matrix(samples)[0].tolist() == [0, 0, 0.5]

    def test_a_declared_range_fixes_the_scale(self) -> None:
        declared = ActionEstimator(fields={"score": Field(kind="numeric", low=0, high=100)})
        samples: list[object] = [{"score": 40}, {"score": 60}, {"score": 400}, {"score": "n/a"}]
        assert declared.matrix(samples)[0] == pytest.approx([0, 0.2, 1, 1])

    def test_numbers_can_be_declared_nominal(self) -> None:
        declared = ActionEstimator(fields={"code": Field(kind="nominal")})
        assert declared.matrix([{"code": 1}, {"code": 2}, {"code": 9}])[0].tolist() == [0, 1, 1]

    def test_weights_shift_the_mean_and_0_leaves_a_field_out(self) -> None:
        declared = ActionEstimator(fields={"id": Field(weight=0), "decision": Field(weight=3)})
        one = {"id": 1, "decision": "admit", "note": "x"}
        assert declared.matrix([one, one | {"id": 2}])[0, 1] == 0
        assert declared.matrix([one, one | {"decision": "send home"}])[0, 1] == 0.75

    def test_a_dot_inside_a_key_is_no_nesting(self) -> None:
        distances = ActionEstimator().matrix([{"a.b": 1, "c": 1}, {"a": {"b": 1}, "c": 1}])
        assert distances[0, 1] == pytest.approx(2 / 3)

    def test_dataclasses_are_actions_and_other_values_have_one_field(self) -> None:
        @dataclass
        class Call:
            tool: str
            days: int

        samples: list[object] = [Call("x", 1), {"tool": "x", "days": 1}, "free text"]
        distances = ActionEstimator().matrix(samples)
        assert (distances[0, 1], distances[0, 2]) == (0, 1)

    def test_declarations_are_part_of_the_version(self) -> None:
        fields = {"a": Field(kind="numeric", low=0, high=1)}
        versions = {
            ActionEstimator().version,
            ActionEstimator(fields=fields).version,
            ActionEstimator(fields={"a": Field(kind="numeric", low=0, high=2)}).version,
        }
        assert len(versions) == 3
        assert ActionEstimator(fields=dict(fields)).version in versions

    def test_meaningless_declarations_are_refused(self) -> None:
        for wrong in ({"low": 1}, {"low": 2, "high": 2}, {"weight": -1}, {"weight": float("nan")}):
            with pytest.raises(ConfigurationError):
                Field(kind="numeric", **wrong)
        with pytest.raises(EstimatorError, match="weight"):
            ActionEstimator(fields={"a": Field(weight=0)}).matrix([{"a": 1}, {"a": 2}])

    def test_nan_in_a_field_is_refused(self) -> None:
        with pytest.raises(NonFiniteSample) as caught:
            ActionEstimator().matrix([None, {"a": 1.0}, {"a": {"b": float("nan")}}])
        assert caught.value.index == 2


class TestTexts:
    """Hashed characters and words."""

    def test_case_spacing_and_compatibility_forms_do_not_count(self) -> None:
        assert TextEstimator().matrix(["Straße ﬁn", "  STRASSE\nfin "])[0, 1] == 0

    def test_one_changed_word_is_nearer_than_another_text(self) -> None:
        distances = TextEstimator().matrix(
            [
                "The nurse checks the chart.",
                "The nurse reads the chart.",
                "Denied, no reason given.",
            ]
        )
        assert 0 < distances[0, 1] < 0.5 < distances[0, 2]

    def test_one_character_is_a_text(self) -> None:
        assert TextEstimator().matrix(["a", "b", "?"])[0] == pytest.approx(
            [0, 0.66, 0.66], abs=0.06
        )

    def test_lone_surrogates_are_harmless(self) -> None:
        assert TextEstimator().matrix(["ok \ud800", "ok \ud801"])[0, 1] > 0

    def test_the_hash_is_the_same_in_another_process(self) -> None:
        texts = ["Yes, hire her today", "No: reject"]
        script = (
            "from twinspan.instrumentation.divergence import TextEstimator;"
            f"print(TextEstimator().matrix({texts!r}).tolist())"
        )
        printed = {
            subprocess.run(
                [sys.executable, "-c", script],
                env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        }
        assert printed == {f"{TextEstimator().matrix(texts).tolist()}\n"}

    def test_features_weigh_characters_and_words_alike(self) -> None:
        rows = text_vectors(["one two", "three"])
        assert np.vecdot(rows, rows) == pytest.approx([2, 2])

    def test_what_is_no_text_is_refused(self) -> None:
        with pytest.raises(EstimatorError, match="int is no text"):
            TextEstimator().matrix(["a", 3])


class TestVectors:
    """Chordal distance."""

    def test_distance_is_half_the_chord(self) -> None:
        one, other = [1.0, 2.0, 3.0], [3.0, 1.0, 2.0]
        assert EmbeddingEstimator().matrix([one, other])[0, 1] == pytest.approx(
            sqrt(2 * cosine_distance(one, other)) / 2
        )

    @settings(max_examples=50)
    @given(st.floats(1e-12, 1e-3), st.integers(0, 2**32 - 1))
    def test_near_vectors_keep_their_digits(self, step: float, seed: int) -> None:
        """sqrt(2 - 2 cos) from cosines alone would be noise of 1e-8 here."""
        unit = np.random.default_rng(seed).standard_normal(24)
        unit /= np.linalg.norm(unit)
        off = np.random.default_rng(seed + 1).standard_normal(24)
        off -= (off @ unit) * unit
        off /= np.linalg.norm(off)
        moved = unit + step * off
        found = EmbeddingEstimator().matrix([unit, moved])[0, 1]
        assert found == pytest.approx(np.sin(np.arctan(step) / 2), rel=1e-3, abs=1e-15)

    def test_very_long_and_very_short_vectors_have_directions(self) -> None:
        distances = EmbeddingEstimator().matrix([[1e-200, 0], [1e300, 0], [0, 1e-320]])
        assert distances[0] == pytest.approx([0, 0, sqrt(0.5)])

    def test_an_empty_or_zero_vector_is_the_empty_outcome(self) -> None:
        distances = EmbeddingEstimator().matrix([[0.0, 0.0], [], None, [1.0, 0.0]])
        assert distances[0].tolist() == [0, 0, 0, 1]

    def test_rows_of_an_array_are_samples(self) -> None:
        rows = np.eye(3)
        assert EmbeddingEstimator().matrix(list(rows))[0, 1] == pytest.approx(sqrt(0.5))

    @pytest.mark.parametrize(
        "samples", [[[1.0, 2.0], [1.0]], ["text", [1.0]], [[[1.0]], [[2.0]]], [{"a": 1}, [1.0]]]
    )
    def test_what_has_no_common_width_is_refused(self, samples: list[object]) -> None:
        with pytest.raises(EstimatorError):
            EmbeddingEstimator().matrix(samples)

    def test_nan_and_infinity_are_named_by_place(self) -> None:
        for bad in (np.nan, np.inf):
            with pytest.raises(NonFiniteSample) as caught:
                EmbeddingEstimator().matrix([[1.0, 0.0], None, [bad, 0.0]])
            assert caught.value.index == 2


class TestLogProbabilities:
    """Jensen-Shannon and Hellinger distances."""

    def test_distance_is_the_root_of_the_divergence(self) -> None:
        one, other = {"a": log(0.7), "b": log(0.3)}, {"a": log(0.2), "b": log(0.8)}
        assert JensenShannonEstimator().matrix([one, other])[0, 1] == pytest.approx(
            sqrt(jsd([0.7, 0.3], [0.2, 0.8]))
        )

    def test_hellinger_is_the_distance_of_the_roots(self) -> None:
        one, other = {"a": log(0.7), "b": log(0.3)}, {"a": log(0.2), "b": log(0.8)}
        roots = np.sqrt([[0.7, 0.3], [0.2, 0.8]])
        assert HellingerEstimator().matrix([one, other])[0, 1] == pytest.approx(
            np.linalg.norm(roots[0] - roots[1]) / sqrt(2)
        )

    def test_different_supports_are_aligned_and_the_rest_is_an_outcome(self) -> None:
        one, other = {"a": log(0.6), "b": log(0.3)}, {"c": log(0.6), "b": log(0.3)}
        assert JensenShannonEstimator().matrix([one, other])[0, 1] == pytest.approx(
            sqrt(jsd([0.6, 0.3, 0.0, 0.1], [0.0, 0.3, 0.6, 0.1]))
        )

    def test_mass_off_the_support_is_seen(self) -> None:
        """The same ratio of two answers, but one node gives them almost no probability."""
        distances = JensenShannonEstimator().matrix([[-1.0, -1.2], [-20.0, -20.2]])
        assert distances[0, 1] == pytest.approx(
            sqrt(jsd([exp(-1), exp(-1.2), 1 - exp(-1) - exp(-1.2)], [0, 0, 1])), abs=1e-4
        )

    def test_rounding_dust_is_no_outcome(self) -> None:
        """Ten tenths add up to a little less than 1; its root would be 1e-8."""
        tenth = dict.fromkeys("abcdefghij", log(0.1))
        exact = {"k": log(0.25), "l": log(0.75)}
        distances = JensenShannonEstimator().matrix([tenth, tenth, exact])
        assert (distances[0, 1], distances[0, 2]) == (0, pytest.approx(1, abs=1e-12))

    def test_impossible_outcomes_are_allowed(self) -> None:
        assert JensenShannonEstimator().matrix([[0.0, -np.inf], [-np.inf, 0.0]])[0, 1] == 1

    @pytest.mark.parametrize(
        ("samples", "message"),
        [
            ([[2.0, 1.0], [0.0, 1.0]], "softmax"),
            ([[-1.0], [-1.0, -2.0]], "lengths"),
            (["yes", "no"], "no map"),
            ([{"a": "x"}, {"a": -1.0}], "no number"),
        ],
    )
    def test_what_is_no_map_of_log_probabilities_is_refused(
        self, samples: list[object], message: str
    ) -> None:
        with pytest.raises(EstimatorError, match=message):
            JensenShannonEstimator().matrix(samples)

    def test_nan_is_named_by_place(self) -> None:
        with pytest.raises(NonFiniteSample) as caught:
            HellingerEstimator().matrix([{"a": 0.0}, None, {"a": float("nan")}])
        assert caught.value.index == 2
