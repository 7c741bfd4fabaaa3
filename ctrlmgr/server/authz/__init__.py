"""Authorizers that ask other processes."""
