"""Removes certificate signing requests that nobody waits for any more."""
