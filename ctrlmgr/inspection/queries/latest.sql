-- What happened last.
-- :limit int = 20  how many events
SELECT revision, time, type, resource, namespace, name, actor, controller, triggers
FROM timeline
ORDER BY revision DESC
LIMIT :limit
