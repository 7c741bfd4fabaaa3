-- How many of the newest events there were in each minute.
-- :last int = 10000  how many of the newest events to look at
SELECT min(time) AS time, count(*) AS events, min(revision) AS first_revision, max(revision) AS last_revision
FROM timeline
WHERE revision > (SELECT revision FROM log_head) - :last
GROUP BY recorded_at / 60000000
ORDER BY time
