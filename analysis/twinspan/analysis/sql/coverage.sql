-- One row per run and node: which of its executions were probed, and why the others were not.
CREATE VIEW coverage AS
WITH reached AS (
    -- How far the probing of an execution came: a node span only says what was planned.
    SELECT run_id,
           task_id,
           CASE
               WHEN bool_or(coverage = 'probed') THEN 'probed'
               WHEN bool_or(coverage = 'screened') THEN 'screened'
               WHEN bool_or(coverage = 'budget') THEN 'budget'
               ELSE 'no_op'
           END AS decision
    FROM probe_sets
    WHERE coverage IS NOT NULL AND intervention_id IS NULL
    GROUP BY run_id, task_id
),
decided AS (
    SELECT spans.run_id,
           spans.node_id AS node,
           spans.node_weight,
           spans.probe_sampling_rate,
           CASE spans.probe_decision
               WHEN 'probed' THEN coalesce(reached.decision, 'probed')
               ELSE spans.probe_decision
           END AS decision
    FROM spans
    LEFT JOIN reached
      ON reached.run_id = spans.run_id AND reached.task_id = spans.node_task_id
    WHERE spans.span_type = 'node'
),
executed AS (
    SELECT run_id,
           node,
           count(*) AS executions,
           max(node_weight) AS weight,
           count(*) FILTER (decision = 'probed') AS probed,
           count(*) FILTER (decision = 'screened') AS screened,
           count(*) FILTER (decision = 'sampled_out') AS sampled_out,
           count(*) FILTER (decision = 'budget') AS budget,
           count(*) FILTER (decision = 'no_op') AS no_op,
           count(*) FILTER (decision = 'exempt') AS exempt,
           count(*) FILTER (decision IS NULL) AS unknown,
           min(probe_sampling_rate) AS sampling_rate
    FROM decided
    GROUP BY run_id, node
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
       no_op,
       exempt,
       unknown,
       sampling_rate,
       axes,
       coalesce(probe_sets, 0) AS probe_sets,
       coalesce(scored, 0) AS scored,
       calls
FROM executed
LEFT JOIN measured USING (run_id, node);

-- Columns
-- weight [0 to 1]: the node's blast radius, the graph's largest being 1
-- executions: executions of the node
-- probed: those whose probing came to a score
-- screened: those that a first look found nothing in
-- sampled_out: those that were not drawn
-- budget: those for which no calls were left
-- no_op: those in whose payload there was nothing to change
-- exempt: those that were not to be probed
-- unknown: those of which nothing is said
-- sampling_rate [0 to 1]: the smallest probability with which an execution was drawn
-- axes: axes that were probed
-- probe_sets: probe sets of the node
-- scored: those that came to a score
-- calls: model calls or runs of the node that they took
