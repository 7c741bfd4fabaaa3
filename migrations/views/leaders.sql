-- The terms of leaders: from the append that took over to the last one that carried the term.
SELECT
    s.term, o.name AS lease, {text:lease.body:$.spec.holderIdentity} AS holder, first.actor,
    s.first_revision, s.last_revision, {time:first.recorded_at} AS from_time, {time:last.recorded_at} AS to_time,
    s.writes
FROM (
    SELECT e.term, min(e.revision) AS first_revision, max(e.revision) AS last_revision, count(*) AS writes
    FROM event AS e
    WHERE e.term <> 0
    GROUP BY e.term
) AS s
JOIN event AS first ON first.revision = s.first_revision
JOIN event AS last ON last.revision = s.last_revision
LEFT JOIN object AS o ON o.id = first.object_id AND o.resource = 'leases.coordination.k8s.io'
LEFT JOIN event AS lease ON lease.revision = s.first_revision AND o.id IS NOT NULL
