-- One row per counted run and outcome that it should have acted on: the value, or NULL where the
-- answer is missing. A view over actions shows what was answered; this one also what was not.
CREATE VIEW answers AS
WITH expected AS (
    SELECT run_id, given_outcomes.action FROM counted_runs, given_outcomes
    UNION
    -- Rules that an importer lent to runs count only where somebody acted on them.
    SELECT run_id, action
    FROM (SELECT run_id, audit_id,
                 trim(regexp_extract(unnest(audit_outcomes), '^([^=]+)=', 1)) AS action
          FROM counted_runs
          WHERE NOT EXISTS (FROM given_outcomes))
    WHERE audit_id IS NOT NULL OR action IN (SELECT action FROM actions)
    UNION
    SELECT plain.run_id, told.action
    FROM (FROM counted_runs
          WHERE coalesce(len(audit_outcomes), 0) = 0
            AND NOT EXISTS (FROM given_outcomes)) AS plain
    JOIN (SELECT DISTINCT action FROM actions
          WHERE run_id IN (SELECT run_id FROM counted_runs
                           WHERE coalesce(len(audit_outcomes), 0) = 0)) AS told ON true
)
SELECT runs.run_id,
       runs.audit_id,
       runs.model,
       runs.arm,
       runs.condition_id,
       runs.case_id,
       runs.replicate,
       runs.outcome AS run_outcome,
       expected.action,
       actions.value
FROM counted_runs AS runs
JOIN expected ON expected.run_id = runs.run_id
LEFT JOIN actions ON actions.run_id = runs.run_id AND actions.action = expected.action
WHERE runs.case_id IS NOT NULL AND runs.condition_id IS NOT NULL;

-- Columns
-- model: the model that the run names
-- arm: the arm of a whole-run audit
-- replicate: number of the run among those of the same case and condition
-- action: the outcome's name
-- value: what the run did, as text; NULL where the answer is missing
