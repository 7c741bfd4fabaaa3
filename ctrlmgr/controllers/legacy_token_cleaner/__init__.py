"""Retires tokens of service accounts that were made unasked and that nobody has used for a year."""
