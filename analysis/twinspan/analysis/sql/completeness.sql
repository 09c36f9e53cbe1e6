-- One row per run: how many of its spans are here, and whether that is all.
-- How it is known is said in runs.sql.
CREATE VIEW completeness AS
WITH writers AS (
    SELECT run_id,
           audit_writer,
           count(*) AS spans,
           max(audit_seq) + 1 AS numbered,
           max(run_span_count) FILTER (span_type = 'run') AS announced,
           count(*) FILTER (span_type = 'run') AS roots,
           count(*) FILTER (span_type = 'network') AS decisions,
           count(*) FILTER (span_type = 'node') AS executions,
           count(run_resumed) > 0 AS resumed
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
           bool_or(roots = 0 AND executions > 0) AND bool_or(resumed) AS cut_short,
           bool_or(roots > 0 AND announced IS NULL) AS unannounced,
           bool_or(announced < spans) AS overfull
    FROM writers
    GROUP BY run_id
)
SELECT run_id,
       CASE WHEN roots = 0 OR cut_short OR missing > 0 OR unannounced OR overfull
            THEN 'incomplete' ELSE 'complete' END AS completeness,
       concat_ws('; ',
           CASE WHEN roots = 0 THEN 'the root span is missing' END,
           CASE WHEN roots > 0 AND cut_short
                THEN 'a process that worked on it left no root span' END,
           CASE WHEN missing > 0
                THEN missing || ' of ' || (span_count + missing) || ' spans are missing' END,
           CASE WHEN unannounced THEN 'the root span announces no number of spans' END,
           CASE WHEN overfull THEN 'there are more spans than were announced' END
       ) AS incomplete_reason,
       span_count,
       missing,
       writers,
       decision_count
FROM counts;
