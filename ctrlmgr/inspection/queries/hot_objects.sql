-- The objects that were written most often.
-- :limit int = 20  how many
SELECT o.resource, o.namespace, o.name, most.writes, o.create_revision, o.head_revision,
    CASE WHEN o.deleted THEN 0 ELSE 1 END AS existing
FROM (
    SELECT object_id, count(*) AS writes FROM event GROUP BY object_id ORDER BY count(*) DESC, object_id LIMIT :limit
) AS most
JOIN object AS o ON o.id = most.object_id
ORDER BY most.writes DESC, o.resource, o.namespace, o.name
