-- One row per run: its root span, and whether all of its spans are here.
-- Every writing process numbers its spans of a run from 0 without gaps, and its root, which ends
-- last, says how many there are. A run that stopped and went on has a root of each process that
-- worked on it; a person's reset is one decision without a root.
CREATE VIEW runs AS
WITH ends AS (
    -- How a run ended that stopped and went on is said by its last root.
    SELECT run_id,
           arg_max(run_outcome, start_unix_nano) AS run_outcome,
           arg_max(audit_verdict, start_unix_nano) AS audit_verdict,
           arg_max(network_score, start_unix_nano) AS network_score,
           arg_max(breaker_state_to, start_unix_nano) AS breaker_state_to,
           arg_max_null(error_type, start_unix_nano) AS error_type,
           sum(run_node_count)::BIGINT AS run_node_count,
           sum(run_probe_count)::BIGINT AS run_probe_count,
           sum(run_superstep_count)::BIGINT AS run_superstep_count,
           sum(duration_ns)::BIGINT AS duration_ns
    FROM spans
    WHERE span_type = 'run' AND run_id IS NOT NULL
    GROUP BY run_id
)
SELECT counts.run_id,
       completeness,
       incomplete_reason,
       span_count,
       missing,
       writers,
       decision_count,
       root.gen_ai_agent_name AS graph,
       root.graph_id,
       root.graph_nodes,
       root.graph_edges,
       root.audit_id,
       root.audit_mode,
       root.audit_outcomes,
       root.case_id,
       root.condition_id,
       root.replicate_index AS replicate,
       root.run_arm AS arm,
       root.gen_ai_request_model AS model,
       root.service_name,
       root.source_name,
       ends.run_outcome AS outcome,
       ends.audit_verdict AS verdict,
       ends.run_node_count AS node_count,
       ends.run_probe_count AS probe_count,
       ends.run_superstep_count AS superstep_count,
       ends.network_score AS b_fast,
       ends.breaker_state_to AS state,
       root.breaker_trigger AS trigger,
       root.monitor_alpha,
       ends.error_type,
       root.start_time,
       root.start_unix_nano,
       ends.duration_ns,
       root.trace_id,
       root.span_id
FROM completeness AS counts
LEFT JOIN roots AS root ON root.run_id = counts.run_id
LEFT JOIN ends ON ends.run_id = counts.run_id;

-- Columns
-- completeness: complete if every span that was numbered or announced is there, else incomplete
-- incomplete_reason: what is missing, in words; empty for a complete run
-- span_count: spans that are there
-- missing: spans that were numbered or announced and are not there
-- writers: processes that wrote spans of the run
-- decision_count: decisions that are there
