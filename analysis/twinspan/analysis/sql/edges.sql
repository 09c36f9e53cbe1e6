-- One row per edge along which a payload really went. Attempts of one execution count once.
CREATE VIEW edges AS
WITH handed AS (
    SELECT run_id,
           coalesce(superstep_scope, '') AS scope,
           node_id AS target,
           node_task_id AS task_id,
           node_edge_kind = 'observed' AS observed,
           audit_seq,
           unnest(node_parents) AS source,
           unnest(node_parent_hashes) AS payload_hash
    FROM spans
    WHERE span_type = 'node' AND len(node_parents) > 0
),
executed AS (
    SELECT run_id, scope, source, target, task_id,
           bool_or(observed) AS observed,
           arg_max(payload_hash, audit_seq) AS payload_hash,
           max(audit_seq) AS last_audit_seq
    FROM handed
    WHERE source IS NOT NULL
    GROUP BY run_id, scope, source, target, task_id
)
SELECT run_id,
       scope,
       source,
       target,
       CASE WHEN bool_or(observed) THEN 'observed' ELSE 'inferred' END AS kind,
       arg_max(payload_hash, last_audit_seq) AS payload_hash,
       count(*) AS executions,
       max(last_audit_seq) AS last_audit_seq
FROM executed
GROUP BY run_id, scope, source, target;

-- Columns
-- source: the node whose payload went
-- target: the node that read it
-- kind: observed if the framework told it, inferred if it was concluded from times and names
-- payload_hash [keyed hash]: the payload that went last
-- executions: executions of the target that read it; attempts of one count once
-- last_audit_seq: number of the span of the last of them
