"""Expressions about writes: what they are given to look at, and how match conditions and policies are evaluated."""
