"""Auditing of requests: the audit step of the request chain, backends for files and the database, and the webhook."""
