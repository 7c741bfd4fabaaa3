"""Keeps the `default` ServiceAccount in every namespace."""
