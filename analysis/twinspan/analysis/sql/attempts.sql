-- One row per candidate repair that was measured to choose between several. The measurement that
-- decides is not among them: it has samples of its own.
CREATE VIEW attempts AS
SELECT run_id,
       audit_seq,
       intervention_id,
       node_id AS node,
       node_task_id AS task_id,
       coalesce(superstep_scope, '') AS scope,
       superstep_index AS superstep,
       intervention_candidate AS candidate,
       attr(attributes, 'twinspan.attempt.delta')::DOUBLE AS delta,
       attr(attributes, 'twinspan.attempt.upper')::DOUBLE AS upper,
       attr(attributes, 'twinspan.attempt.below_bound')::BOOLEAN AS below_bound,
       attr(attributes, 'twinspan.attempt.bound')::DOUBLE AS bound,
       audit_writer,
       start_time,
       duration_ns,
       trace_id,
       span_id,
       parent_span_id
FROM spans
WHERE span_type = 'attempt';
