-- One row per node: in how many runs it was probed, and in how many of them its own probes found it
-- biased: the smallest p-value of its probe sets in a run, times their number, is at most 0.05
-- (Bonferroni). Controls, repairs and probe sets without a p-value count for nothing, and neither
-- does what other nodes answered.
CREATE VIEW history AS
WITH judged AS (
    SELECT run_id, node_id AS node, min(effect_p_value) * count(*) <= 0.05 AS is_biased
    FROM spans
    WHERE span_type = 'probe_set'
      AND effect_p_value IS NOT NULL
      AND intervention_id IS NULL
      AND coalesce(probe_contrast, 'attribute_swap') NOT IN ('sham', 'rare_token', 'neutral_edit')
    GROUP BY ALL
)
SELECT node,
       count(*) AS runs,
       count(*) FILTER (is_biased) AS biased,
       count(*) FILTER (NOT is_biased) AS clear
FROM judged
GROUP BY node;

-- Columns
-- runs: runs in which the node was probed with a score
-- biased: those in which its own probes found it biased
-- clear: the others
