-- What was deleted last, and by whom.
-- :limit int = 20  how many
SELECT t.revision, t.time, t.resource, t.namespace, t.name, t.actor, t.controller
FROM (SELECT head_revision FROM object WHERE deleted ORDER BY head_revision DESC LIMIT :limit) AS newest
JOIN timeline AS t ON t.revision = newest.head_revision
ORDER BY t.revision DESC
