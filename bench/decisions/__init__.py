"""Benchmarks behind decisions: each compares the code of this project with an alternative, where both are installed."""
