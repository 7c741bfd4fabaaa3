"""The limits for a server under attack: the waits of others, and the cost of an input."""
