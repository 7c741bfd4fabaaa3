-- The newest requests that were audited: who asked for what, when, and what became of it.
-- :user text = -  the user that it was made by or for
-- :verb text = -  such as get, list or create
-- :resource text = -  such as pods
-- :namespace text = -  its namespace
-- :name text = -  the object's name
-- :refused text = no  yes: only those that were answered with 401 or 403
-- :since text = -  a time such as 2026-01-02T03:04
-- :limit int = 50  how many
SELECT
    received_at, coalesce(acts_for, username, '') AS user, verb,
    CASE WHEN resource IS NULL THEN uri ELSE
        resource || CASE WHEN coalesce(api_group, '') = '' THEN '' ELSE '.' || api_group END
        || CASE WHEN subresource = '' THEN '' ELSE '/' || subresource END
    END AS what,
    namespace, name, code, coalesce(nullif(message, ''), because, '') AS why, round(seconds * 1000, 1) AS ms, source, id
FROM requests
WHERE (:user = '' OR username = :user OR acts_for = :user) AND (:verb = '' OR verb = :verb)
    AND (:resource = '' OR resource = :resource) AND (:namespace = '' OR namespace = :namespace)
    AND (:name = '' OR name = :name) AND (:refused <> 'yes' OR code IN (401, 403))
    AND noted_at >= :since AND received_at >= :since
ORDER BY noted_at DESC, received_at DESC
LIMIT :limit
