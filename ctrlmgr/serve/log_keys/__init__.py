"""Checks at the start, and reloads, the keys with which a serving process encrypts its log."""
