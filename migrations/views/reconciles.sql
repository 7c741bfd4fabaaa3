-- The reconciles that wrote something: what made them run, how they ended, what they wrote.
SELECT
    r.id, r.controller, r.key, r.attempt, {time:r.started_at} AS time, r.started_at, r.duration,
    r.outcome, r.message, {triggers:r.id} AS triggers,
    (SELECT count(*) FROM reconcile_trigger AS t WHERE t.reconcile_id = r.id) AS trigger_count,
    (SELECT max(t.revision) FROM reconcile_trigger AS t WHERE t.reconcile_id = r.id) AS last_trigger,
    (SELECT count(*) FROM event AS e WHERE e.reconcile_id = r.id AND e.reconcile_id <> 0) AS writes,
    (SELECT min(e.revision) FROM event AS e WHERE e.reconcile_id = r.id AND e.reconcile_id <> 0) AS first_write,
    (SELECT max(e.revision) FROM event AS e WHERE e.reconcile_id = r.id AND e.reconcile_id <> 0) AS last_write
FROM reconcile AS r
