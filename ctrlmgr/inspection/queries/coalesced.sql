-- The reconciles that answered the most changes at once.
-- :limit int = 20  how many
SELECT m.id, m.controller, m.key, m.time, m.trigger_count, m.last_trigger, m.writes, m.first_write
FROM (
    SELECT reconcile_id FROM reconcile_trigger GROUP BY reconcile_id ORDER BY count(*) DESC, reconcile_id LIMIT :limit
) AS most
JOIN reconciles AS m ON m.id = most.reconcile_id
ORDER BY m.trigger_count DESC, m.id
