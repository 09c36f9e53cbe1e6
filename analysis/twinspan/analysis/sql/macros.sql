-- A key of the JSON rest. Keys are flat and dotted: a pointer finds them, a JSON path would not.
CREATE MACRO attr(attributes, key) AS
    json_extract_string(attributes, '/' || replace(replace(key, '~', '~0'), '/', '~1'));

-- A JSON object as a map of texts.
CREATE MACRO text_map(document) AS
    map_from_entries([(key, attr(document, key)) FOR key IN json_keys(document)]);

-- A JSON value as plain text: text without its quotes, NULL for null.
CREATE MACRO plain_value(value) AS
    CASE WHEN value = 'null' THEN NULL
         WHEN starts_with(value, '"') THEN json_extract_string(value, '$')
         ELSE value END;

-- Whether a plain value and a literal stand in an operator's relation. Numbers compare as
-- numbers; of anything else only equality has a meaning.
CREATE MACRO holds(value, operator, literal) AS
    CASE operator
        WHEN '==' THEN coalesce(TRY_CAST(value AS DOUBLE) = TRY_CAST(literal AS DOUBLE),
                                value = literal)
        WHEN '!=' THEN coalesce(TRY_CAST(value AS DOUBLE) <> TRY_CAST(literal AS DOUBLE),
                                value <> literal)
        WHEN '<=' THEN TRY_CAST(value AS DOUBLE) <= TRY_CAST(literal AS DOUBLE)
        WHEN '>=' THEN TRY_CAST(value AS DOUBLE) >= TRY_CAST(literal AS DOUBLE)
        WHEN '<' THEN TRY_CAST(value AS DOUBLE) < TRY_CAST(literal AS DOUBLE)
        WHEN '>' THEN TRY_CAST(value AS DOUBLE) > TRY_CAST(literal AS DOUBLE)
    END;

-- The mean of a list of pairwise distances; NULL where there is no pair.
CREATE MACRO mean_distance(distances, places) AS
    CASE WHEN len(places) > 0
         THEN list_sum(list_select(distances, places)) / len(places) END;

-- Columns
-- scope: the holder's task for nodes of a subgraph; empty for the graph itself
-- arm: the arm of a whole-run audit
-- graph: the graph's name
-- reason: why, from a closed list
-- purpose: work, probe or repair: what a model call was made for
