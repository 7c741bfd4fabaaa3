"""The CronJob controller: makes Jobs by the clock."""
