-- What existed at a moment, of one resource.
-- :resource text  such as pods or leases.coordination.k8s.io
-- :at revision = head  the moment
SELECT namespace, name, revision, time, actor
FROM objects_at(:at) AS o
WHERE resource = :resource
ORDER BY namespace, name
