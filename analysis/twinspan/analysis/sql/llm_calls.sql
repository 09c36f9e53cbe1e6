-- One row per call of a model, however many instrumentations watched it; scope_name says whose
-- span it is. A call within a probe names its arm.
CREATE VIEW llm_calls AS
SELECT run_id,
       node_id AS node,
       node_task_id AS task_id,
       gen_ai_provider_name AS provider,
       gen_ai_request_model AS model,
       gen_ai_usage_input_tokens AS input_tokens,
       gen_ai_usage_output_tokens AS output_tokens,
       probe_arm AS arm,
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
