-- One row per review of a suspected answer: what a skeptic said, and what it weighed in the vote.
CREATE VIEW reviews AS
SELECT run_id,
       audit_seq,
       intervention_id,
       node_id AS node,
       node_task_id AS task_id,
       coalesce(superstep_scope, '') AS scope,
       superstep_index AS superstep,
       intervention_role AS role,
       attr(attributes, 'twinspan.review.provenance') AS provenance,
       attr(attributes, 'twinspan.review.stance') AS stance,
       attr(attributes, 'twinspan.review.why') AS why,
       attr(attributes, 'twinspan.review.form') AS form,
       attr(attributes, 'twinspan.review.confidence')::DOUBLE AS confidence,
       attr(attributes, 'twinspan.review.quoted.count')::BIGINT AS quoted,
       attr(attributes, 'twinspan.review.checked.count')::BIGINT AS checked,
       attr(attributes, 'twinspan.review.trust.value')::DOUBLE AS trust,
       attr(attributes, 'twinspan.review.weight')::DOUBLE AS weight,
       audit_writer,
       start_time,
       duration_ns,
       trace_id,
       span_id,
       parent_span_id
FROM spans
WHERE span_type = 'review';
