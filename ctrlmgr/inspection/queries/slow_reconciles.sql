-- The reconciles that took longest.
-- :limit int = 20  how many
SELECT s.id, s.controller, s.key, s.attempt, s.time, s.duration / 1000.0 AS ms, s.outcome, s.trigger_count, s.writes
FROM (SELECT id FROM reconcile WHERE duration IS NOT NULL ORDER BY duration DESC LIMIT :limit) AS slowest
JOIN reconciles AS s ON s.id = slowest.id
ORDER BY s.duration DESC
