"""Encrypts the payloads of a log, and stores the data keys that encrypt the payloads."""
