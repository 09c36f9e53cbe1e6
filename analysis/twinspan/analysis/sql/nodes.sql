-- One row per execution of a node; a retry or a resumption is a row of its own.
CREATE VIEW nodes AS
SELECT run_id,
       node_id AS node,
       node_kind AS kind,
       coalesce(superstep_scope, '') AS scope,
       superstep_index AS superstep,
       node_task_id AS task_id,
       node_attempt AS attempt,
       node_outcome AS outcome,
       node_weight AS weight,
       node_weight_share AS weight_share,
       node_weight_method AS weight_method,
       node_history_probability AS bias_probability,
       node_risk AS risk,
       probe_decision,
       probe_sampling_rate,
       node_parents AS parents,
       node_parent_task_ids AS parent_task_ids,
       node_parent_hashes AS parent_hashes,
       node_edge_kind AS edge_kind,
       node_input_hash AS input_hash,
       node_output_hash AS output_hash,
       node_output_size AS output_size,
       action_fields,
       gen_ai_request_model AS model,
       error_type,
       status_code,
       audit_writer,
       audit_seq,
       start_time,
       start_unix_nano,
       duration_ns,
       trace_id,
       span_id,
       parent_span_id
FROM spans
WHERE span_type = 'node';

-- Columns
-- scope: the holder's task for nodes of a subgraph; empty for the graph itself
