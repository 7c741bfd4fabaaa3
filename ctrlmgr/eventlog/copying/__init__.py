"""Copies of a log in other databases: forks that continue independently, and whole copies with the same identity."""
