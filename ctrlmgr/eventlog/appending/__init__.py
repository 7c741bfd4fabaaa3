"""Handles submitted appends until they are in the log: validates, queues and groups them, and commits each group."""
