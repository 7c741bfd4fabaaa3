-- How often each object was written, deleted ones included.
SELECT
    o.resource, o.namespace, o.name, s.writes, o.create_revision, o.head_revision,
    CASE WHEN o.deleted THEN 0 ELSE 1 END AS existing
FROM (SELECT e.object_id, count(*) AS writes FROM event AS e GROUP BY e.object_id) AS s
JOIN object AS o ON o.id = s.object_id
