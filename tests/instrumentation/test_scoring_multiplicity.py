"""Adjusted p-values against textbook definitions and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.multiplicity import (
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
)

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(p_values)
def test_discovery_rates_agree_with_scipy(p: list[float]) -> None:
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))
    assert benjamini_yekutieli(p) == pytest.approx(stats.false_discovery_control(p, method="by"))


@given(p_values, st.floats(0.001, 0.999))
def test_holm_rejects_what_stepping_down_rejects(p: list[float], alpha: float) -> None:
    adjusted = holm(p)
    order = np.argsort(p, kind="stable")
    alive, rejected = True, set()
    for step, index in enumerate(order.tolist()):
        alive = alive and p[index] * (len(p) - step) <= alpha
        if alive:
            rejected.add(index)
    assert {k for k, value in enumerate(adjusted) if value <= alpha} == rejected


@given(p_values)
def test_adjusting_keeps_the_order_and_never_lowers_a_p(p: list[float]) -> None:
    for adjust in (holm, benjamini_hochberg, benjamini_yekutieli):
        adjusted = adjust(p)
        assert all(new >= old - 1e-15 for new, old in zip(adjusted, p, strict=True))
        assert sorted(adjusted) == pytest.approx([adjusted[k] for k in np.argsort(p)])
        assert max(adjusted) <= 1


def test_no_tests_have_no_p_values() -> None:
    assert holm([]) == benjamini_hochberg([]) == ()


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_value_is_refused(wrong: float) -> None:
    for adjust in (holm, benjamini_hochberg, benjamini_yekutieli):
        with pytest.raises(ConfigurationError):
            adjust([0.5, wrong])
