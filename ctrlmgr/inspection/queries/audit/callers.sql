-- Who asks how much, and how much of it is refused.
-- :since text = -  a time such as 2026-01-02T03:04
SELECT
    coalesce(acts_for, username, '') AS user, agent, count(*) AS requests,
    sum(verb IN ('get', 'list', 'watch')) AS reads, sum(code IN (401, 403)) AS refused,
    round(avg(seconds) * 1000, 1) AS mean_ms, max(received_at) AS last
FROM requests
WHERE noted_at >= :since AND received_at >= :since
GROUP BY 1, 2
ORDER BY requests DESC
