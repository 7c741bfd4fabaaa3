"""Benchmarks for design decisions: each compares this project's code with an alternative."""
