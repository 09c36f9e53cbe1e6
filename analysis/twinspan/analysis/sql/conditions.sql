-- One row per condition of an audit: what kind it is, and whether others are compared with it.
-- The reference is the one given with the question, else the one recorded as such, else the only
-- one whose name begins with ref.
CREATE VIEW conditions AS
WITH told AS (
    SELECT condition_id,
           first(condition_kind) AS kind,
           first(condition_axis) AS axis,
           count(*) AS runs,
           count(DISTINCT case_id) AS cases
    FROM counted_runs
    WHERE condition_id IS NOT NULL AND case_id IS NOT NULL
    GROUP BY condition_id
),
found AS (
    SELECT count(*) FILTER (kind = 'reference') AS recorded,
           count(*) FILTER (starts_with(lower(condition_id), 'ref')) AS named,
           (SELECT count(*) FROM given_reference) AS given
    FROM told
)
SELECT condition_id,
       kind,
       axis,
       CASE WHEN given > 0 THEN condition_id IN (SELECT condition_id FROM given_reference)
            WHEN recorded > 0 THEN kind IS NOT DISTINCT FROM 'reference'
            ELSE named = 1 AND starts_with(lower(condition_id), 'ref') END AS is_reference,
       coalesce(kind IN ('rerender', 'sham_attribute', 'rare_token', 'no_descriptor'),
                contains(lower(condition_id), 'control')) AS is_control,
       runs,
       cases
FROM told, found;

-- Columns
-- kind: what the condition is in the design: reference, counterfactual or a control
-- axis: the axis that it varies
-- is_reference: whether others are compared with it
-- is_control: whether it varies something that must not matter
-- runs: runs under it that count
-- cases: cases that they cover
