"""How an estimator is chosen, and that two of them are never mixed."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
import pytest

from twinspan.instrumentation.divergence import (
    ESTIMATORS,
    ActionEstimator,
    Field,
    Outcome,
    as_outcome,
    assert_same_estimator,
    resolve,
)
from twinspan.instrumentation.errors import ConfigurationError, MixedEstimators


@dataclass(frozen=True)
class _Score:
    estimator: str
    estimator_version: str = "1"


@dataclass(frozen=True)
class _Call:
    tool: str


LONG = "The application is rejected because the income is too low."


@pytest.mark.parametrize(
    ("samples", "name"),
    [
        (["hire", "reject"], "category"),
        (["ESI level 2", "ESI level 3", ""], "category"),
        ([True, False], "category"),
        ([1, 2, 3], "category"),
        (["hire", 3], "category"),
        ([None, Outcome.refusal], "category"),
        (["hire", LONG], "text"),
        (["one\ntwo", "a"], "text"),
        ([LONG, Outcome.refusal], "text"),
        ([0.25, 0.5], "action"),
        ([1, 0.5], "action"),
        ([{"tool": "x"}, {"tool": "y"}], "action"),
        ([{"tool": "x"}, "plain answer"], "action"),
        ([_Call("x"), _Call("y")], "action"),
        ([["search", "buy"], ["search"]], "action"),
        ([{"score": 0.7, "cost": 0.1}, {"score": 0.2, "cost": 0.2}], "action"),
        ([{"risk": -0.5}, {"risk": -0.25}], "action"),
        ([{"balance": -3, "days": 0}, {"balance": -1, "days": 0}], "action"),
        ([[0.1, 0.9], [0.3, 0.7]], "embedding"),
        ([np.ones(3), np.zeros(3)], "embedding"),
        ([{"yes": log(0.9), "no": log(0.1)}, {"yes": log(0.5)}], "js_logprob"),
        ([{"yes": -0.1, "no": float("-inf")}, None], "js_logprob"),
    ],
)
def test_auto_goes_by_the_kind_of_samples(samples: list[object], name: str) -> None:
    assert resolve("auto", samples).name == name


def test_a_name_or_an_estimator_is_taken_as_given() -> None:
    own = ActionEstimator(fields={"a": Field(weight=2)})
    assert resolve(own, ["a"]) is own
    for name, estimator in ESTIMATORS.items():
        assert resolve(name, ["a"]) is estimator


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="'auto', 'category', 'action'"):
        resolve("cosine", ["a"])


def test_scores_of_one_estimator_may_be_combined() -> None:
    assert_same_estimator(iter([_Score("action"), _Score("action")]))


@pytest.mark.parametrize(
    ("other", "named"),
    [(_Score("embedding"), "embedding"), (_Score("action", "2"), "action/2")],
)
def test_scores_of_two_estimators_or_versions_may_not(other: _Score, named: str) -> None:
    with pytest.raises(MixedEstimators) as caught:
        assert_same_estimator([_Score("action"), _Score("action"), other])
    assert caught.value.second == named


def test_only_marks_count_as_outcomes_never_wording() -> None:
    marked: list[object] = [
        Outcome.refusal,
        Outcome.error("timeout"),
        None,
        "",
        " \n",
        [],
        {},
        np.array([]),
    ]
    assert all(as_outcome(sample) is not None for sample in marked)
    plain: list[object] = ["I cannot help with that.", 0, False, 0.0, [0.0], "None"]
    assert all(as_outcome(sample) is None for sample in plain)


def test_outcomes_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Outcome.refusal.kind = "error"  # type: ignore[misc]
