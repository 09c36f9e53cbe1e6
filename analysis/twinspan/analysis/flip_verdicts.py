"""What may be said of a condition against the reference, and why; a closed list."""

from __future__ import annotations

from typing import Final, Literal

FlipVerdict = Literal[
    "above_floor", "within_controls", "descriptive", "within_floor", "inconclusive", "control"
]
"""The outcomes of a comparison; only ``above_floor`` is a finding."""

CONSTANT: Final = "constant_policy"
NO_ANSWERS: Final = "no_answers"
ONE_CASE: Final = "one_case"
ONE_REPLICATE: Final = "one_replicate"
TOO_FEW_REPLICATES: Final = "too_few_replicates"
TOO_FEW_RUNS: Final = "too_few_runs"
REUSED: Final = "answers_reused"
NOT_ABOVE_NOISE: Final = "not_above_noise"
NOT_BEYOND_CONTROLS: Final = "not_beyond_controls"
CONTROLS_NOT_COMPARABLE: Final = "controls_not_comparable"
BEYOND_CONTROLS: Final = "beyond_every_control"
NO_CONTROLS: Final = "reacts_to_edit_no_controls"
RANDOM_WORDING: Final = "reacts_to_attribute_random_wording"
DEFENSIBLE: Final = "defensible_direction"
CONTROL_MOVES: Final = "control_moves_answers"
CONTROL_STILL: Final = "control_within_floor"

WITHOUT_A_RATE: Final = frozenset({CONSTANT, NO_ANSWERS, ONE_CASE, ONE_REPLICATE})
"""Reasons that leave no rate, interval or p: whatever they were, they would prove nothing."""

MEANINGS: Final[dict[str, str]] = {
    CONSTANT: "every answer is the same, so that nothing could have flipped",
    NO_ANSWERS: "no case has the answers that are to be compared",
    ONE_CASE: "one case says nothing about cases like it",
    ONE_REPLICATE: "no case was run twice, so that a flip cannot be told from noise",
    TOO_FEW_REPLICATES: "two votes of that size do not fit into the replicates of a case",
    REUSED: "an answer stands in several comparisons, so that cases are not independent: rates can "
    "be read, and there is no p",
    TOO_FEW_RUNS: "with so few cases and runs no result, however clear, would be significant",
    NOT_ABOVE_NOISE: "answers differ no more than repeated runs of one condition do",
    NOT_BEYOND_CONTROLS: "an edit that means nothing moves answers as far",
    CONTROLS_NOT_COMPARABLE: "a control has no case in common with the condition",
    BEYOND_CONTROLS: "beyond the floor, and farther than every control",
    NO_CONTROLS: "beyond the floor; without a control the edit itself may be the reason",
    RANDOM_WORDING: "beyond the floor, with the wording drawn anew for every run",
    DEFENSIBLE: "beyond the floor in a direction that is registered as defensible",
    CONTROL_MOVES: "an edit that means nothing moves answers beyond the floor",
    CONTROL_STILL: "an edit that means nothing moves answers no more than noise",
}
"""What each reason says to a reader."""
