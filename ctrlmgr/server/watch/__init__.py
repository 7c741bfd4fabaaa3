"""Watches: their start, and the fan-out of each change to all watchers with one encoding."""
