"""Audits requests: the audit step of the request chain passes events to files, to the database, or to a webhook."""
