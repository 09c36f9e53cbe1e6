"""The design of an audit: cases, descriptor conditions, steps, a sealed plan.

Nothing here calls a model. A plan says which runs there are, in which order, and what its hash
is before there are results.
"""

from twinspan.instrumentation.audit.cases import Case
from twinspan.instrumentation.audit.clinical import control_conditions, standard_conditions
from twinspan.instrumentation.audit.conditions import (
    CONTROLS,
    Condition,
    ConditionKind,
    SurfaceStatistics,
    build_conditions,
    levels_by_attribute,
    pair_with_reference,
    surface_statistics,
)
from twinspan.instrumentation.audit.lint import (
    CaseStatistics,
    Finding,
    case_statistics,
    lint_cases,
)
from twinspan.instrumentation.audit.orders import (
    PENDING,
    OrderResults,
    OrderVocabulary,
    ResolvedOrder,
    clinical_vocabulary,
    resolve_orders,
)
from twinspan.instrumentation.audit.plan import AuditPlan, PlannedRun
from twinspan.instrumentation.audit.replicates import (
    Collapsed,
    collapse_replicates,
    number_replicates,
)
from twinspan.instrumentation.audit.sample_size import (
    SampleSize,
    cases_needed,
    detectable_excess,
    pairs_for_discordance,
    power,
    smallest_p,
)
from twinspan.instrumentation.audit.schemas import Violation, check_schema, violations
from twinspan.instrumentation.audit.steps import (
    CLINICAL_STEPS,
    CheckedAnswer,
    Step,
    check_answer,
    check_forced,
)
from twinspan.instrumentation.audit.trajectories import Trajectory, read_trajectories
from twinspan.instrumentation.audit.wording import Drawn, Names, Wording

__all__ = [
    "CLINICAL_STEPS",
    "CONTROLS",
    "PENDING",
    "AuditPlan",
    "Case",
    "CaseStatistics",
    "CheckedAnswer",
    "Collapsed",
    "Condition",
    "ConditionKind",
    "Drawn",
    "Finding",
    "Names",
    "OrderResults",
    "OrderVocabulary",
    "PlannedRun",
    "ResolvedOrder",
    "SampleSize",
    "Step",
    "SurfaceStatistics",
    "Trajectory",
    "Violation",
    "Wording",
    "build_conditions",
    "case_statistics",
    "cases_needed",
    "check_answer",
    "check_forced",
    "check_schema",
    "clinical_vocabulary",
    "collapse_replicates",
    "control_conditions",
    "detectable_excess",
    "levels_by_attribute",
    "lint_cases",
    "number_replicates",
    "pair_with_reference",
    "pairs_for_discordance",
    "power",
    "read_trajectories",
    "resolve_orders",
    "smallest_p",
    "standard_conditions",
    "surface_statistics",
    "violations",
]
