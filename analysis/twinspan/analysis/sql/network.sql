-- One row per closed superstep: the network score as recorded, and computed again from the probe
-- sets and node weights alone.
--
-- The input of a step is the reduction of its nodes' magnitudes; a node's magnitude b is the
-- largest delta over its axes, w its weight with the graph's largest at 1:
--   impact_sum sum(w b), impact_max max(w b), weighted_mean sum(w b) / sum(w), max max(b).
-- The score is the exponentially weighted mean of the inputs x so far, corrected for its start:
--   raw_t = alpha x_t + (1 - alpha) raw_(t-1),  B_t = raw_t / (1 - (1 - alpha)^t).
CREATE VIEW network AS
WITH begun AS (
    SELECT *, min(start_unix_nano) OVER (PARTITION BY run_id, audit_writer) AS writer_begun
    FROM spans
    WHERE span_type = 'network'
),
steps AS (
    -- Processes that work on a run follow each other; each numbers its spans anew.
    SELECT *,
           row_number() OVER (
               PARTITION BY run_id ORDER BY writer_begun, audit_writer, audit_seq
           ) AS turn
    FROM begun
),
reduced_sets AS (
    SELECT run_id, span_id, network_reduction, network_estimator,
           unnest(network_probe_sets) AS probe_set_id
    FROM steps
),
weights AS (
    SELECT run_id, node_id, max(node_weight) AS weight
    FROM spans
    WHERE span_type = 'node' AND node_weight IS NOT NULL
    GROUP BY run_id, node_id
),
sets AS (
    SELECT reduced_sets.run_id,
           reduced_sets.span_id,
           reduced_sets.network_reduction AS reduction,
           probe_sets.node,
           probe_sets.task_id,
           probe_sets.axis,
           coalesce(probe_sets.contrast = 'screen', false) AS is_screen,
           probe_sets.counterfactual_count AS m,
           probe_sets.delta_recomputed AS delta,
           coalesce(probe_sets.sampling_rate, 1) AS rate,
           coalesce(probe_sets.weight, weights.weight) AS w
    FROM reduced_sets
    JOIN probe_sets
      ON probe_sets.run_id = reduced_sets.run_id
     AND probe_sets.probe_set_id = reduced_sets.probe_set_id
    LEFT JOIN weights
      ON weights.run_id = probe_sets.run_id AND weights.node_id = probe_sets.node
    WHERE probe_sets.delta_recomputed IS NOT NULL
      -- Scores of another estimator have no common scale with it; the monitor alone took them in.
      AND probe_sets.estimator IS NOT DISTINCT FROM
          coalesce(reduced_sets.network_estimator, probe_sets.estimator)
),
axes AS (
    -- The rounds of an axis count by their counterfactual samples; a node that was drawn with a
    -- probability stands for those that were not.
    SELECT run_id, span_id, reduction, node, task_id, axis, is_screen,
           sum(m * delta) / sum(m) / any_value(rate) AS b,
           max(w) AS w
    FROM sets
    GROUP BY ALL
),
chosen AS (
    -- A screen of all axes at once stands in only where no axis was probed by itself.
    SELECT *
    FROM axes
    QUALIFY NOT is_screen
         OR count(*) FILTER (NOT is_screen) OVER (PARTITION BY run_id, span_id, node, task_id) = 0
),
magnitudes AS (
    SELECT run_id, span_id, reduction, node, max(b) AS b, max(w) AS w
    FROM chosen
    GROUP BY ALL
),
reduced AS (
    SELECT run_id,
           span_id,
           CASE any_value(reduction)
               WHEN 'impact_sum' THEN sum(w * b)
               WHEN 'impact_max' THEN max(w * b)
               WHEN 'weighted_mean' THEN CASE WHEN sum(w) > 0 THEN sum(w * b) / sum(w) ELSE 0 END
               WHEN 'max' THEN max(b)
           END AS input,
           list({'node': node, 'magnitude': b, 'weight': w, 'impact': w * b}
                ORDER BY w * b DESC, node) AS contributions
    FROM magnitudes
    GROUP BY run_id, span_id
),
inputs AS (
    SELECT steps.*, reduced.input, reduced.contributions
    FROM steps
    LEFT JOIN reduced ON reduced.run_id = steps.run_id AND reduced.span_id = steps.span_id
),
clock AS (
    -- A repaired superstep is reduced anew: its second input takes the place of the first. A
    -- superstep in which nothing was scored adds no input and leaves the count where it was.
    SELECT run_id, network_step AS step, turn AS since, input,
           lead(turn) OVER (PARTITION BY run_id, network_step ORDER BY turn) AS until
    FROM inputs
    WHERE input IS NOT NULL
),
smoothed AS (
    SELECT now.run_id,
           now.span_id,
           sum(now.network_alpha_fast
               * pow(1 - now.network_alpha_fast, now.network_step - past.step)
               * past.input) AS raw_fast,
           sum(now.network_alpha_slow
               * pow(1 - now.network_alpha_slow, now.network_step - past.step)
               * past.input) AS raw_slow
    FROM inputs AS now
    JOIN clock AS past
      ON past.run_id = now.run_id
     AND past.step <= now.network_step
     AND past.since <= now.turn
     AND (past.until IS NULL OR past.until > now.turn)
    GROUP BY now.run_id, now.span_id
)
SELECT inputs.run_id,
       audit_writer,
       audit_seq,
       turn,
       coalesce(superstep_scope, '') AS scope,
       superstep_index AS superstep,
       superstep_nodes AS nodes,
       network_step AS step,
       network_reduction AS reduction,
       network_alpha_fast AS alpha_fast,
       network_alpha_slow AS alpha_slow,
       network_input AS input,
       input AS input_recomputed,
       network_score AS b_net,
       network_score_fast AS b_fast,
       network_score_slow AS b_slow,
       smoothed.raw_fast / (1 - pow(1 - network_alpha_fast, network_step)) AS b_fast_recomputed,
       smoothed.raw_slow / (1 - pow(1 - network_alpha_slow, network_step)) AS b_slow_recomputed,
       network_score_raw AS raw_fast,
       smoothed.raw_fast AS raw_fast_recomputed,
       network_score_standardized AS b_standardized,
       network_observed_weight AS observed_weight,
       network_probe_sets AS probe_sets,
       contributions,
       monitor_value AS monitor,
       monitor_threshold,
       monitor_alpha,
       monitor_dense,
       monitor_sparse,
       monitor_restart,
       monitor_guilty,
       breaker_decision AS decision,
       intervention_id,
       start_time,
       trace_id,
       inputs.span_id
FROM inputs
LEFT JOIN smoothed ON smoothed.run_id = inputs.run_id AND smoothed.span_id = inputs.span_id;

-- Columns
-- turn: number of the decision within its run, from 1, over all processes that worked on it
-- input_recomputed: the superstep's reduced score, from probe sets and weights
-- b_fast_recomputed: the fast moving average of these, corrected for its start
-- b_slow_recomputed: the slow one
-- raw_fast_recomputed: the fast one without the correction
-- contributions: each node's and axis's part of the input
