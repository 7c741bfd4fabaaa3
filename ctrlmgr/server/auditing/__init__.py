"""The audit step of the request chain, the backends for files and the database, and the audit webhook."""
