-- One row per run and node: which of its executions were probed, and why the others were not.
CREATE VIEW coverage AS
WITH executed AS (
    SELECT run_id,
           node_id AS node,
           count(*) AS executions,
           max(node_weight) AS weight,
           count(*) FILTER (probe_decision = 'probed') AS probed,
           count(*) FILTER (probe_decision = 'screened') AS screened,
           count(*) FILTER (probe_decision = 'sampled_out') AS sampled_out,
           count(*) FILTER (probe_decision = 'budget') AS budget,
           count(*) FILTER (probe_decision = 'exempt') AS exempt,
           count(*) FILTER (probe_decision IS NULL) AS unknown,
           min(probe_sampling_rate) AS sampling_rate
    FROM spans
    WHERE span_type = 'node'
    GROUP BY run_id, node_id
),
measured AS (
    SELECT run_id,
           node,
           list_sort(list(DISTINCT axis)) AS axes,
           count(*) AS probe_sets,
           count(*) FILTER (delta IS NOT NULL) AS scored,
           sum(call_count)::BIGINT AS calls
    FROM probe_sets
    GROUP BY run_id, node
)
SELECT run_id,
       node,
       weight,
       executions,
       probed,
       screened,
       sampled_out,
       budget,
       exempt,
       unknown,
       sampling_rate,
       axes,
       coalesce(probe_sets, 0) AS probe_sets,
       coalesce(scored, 0) AS scored,
       calls
FROM executed
LEFT JOIN measured USING (run_id, node);
