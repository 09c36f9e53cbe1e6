-- The root span of each run; of a run that was resumed, the first.
CREATE VIEW roots AS
SELECT *
FROM spans
WHERE span_type = 'run' AND run_id IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY start_unix_nano) = 1;
