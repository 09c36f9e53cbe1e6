-- One row per intervention, with the execution that it repairs and the probe sets that caused it.
CREATE VIEW interventions AS
SELECT run_id,
       audit_seq,
       intervention_id,
       intervention_strategy AS strategy,
       node_id AS node,
       intervention_trigger_task_id AS task_id,
       coalesce(superstep_scope, '') AS scope,
       superstep_index AS superstep,
       intervention_round AS round,
       intervention_score_before AS score_before,
       intervention_score_after AS score_after,
       intervention_upper_after AS upper_after,
       intervention_outcome AS outcome,
       intervention_reason AS reason,
       intervention_candidate AS candidate,
       attr(attributes, 'twinspan.route.strategy') AS route,
       attr(attributes, 'twinspan.route.reason') AS route_reason,
       attr(attributes, 'twinspan.route.axis') AS route_axis,
       attr(attributes, 'twinspan.route.biased.count')::BIGINT AS route_biased,
       attr(attributes, 'twinspan.route.node.count')::BIGINT AS route_nodes,
       attr(attributes, 'twinspan.panel.decision') AS panel_decision,
       attr(attributes, 'twinspan.panel.confidence')::DOUBLE AS panel_confidence,
       attr(attributes, 'twinspan.panel.weighting') AS panel_weighting,
       attr(attributes, 'twinspan.verifier.verdict') AS factual_verdict,
       attr(attributes, 'twinspan.verifier.reason') AS factual_reason,
       intervention_edge AS edge,
       intervention_payload_hash AS payload_hash,
       intervention_handed_hash AS handed_hash,
       [link.span_id FOR link IN links IF link.relation = 'caused_by'] AS caused_by,
       error_type,
       audit_writer,
       start_time,
       start_unix_nano,
       duration_ns,
       trace_id,
       span_id,
       parent_span_id
FROM spans
WHERE span_type = 'intervention';

-- Columns
-- caused_by [hex, 16]: spans of the probe sets that caused it
