"""Commands that look after the log and its database."""
