-- The audit trail: what happened in a run, in the order in which it was recorded.
CREATE VIEW trail AS
SELECT run_id,
       audit_writer,
       audit_seq,
       start_time,
       span_type AS event,
       node_id AS node,
       probe_axis AS axis,
       superstep_index AS superstep,
       coalesce(superstep_scope, '') AS scope,
       CASE span_type
           WHEN 'run' THEN coalesce(run_outcome, 'run')
           WHEN 'node' THEN coalesce(node_outcome, 'ok')
           WHEN 'probe_set' THEN coalesce(gen_ai_evaluation_score_label, probe_outcome)
           WHEN 'network' THEN breaker_decision
           WHEN 'intervention' THEN intervention_outcome
           WHEN 'review' THEN attr(attributes, 'twinspan.review.stance')
           WHEN 'attempt' THEN intervention_candidate
       END AS what,
       CASE span_type
           WHEN 'probe_set' THEN effect_value
           WHEN 'network' THEN network_score_fast
           WHEN 'intervention' THEN intervention_score_after
           WHEN 'review' THEN attr(attributes, 'twinspan.review.weight')::DOUBLE
           WHEN 'attempt' THEN attr(attributes, 'twinspan.attempt.delta')::DOUBLE
       END AS value,
       effect_p_value AS p_value,
       effect_e_value AS e_value,
       coalesce(breaker_reason, intervention_reason) AS reason,
       coalesce(breaker_edge, intervention_edge) AS edge,
       breaker_enforced AS enforced,
       trace_id,
       span_id
FROM spans
WHERE span_type IN
      ('run', 'node', 'probe_set', 'network', 'intervention', 'review', 'attempt')
ORDER BY run_id, audit_writer, audit_seq;

-- Columns
-- event: what kind of thing happened: run, node, probe_set, network or intervention
-- what: what came of it: an outcome, a label or a decision
-- value: its number: delta of a probe set, B_fast of a decision, the score after an intervention
-- edge: the edge that was cut, or along which a repair was handed on
