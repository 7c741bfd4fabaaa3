-- Which ClusterIPs and node ports the Services of a namespace hold.
-- :namespace text = default  the namespace
SELECT type, value, owner_resource, owner_name, revision, time, actor
FROM allocations
WHERE owner_namespace = :namespace
ORDER BY owner_name, type, value
