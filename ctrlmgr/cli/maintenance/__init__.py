"""Commands that maintain the log and its database."""
