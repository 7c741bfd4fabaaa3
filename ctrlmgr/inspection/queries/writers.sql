-- Who wrote the newest events, and how many.
-- :last int = 10000  how many of the newest events to look at
SELECT actor, user_agent, count(*) AS writes, min(revision) AS first_revision, max(revision) AS last_revision
FROM event
WHERE revision > (SELECT revision FROM log_head) - :last
GROUP BY actor, user_agent
ORDER BY writes DESC, actor, user_agent
