-- The log as it was written: one row an event, without its content.
SELECT
    e.revision, {time:e.recorded_at} AS time, e.recorded_at, {type:e.type} AS type,
    o.resource, o.namespace, o.name, e.actor, e.user_agent, e.term,
    e.reconcile_id, r.controller, r.key, r.attempt, {triggers:e.reconcile_id} AS triggers
FROM event AS e
JOIN object AS o ON o.id = e.object_id
LEFT JOIN reconcile AS r ON r.id = e.reconcile_id
