-- The root span of each run; of a run that was resumed, the first.
CREATE VIEW roots AS
SELECT DISTINCT ON (run_id) *
FROM spans
WHERE span_type = 'run' AND run_id IS NOT NULL
ORDER BY start_unix_nano;
