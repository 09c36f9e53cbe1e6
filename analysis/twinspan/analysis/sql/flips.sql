-- One row per outcome, case and condition beside the reference: how often an answer of one arm
-- differs from an answer of the other, and how often answers within each arm differ.
-- Pairs are counted from how often each value was given, never formed. NULL is no answer: it is
-- counted as missing and compared with nothing.
CREATE VIEW flips AS
WITH cells AS (
    SELECT action, model, arm, condition_id, case_id,
           list(value ORDER BY replicate NULLS LAST, run_id) AS answers,
           list(replicate ORDER BY replicate NULLS LAST, run_id) AS replicates,
           min(min(value)) OVER of_outcome = max(max(value)) OVER of_outcome
               AND min(case_id) OVER of_outcome <> max(case_id) OVER of_outcome AS is_constant
    FROM answers
    GROUP BY action, model, arm, condition_id, case_id
    WINDOW of_outcome AS (PARTITION BY action, model, arm)
),
paired AS (
    SELECT other.action, other.model, other.arm, reference.condition_id AS reference_id,
           other.condition_id, other.case_id,
           reference.answers AS reference_answers,
           other.answers,
           reference.replicates AS reference_replicates,
           other.replicates,
           other.is_constant
    FROM cells AS other
    JOIN cells AS reference
      ON reference.action = other.action
     AND reference.model IS NOT DISTINCT FROM other.model
     AND reference.arm IS NOT DISTINCT FROM other.arm
     AND reference.case_id = other.case_id
     AND reference.condition_id <> other.condition_id
    WHERE reference.condition_id IN (SELECT condition_id FROM conditions WHERE is_reference)
),
counted AS (
    SELECT paired.*,
           list_filter(reference_answers, lambda x: x IS NOT NULL) AS first,
           list_filter(answers, lambda x: x IS NOT NULL) AS second,
           list_transform(list_distinct(list_concat(first, second)),
                          lambda v: {'first': len(list_filter(first, lambda x: x = v)),
                                     'second': len(list_filter(second, lambda x: x = v))}) AS kinds
    FROM paired
),
pairs AS (
    SELECT counted.*,
           len(first) * len(second) AS cells,
           cells - coalesce(list_sum(list_transform(kinds, lambda k: k.first * k.second)), 0)
               AS flips,
           len(first) * (len(first) - 1) // 2 AS reference_cells,
           len(second) * (len(second) - 1) // 2 AS own_cells,
           (len(first) * len(first)
            - coalesce(list_sum(list_transform(kinds, lambda k: k.first * k.first)), 0)) // 2
               AS reference_flips,
           (len(second) * len(second)
            - coalesce(list_sum(list_transform(kinds, lambda k: k.second * k.second)), 0)) // 2
               AS own_flips,
           CASE WHEN cells = 0 THEN 'no_answers'
                WHEN is_constant THEN 'constant_policy'
                WHEN reference_cells = 0 AND own_cells = 0 THEN 'one_replicate' END AS reason
    FROM counted
)
SELECT action,
       model,
       arm,
       reference_id,
       pairs.condition_id,
       conditions.kind,
       conditions.axis,
       conditions.is_control,
       case_id,
       reference_answers,
       answers,
       reference_replicates,
       replicates,
       len(reference_answers) - len(first) AS reference_missing,
       len(answers) - len(second) AS missing,
       flips::BIGINT AS flips,
       cells::BIGINT AS cells,
       -- Without a floor a rate proves nothing, and that of a policy that never varies is no merit.
       CASE WHEN cells > 0 AND reason IS NULL THEN flips / cells END AS flip_rate,
       CASE WHEN reference_cells > 0 AND reason IS NULL
            THEN reference_flips / reference_cells END AS floor_reference,
       CASE WHEN own_cells > 0 AND reason IS NULL
            THEN own_flips / own_cells END AS floor_counterfactual,
       flip_rate - (floor_reference + floor_counterfactual) / 2 AS excess,
       reason
FROM pairs
JOIN conditions ON conditions.condition_id = pairs.condition_id;

-- Columns
-- action: the outcome's name
-- model: the model that the runs name
-- arm: the arm of a whole-run audit
-- reference_id: the condition that is compared with
-- kind: what the condition is in the design
-- axis: the axis that it varies
-- is_control: whether it varies something that must not matter
-- reference_answers: answers under the reference, by replicate; NULL is none
-- answers: answers under the condition, by replicate; NULL is none
-- reference_replicates: the replicates' numbers under the reference
-- replicates: the replicates' numbers under the condition
-- reference_missing: answers that are missing under the reference
-- missing: answers that are missing under the condition
-- flips: pairs across the two that differ
-- cells: pairs across the two
-- flip_rate [0 to 1]: share of pairs across the two that differ; NULL with a reason
-- floor_reference [0 to 1]: share of pairs within the reference that differ
-- floor_counterfactual [0 to 1]: share of pairs within the condition that differ
-- excess [-1 to 1]: the flip rate less the mean of the two floors; NULL unless both are known
-- reason: why there is no rate: no_answers, constant_policy, one_replicate
