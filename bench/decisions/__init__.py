"""Benchmarks for decisions: each compares this project's code with an alternative."""
