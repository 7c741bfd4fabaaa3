"""Forgets old events of the log, as the retention settings say."""
