"""Compacts the log as the retention settings require."""
