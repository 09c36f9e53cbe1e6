-- Every span that was recorded, one row each, with every known column.
CREATE VIEW spans AS
SELECT {columns}
FROM recorded;

-- Columns
-- trace_id [hex, 32]: the trace of the span
-- span_id [hex, 16]: the span itself
-- parent_span_id [hex, 16]: the span that it is a child of; NULL for a root
-- trace_state: what systems on the way added to the trace's context
-- name: what was done, and to what
-- kind: INTERNAL, SERVER, CLIENT, PRODUCER, CONSUMER or UNSPECIFIED
-- status_code: UNSET, OK or ERROR
-- status_message: what went wrong, in words
-- start_time [UTC, to the microsecond]: when it began, for reckoning with dates
-- start_unix_nano [ns since 1970]: when it began, exactly
-- duration_ns [ns]: how long it took
-- service_name: the program that made it
-- scope_name: the instrumentation that made it
-- scope_version: its version
-- action_fields [JSON text by field]: the fields of a structured action
-- attributes [JSON]: every attribute that has no column of its own, under its own name
-- resource_attributes [JSON]: what is known of the program and its host
-- events: what happened during the span
-- links: other spans that it refers to, with the relation and the edge
-- dropped_attributes: attributes that were given up before recording
-- dropped_events: events that were given up before recording
-- dropped_links: links that were given up before recording
