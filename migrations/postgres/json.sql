-- The functions with which the views read JSON on PostgreSQL. On SQLite, the views use SQLite's JSON functions.

-- Returns a stored body as JSON. U+FFFD replaces the character NUL, which JSON allows and PostgreSQL's text does not.
CREATE FUNCTION log_json(document text) RETURNS json
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT replace(document, '\u0000', '\ufffd')::json $$;

-- Returns a member of a JSON object if the member is an array, otherwise null.
CREATE FUNCTION log_array(document text, member text) RETURNS json
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE json_typeof(log_json(document) -> member) WHEN 'array' THEN log_json(document) -> member END
$$;

-- Returns the paths of all values in a JSON document that are no objects or arrays, or are empty, each with the JSON text
-- of the value. Paths have the form that SQLite uses.
CREATE FUNCTION log_leaves(document text) RETURNS TABLE (path text, value text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    WITH RECURSIVE node(path, value) AS (
        SELECT '$', log_json(document)::jsonb
        UNION ALL
        SELECT node.path || child.step, child.value
        FROM node CROSS JOIN LATERAL (
            SELECT CASE WHEN m.key ~ '^[A-Za-z][A-Za-z0-9]*$' THEN '.' || m.key ELSE '."' || m.key || '"' END, m.value
            FROM jsonb_each(CASE jsonb_typeof(node.value) WHEN 'object' THEN node.value ELSE '{}' END) AS m
            UNION ALL
            SELECT '[' || i.number - 1 || ']', i.value
            FROM jsonb_array_elements(CASE jsonb_typeof(node.value) WHEN 'array' THEN node.value ELSE '[]' END)
                 WITH ORDINALITY AS i(value, number)
        ) AS child(step, value)
    )
    SELECT node.path, node.value::text FROM node
    WHERE jsonb_typeof(node.value) NOT IN ('object', 'array') OR node.value IN ('{}', '[]')
$$;

-- Returns a JSON array of {"path", "from", "to"}, in the order of the paths. The value of `from` or `to` is null if the
-- document before or after the change has no value at the path.
CREATE FUNCTION log_changes(before text, after text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT '[' || coalesce(string_agg(
        '{"path":' || to_json(path) || ',"from":' || coalesce(b.value, 'null')
        || ',"to":' || coalesce(a.value, 'null') || '}', ',' ORDER BY path COLLATE "C"), '') || ']'
    FROM log_leaves(before) AS b FULL JOIN log_leaves(after) AS a USING (path)
    WHERE b.value IS DISTINCT FROM a.value AND NOT starts_with(path, '$.metadata.managedFields')
        AND before IS NOT NULL AND after IS NOT NULL
$$;
