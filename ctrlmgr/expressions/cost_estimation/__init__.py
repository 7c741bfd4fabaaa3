"""Estimates the maximum cost of an expression from its text and the maximum sizes of its variables."""
