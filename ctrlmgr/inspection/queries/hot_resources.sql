-- How much was written of each resource.
SELECT resource, count(*) AS objects, CAST(sum(writes) AS bigint) AS writes
FROM hot_objects
GROUP BY resource
ORDER BY writes DESC, resource
