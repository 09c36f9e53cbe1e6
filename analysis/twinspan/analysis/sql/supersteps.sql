-- One row per superstep: what ran together, and what was decided when it was over.
CREATE VIEW supersteps AS
WITH ran AS (
    SELECT run_id,
           coalesce(superstep_scope, '') AS scope,
           superstep_index AS superstep,
           list_sort(list(DISTINCT node_id)) AS nodes,
           count(DISTINCT coalesce(node_task_id, span_id)) AS executions,
           count(*) AS attempts,
           min(start_unix_nano) AS begun,
           max(start_unix_nano + duration_ns) AS ended
    FROM spans
    WHERE span_type = 'node'
    GROUP BY ALL
),
decided AS (
    SELECT run_id, scope, superstep,
           arg_max(b_fast, audit_seq) AS b_fast,
           arg_max(b_slow, audit_seq) AS b_slow,
           arg_max(monitor, audit_seq) AS monitor,
           arg_max(decision, audit_seq) AS decision
    FROM decisions
    GROUP BY ALL
)
SELECT run_id,
       scope,
       superstep,
       nodes,
       executions,
       attempts,
       b_fast,
       b_slow,
       monitor,
       decision,
       make_timestamptz(begun // 1000) AS start_time,
       ended - begun AS duration_ns
FROM ran
LEFT JOIN decided USING (run_id, scope, superstep);

-- Columns
-- nodes: what ran in it, in alphabetical order
-- executions: tasks that ran; attempts of one count once
-- attempts: node spans, repetitions included
-- b_fast: the fast network score after it
-- b_slow: the slow network score after it
-- monitor: the run's accumulated evidence after it
-- decision: what was decided when it was over
-- duration_ns [ns]: from the first start to the last end
