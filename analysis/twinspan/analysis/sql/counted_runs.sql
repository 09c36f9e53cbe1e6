-- The runs that are counted: of several attempts at one place of an audit's design the one that
-- completed, else the last. A run that was made again after a crash is no further replicate.
-- Where a run has no condition, its arm says what it was.
CREATE VIEW counted_runs AS
SELECT run_id,
       audit_id,
       case_id,
       coalesce(condition_id, run_arm) AS condition_id,
       condition_kind,
       condition_axis,
       CASE WHEN condition_id IS NOT NULL THEN run_arm END AS arm,
       replicate_index AS replicate,
       gen_ai_request_model AS model,
       run_outcome AS outcome,
       error_type,
       audit_outcomes,
       audit_wording,
       run_order,
       -- As they were recorded, for those who name a run by them.
       condition_id AS recorded_condition_id,
       run_arm AS recorded_arm,
       gen_ai_agent_name AS graph
FROM roots
QUALIFY audit_id IS NULL OR replicate_index IS NULL
     OR row_number() OVER (
            PARTITION BY audit_id, gen_ai_request_model, case_id, condition_id, run_arm,
                         replicate_index
            ORDER BY run_outcome IS NOT DISTINCT FROM 'completed' DESC, start_unix_nano DESC
        ) = 1;
