"""Inference for audits: intervals, tests, and families of tests, one method a module.

=====================  ==========================================================================
`excess`               a swap against the reference, net of the noise of both arms
`controls`             a swap against every control arm
`multiplicity`         Holm, Benjamini-Hochberg, Benjamini-Yekutieli, e-BH; None stays None
`bootstrap`            intervals for any statistic of pairs, cases resampled
`permutation`          reference and counterfactual exchanged, case by case
`mcnemar`              flips in both directions, one run per case
`wild_bootstrap`       a mean against 0 with few cases
`ordinal`              direction and size of a move of grades
`propagation`          flips downstream of a flip, observed and forced
`accumulation`         shifts summed along trajectories
=====================  ==========================================================================
"""

from twinspan.analysis.inference.accumulation import Accumulation, trajectory_accumulation
from twinspan.analysis.inference.answers import Answers
from twinspan.analysis.inference.bootstrap import Interval, bootstrap_ratio, cluster_bootstrap
from twinspan.analysis.inference.controls import (
    ControlComparison,
    ControlVerdict,
    excess_over_controls,
)
from twinspan.analysis.inference.excess import Excess, excess_over_floor
from twinspan.analysis.inference.mcnemar import McNemar, mcnemar_exact
from twinspan.analysis.inference.multiplicity import (
    Adjusted,
    adjust,
    e_discoveries,
    e_from_p,
)
from twinspan.analysis.inference.ordinal import SignedOrdinal, signed_ordinal_disparity
from twinspan.analysis.inference.permutation import PermutationTest, paired_permutation_test
from twinspan.analysis.inference.propagation import (
    InterventionalPropagation,
    Propagation,
    disparity_propagation,
    interventional_propagation,
)
from twinspan.analysis.inference.sign_flips import SignFlipTest, sign_flip_test
from twinspan.analysis.inference.wild_bootstrap import (
    WEBB_WEIGHTS,
    WildClusterInterval,
    WildClusterTest,
    paired_values_by_case,
    wild_cluster_bootstrap_ci,
    wild_cluster_bootstrap_p,
)

__all__ = [
    "WEBB_WEIGHTS",
    "Accumulation",
    "Adjusted",
    "Answers",
    "ControlComparison",
    "ControlVerdict",
    "Excess",
    "Interval",
    "InterventionalPropagation",
    "McNemar",
    "PermutationTest",
    "Propagation",
    "SignFlipTest",
    "SignedOrdinal",
    "WildClusterInterval",
    "WildClusterTest",
    "adjust",
    "bootstrap_ratio",
    "cluster_bootstrap",
    "disparity_propagation",
    "e_discoveries",
    "e_from_p",
    "excess_over_controls",
    "excess_over_floor",
    "interventional_propagation",
    "mcnemar_exact",
    "paired_permutation_test",
    "paired_values_by_case",
    "sign_flip_test",
    "signed_ordinal_disparity",
    "trajectory_accumulation",
    "wild_cluster_bootstrap_ci",
    "wild_cluster_bootstrap_p",
]
