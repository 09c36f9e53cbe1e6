-- One row per audit: its sealed plan, and whether every run of it is recorded.
CREATE VIEW audits AS
WITH sealed AS (
    SELECT audit_id,
           first(audit_name ORDER BY start_unix_nano) AS name,
           first(audit_plan_hash ORDER BY start_unix_nano) AS plan_hash,
           count(DISTINCT audit_plan_hash) AS plans,
           first(audit_expected_run_count ORDER BY start_unix_nano) AS expected_runs,
           first(audit_case_count ORDER BY start_unix_nano) AS cases,
           first(audit_replicate_count ORDER BY start_unix_nano) AS replicates,
           first(audit_seed ORDER BY start_unix_nano) AS seed,
           first(audit_axes ORDER BY start_unix_nano) AS axes,
           first(audit_wording ORDER BY start_unix_nano) AS wording,
           min(start_unix_nano + duration_ns) AS sealed_unix_nano,
           count(*) AS sessions
    FROM spans
    WHERE span_type = 'plan' AND audit_id IS NOT NULL
    GROUP BY audit_id
),
closed AS (
    SELECT audit_id,
           last(audit_verdict ORDER BY start_unix_nano) AS verdict,
           last(test_suite_run_status ORDER BY start_unix_nano) AS status
    FROM spans
    WHERE span_type = 'audit' AND audit_id IS NOT NULL
    GROUP BY audit_id
),
made AS (
    SELECT audit_id,
           count(*) AS observed_runs,
           count(*) FILTER (outcome = 'completed') AS completed_runs
    FROM counted_runs
    WHERE audit_id IS NOT NULL
    GROUP BY audit_id
),
begun AS (
    SELECT audit_id, min(start_unix_nano) AS first_run_unix_nano
    FROM roots
    WHERE audit_id IS NOT NULL
    GROUP BY audit_id
)
SELECT sealed.audit_id,
       name,
       plan_hash,
       plans = 1 AS one_plan,
       coalesce(sealed_unix_nano <= first_run_unix_nano, true) AS sealed_before_results,
       expected_runs,
       coalesce(observed_runs, 0) AS observed_runs,
       coalesce(completed_runs, 0) AS completed_runs,
       expected_runs - coalesce(observed_runs, 0) AS missing_runs,
       CASE WHEN expected_runs > coalesce(observed_runs, 0) THEN 'incomplete'
            ELSE verdict END AS verdict,
       status,
       sessions,
       cases,
       replicates,
       axes,
       wording,
       seed
FROM sealed
LEFT JOIN closed ON closed.audit_id = sealed.audit_id
LEFT JOIN made ON made.audit_id = sealed.audit_id
LEFT JOIN begun ON begun.audit_id = sealed.audit_id;

-- Columns
-- name: the audit's name
-- plan_hash: the sealed design
-- one_plan: whether all sessions had the same design
-- sealed_before_results: whether the design was recorded before the first run began
-- expected_runs: runs that the design has
-- observed_runs: runs that are recorded and count
-- completed_runs: those of them that came to their end
-- missing_runs: runs of the design that are not recorded
-- verdict: clear, flagged, inconclusive; incomplete where runs are missing
-- status: what became of the audit as a test suite
-- sessions: times that it was begun or taken up again
-- cases: cases of the design
-- replicates: runs of each case and condition
-- axes: axes under audit
-- wording: how words were drawn
-- seed: seed of the random order
