"""Commands that look at what is in the log, and why."""
