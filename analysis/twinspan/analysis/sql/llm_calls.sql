-- One row per call of a model, however many instrumentations watched it; scope_name says whose
-- span it is. purpose is work, probe (then arm, set_id and axis say which) or repair.
CREATE VIEW llm_calls AS
SELECT run_id,
       node_id AS node,
       node_task_id AS task_id,
       gen_ai_provider_name AS provider,
       gen_ai_request_model AS model,
       gen_ai_usage_input_tokens AS input_tokens,
       gen_ai_usage_output_tokens AS output_tokens,
       CASE WHEN probe_arm IS NOT NULL THEN 'probe'
            WHEN intervention_id IS NOT NULL THEN 'repair'
            ELSE 'work' END AS purpose,
       probe_arm AS arm,
       probe_set_id AS set_id,
       probe_axis AS axis,
       intervention_id,
       error_type,
       status_code,
       service_name,
       scope_name,
       start_time,
       start_unix_nano,
       duration_ns,
       trace_id,
       span_id,
       parent_span_id
FROM spans
WHERE span_type = 'llm_call';
