-- What each controller's reconciles that wrote something took, and how they ended.
SELECT controller, count(*) AS reconciles, round(avg(duration) / 1000.0, 3) AS mean_ms,
    max(duration) / 1000.0 AS longest_ms, sum(CASE WHEN outcome IN ('error', 'terminal') THEN 1 ELSE 0 END) AS failed,
    sum(CASE WHEN outcome IS NULL THEN 1 ELSE 0 END) AS unfinished, max(attempt) AS most_attempts
FROM reconcile
GROUP BY controller
ORDER BY controller
