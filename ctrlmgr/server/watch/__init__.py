"""Watches: how they begin, and how all watchers are told of a change with one encoding."""
