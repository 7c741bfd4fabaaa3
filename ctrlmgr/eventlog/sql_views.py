"""Renders the SQL views that users query, for SQLite and PostgreSQL, from `migrations/views/*.sql`.

Guarantees:
- A view has the same columns and values on SQLite and PostgreSQL; a test compares them.
- All SQL that differs between the two databases is in this module. In the template of a view, a name in braces inserts
  a dialect's SQL: `{time:e.recorded_at}`.

Released migrations contain these names. Therefore new names may be added, but existing names must not change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ctrlmgr.eventlog.database_schema import migrations_folder

VIEWS = (
    "objects",
    "timeline",
    "history",
    "causes",
    "reconciles",
    "leaders",
    "allocations",
    "endpoints_by_service",
    "hot_objects",
)
"""The views, in the order in which the documentation lists them.

On PostgreSQL, `objects_at` is a function, so it is not listed.
"""

_CALL = re.compile(r"\{(\w+):([^{}]*)\}")
_STEP = re.compile(r'"([^"]+)"|([^.$"]+)')
_TYPES = "CASE {0} WHEN 1 THEN 'ADDED' WHEN 2 THEN 'MODIFIED' WHEN 3 THEN 'DELETED' END"

_EACH = """json_each(
        CASE json_type({0}, '$.' || {1}) WHEN 'array' THEN json_extract({0}, '$.' || {1}) ELSE '[]' END) AS {2}"""

_SQLITE = {
    "event": "JOIN event AS {0} ON {0}.revision = {1}",
    "state": """JOIN event AS nearest ON nearest.object_id = {1} AND nearest.previous = (
    SELECT max(probe.previous) FROM event AS probe
    WHERE probe.object_id = {1} AND probe.previous <= :revision
)
JOIN event AS {0}
    ON {0}.revision = CASE WHEN nearest.revision <= :revision THEN nearest.revision ELSE nearest.previous END""",
    "time": "strftime('%Y-%m-%dT%H:%M:%S', {0} / 1000000, 'unixepoch') || printf('.%06dZ', {0} % 1000000)",
    "type": _TYPES,
    "text": "json_extract({0}, '{1}')",
    "flag": "json_extract({0}, '{1}')",
    "json": "json_extract({0}, '{1}')",
    "items": _EACH,
    "words": _EACH,
    "triggers": "(SELECT '[' || group_concat(g.revision, ',') || ']' FROM (SELECT t.revision"
    " FROM reconcile_trigger AS t WHERE t.reconcile_id = {0} ORDER BY t.revision) AS g)",
    "changes": """(
        SELECT json_group_array(json_object('path', d.path, 'from', json(d.was), 'to', json(d.now))) FROM (
            SELECT leaf.path, max(leaf.was) AS was, max(leaf.now) AS now FROM (
                SELECT w.fullkey AS path, CASE w.type WHEN 'text' THEN json_quote(w.value) WHEN 'true' THEN 'true'
                    WHEN 'false' THEN 'false' WHEN 'null' THEN 'null' ELSE CAST(w.value AS TEXT) END AS was, NULL AS now
                FROM json_tree({0}) AS w WHERE w.type NOT IN ('object', 'array') OR w.value IN ('{{}}', '[]')
                UNION ALL
                SELECT n.fullkey, NULL, CASE n.type WHEN 'text' THEN json_quote(n.value) WHEN 'true' THEN 'true'
                    WHEN 'false' THEN 'false' WHEN 'null' THEN 'null' ELSE CAST(n.value AS TEXT) END
                FROM json_tree({1}) AS n WHERE n.type NOT IN ('object', 'array') OR n.value IN ('{{}}', '[]')
            ) AS leaf
            WHERE {0} IS NOT NULL AND substr(leaf.path, 1, 24) <> '$.metadata.managedFields'
            GROUP BY leaf.path HAVING max(leaf.was) IS NOT max(leaf.now) ORDER BY leaf.path
        ) AS d)""",
}
# For a LATERAL subquery with a LIMIT, PostgreSQL looks up one object after the other in the index. For a join without
# LATERAL, the database would read all events.
_POSTGRES = {
    "event": "CROSS JOIN LATERAL (SELECT * FROM event AS probe WHERE probe.revision = {1} LIMIT 1) AS {0}",
    "state": """CROSS JOIN LATERAL (
    SELECT CASE WHEN probe.revision <= :revision THEN probe.revision ELSE probe.previous END AS revision
    FROM event AS probe
    WHERE probe.object_id = {1} AND probe.previous <= :revision
    ORDER BY probe.previous DESC LIMIT 1
) AS nearest
CROSS JOIN LATERAL (SELECT * FROM event AS probe WHERE probe.revision = nearest.revision LIMIT 1) AS {0}""",
    "time": "to_char(timestamp 'epoch' + {0} * interval '1 microsecond', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
    "type": _TYPES,
    "text": "(log_json({0}::text) #>> '{1}')",
    "flag": "CASE log_json({0}::text) #>> '{1}' WHEN 'true' THEN 1 WHEN 'false' THEN 0 END",
    "json": "(log_json({0}::text) #>> '{1}')",
    "items": "json_array_elements(log_array({0}::text, {1})) AS {2}(value)",
    "words": "json_array_elements_text(log_array({0}::text, {1})) AS {2}(value)",
    "triggers": "(SELECT '[' || string_agg(t.revision::text, ',' ORDER BY t.revision) || ']'"
    " FROM reconcile_trigger AS t WHERE t.reconcile_id = {0})",
    "changes": "CASE WHEN {0} IS NOT NULL THEN log_changes({0}, {1}) END",
}


def select(name: str, dialect: str) -> str:
    """Return the SELECT of a view, or of `objects_at` with its parameter `:revision`, for `sqlite` or `postgresql`."""
    template = (migrations_folder() / "views" / f"{name}.sql").read_text(encoding="utf-8")
    return render(template, dialect).strip()


def description(name: str) -> str:
    """Return the description of a view, which is the first line of its template."""
    template = (migrations_folder() / "views" / f"{name}.sql").read_text(encoding="utf-8")
    return template.partition("\n")[0].removeprefix("-- ")


def render(template: str, dialect: str) -> str:
    """Replace each call in braces with the SQL of `dialect`; raises KeyError if a name is unknown."""
    words, write_path = (_SQLITE, str) if dialect == "sqlite" else (_POSTGRES, _path_array)
    return _CALL.sub(lambda call: _say(words[call[1]], call[2].split(":"), write_path), template)


def _say(phrase: str, arguments: list[str], write_path: Callable[[str], str]) -> str:
    return phrase.format(*(write_path(each) if each.startswith("$.") else each for each in arguments))


def _path_array(path: str) -> str:
    """Convert a JSON path such as `$.a."b.c"` to PostgreSQL's form, `{"a","b.c"}`."""
    return "{" + ",".join(f'"{quoted or plain}"' for quoted, plain in _STEP.findall(path)) + "}"


def statements(dialect: str) -> Iterator[str]:
    """Yield the statements that create the views in a database that has no views yet."""
    if dialect == "postgresql":
        yield (migrations_folder() / "postgres" / "json.sql").read_text(encoding="utf-8")
        yield _objects_at()
    for name in VIEWS:
        yield f"CREATE VIEW {name} AS\n{select(name, dialect)}"


def _objects_at() -> str:
    """Return the statement that creates `objects_at`, a function of a single SELECT, which PostgreSQL inlines."""
    columns = (
        'resource text, namespace text, name text, uid text, revision bigint, "time" text, recorded_at bigint, '
        "actor text, user_agent text, kind text, api_version text, created_at text, labels text, body text"
    )
    body = select("objects_at", "postgresql").replace(":revision", "at_revision")
    return (
        f"CREATE FUNCTION objects_at(at_revision bigint) RETURNS TABLE ({columns})\n"
        f"LANGUAGE sql STABLE PARALLEL SAFE AS $$\n{body}\n$$"
    )
