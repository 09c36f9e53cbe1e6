-- One row per outcome and cell (model, arm, condition, case): how often two replicates disagree.
-- Pairs are counted, never formed: of N values with n_k of kind k, (N^2 - sum n_k^2) / 2 pairs
-- differ, which is k (N - k) for a yes or no. Missing values are no outcome and drop out, and runs
-- without a case are nobody's replicates.
CREATE VIEW floors AS
WITH kinds AS (
    SELECT action, model, arm, condition_id, case_id, value, count(*) AS n
    FROM actions
    WHERE value IS NOT NULL AND case_id IS NOT NULL
    GROUP BY ALL
)
SELECT action,
       model,
       arm,
       condition_id,
       case_id,
       sum(n)::BIGINT AS replicates,
       count(*) AS kinds,
       max(n) AS most_frequent,
       arg_max(value, n) AS most_frequent_value,
       ((sum(n) * sum(n) - sum(n * n)) // 2)::BIGINT AS flips,
       (sum(n) * (sum(n) - 1) // 2)::BIGINT AS cells,
       CASE WHEN sum(n) < 2 THEN 'one_replicate'
            -- The floor of a policy that never varies would be the best of any ranking. One case
            -- alone shows no policy.
            WHEN min(min(value)) OVER of_outcome = max(max(value)) OVER of_outcome
             AND min(case_id) OVER of_outcome <> max(case_id) OVER of_outcome
            THEN 'constant_policy' END AS reason,
       CASE WHEN reason IS NULL
            THEN (sum(n) * sum(n) - sum(n * n)) / (sum(n) * (sum(n) - 1)) END AS floor
FROM kinds
GROUP BY action, model, arm, condition_id, case_id
WINDOW of_outcome AS (PARTITION BY action, model, arm);

-- Columns
-- action: the outcome's name
-- model: the model that the runs name
-- arm: the arm of a whole-run audit
-- replicates: answers of the cell
-- kinds: different values among them
-- most_frequent: how often the most frequent value was given
-- most_frequent_value: that value
-- flips: pairs of answers that differ
-- cells: pairs of answers
-- reason: why there is no floor: one_replicate, constant_policy
-- floor [0 to 1]: share of pairs that differ; NULL with a reason
