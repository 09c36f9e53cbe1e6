-- One row per node and axis that was probed, with the score as recorded and computed again from
-- the recorded distances: delta = C - (W_x + W_y) / 2. The distances are the upper triangle of
-- their matrix by rows, the reference arm first.
CREATE VIEW probe_sets AS
WITH sets AS (
    SELECT *,
           divergence_null_count AS n,
           divergence_counterfactual_count AS m
    FROM spans
    WHERE span_type = 'probe_set'
),
shapes AS (
    SELECT DISTINCT n, m FROM sets
    WHERE divergence_distances IS NOT NULL AND n >= 0 AND m >= 0
),
rows_of AS (SELECT n, m, unnest(range(n + m)) AS i FROM shapes),
pairs AS (SELECT n, m, i, unnest(range(i + 1, n + m)) AS j FROM rows_of),
placed AS (
    SELECT n, m, i, j, row_number() OVER (PARTITION BY n, m ORDER BY i, j) AS place FROM pairs
),
places AS (
    SELECT n, m,
           count(*) AS total,
           coalesce(list(place) FILTER (j < n), []) AS reference_places,
           coalesce(list(place) FILTER (i >= n), []) AS counterfactual_places,
           coalesce(list(place) FILTER (i < n AND j >= n), []) AS cross_places
    FROM placed
    GROUP BY n, m
),
measured AS (
    SELECT sets.*,
           mean_distance(divergence_distances, cross_places) AS cross_again,
           mean_distance(divergence_distances, reference_places) AS reference_again,
           mean_distance(divergence_distances, counterfactual_places) AS counterfactual_again
    FROM sets
    LEFT JOIN places
      ON places.n = sets.n AND places.m = sets.m AND places.total = len(divergence_distances)
)
SELECT run_id,
       probe_set_id,
       node_id AS node,
       node_task_id AS task_id,
       probe_axis AS axis,
       coalesce(superstep_scope, '') AS scope,
       superstep_index AS superstep,
       node_weight AS weight,
       probe_baseline_span_id AS baseline_span_id,
       intervention_id,
       probe_estimator AS estimator,
       probe_estimator_version AS estimator_version,
       probe_wording AS wording,
       probe_contrast AS contrast,
       probe_round AS round,
       probe_decision AS coverage,
       probe_sampling_rate AS sampling_rate,
       probe_reference_set_id AS reference_set_id,
       probe_outcome AS outcome,
       n AS reference_count,
       m AS counterfactual_count,
       probe_call_count AS call_count,
       effect_value AS delta,
       effect_ci_lower AS ci_low,
       effect_ci_upper AS ci_high,
       effect_ci_level AS ci_level,
       effect_p_value AS p_value,
       effect_e_value AS e_value,
       effect_standardized AS effect_size,
       effect_undefined_reason AS undefined_reason,
       gen_ai_evaluation_score_label AS label,
       divergence_counterfactual_mean AS cross_mean,
       divergence_null_mean AS reference_mean,
       divergence_counterfactual_within AS counterfactual_mean,
       floor_value AS floor,
       (reference_again + counterfactual_again) / 2 AS floor_recomputed,
       cross_again - (reference_again + counterfactual_again) / 2 AS delta_recomputed,
       divergence_distances AS distances,
       audit_writer,
       audit_seq,
       start_time,
       duration_ns,
       trace_id,
       span_id,
       parent_span_id
FROM measured;

-- Columns
-- reference_count: answers of the reference arm
-- counterfactual_count: answers of the counterfactual arm
-- floor_recomputed [0 to 1]: mean distance within the arms, from the recorded distances
-- delta_recomputed [-1 to 1]: the shift net of the node's own noise, from the recorded distances
