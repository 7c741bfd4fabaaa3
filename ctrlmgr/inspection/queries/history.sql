-- What became of one object: every change of it, who made it, and what changed.
-- :resource text  such as pods or leases.coordination.k8s.io
-- :namespace text = -  its namespace; - for none
-- :name text  its name
SELECT revision, time, type, actor, controller, attempt, changes
FROM history
WHERE resource = :resource AND namespace = :namespace AND name = :name
ORDER BY revision
