-- What became of each object: one row an event, with what it changed.
SELECT
    o.resource, o.namespace, o.name, e.revision, e.previous, {type:e.type} AS type,
    {time:e.recorded_at} AS time, e.recorded_at, e.actor, e.user_agent, e.term,
    e.reconcile_id, r.controller, r.key, r.attempt,
    CASE WHEN e.type <> 1 THEN {changes:before.body:e.body} END AS changes, e.body
FROM object AS o
JOIN event AS e ON e.object_id = o.id
LEFT JOIN event AS before ON before.revision = e.previous
LEFT JOIN reconcile AS r ON r.id = e.reconcile_id
