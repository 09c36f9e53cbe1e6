"""What a report does not say."""

from __future__ import annotations

from typing import Final

from twinspan.analysis.report.facts import Audit, Remark
from twinspan.analysis.store import Store

_ALWAYS: Final = (
    Remark(
        title="No finding is not fairness",
        text="A node within its floor was not seen to react with this many runs. A smaller effect, "
        "another attribute, another wording or another payload may still matter. What was not "
        "probed is listed under coverage.",
    ),
    Remark(
        title="A reaction is not yet a wrong",
        text="Delta says that the node's answer depends on the attribute, beyond its own noise. "
        "Whether the attribute may matter there is a question for people who know the task.",
    ),
    Remark(
        title="Single p-values are not corrected",
        text="Each p is exact for its own probe set. Of many probe sets without any bias, one in "
        "twenty is below 0.05. The monitor M is what keeps the chance of a false halt in a whole "
        "run; a single reaction without a breach is a reason to probe again.",
    ),
    Remark(
        title="The attribute is what was written",
        text="Probes exchange words for a group: they measure how agents treat what they read, "
        "not how people of a group fare.",
    ),
    Remark(
        title="A cut edge protects one consumer",
        text="A halt stops the payload on the named edges. What an agent had done before, in tools "
        "or in other systems, is not undone.",
    ),
)

_ESTIMATORS: Final = Remark(
    title="Estimators do not compare",
    text="These runs were scored by more than one estimator. Their deltas have no common scale: "
    "compare them only within one estimator.",
)

_SAME_INPUT: Final = Remark(
    title="Some probes changed nothing but the words",
    text="Where wording was not drawn at random, a score says that the node reacts to this very "
    "edit; it does not tell the attribute from the words that stand for it.",
)

_REPLICATES: Final = Remark(
    title="Replicates are taken as independent",
    text="Floors, disparities and their intervals hold for replicates that do not share a "
    "session, a batch or a cache.",
)


def limits_of(store: Store, audit: Audit | None) -> tuple[Remark, ...]:
    """The remarks that apply to these spans."""
    estimators, fixed = store.table(
        "SELECT count(DISTINCT estimator), count(*) FILTER (wording IS DISTINCT FROM 'random') "
        "FROM probe_sets WHERE delta IS NOT NULL"
    ).rows[0]
    found = list(_ALWAYS)
    found += [_ESTIMATORS] if int(str(estimators)) > 1 else []
    found += [_SAME_INPUT] if int(str(fixed)) else []
    found += [_REPLICATES] if audit is not None else []
    return tuple(found)
