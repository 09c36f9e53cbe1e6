-- One row per decision of the breaker, in the order of audit_seq within a writer. A decision on
-- a repaired superstep names the intervention that it judges.
--
-- Where enforced is false, in shadow mode, nothing was stopped. The first halt is the one at which
-- enforcement would have stopped the run; what is told after it (halt, cooling_down; escalate) is
-- said of a run that would not have come so far, since nobody repaired what was told.
CREATE VIEW decisions AS
SELECT run_id,
       audit_seq,
       coalesce(superstep_scope, '') AS scope,
       superstep_index AS superstep,
       breaker_decision AS decision,
       breaker_reason AS reason,
       breaker_state_from AS state_from,
       breaker_state_to AS state_to,
       network_score_fast AS b_fast,
       network_score_slow AS b_slow,
       monitor_value AS monitor,
       breaker_edge AS edge,
       breaker_edges AS edges,
       breaker_node AS node,
       breaker_axis AS axis,
       breaker_enforced AS enforced,
       breaker_trigger AS trigger,
       breaker_threshold_enter AS threshold_enter,
       breaker_threshold_exit AS threshold_exit,
       breaker_margin AS margin,
       breaker_mixing_ratio AS mixing_ratio,
       monitor_threshold,
       monitor_guilty,
       path_ranks,
       path_fired,
       breaker_payload_hash AS payload_hash,
       network_step AS step,
       network_probe_sets AS probe_sets,
       superstep_attempt AS attempt,
       intervention_id,
       breaker_reset_by AS reset_by,
       audit_prev_hash AS prev_hash,
       audit_hash AS hash,
       audit_writer,
       start_time,
       trace_id,
       span_id
FROM spans
WHERE span_type = 'network' AND breaker_decision IS NOT NULL;
