-- Objects that several writers changed lately: those that undo each other's work are among them.
-- :last int = 10000  how many of the newest events to look at
SELECT resource, namespace, name, count(DISTINCT actor) AS writers, count(*) AS writes, max(revision) AS newest
FROM timeline
WHERE revision > (SELECT revision FROM log_head) - :last
GROUP BY resource, namespace, name
HAVING count(DISTINCT actor) > 1
ORDER BY writes DESC, resource, namespace, name
