-- One row per run: its root span, and whether all of its spans are here.
-- Every writing process numbers its spans of a run from 0 without gaps, and the root, which ends
-- last, says how many there are.
CREATE VIEW runs AS
WITH writers AS (
    SELECT run_id,
           audit_writer,
           count(*) AS spans,
           max(audit_seq) + 1 AS numbered,
           max(run_span_count) FILTER (span_type = 'run') AS announced,
           count(*) FILTER (span_type = 'run') AS roots,
           count(*) FILTER (span_type = 'network') AS decisions
    FROM spans
    WHERE run_id IS NOT NULL AND audit_seq IS NOT NULL
    GROUP BY ALL
),
counts AS (
    SELECT run_id,
           sum(spans)::BIGINT AS span_count,
           count(*) AS writers,
           sum(decisions)::BIGINT AS decision_count,
           sum(roots)::BIGINT AS roots,
           sum(greatest(numbered, coalesce(announced, 0)) - spans)::BIGINT AS missing,
           bool_or(roots > 0 AND announced IS NULL) AS unannounced,
           bool_or(announced < spans) AS overfull
    FROM writers
    GROUP BY run_id
)
SELECT counts.run_id,
       CASE WHEN counts.roots = 0 OR missing > 0 OR unannounced OR overfull
            THEN 'incomplete' ELSE 'complete' END AS completeness,
       concat_ws('; ',
           CASE WHEN counts.roots = 0 THEN 'the root span is missing' END,
           CASE WHEN missing > 0
                THEN missing || ' of ' || (span_count + missing) || ' spans are missing' END,
           CASE WHEN unannounced THEN 'the root span announces no number of spans' END,
           CASE WHEN overfull THEN 'there are more spans than were announced' END
       ) AS incomplete_reason,
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
       root.run_outcome AS outcome,
       root.audit_verdict AS verdict,
       root.run_node_count AS node_count,
       root.run_probe_count AS probe_count,
       root.run_superstep_count AS superstep_count,
       root.network_score AS b_fast,
       root.breaker_state_to AS state,
       root.breaker_trigger AS trigger,
       root.monitor_alpha,
       root.error_type,
       root.start_time,
       root.start_unix_nano,
       root.duration_ns,
       root.trace_id,
       root.span_id
FROM counts
LEFT JOIN roots AS root ON root.run_id = counts.run_id;

-- Columns
-- completeness: complete if every span that was numbered or announced is there, else incomplete
-- incomplete_reason: what is missing, in words; empty for a complete run
-- span_count: spans that are there
-- missing: spans that were numbered or announced and are not there
-- writers: processes that wrote spans of the run
-- decision_count: decisions that are there
