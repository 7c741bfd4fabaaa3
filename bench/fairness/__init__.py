"""Measures how priority and fairness treat a quiet client beside a noisy client, and what they cost."""
