"""Commands for the maintenance of the log and its database."""
