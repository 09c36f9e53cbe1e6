-- The spans under the names of OpenTelemetry's ClickHouse exporter, so that its queries paste.
-- All attribute values are text there.
CREATE VIEW otel_traces AS
SELECT start_time AS "Timestamp",
       trace_id AS "TraceId",
       span_id AS "SpanId",
       coalesce(parent_span_id, '') AS "ParentSpanId",
       coalesce(trace_state, '') AS "TraceState",
       name AS "SpanName",
       upper(kind[1]) || lower(kind[2:]) AS "SpanKind",
       coalesce(service_name, '') AS "ServiceName",
       text_map(resource_attributes) AS "ResourceAttributes",
       coalesce(scope_name, '') AS "ScopeName",
       coalesce(scope_version, '') AS "ScopeVersion",
       map_concat(
           text_map(attributes),
           map_from_entries([('twinspan.action.' || entry.key, plain_value(entry.value))
                             FOR entry IN map_entries(coalesce(action_fields, MAP {}))]),
           map_from_entries([entry FOR entry IN [{promoted_entries}] IF entry[2] IS NOT NULL])
       ) AS "SpanAttributes",
       duration_ns::UBIGINT AS "Duration",
       upper(status_code[1]) || lower(status_code[2:]) AS "StatusCode",
       coalesce(status_message, '') AS "StatusMessage",
       {'Timestamp': [event.time FOR event IN events],
         'Name': [event.name FOR event IN events],
         'Attributes': [text_map(event.attributes) FOR event IN events]} AS "Events",
       {'TraceId': [link.trace_id FOR link IN links],
         'SpanId': [link.span_id FOR link IN links],
         'TraceState': ['' FOR link IN links],
         'Attributes': [map_concat(text_map(link.attributes),
                                   map_from_entries([entry FOR entry IN [
                                       ('twinspan.link.relation', link.relation),
                                       ('twinspan.link.edge', link.edge)
                                   ] IF entry[2] IS NOT NULL])) FOR link IN links]} AS "Links"
FROM spans;

-- Columns
-- Timestamp [UTC, to the microsecond]: when the span began
-- TraceId [hex, 32]: its trace
-- SpanId [hex, 16]: itself
-- ParentSpanId [hex, 16]: the span that it is a child of; empty for a root
-- TraceState: what systems on the way added to the trace's context
-- SpanName: what was done, and to what
-- SpanKind: Internal, Server, Client, Producer, Consumer or Unspecified
-- ServiceName: the program that made it
-- ResourceAttributes [text by key]: what is known of the program and its host
-- ScopeName: the instrumentation that made it
-- ScopeVersion: its version
-- SpanAttributes [text by key]: every attribute, under its own name
-- Duration [ns]: how long it took
-- StatusCode: Unset, Ok or Error
-- StatusMessage: what went wrong, in words
-- Events: what happened during the span, as lists side by side
-- Links: other spans that it refers to, as lists side by side
