"""A correct dissenter is never silenced, however the vote goes."""

from __future__ import annotations

import numpy as np
import pytest
from repair_world import panel_case, run_panel

from twinspan.collector.intervention.trust import Weighting

PANELS = 1_000


@pytest.mark.parametrize("weighting", ["uniform", "trust"])
def test_a_dissenter_who_is_alone_confident_and_right_is_never_silenced(
    weighting: Weighting,
) -> None:
    """Over 1,000 panels of 3 to 7, with evidence and without: it is measured, and it wins."""
    rng = np.random.default_rng(20261130)
    outcomes = [
        (case, run_panel(case, weighting))
        for case in (
            panel_case(rng, size=int(rng.integers(3, 8)), evidence=0.5) for _ in range(PANELS)
        )
    ]
    assert all(outcome.kept for _, outcome in outcomes)
    assert all(outcome.handed_on == case.dissenter for case, outcome in outcomes)
    # The vote alone would have silenced many of them.
    assert sum(outcome.vote_is_right for _, outcome in outcomes) < 0.8 * PANELS
