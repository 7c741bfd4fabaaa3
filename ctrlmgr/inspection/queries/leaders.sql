-- The terms of leaders: who led, from when to when, and how much was written.
SELECT term, holder, first_revision, last_revision, from_time, to_time, writes
FROM leaders
ORDER BY term
