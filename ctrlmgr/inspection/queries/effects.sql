-- What controllers wrote because of one event.
-- :revision revision  the event
SELECT revision, time, type, resource, namespace, name, controller, key, attempt
FROM causes
WHERE cause_revision = :revision
ORDER BY revision
