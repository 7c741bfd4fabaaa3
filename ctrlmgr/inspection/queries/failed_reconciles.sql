-- The newest reconciles that wrote something and then failed, or never ended.
-- :limit int = 20  how many
SELECT f.id, f.controller, f.key, f.attempt, f.time, f.outcome, f.message, f.writes, f.last_write
FROM (
    SELECT id FROM reconcile WHERE outcome IS NULL OR outcome IN ('error', 'terminal')
    ORDER BY started_at DESC LIMIT :limit
) AS newest
JOIN reconciles AS f ON f.id = newest.id
ORDER BY f.started_at DESC
