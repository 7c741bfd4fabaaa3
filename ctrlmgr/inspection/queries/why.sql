-- All the changes that one event of a controller answered.
-- :revision revision  the event
SELECT cause_revision, cause_time, cause_type, cause_resource, cause_namespace, cause_name, cause_actor,
    controller, key, attempt
FROM causes
WHERE revision = :revision
ORDER BY cause_revision
