"""Encrypted payloads of a log, and the data keys that encrypt them."""
