-- Where a Service leads now.
-- :namespace text = default  its namespace
-- :service text  its name
SELECT resource, name, address, ready, target_kind, target_name, node, ports, revision, time
FROM endpoints_by_service
WHERE namespace = :namespace AND service = :service
ORDER BY resource, name, address
