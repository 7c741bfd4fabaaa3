-- What led to what: one row for each event that a controller wrote and each change that its reconcile answered.
SELECT
    e.revision, {time:e.recorded_at} AS time, {type:e.type} AS type, o.resource, o.namespace, o.name,
    e.actor, e.term, e.reconcile_id, r.controller, r.key, r.attempt,
    t.revision AS cause_revision, {time:c.recorded_at} AS cause_time, {type:c.type} AS cause_type,
    p.resource AS cause_resource, p.namespace AS cause_namespace, p.name AS cause_name,
    c.actor AS cause_actor, c.user_agent AS cause_user_agent, c.reconcile_id AS cause_reconcile_id
FROM event AS e
JOIN object AS o ON o.id = e.object_id
JOIN reconcile AS r ON r.id = e.reconcile_id
JOIN reconcile_trigger AS t ON t.reconcile_id = e.reconcile_id
LEFT JOIN event AS c ON c.revision = t.revision
LEFT JOIN object AS p ON p.id = c.object_id
WHERE e.reconcile_id <> 0
