"""The gate in front of a ranking: which agents may be compared by their within-band rate.

The fairest score belongs to an agent that reads no case. The gate names the first thing that
keeps an agent out, so that it can be shown as held out and not dropped in silence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, cast

from twinspan.analysis.entropy import ActionEntropy
from twinspan.analysis.rates import WithinBandRate
from twinspan.instrumentation.errors import UnsuitableValue

REASONS: Final = (
    "capability_score_missing",
    "capability_score_not_finite",
    "below_capability_floor",
    "min_entropy_not_set",
    "action_entropy_missing",
    "action_entropy_not_finite",
    "degenerate_constant_policy",
    "case_blind_policy",
    "min_band_straddling_not_set",
    "straddling_count_unavailable",
    "below_band_straddling_floor",
    "wcfr_undefined_empty_band",
    "wcfr_not_a_rate",
    "straddle_contradictions",
    "bands_are_not_ground_truth",
    "instability_floor_missing",
    "instability_floor_not_a_rate",
    "above_instability_ceiling",
    "meets_floor",
)
"""Everything the gate can say, in the order in which it is checked."""

MEETS_FLOOR: Final = REASONS[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateDecision:
    """Whether an agent may be ranked, and the first reason against it.

    Attributes:
        eligible: whether it may.
        reason: from `REASONS`.
        wcfr: the rate that it would be ranked by.
        compared: the numbers that the reason is about, under FairMedAgent's names.
        detail: a sentence for readers.
        excess_over_floor: the rate less the instability floor, where both are known; a rate
            that is not above the floor is no disparity.
        cautions: what could not be checked because it was not given.
    """

    eligible: bool
    reason: str
    wcfr: float | None
    compared: Mapping[str, object] = field(default_factory=dict[str, object])
    detail: str = ""
    excess_over_floor: float | None = None
    cautions: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names, ours added."""
        found: dict[str, object] = {
            "eligible": self.eligible,
            "reason": self.reason,
            "wcfr": self.wcfr,
            **self.compared,
        }
        if self.detail:
            found["detail"] = self.detail
        if self.cautions:
            found["cautions"] = list(self.cautions)
        if self.excess_over_floor is not None:
            found["excess_over_floor"] = self.excess_over_floor
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rate:
    """What the gate reads of a rate, whichever form it came in."""

    value: float | None
    straddling: int | None = None
    contradictions: int | None = None
    ground_truth: bool | None = None


def capability_floor_gate(
    wcfr: WithinBandRate | Mapping[str, object] | float | None,
    capability_score: float | None,
    min_capability: float,
    *,
    action_entropy: ActionEntropy | float | None = None,
    min_entropy: float | None = None,
    min_band_straddling: int | None = None,
    instability_floor: float | None = None,
    max_instability_floor: float | None = None,
    require_ground_truth: bool = True,
    require_floor: bool = False,
) -> GateDecision:
    """Whether an agent is capable, decides, and was measured, so that its rate means something.

    Args:
        wcfr: the within-band rate: the result, its dictionary, or the bare number.
        capability_score: how well the agent does its task.
        min_capability: the least score; equal passes.
        action_entropy: of the agent's actions in bits, as a result or a number. A result tells
            a case-blind coin from an agent that decides.
        min_entropy: the entropy that must be exceeded; equal fails.
        min_band_straddling: the fewest pairs that could have flipped within their band.
        instability_floor: how often the agent contradicts itself, 0 to 1.
        max_instability_floor: above it an agent is too unstable to be ranked; given, a floor
            must be known.
        require_ground_truth: hold out rates whose bands are known not to be ground truth.
        require_floor: hold out rates without an instability floor; a ceiling asks for one, too.

    Returns:
        The first reason that applies, from `REASONS`. What is not given and not required is
        named in the cautions.

    Raises:
        UnsuitableValue: the rate is none of the three.

    >>> capability_floor_gate(0.0, 0.10, 0.60).reason
    'below_capability_floor'
    >>> capability_floor_gate(0.08, 0.82, 0.6, action_entropy=1.1, min_entropy=0.2,
    ...                       min_band_straddling=0).cautions
    ('ground_truth_unknown', 'instability_floor_unknown')
    >>> capability_floor_gate(0.0, float("nan"), 0.6).reason
    'capability_score_not_finite'
    """
    rate = _rate(wcfr)
    entropy, between = _entropy(action_entropy)
    refusal = (
        _capability(capability_score, min_capability)
        or _policy(entropy, between, min_entropy)
        or _denominator(rate, min_band_straddling)
        or _numerator(rate, require_ground_truth)
        or _stability(instability_floor, max_instability_floor, require_floor)
    )
    excess = None
    if rate.value is not None and instability_floor is not None:
        excess = rate.value - instability_floor
    if refusal is not None:
        return _decided(refusal, rate, excess)
    cautions = {
        "ground_truth_unknown": rate.ground_truth is None,
        "bands_are_provisional": rate.ground_truth is False,
        "instability_floor_unknown": instability_floor is None,
    }
    return GateDecision(
        eligible=True,
        reason=MEETS_FLOOR,
        wcfr=rate.value,
        compared=MappingProxyType(
            {"capability_score": capability_score, "n_band_straddling": rate.straddling}
        ),
        excess_over_floor=excess,
        cautions=tuple(name for name, applies in cautions.items() if applies),
    )


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    compared: Mapping[str, object] = field(default_factory=dict[str, object])
    detail: str = ""


def _capability(score: float | None, least: float) -> _Refusal | None:
    if score is None:
        return _Refusal("capability_score_missing")
    if not (math.isfinite(score) and math.isfinite(least)):
        return _Refusal("capability_score_not_finite", {"capability_score": score})
    if score < least:
        return _Refusal(
            "below_capability_floor", {"capability_score": score, "min_capability": least}
        )
    return None


def _policy(entropy: float | None, between: float | None, least: float | None) -> _Refusal | None:
    if least is None:
        return _Refusal(
            "min_entropy_not_set",
            detail="set min_entropy: without it an agent that never decides passes",
        )
    if entropy is None:
        return _Refusal("action_entropy_missing")
    if not (math.isfinite(entropy) and math.isfinite(least)):
        return _Refusal("action_entropy_not_finite", {"action_entropy": entropy})
    if entropy <= least:
        return _Refusal(
            "degenerate_constant_policy", {"action_entropy": entropy, "min_entropy": least}
        )
    if between is not None and between <= least:
        return _Refusal(
            "case_blind_policy",
            {"action_entropy": entropy, "between_cases": between, "min_entropy": least},
            "the actions vary, but not with the case",
        )
    return None


def _denominator(rate: _Rate, least: int | None) -> _Refusal | None:
    if least is None:
        return _Refusal(
            "min_band_straddling_not_set",
            detail="set min_band_straddling: narrow bands leave no room for a flip",
        )
    if least > 0 and rate.straddling is None:
        return _Refusal(
            "straddling_count_unavailable",
            detail="state straddles_threshold for every pair and pass the whole result",
        )
    if least > 0 and rate.straddling is not None and rate.straddling < least:
        return _Refusal(
            "below_band_straddling_floor",
            {"n_band_straddling": rate.straddling, "min_band_straddling": least},
        )
    return None


def _numerator(rate: _Rate, require_ground_truth: bool) -> _Refusal | None:
    if rate.value is None:
        return _Refusal("wcfr_undefined_empty_band")
    if not 0.0 <= rate.value <= 1.0:
        return _Refusal("wcfr_not_a_rate")
    if rate.contradictions:
        return _Refusal(
            "straddle_contradictions",
            {"n_straddle_contradictions": rate.contradictions},
            "pairs flipped in bands that are said to allow one value only",
        )
    if require_ground_truth and rate.ground_truth is False:
        return _Refusal(
            "bands_are_not_ground_truth",
            detail="no attested adjudicator stands behind every band; the rate is provisional",
        )
    return None


def _stability(floor: float | None, ceiling: float | None, required: bool) -> _Refusal | None:
    if floor is None and (required or ceiling is not None):
        return _Refusal(
            "instability_floor_missing",
            detail="run two or more cases twice: a rate without a floor cannot be told from noise",
        )
    if floor is not None and not 0.0 <= floor <= 1.0:
        return _Refusal("instability_floor_not_a_rate", {"instability_floor": floor})
    if ceiling is not None and floor is not None and floor > ceiling:
        return _Refusal(
            "above_instability_ceiling",
            {"instability_floor": floor, "max_instability_floor": ceiling},
        )
    return None


def _decided(refusal: _Refusal, rate: _Rate, excess: float | None) -> GateDecision:
    return GateDecision(
        eligible=False,
        reason=refusal.reason,
        wcfr=rate.value,
        compared=MappingProxyType(dict(refusal.compared)),
        detail=refusal.detail,
        excess_over_floor=excess,
    )


def _rate(given: WithinBandRate | Mapping[str, object] | float | None) -> _Rate:
    if isinstance(given, WithinBandRate):
        return _Rate(
            value=given.value,
            straddling=given.n_band_straddling,
            contradictions=given.n_straddle_contradictions,
            ground_truth=given.ground_truth,
        )
    if isinstance(given, Mapping):
        return _Rate(
            value=cast("float | None", given.get("wcfr")),
            straddling=cast("int | None", given.get("n_band_straddling")),
            contradictions=cast("int | None", given.get("n_straddle_contradictions")),
            ground_truth=cast("bool | None", given.get("ground_truth")),
        )
    if given is None:
        return _Rate(value=None)
    if isinstance(cast(object, given), int | float) and not isinstance(given, bool):
        return _Rate(value=given)
    raise UnsuitableValue("the rate", given, cure="pass a number, or what the rate returned")


def _entropy(given: ActionEntropy | float | None) -> tuple[float | None, float | None]:
    if isinstance(given, ActionEntropy):
        return given.total, given.between
    return given, None
