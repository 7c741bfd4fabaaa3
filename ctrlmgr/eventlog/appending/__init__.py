"""Appends before they are in the log: validation, the queue, and the group that one thread commits."""
