-- One row per run and outcome that it acted on. A run's outcomes are the rules given with the
-- question, else those recorded with the run, else every scalar field of every action, named
-- step.field. Of several executions of a step the last counts.
CREATE VIEW actions AS
WITH root AS MATERIALIZED (
    SELECT run_id,
           case_id,
           recorded_condition_id AS condition_id,
           replicate,
           recorded_arm AS arm,
           model,
           audit_id,
           graph,
           audit_outcomes,
           -- Runs with the same rules share a set: rules are read once for each set.
           CASE WHEN EXISTS (FROM given_outcomes) THEN 0::UBIGINT
                WHEN len(audit_outcomes) > 0 THEN hash(audit_outcomes)
           END AS rule_set
    FROM counted_runs
),
recorded_rules AS (
    SELECT rule_set, unnest(any_value(audit_outcomes)) AS rule
    FROM root
    WHERE rule_set <> 0
    GROUP BY rule_set
),
read_rules AS (
    SELECT rule_set,
           regexp_extract(rule, '{rule_pattern}',
                          ['action', 'step', 'field', 'operator', 'literal']) AS parts
    FROM recorded_rules
),
rules AS (
    SELECT 0::UBIGINT AS rule_set, action, step, field, operator, literal FROM given_outcomes
    UNION ALL
    SELECT rule_set,
           parts.action,
           trim(parts.step) AS step,
           parts.field,
           nullif(parts.operator, '') AS operator,
           nullif(trim(parts.literal, '"'''), '') AS literal
    FROM read_rules
    WHERE parts.action <> ''
),
told AS (
    SELECT run_id,
           node_id AS step,
           start_unix_nano,
           unnest(map_keys(action_fields)) AS field,
           unnest(map_values(action_fields)) AS value
    FROM spans
    WHERE span_type = 'node'
      AND action_fields IS NOT NULL
      AND (node_outcome IS NULL OR node_outcome IN ('ok', 'halted'))
),
latest AS (
    SELECT run_id, step, field, arg_max(value, start_unix_nano) AS value
    FROM told
    GROUP BY run_id, step, field
),
acted AS (
    SELECT root.*, latest.step, latest.field, latest.value
    FROM latest
    JOIN root ON root.run_id = latest.run_id
)
SELECT run_id, case_id, condition_id, replicate, arm, model, audit_id, graph,
       acted.step,
       coalesce(rules.action, acted.step || '.' || acted.field) AS action,
       CASE WHEN operator IS NULL THEN plain_value(value)
            ELSE holds(plain_value(value), operator, literal)::VARCHAR END AS value
FROM acted
LEFT JOIN rules
  ON rules.rule_set = acted.rule_set AND rules.step = acted.step AND rules.field = acted.field
WHERE rules.action IS NOT NULL
   OR (acted.rule_set IS NULL AND value[1] NOT IN ('[', '{'));

-- Columns
-- replicate: number of the run among those of the same case and condition
-- model: the model that the run names
-- action: the outcome's name
-- value: what the run did, as text; of several executions of a step the last counts
