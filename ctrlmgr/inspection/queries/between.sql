-- What happened between two moments.
-- :from revision  the last event before
-- :to revision = head  the last event of interest
SELECT revision, time, type, resource, namespace, name, actor, controller, triggers
FROM timeline
WHERE revision > :from AND revision <= :to
ORDER BY revision
