"""A seeded bias that spreads raises the network score; its unbiased control stays flat.

A root, a hub and four workers; bias begins at the hub and reaches every worker, in each of 100
seeds. The same rates, with more graphs, are in ``docs/studies/control.md``.
"""

from __future__ import annotations

import numpy as np
import pytest
from control_rules import HUB, in_order, spread, weights_of

SEEDS = 100
KATZ = in_order(weights_of(HUB), scaled=True)
UNIFORM = np.ones_like(KATZ)


@pytest.mark.parametrize(("share", "stands_out"), [(0.7, 0.7), (0.9, 0.95)])
def test_b_net_rises_as_a_seeded_bias_spreads(share: float, stands_out: float) -> None:
    """In three of four seeds it ends above where the bias began, on average by a half."""
    found = spread(HUB, 1, share, KATZ, SEEDS)
    assert found.rises >= 0.65
    assert found.last >= 1.3 * found.first
    assert found.over >= stands_out


def test_b_net_stays_flat_without_bias() -> None:
    """It ends above as often as below, and stands out as often as a level of 5 % allows."""
    found = spread(HUB, 1, 0.0, KATZ, SEEDS)
    assert 0.3 <= found.rises <= 0.7
    assert abs(found.last) <= 0.02
    assert found.over <= 0.05 + 2 * (0.05 * 0.95 / SEEDS) ** 0.5


def test_s1_uniform_weights_change_the_outcome() -> None:
    """The four workers weigh a third of the hub: without weights they drown it."""
    weighted, uniform = (spread(HUB, 1, 0.9, weights, SEEDS) for weights in (KATZ, UNIFORM))
    assert uniform.rises >= weighted.rises + 0.15
    assert uniform.last >= 2 * weighted.last
